"""Topologies as text: the tree of domains with their free resources, and the ranks of a gang in them."""

from collections.abc import Iterator, Mapping, Sequence

from extender.explain.topology import DomainReport, TopologyReport
from muster.resources.vector import amount_words

SHOWN = 8
"""The most names in one line."""
RANKS = 6
"""The most runs of ranks in one cell."""
NONE_LINES = (
    "there is no topology to draw: no levels of the plugin topology, no Topology of Kueue, and no HyperNode;",
    "gangs can ask for one domain of any node label all the same, e.g. topology.kubernetes.io/zone (docs/topology.md)",
)


def topology_lines(report: TopologyReport, gang: str = "") -> Iterator[str]:
    """Yield the lines of one topology; `gang` names the gang whose ranks are shown, empty for none."""
    levels = ", ".join(report.levels) or "no levels"
    yield f"Topology {report.name}: {levels}; {report.nodes} nodes"
    rows = list(_rows(report.domains, gang=bool(gang)))
    if rows:
        resources = list(report.domains[0].room)
        heads = ["DOMAIN", "LEVEL", "NODES", "UNUSED", *(f"{each} FREE/ALL" for each in resources), "FRAGMENTED"]
        yield from _aligned([[*heads, *([f"RANKS OF {gang}"] if gang else [])], *rows])
    else:
        yield "  no node is in a domain"
    if report.outside:
        yield f"in no domain: {_names(report.outside)}" + (_here(report.elsewhere, gang) if gang else "")
    if report.empty:
        yield f"without nodes: {_names(report.empty)}"
    for name, members in report.missing.items():
        yield f"HyperNode {name} names members that do not exist: {_names(members)}"
    told: dict[str, list[str]] = {}
    for name, messages in report.problems.items():
        for message in messages:
            told.setdefault(message, []).append(name)
    for message, names in told.items():
        yield f"! {_names(names)}: {message}"


def ranks_words(ranks: Mapping[str, Sequence[int]]) -> str:
    """Return ranks by pod set as text: `worker 0-7, 9; launcher 0`."""
    return "; ".join(f"{pod_set} {_runs(numbers)}" for pod_set, numbers in ranks.items())


def _rows(domains: Sequence[DomainReport], indent: str | None = None, *, gang: bool) -> Iterator[list[str]]:
    """Yield a row per domain, inner ones below it; `indent` is the text before their branches, None on top."""
    for place, each in enumerate(domains):
        last = place == len(domains) - 1
        branch = "" if indent is None else indent + ("`-- " if last else "|-- ")
        below = "" if indent is None else indent + ("    " if last else "|   ")
        room = [f"{amount_words(name, one.free)}/{amount_words(name, one.all)}" for name, one in each.room.items()]
        share = "-" if each.fragmented is None else f"{each.fragmented:.0%}"
        cells = [branch + each.name, each.level, str(each.nodes), str(each.unused), *room, share]
        yield [*cells, *([ranks_words(each.ranks)] if gang else [])]
        yield from _rows(each.domains, below, gang=gang)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield aligned rows: names and levels to the left, numbers to the right, ranks unaligned."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    numbers = range(2, rows[0].index("FRAGMENTED") + 1)
    for row in rows:
        cells = [
            f"{cell:>{width}}" if place in numbers else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def _runs(ranks: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    words = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    more = len(words) - RANKS
    return ", ".join(words[:RANKS]) + (f" and {more} more runs" if more > 0 else "")


def _here(ranks: Mapping[str, Sequence[int]], gang: str) -> str:
    return f"; there of {gang}: {ranks_words(ranks)}" if ranks else ""


def _names(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
