"""Facts in the documentation that come from the code: defaults, limits, lists of plugins.

A page marks a fact as `<!--fact NAME-->text<!--/fact-->`; `make generate` writes the text from `FACTS`, and
`make check-generated` fails if a page differs. A name that is not in the table is an error.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from inspect import getdoc, signature
from pathlib import Path
from typing import Final, NamedTuple, get_args, get_origin, get_type_hints

from controller.job.actions import KNOWN
from controller.job.rules import faults
from controller.trainjob.rules.reports import MAX_BYTES as REPORT_BYTES
from extender.barrier import LONGEST_S, MEMBER_S
from extender.explain.clusterdump import READ, kind_name
from extender.planner.actions import ACTIONS, evicting, obstacles
from extender.planner.configuration.tables import defaults, table, tables
from extender.planner.framework.answers import ReservationRules
from extender.planner.framework.config import SchedulerConfig
from extender.planner.framework.hooks import Hooks
from extender.planner.framework.registry import Registry
from extender.planner.plugins import PLUGINS
from extender.settings import ExtenderSettings
from muster.api.limits import LIMITS
from muster.runtime.plugins import mpi_objects, mpi_settings, simple, torch
from muster.volcano.plugins.registry import BUILT_IN
from muster.workloads.table import KINDS
from musterctl import settings
from musterctl.chart import alerts
from musterctl.chart.files import RUNTIMES
from musterctl.commands.trainfile import MAX_BYTES as SOURCE_BYTES
from musterctl.plane.binaries import CONTROL_PLANE, OLDER, release_of
from webhook.config import UNTOUCHED_NAMESPACES

_MARK: Final = re.compile(r"<!--fact (?P<name>[\w-]+)-->.*?<!--/fact-->", re.DOTALL)
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("webhook", "extender", "controller", "history", "musterctl", "muster")
"""Packages that have metrics; those of `muster` are in every process."""
_METRIC_KINDS: Final = ("Counter", "Gauge", "Histogram", "CounterMetricFamily")
"""The last is of a collector, which counts when it is asked."""


class UnknownFactError(ValueError):
    """A page names a fact that is not in the table; the message lists all facts."""


def filled(text: str, facts: Mapping[str, Callable[[], str]]) -> str:
    """Return the page with the current text of each fact."""

    def fact(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in facts:
            raise UnknownFactError(f"there is no fact {name!r}; there are {', '.join(sorted(facts))}")
        return f"<!--fact {name}-->{facts[name]()}<!--/fact-->"

    return _MARK.sub(fact, text)


def pages(root: Path) -> dict[Path, str]:
    """Return each page that has facts, with their current text; paths are below `root`."""
    found = (*sorted((root / "docs").glob("*.md")), root / "README.md", root / "CONTRIBUTING.md")
    texts = {path: path.read_text(encoding="utf-8") for path in found}
    return {path.relative_to(root): filled(text, FACTS) for path, text in texts.items() if _MARK.search(text)}


class Metric(NamedTuple):
    """One declared metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


