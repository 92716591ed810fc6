"""What docs/benchmarks.md and the README say of the peers: tables, versions, flags, and where Muster is worse.

The figures of the page are in `figures.json` beside this file. A run replaces the shapes that it has measured, with all
peers, as only figures of one run can be compared.
"""

import json
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench.blocks import put
from tests.bench.compare import PAGE, ROOT, where
from tests.bench.peers.meter import CLIENT, Sample, median
from tests.bench.peers.rounds import Rounds
from tests.bench.peers.shapes import SHAPES

README = ROOT / "README.md"
FIGURES = Path(__file__).with_name("figures.json")
MUSTER, LIMIT = "muster", "stock"
_HEADER = (
    "scheduler", "pods/s", "of the limit", "Muster / it", "first bind", "last bind", "CPU, own", "CPU, API server",
    "CPU, all", "writes", "idle", "memory, own",
)  # fmt: skip
_QUOTED = ("30x100", "1x3000", "500x1")
"""Shapes in the README."""


class Row(NamedTuple):
    """A peer in a run."""

    title: str
    about: str
    own: tuple[str, ...]


class Measured(NamedTuple):
    """A shape, with the samples of each peer."""

    title: str
    factor: float
    when: str
    """Date, commit and machine."""
    samples: dict[str, list[Sample]]
    failures: dict[str, str]

    def best(self, family: str) -> str:
        """Return the peer of the family with the highest rate; "" without any."""
        rates = {name: rate(found) for name, found in self.samples.items() if name.partition(".")[0] == family}
        return max(rates, key=lambda name: rates[name], default="")

    def ratio(self, name: str, other: str) -> float | None:
        """Return the median over the rounds of the rate of one peer divided by the rate of the other."""
        pairs = zip(self.samples.get(name, ()), self.samples.get(other, ()), strict=False)
        found = [one.rate / two.rate for one, two in pairs if two.rate]
        return statistics.median(found) if found else None


class Run(NamedTuple):
    """All figures, of one run or of the page."""

    peers: dict[str, Row]
    shapes: dict[str, Measured]

    @classmethod
    def of(cls, rounds: Rounds, factor: float) -> "Run":
        """Return the figures of rounds that have ended."""
        peers = {peer.name: Row(peer.title, peer.about(), tuple(peer.own)) for peer in rounds.peers}
        when, shapes = where(), rounds.shapes
        return cls(peers, {
            name: Measured(str(shapes[name]), factor, when, found, rounds.failures)
            for name, found in rounds.samples.items()
        })  # fmt: skip

    @classmethod
    def read(cls) -> "Run":
        """Return the figures of the page."""
        if not FIGURES.exists():
            return cls({}, {})
        kept = json.loads(FIGURES.read_text(encoding="utf-8"))
        peers = {name: Row(each["title"], each["about"], tuple(each["own"])) for name, each in kept["peers"].items()}
        return cls(peers, {
            name: Measured(**each | {"samples": {
                peer: [Sample(**one) for one in samples] for peer, samples in each["samples"].items()
            }})
            for name, each in kept["shapes"].items()
        })  # fmt: skip

    def keep(self) -> None:
        """Write the figures of the page."""
        shapes = {
            name: each._asdict() | {
                "samples": {peer: [_rounded(one._asdict()) for one in found] for peer, found in each.samples.items()}
            }
            for name, each in self.shapes.items()
        }  # fmt: skip
        kept = {"peers": {name: row._asdict() for name, row in self.peers.items()}, "shapes": shapes}
        FIGURES.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def rate(samples: Iterable[Sample]) -> float:
    """Return the median of the rates."""
    return statistics.median(each.rate for each in samples)


def write(run: Run) -> None:
    """Put the shapes of a run into the page, and what the README quotes of it."""
    before = Run.read()
    order = {name: place for place, name in enumerate(SHAPES)}
    shapes = dict(sorted((before.shapes | run.shapes).items(), key=lambda each: order[each[0]]))
    now = Run(before.peers | run.peers, shapes)
    now.keep()
    put(PAGE, "peers", "make bench-peers", "\n".join(tables(now)))
    put(README, "peers", "make bench-peers", "\n".join(quoted(now)))


def tables(run: Run) -> Iterator[str]:
    """Return the part of the page about peers, in Markdown."""
    for each in run.shapes.values():
        yield f"### {each.title}"
        yield ""
        yield each.when + ("" if each.factor == 1 else f" Gangs and nodes are scaled by {each.factor:g}.")
        yield ""
        yield from _table(run, each)
        yield ""
        for name, why in each.failures.items():
            yield f"* Without figures: {name}, {why.splitlines()[0]}"
        yield from worse(run, each)
        yield ""
    yield "### Versions and flags"
    yield ""
    for row in run.peers.values():
        yield f"* **{row.title}**: {row.about}."


