"""Units of a pod set: ranks that are placed together or not at all, when a gang starts, grows or is repaired.

They are the partitions of a task, or the slices that annotations ask for. Half of a slice in a domain without room for
the rest is a dead end: its pods take room that nobody can use, and the others may go nowhere else.
"""

from collections.abc import Mapping, Sequence

from extender.planner.state.gangs import GangView
from extender.planner.state.podset import PodSetView
from extender.planner.topology.requests import Kind, request_of
from muster.api.limits import LimitError


def united(gang: GangView, pod_set: PodSetView) -> bool:
    """Return True if some of its pods are placed in units of several."""
    return pod_set.unit > 1 or bool(_sliced(gang, pod_set))


def units_of(gang: GangView, pod_set: PodSetView, ranks: Sequence[int]) -> list[list[int]]:
    """Return these ranks by unit, in their order."""
    kinds = _sliced(gang, pod_set) if pod_set.unit == 1 else []
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


def complete(gang: GangView, pod_set: PodSetView, units: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """Return the units of open slots whose other ranks all have a node, or failed, so that none is to come later.

    Pods of a unit appear one after the other. The first could take a domain that does not hold the rest.
    """
    if not united(gang, pod_set):
        return list(units)
    there = {rank for unit in units for rank in unit} | pod_set.taken.keys() | pod_set.failed
    missing = [rank for rank in range(pod_set.replicas) if rank not in there]
    if not missing:
        return list(units)
    owners = units_of(gang, pod_set, sorted({*missing, *(rank for unit in units for rank in unit)}))
    absent = set(missing)
    open_ranks = {rank for unit in owners if absent.isdisjoint(unit) for rank in unit}
    return [unit for unit in units if open_ranks.issuperset(unit)]


def _sliced(gang: GangView, pod_set: PodSetView) -> list[Kind]:
    """Return the kinds of its pods that ask for slices; none of a gang that asks for too much, which is set aside."""
    try:
        request = request_of(gang)
    except LimitError:
        return []
    kinds = request.kinds if request is not None else ()
    return [kind for kind in kinds if kind.pod_set == pod_set.name and kind.slices and kind.slices[0].size > 1]


def _places(kind: Kind) -> Mapping[int, int] | None:
    return None if kind.ranks is None else {rank: place for place, rank in enumerate(sorted(kind.ranks))}
