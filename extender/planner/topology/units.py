"""Units of a pod set: ranks that are placed together or not at all, when a gang starts, grows or is repaired.

They are the partitions of a task, or the slices that annotations ask for. Half of a slice in a domain without room for
the rest is a dead end: its pods take room that nobody can use, and the others may go nowhere else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.planner.state.podset import PodSetView
from extender.planner.topology.requests import Kind, Request


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The units of one gang."""

    united: frozenset[str]
    """Pod sets of which some pods are placed in units of several."""
    _sliced: Mapping[str, Sequence[Kind]]
    """Pod set → the kinds of its pods that ask for slices of several; other pod sets are left out."""

    def of(self, pod_set: PodSetView, ranks: Sequence[int]) -> list[list[int]]:
        """Return these ranks by unit, in their order."""
        kinds = self._sliced.get(pod_set.name) if pod_set.unit == 1 else None
        if not kinds:
            return list(pod_set.units(ranks))
        units: dict[tuple[int, int], list[int]] = {}
        numbers = [(kind.slices[0].size, _places(kind)) for kind in kinds]
        for rank in ranks:
            unit = (-1, rank)
            for number, (size, places) in enumerate(numbers):
                place = rank if places is None else places.get(rank)
                if place is not None:
                    unit = number, place // size
            units.setdefault(unit, []).append(rank)
        return list(units.values())

    def complete(self, pod_set: PodSetView, units: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """Return those units of open slots whose other ranks all have a node, or failed: none is to come later.

        Pods of a unit appear one after the other. The first could take a domain that does not hold the rest.
        """
        there = {rank for unit in units for rank in unit} | pod_set.taken.keys() | pod_set.failed
        missing = [rank for rank in range(pod_set.replicas) if rank not in there]
        if not missing:
            return list(units)
        owners = self.of(pod_set, sorted({*missing, *(rank for unit in units for rank in unit)}))
        absent = set(missing)
        open_ranks = {rank for unit in owners if absent.isdisjoint(unit) for rank in unit}
        return [unit for unit in units if open_ranks.issuperset(unit)]


def units_of(pod_sets: Sequence[PodSetView], request: Request | None) -> Units:
    """Return the units of these pod sets of a gang, with the slices that its topology request asks for."""
    sliced: dict[str, list[Kind]] = {}
    for kind in request.kinds if request is not None else ():
        if kind.slices and kind.slices[0].size > 1:
            sliced.setdefault(kind.pod_set, []).append(kind)
    return Units(frozenset([*sliced, *(pod_set.name for pod_set in pod_sets if pod_set.unit > 1)]), sliced)


def _places(kind: Kind) -> Mapping[int, int] | None:
    return None if kind.ranks is None else {rank: place for place, rank in enumerate(sorted(kind.ranks))}