def _table(run: Run, shape: Measured) -> Iterator[str]:
    yield f"| {' | '.join(_HEADER)} |"
    yield f"|{'---|' * len(_HEADER)}"
    for name, row in run.peers.items():
        if found := shape.samples.get(name):
            yield f"| {' | '.join(_cells(shape, name, row, found))} |"


def _cells(shape: Measured, name: str, row: Row, found: list[Sample]) -> Iterator[str]:
    """Return the cells of one peer: medians of its rounds."""
    middle, rates = median(found), [each.rate for each in found]
    spread = f" ({min(rates):.0f}-{max(rates):.0f})" if len(rates) > 1 else " (one round)"
    yield row.title + (f" ({middle.lacking:.0f} pods not bound)" if middle.lacking else "")
    yield f"{rate(found):.0f}{spread}"
    yield _times(shape.ratio(name, LIMIT))
    yield _times(shape.ratio(MUSTER, name))
    yield f"{middle.first_s:.1f} s"
    yield f"{middle.last_s:.1f} s"
    yield f"{own_cpu(row, middle):.1f} ms"
    yield f"{middle.cpu_ms.get('kube-apiserver', 0.0):.1f} ms"
    yield f"{all_cpu(middle):.1f} ms"
    yield f"{sum(middle.writes.values()):.1f}"
    yield f"{middle.idle:.0%}".replace("%", " %")
    yield f"{sum(middle.memory_mib.get(each, 0.0) for each in row.own):.0f} MiB"


def worse(run: Run, shape: Measured) -> Iterator[str]:
    """Return one line per peer that is better than Muster in something."""
    if MUSTER not in shape.samples:
        return
    ours, row = median(shape.samples[MUSTER]), run.peers[MUSTER]
    for family in dict.fromkeys(name.partition(".")[0] for name in shape.samples if name not in {MUSTER, LIMIT}):
        name = shape.best(family)
        theirs, other = median(shape.samples[name]), run.peers[name]
        title = f"*{other.title}*"
        figures = (
            (-rate(shape.samples[MUSTER]), -rate(shape.samples[name]),
             "With {}, {} pods are bound per second, with Muster {} pods."),
            (ours.first_s, theirs.first_s, "With {}, the first pod is bound after {} s, with Muster after {} s."),
            (own_cpu(row, ours), own_cpu(other, theirs),
             "The own processes of {} use {} ms of CPU per pod, Muster's own processes {} ms."),
            (all_cpu(ours), all_cpu(theirs), "With {}, all processes use {} ms of CPU per pod, with Muster {} ms."),
            (sum(ours.writes.values()), sum(theirs.writes.values()),
             "With {}, the API server gets {} writes per pod, with Muster {} writes."),
        )  # fmt: skip
        found = [text.format(title, f"{abs(two):.3g}", f"{abs(one):.3g}") for one, two, text in figures if one > two]
        if found:
            yield f"* {title}: better than Muster in {len(found)} of {len(figures)} figures. {' '.join(found)}"


def own_cpu(row: Row, sample: Sample) -> float:
    """Return the CPU milliseconds per pod of the scheduler's own processes."""
    return sum(sample.cpu_ms.get(each, 0.0) for each in row.own)


def all_cpu(sample: Sample) -> float:
    """Return the CPU milliseconds per pod of all processes but the client that measures."""
    return sum(cost for name, cost in sample.cpu_ms.items() if name != CLIENT)


def quoted(run: Run) -> Iterator[str]:
    """Return the table of the README: pods per second of each family's best."""
    shapes = [run.shapes[name] for name in _QUOTED if name in run.shapes]
    families = dict.fromkeys(name.partition(".")[0] for shape in shapes for name in shape.samples)
    yield f"| pods per second | {' | '.join(each.title for each in shapes)} |"
    yield f"|---|{'---|' * len(shapes)}"
    for family in families:
        bests = [shape.best(family) for shape in shapes]
        title = next(run.peers[name].title for name in bests if name)
        rates = [f"{rate(shape.samples[name]):.0f}" if name else "" for shape, name in zip(shapes, bests, strict=True)]
        yield f"| {title} | {' | '.join(rates)} |"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _rounded(each) if isinstance(each, dict) else round(each, 3) if isinstance(each, float) else each
        for name, each in figures.items()
    }
