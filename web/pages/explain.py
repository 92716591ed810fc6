"""Reports for programs: `muster explain` asks here where its user may not list the cluster."""

from typing import Final

from starlette.responses import PlainTextResponse, Response

from extender.explain.text import lines_of
from web.asked import Asked

KINDS: Final = ("job", "gang", "pod")
_LABEL: Final = 12


def show(asked: Asked) -> Response:
    """Answer `/api/explain/NAMESPACE/NAME`: as `muster explain -o json` prints it, or with `?output=text` in lines."""
    namespace, name, kind = asked.path["namespace"], asked.path["name"], asked.query.get("kind", "job")
    if kind not in KINDS:
        raise asked.refused(f"kind is one of {', '.join(KINDS)}, and not {kind!r}")
    if not asked.caller.scope.has(namespace):
        raise asked.missing(f"{kind} {namespace}/{name}")
    now = asked.site.now()
    report = asked.site.explainer.explain(asked.caller, kind, namespace, name).report
    if asked.query.get("output") != "text":
        return asked.json(report)
    lines = [f"{line.label:<{_LABEL}}{line.text}".rstrip() for line in lines_of(report, now)]
    return PlainTextResponse("\n".join([*lines, ""]))
