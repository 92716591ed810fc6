"""Facts in the documentation that are generated from the code, such as defaults, limits and lists of plugins.

A page marks a fact as `<!--fact NAME-->text<!--/fact-->`; `make generate` writes the text from `FACTS`, and `make
check-generated` fails if a page differs. A page can use only facts whose names are in the table `FACTS`.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from controller.job.commands import KNOWN
from controller.job.rules import budget
from controller.trainjob.rules.reports import MAX_BYTES as REPORT_BYTES
from extender.barrier import LONGEST_S, MEMBER_S
from extender.explain.clusterdump import READ
from extender.planner import api as planner
from extender.settings import ExtenderSettings
from muster.api.limits import LIMITS
from muster.resources.accelerators import ACCELERATORS
from muster.runtime.plugins import mpi_objects, mpi_settings, simple, torch
from muster.volcano.plugins.registry import BUILT_IN
from muster.workloads.table import KINDS
from musterctl import settings
from musterctl.chart import generated
from musterctl.chart.files import FILES, RUNTIMES, document
from musterctl.chart.roles import RoleRule, named_tables
from musterctl.commands.features import FEATURES, INTERNAL, Feature
from musterctl.commands.trainfile import MAX_BYTES as SOURCE_BYTES
from musterctl.plane.binaries import CONTROL_PLANE, OLDER, release_of
from webhook.config import UNTOUCHED_NAMESPACES
from webhook.objects import foreign

ALERTS: Final = FILES / "alerts.yaml"
ALERT_HEADER: Final = ("alert", "severity", "fires after", "message", "explanation and what to do")
_PART: Final = re.compile(r"\{\{ with \$labels\.(\w+) \}\}(.*?)\{\{ \. \}\}(.*?)\{\{ end \}\}")
_LABEL: Final = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_VALUE: Final = re.compile(r"\{\{ \$value\b.*?\}\}")
_MARK: Final = re.compile(r"<!--fact\s+(?P<name>[\w-]+)-->.*?<!--/fact-->", re.DOTALL)
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("webhook", "extender", "controller", "history", "web", "muster")
"""Packages with metrics that the documentation lists; every process also exports the metrics of the package
`muster`."""
_METRIC_KINDS: Final = ("Counter", "Gauge", "Histogram", "CounterMetricFamily")
"""Names of the classes by which the code declares metrics. CounterMetricFamily is for collectors, which compute values
at each scrape."""


class UnknownFactError(ValueError):
    """Error for a page with an unknown fact; the message lists all facts."""


def filled(text: str, facts: Mapping[str, Callable[[], str]]) -> str:
    """Return the page with the current text of each fact."""

    def fact(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in facts:
            raise UnknownFactError(f"there is no fact {name!r}; known facts are {', '.join(sorted(facts))}")
        return f"<!--fact {name}-->{facts[name]()}<!--/fact-->"

    return _MARK.sub(fact, text)


def pages(root: Path) -> dict[Path, str]:
    """Return a mapping from the relative path of each page with facts to its text with the current facts."""
    found = (*sorted((root / "docs").glob("*.md")), *sorted(root.glob("*.md")))
    texts = {path: path.read_text(encoding="utf-8") for path in found}
    return {path.relative_to(root): filled(text, FACTS) for path, text in texts.items() if _MARK.search(text)}


class DeclaredMetric(NamedTuple):
    """One declared metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