def metrics(package: str) -> Iterator[Metric]:
    """Yield the metrics of a package, by name."""
    found: list[Metric] = []
    for path in sorted((ROOT / package).rglob("*.py")):
        found += filter(None, map(_metric, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    yield from sorted(found)


def _metric(node: ast.AST) -> Metric | None:
    """Return the metric of a declaration, whose arguments must be literals; None for other code."""
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
    return Metric(f"{name}{ending}", kind.lower(), tuple(labels), text.rstrip("."))


def _plain(number: float, unit: str) -> str:
    return f"{number:,g} {unit}"


def _code(names: Iterable[str]) -> str:
    """Return names as code, in a sentence: `a`, `b` and `c`."""
    *first, last = [f"`{name}`" for name in names]
    return f"{', '.join(first)} and {last}" if first else last


def _hooks() -> str:
    """Return a row per hook: the question, the function of its Protocol, and the rule."""
    rows = []
    types = get_type_hints(Hooks)
    for each in fields(Hooks):
        [protocol] = get_args(types[each.name])
        function = get_origin(protocol) or protocol
        _, *arguments = signature(function.__call__).parameters
        rule = (getdoc(each.metadata["rule"]) or "").rstrip(".")
        shape = f"`({', '.join(arguments)})`"
        rows.append((f"`{each.name}`", each.metadata["asks"], shape, getdoc(function) or "", rule))
    return table(("hook", "question", "function", "answer", "of several plugins"), rows)


_TABLES: Final = tables(Registry(PLUGINS, ACTIONS, installed=False))
"""Tables of Muster's own plugins and actions, without those of installed packages."""


def _flags(plugin: str) -> str:
    """Return the flags of a job plugin, each with its default."""
    flags = BUILT_IN[plugin].flags.items()
    shown = {flag: str(value).lower() if isinstance(value, bool) else value for flag, value in flags}
    return ", ".join(f"`{flag}` ({value})" if value != "" else f"`{flag}`" for flag, value in shown.items())


def _required() -> str:
    """Return the job plugins that admission adds, each with those that need it."""
    needs = {need: [name for name, plugin in BUILT_IN.items() if need in plugin.requires] for need in BUILT_IN}
    return ", and ".join(f"`{need}` for {_code(names)}" for need, names in needs.items() if names)


def _reserved() -> str:
    """Return the reserved variables of each framework."""
    plain = {"torch": torch.RESERVED, "jax": simple.JAX.RESERVED, "xgboost": simple.XGBoost.RESERVED}
    plain["tensorflow"] = simple.TensorFlow.RESERVED
    mpi = {f"mpi with {each.name}": each.reserved for each in mpi_settings.IMPLEMENTATIONS.values()}
    return "; ".join(f"{name}: {_code(variables)}" for name, variables in (plain | mpi).items())


def _settings(process: str) -> str:
    return table(("field", "default", "meaning"), settings.rows(process))


def _metrics(package: str) -> str:
    rows = [
        (f"`{each.name}`", each.kind, ", ".join(f"`{label}`" for label in each.labels), each.help)
        for each in metrics(package)
    ]
    return table(("metric", "kind", "labels", "meaning"), rows)


FACTS: Final[dict[str, Callable[[], str]]] = {
    "alerts": lambda: table(alerts.HEAD, alerts.rows()),
    "alerts-number": lambda: str(len([*alerts.rules()])),
    "barrier-timeout": lambda: _plain(ExtenderSettings().barrier_timeout_s, "s"),
    "barrier-member": lambda: _plain(MEMBER_S * 1000, "ms"),
    "barrier-longest": lambda: _plain(LONGEST_S, "s"),
    "build-minutes": lambda: _plain(CONTROL_PLANE.minutes, "minutes"),
    "command-actions": lambda: _code(KNOWN),
    "command-unchecked-namespaces": lambda: _code(UNTOUCHED_NAMESPACES),
    "cluster-reads": lambda: _code(kind_name(resource) for resource in READ),
    "default-actions": lambda: f"`{SchedulerConfig().actions}`",
    "default-configuration": lambda: f"\n\n```yaml\n{defaults()}```\n\n",
    "default-plugins": lambda: _code(each.name for tier in SchedulerConfig().tiers for each in tier.plugins),
    "expiry": lambda: _plain(ReservationRules().expiry_s / _HOUR_S, "hours"),
    "hooks": _hooks,
    "framework-variables-reserved": _reserved,
    "job-plugins": lambda: _code(BUILT_IN),
    "job-plugins-required": _required,
    "kinds-without-ranks": lambda: _code(kind.resource.kind for kind in KINDS if kind.no_ranks),
    "kubernetes-newest": lambda: release_of(CONTROL_PLANE.module),
    "kubernetes-oldest": lambda: release_of(OLDER[min(OLDER)].module),
    "kubernetes-older": lambda: _code(release_of(each.module) for each in OLDER.values()),
    "mpi-hostfile-annotation": lambda: _plain(mpi_objects.ANNOTATION_BYTES / 1024, "KiB"),
    "mpi-wait": lambda: _plain(mpi_settings.DEFAULT_WAIT_S, "s"),
    "patience": lambda: _plain(ReservationRules().patience_s / _MINUTE_S, "minutes"),
    "placed-slots": lambda: f"{obstacles.LIMIT:,}",
    "searches-of-a-queue": lambda: str(evicting.ATTEMPTS_PER_QUEUE),
    "searches-of-a-cycle": lambda: str(evicting.ATTEMPTS),
    "user-exit-codes": lambda: str(faults.LAST_OF_USERS),
    "disruption-explains": lambda: _plain(faults.FOLLOWS_S, "s"),
    "train-source-bytes": lambda: _plain(SOURCE_BYTES, "bytes"),
    "train-report-bytes": lambda: _plain(REPORT_BYTES / 1024, "KiB"),
    "train-runtimes": lambda: _code(sorted(path.stem for path in RUNTIMES.glob("*.yaml"))),
    **{f"job-plugin-flags-{name}": partial(_flags, name) for name in BUILT_IN if BUILT_IN[name].flags},
    **{f"limit-{each.name.replace(' ', '-')}": partial("{:,} {}".format, each.value, each.unit) for each in LIMITS},
    **{f"settings-{name}": partial(_settings, name) for name in settings.PROCESSES},
    **{f"metrics-{name}": partial(_metrics, name) for name in PACKAGES},
    **{f"scheduler-{name}": partial(str, text) for name, text in _TABLES.items()},
}
