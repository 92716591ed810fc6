"""Conversions between a placement's runs of ranks and the nodes of single ranks."""

from collections.abc import Collection, Iterator, Mapping

from muster.api.limits import PODS
from muster.api.muster.gang import Slot
from muster.api.muster.placement import NodeRun, Placement


def by_rank(texts: Mapping[int, str]) -> list[str]:
    """Return the texts, keyed by rank, as a list in rank order, with "" for ranks without a text."""
    return [texts.get(rank, "") for rank in range(max(texts, default=-1) + 1)]


def slots_of(placement: Placement) -> Iterator[tuple[Slot, str]]:
    """Yield every slot that has a node, with this node, in the stored order of pod sets and in rank order.

    The function stops at the limit of pods per gang, so that large counts, which users may write, cost no time.
    """
    left = PODS.value
    for pod_set in placement.spec.pod_sets:
        for ranks, node in ranks_of(pod_set.runs):
            for rank in ranks[:left]:
                yield Slot(pod_set.name, rank), node
            left -= min(left, len(ranks))
            if not left:
                return


def runs_of(nodes: Mapping[int, str]) -> list[NodeRun]:
    """Convert a mapping from ranks to nodes into runs of ranks, in linear time; "" means no node."""
    runs: list[NodeRun] = []
    next_rank = 0
    for rank in sorted(rank for rank, node in nodes.items() if node):
        if rank > next_rank:
            runs.append(NodeRun(count=rank - next_rank))
        if runs and runs[-1].node == nodes[rank]:
            runs[-1].count += 1
        else:
            runs.append(NodeRun(node=nodes[rank]))
        next_rank = rank + 1
    return runs


def ranks_of(runs: list[NodeRun]) -> Iterator[tuple[range, str]]:
    """Yield the ranks (up to the limit of pods) and the node of each run that has a node."""
    first = 0
    for run in runs:
        ranks = range(min(first, PODS.value), min(first + run.count, PODS.value))
        first += run.count
        if run.node and ranks:
            yield ranks, run.node


def nodes_of(runs: list[NodeRun], ranks: Collection[int]) -> dict[int, str]:
    """Return the nodes of these ranks in one pass over the runs; ranks without a node are skipped."""
    wanted, found = sorted(ranks), dict[int, str]()
    place = 0
    for held, node in ranks_of(runs):
        while place < len(wanted) and wanted[place] < held.stop:
            if wanted[place] >= held.start:
                found[wanted[place]] = node
            place += 1
    return found