@cache
def metrics(package: str) -> tuple[DeclaredMetric, ...]:
    """Return the metrics of a package, keyed by name; only files that import prometheus_client are parsed."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / package).rglob("*.py"))
    nodes = chain.from_iterable(ast.walk(ast.parse(text)) for text in texts if "prometheus_client" in text)
    return tuple(sorted(filter(None, map(_metric, nodes))))


def _metric(node: ast.AST) -> DeclaredMetric | None:
    """Return the metric that a call declares by literal arguments; None for other code."""
    match node:
        case ast.Call(func=ast.Name(id=kind), args=[ast.Constant(value=str(name)), *_]) if kind in _METRIC_KINDS:
            pass
        case _:
            return None
    kind = kind.removesuffix("MetricFamily")
    _, text, *more = [ast.literal_eval(each) for each in node.args]
    given = {"labelnames", "labels"}
    named: list[list[str]] = [ast.literal_eval(each.value) for each in node.keywords if each.arg in given]
    labels: list[str] = [*more, *named, []][0]
    ending = "" if kind != "Counter" or name.endswith("_total") else "_total"
    return DeclaredMetric(f"{name}{ending}", kind.lower(), tuple(labels), text.rstrip("."))


def _plain(number: float, unit: str) -> str:
    return f"{number:,g} {unit}"


def _code(names: Iterable[str]) -> str:
    """Return a list of names formatted as code, for a sentence: `a`, `b` and `c`."""
    *first, last = [f"`{name}`" for name in names]
    return f"{', '.join(first)} and {last}" if first else last


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, with empty lines around it."""
    lines = (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
    return "\n".join(("", "", f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *lines, "", ""))


_TABLES: Final = {name: _table(*found) for name, found in planner.documentation().items()}
"""Maps names to tables about the planner's configuration, in Markdown."""


def _flags(plugin: str) -> str:
    """Return the flags of a job plugin, each with its default."""
    flags = BUILT_IN[plugin].flags.items()
    shown = {flag: str(value).lower() if isinstance(value, bool) else value for flag, value in flags}
    return ", ".join(f"`{flag}` ({value})" if value != "" else f"`{flag}`" for flag, value in shown.items())


def _required() -> str:
    """Return a text about the job plugins that other job plugins need; admission adds these to a Job."""
    needs = {need: [name for name, plugin in BUILT_IN.items() if need in plugin.requires] for need in BUILT_IN}
    return ", and ".join(f"`{need}` for {_code(names)}" for need, names in needs.items() if names)


def _reserved() -> str:
    """Return the reserved variables of each framework."""
    plain = {"torch": torch.RESERVED, "jax": simple.JAX.RESERVED, "xgboost": simple.XGBoost.RESERVED}
    plain["tensorflow"] = simple.TensorFlowRuntime.RESERVED
    mpi = {f"mpi with {each.name}": each.reserved for each in mpi_settings.IMPLEMENTATIONS.values()}
    return "; ".join(f"{name}: {_code(variables)}" for name, variables in (plain | mpi).items())


def _feature(each: Feature) -> tuple[str, ...]:
    """Return the table row of a feature, with a link to the page about the feature."""
    return each.name, each.maturity, each.since, each.off, f"[{each.page.partition('#')[0]}]({each.page})"


def _names() -> Iterator[tuple[str, str]]:
    """Yield a table row for each maturity, with the names of its features, and one for internal names."""
    for maturity in ("stable", "beta", "alpha"):
        yield maturity, _code(sorted(name for each in FEATURES if each.maturity == maturity for name in each.names))
    yield "internal", _code(sorted(INTERNAL))


def _settings(process: str) -> str:
    return _table(("field", "default", "meaning"), settings.rows(process))


def _metrics(package: str) -> str:
    rows = [
        (f"`{each.name}`", each.kind, ", ".join(f"`{label}`" for label in each.labels), each.help)
        for each in metrics(package)
    ]
    return _table(("metric", "kind", "labels", "meaning"), rows)


def _role(rules: Sequence[RoleRule]) -> str:
    return _table(("resource", "verbs", "reason"), generated.rule_rows(rules))


def alert_rules() -> Iterator[dict[str, Any]]:
    """Yield the alerting rules of all groups, in the order of the file."""
    for group in document(ALERTS)["groups"]:
        yield from group["rules"]


def alert_rows() -> Iterator[tuple[str, ...]]:
    """Yield a table row for each alert; `ALERT_HEAD` has the headings of the columns."""
    for rule in alert_rules():
        annotations = rule["annotations"]
        yield (
            f"`{rule['alert']}`",
            rule["labels"]["severity"],
            rule.get("for", "at once"),
            alert_text(annotations["summary"]),
            alert_text(annotations["description"]),
        )


def alert_text(text: str) -> str:
    """Return an alert's text in which labels are replaced by names in capitals, and values by PERCENTAGE."""
    text = _PART.sub(lambda part: f"{part[2]}{part[1].upper()}{part[3]}", text)
    return _VALUE.sub("PERCENTAGE", _LABEL.sub(lambda label: label[1].upper(), text))


FACTS: Final[dict[str, Callable[[], str]]] = {
    "accelerators": lambda: _code(ACCELERATORS),
    "alerts": lambda: _table(ALERT_HEADER, alert_rows()),
    "alerts-number": lambda: str(len([*alert_rules()])),
    "barrier-timeout": lambda: _plain(ExtenderSettings().barrier_timeout_s, "s"),
    "barrier-member": lambda: _plain(MEMBER_S * 1000, "ms"),
    "barrier-longest": lambda: _plain(LONGEST_S, "s"),
    "build-minutes": lambda: _plain(CONTROL_PLANE.minutes, "minutes"),
    "command-actions": lambda: _code(KNOWN),
    "command-unchecked-namespaces": lambda: _code(UNTOUCHED_NAMESPACES),
    "chart-values": lambda: _table(("value", "default", "meaning"), generated.value_rows()),
    "command-rights": lambda: _table(("command", "role", "needs", "shows more with"), generated.command_rows()),
    "cluster-reads": lambda: _code(READ),
    "default-actions": lambda: f"`{planner.SchedulerConfig().actions}`",
    "default-configuration": lambda: f"\n\n```yaml\n{planner.defaults()}```\n\n",
    "default-plugins": lambda: _code(each.name for tier in planner.SchedulerConfig().tiers for each in tier.plugins),
    "expiry": lambda: _plain(planner.ReservationRules().expiry_s / _HOUR_S, "hours"),
    "features": lambda: _table(("feature", "maturity", "since", "how to disable", "page"), map(_feature, FEATURES)),
    "hooks": lambda: _table(*planner.hook_table()),
    "foreign-keys": lambda: _table(("label or annotation", "effect", "what to use in its place"), foreign.rows()),
    "framework-variables-reserved": _reserved,
    "job-plugins": lambda: _code(BUILT_IN),
    "job-plugins-required": _required,
    "kinds-without-ranks": lambda: _code(kind.resource.kind for kind in KINDS if kind.no_ranks),
    "kubernetes-newest": lambda: release_of(CONTROL_PLANE),
    "kubernetes-oldest": lambda: release_of(OLDER[min(OLDER)]),
    "kubernetes-older": lambda: _code(release_of(each) for each in OLDER.values()),
    "mpi-hostfile-annotation": lambda: _plain(mpi_objects.ANNOTATION_BYTES / 1024, "KiB"),
    "mpi-wait": lambda: _plain(mpi_settings.DEFAULT_WAIT_S, "s"),
    "names": lambda: _table(("maturity", "names"), _names()),
    "patience": lambda: _plain(planner.ReservationRules().patience_s / _MINUTE_S, "minutes"),
    "placed-slots": lambda: f"{planner.PLACED_SLOTS:,}",
    "searches-of-a-queue": lambda: str(planner.SEARCHES_OF_A_QUEUE),
    "searches-of-a-cycle": lambda: str(planner.SEARCHES_OF_A_CYCLE),
    "user-exit-codes": lambda: str(budget.LAST_OF_USERS),
    "disruption-explains": lambda: _plain(budget.FOLLOWS_S, "s"),
    "train-source-bytes": lambda: _plain(SOURCE_BYTES, "bytes"),
    "train-report-bytes": lambda: _plain(REPORT_BYTES / 1024, "KiB"),
    "train-runtimes": lambda: _code(sorted(path.stem for path in RUNTIMES.glob("*.yaml"))),
    **{f"job-plugin-flags-{name}": partial(_flags, name) for name in BUILT_IN if BUILT_IN[name].flags},
    **{f"limit-{each.name.replace(' ', '-')}": partial("{:,} {}".format, each.value, each.unit) for each in LIMITS},
    **{name: partial(_role, rules) for name, rules in named_tables().items()},
    **{f"settings-{name}": partial(_settings, name) for name in settings.PROCESSES},
    **{f"metrics-{name}": partial(_metrics, name) for name in PACKAGES},
    **{f"scheduler-{name}": partial(str, text) for name, text in _TABLES.items()},
}
