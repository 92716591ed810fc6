"""Responses for programs, at paths below /api.

The commands `muster history`, `usage` and `explain` read these responses if --server is set.
"""

from http import HTTPStatus
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from extender.explain.text import lines_of
from history.answers import QueryError, answers
from web.context import RequestContext


def show(context: RequestContext) -> Response:
    """Return the answer to /api/history, /api/history/NAMESPACE/NAME, /api/usage or /api/recorder, for the caller."""
    store = context.site.history
    if store is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND, "there is no history here: `history.enabled` of the chart adds a recorder"
        )
    path = context.request.url.path.removeprefix("/api/").split("/")
    try:
        found = answers(store, context.caller.scope, path, dict(context.query))
    except QueryError as error:
        raise context.refused(str(error)) from error
    return Response(msgspec.json.encode(found), media_type="application/json")


KINDS: Final = ("job", "gang", "pod")
_LABEL: Final = 12


def explained(context: RequestContext) -> Response:
    """Return the report at /api/explain/NAMESPACE/NAME as in `muster explain -o json`; as lines with `?output=text`."""
    namespace, name, kind = context.path["namespace"], context.path["name"], context.query.get("kind", "job")
    if kind not in KINDS:
        raise context.refused(f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    if not context.caller.scope.has(namespace):
        raise context.missing(f"{kind} {namespace}/{name}")
    now = context.site.now()
    report = context.site.explainer.explain(context.caller, kind, namespace, name).report
    if context.query.get("output") != "text":
        return context.json(report)
    lines = [f"{line.label:<{_LABEL}}{line.text}".rstrip() for line in lines_of(report, now)]
    return PlainTextResponse("\n".join([*lines, ""]))
