"""The metrics of each package, read from the source code, for docs/metrics.md."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("webhook", "extender", "controller", "muster")
"""Packages that have metrics; those of `muster` are in every process."""
_KINDS: Final = ("Counter", "Gauge", "Histogram")


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


def rows(package: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each metric of a package: name, kind, labels and help."""
    for each in metrics(package):
        yield f"`{each.name}`", each.kind, ", ".join(f"`{label}`" for label in each.labels), each.help


def _metric(node: ast.AST) -> Metric | None:
    """Return the metric of a declaration, whose arguments must be literals; None for other code."""
    match node:
        case ast.Call(func=ast.Name(id=kind), args=[ast.Constant(value=str(name)), *_]) if kind in _KINDS:
            pass
        case _:
            return None
    _, text, *more = [ast.literal_eval(each) for each in node.args]
    named: list[list[str]] = [ast.literal_eval(each.value) for each in node.keywords if each.arg == "labelnames"]
    labels: list[str] = [*more, *named, []][0]
    ending = "" if kind != "Counter" or name.endswith("_total") else "_total"
    return Metric(f"{name}{ending}", kind.lower(), tuple(labels), text.rstrip("."))
