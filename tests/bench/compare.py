"""Muster end to end, and its drains beside stock kube-scheduler, in turns; a table, also for docs/benchmarks.md.

`python -m tests.bench compare`; `tests.bench.peers` has the comparison with other gang schedulers. Every figure is the
median of three turns, or of seven starts. The figures of the last release are in `released.json` beside this file;
`python -m tests.bench.compare --keep` writes the figures of docs/benchmarks.json there.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from musterctl.plane.plane import Plane
from tests.bench import drain, review, startup, throughput
from tests.bench.blocks import put
from tests.bench.throughput import NODE_COUNT, Run, make_nodes
from tests.bench.usual import resident_mib

ROOT = Path(__file__).parents[2]
PAGE, FIGURES = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks.json"
RELEASED = Path(__file__).with_name("released.json")
TURNS = 3
Figures = dict[str, float]


class Line(NamedTuple):
    """A line of the table."""

    what: str
    key: str
    """Of the figure."""
    unit: str
    beside: str = ""
    """Key of the figure that it is compared with."""
    wanted: str = ""
    """What the design asks for: of the ratio where there is one, else of the figure."""


LINES = (
    Line("drain of 3,000 pods, stock kube-scheduler", "drain stock", "pods/s"),
    Line("drain of 3,000 planned pods", "drain planned", "pods/s", "drain stock", "≥ 0.95"),
    Line("drain of 3,000 gated pods", "drain gated", "pods/s", "drain stock", "≥ 0.5"),
    Line("30 Jobs x 100 pods, submission to last bind", "30x100", "pods/s"),
    Line("first bind of the 30 Jobs", "30x100 first", "s", "", "≤ 1 s"),
    Line("10 Jobs x 300 pods", "10x300", "pods/s"),
    Line("1,000 Jobs x 1 pod", "1000x1", "pods/s"),
    Line("extender, CPU per planned pod", "drain planned extender", "ms", "", "≤ 1.3"),
    Line("extender, CPU per pod of 30 x 100", "30x100 extender", "ms"),
    Line("API server, CPU per pod of 30 x 100", "30x100 kube-apiserver", "ms"),
    Line("all processes, CPU per pod of 30 x 100", "30x100 all", "ms"),
    Line("extender, memory after all these runs", "extender MiB", "MiB", "", "≤ 150"),
    Line("extender ready after its start, 50,000 pods", "start", "s", "", "≤ 4"),
    Line("extender, memory with 50,000 pods", "start MiB", "MiB", "", "≤ 200"),
    Line("webhook, CPU of a review over TLS", "review", "ms", "", "≤ 1.2"),
)


def run(turns: int = TURNS) -> Iterator[str]:
    """Prints each run, then the table; writes the page."""
    samples: dict[str, list[float]] = {}
    for turn in range(turns):
        for name, one in _turn():
            yield f"turn {turn + 1}: {name} {one:.2f}"
            samples.setdefault(name, []).append(one)
    for start in startup.run():
        yield str(start)
        samples.setdefault("start", []).append(start.ready_s)
        samples.setdefault("start MiB", []).append(start.mib)
    figures = {name: statistics.median(values) for name, values in samples.items()}
    FIGURES.write_text(json.dumps({name: round(value, 3) for name, value in figures.items()}, indent=1) + "\n")
    table = "\n".join(rows(figures, read(RELEASED)))
    put(PAGE, "own", "make bench", page(table, turns))
    yield table


def _turn() -> Iterator[tuple[str, float]]:
    """Every figure once."""
    for side, result in zip(drain.SIDES, drain.run(), strict=True):
        yield from _figures(f"drain {side}", result)
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "p", throughput.PARTS, bound=True) as plane:
        client = plane.client()
        make_nodes(client, NODE_COUNT)
        throughput.warm_up(plane, client)
        for gangs, members in throughput.SIZES:
            yield from _figures(f"{gangs}x{members}", throughput.measure(plane, client, gangs, members))
        yield "extender MiB", resident_mib(plane.part("extender").pid or 0)
    for load in review.loads((1,)):
        yield "review", load.cpu_ms


def _figures(name: str, result: Run) -> Iterator[tuple[str, float]]:
    if result.lacking:
        raise RuntimeError(f"{result.what}: {result.lacking} pods were not bound in time")
    yield name, result.pods_s
    yield f"{name} first", result.first_s
    yield f"{name} all", sum(result.cpu_ms.values())
    for process, cost in result.cpu_ms.items():
        yield f"{name} {process}", cost


def rows(figures: Figures, released: Figures) -> Iterator[str]:
    """The table, in Markdown."""
    yield "| benchmark | result | compared with | ratio | target | last release |"
    yield "|---|---|---|---|---|---|"
    for line in LINES:
        value, other, before = figures[line.key], figures.get(line.beside), released.get(line.key)
        beside = "" if other is None else f"{other:.3g} {line.unit}"
        ratio = "" if not other else f"{value / other:.2f}"
        then = "" if before is None else f"{before:.3g} {line.unit}"
        yield f"| {line.what} | {value:.3g} {line.unit} | {beside} | {ratio} | {line.wanted} | {then} |"


def page(table: str, turns: int) -> str:
    """Return the block of docs/benchmarks.md."""
    return f"""{NODE_COUNT:,} nodes. Each result is the median of {turns} runs.
{where()}

{table}

* At the start of a drain, all pods are waiting. The rate of a drain is measured from the first binding to the last.
* The other rates are measured from the first submission to the last binding. An earlier gang of
  {throughput.WARM_UP[1]} pods, which is not measured, lets newly started processes open their connections.
* The extender's start is measured {startup.TURNS} times on one cluster. A garbage collection of the API server
  during a start adds about 0.5 s."""


def where() -> str:
    """Return commit, date and machine."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    day = time.strftime("%Y-%m-%d", time.gmtime())
    machine = f"{os.cpu_count()} CPUs ({platform.machine()}) and {gib:.0f} GiB of memory"
    return f"Measured with commit {commit} on {day}, on a machine with {machine}."


def read(path: Path) -> Figures:
    """Figures from a file; none if there is no such file."""
    return dict(json.loads(path.read_text())) if path.exists() else {}


if __name__ == "__main__" and "--keep" in sys.argv:
    RELEASED.write_text(FIGURES.read_text())
