"""Demands of gangs, along the resource axis of a snapshot."""

from collections.abc import Mapping
from typing import cast

import numpy as np

from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import MAX_SUM, Amounts, sum_along, times
from extender.planner.state.gangs import GangView
from muster.resources.vector import vector


def minimum_wanted(gang: GangView) -> Mapping[str, int]:
    """How many open slots of each pod set must be filled for the gang to start, or to have again what it needs."""
    if gang.wanted is None:
        gang.wanted = _minimum_wanted(gang)
    return gang.wanted


def _minimum_wanted(gang: GangView) -> dict[str, int]:
    wanted = {pod_set.name: 0 for pod_set in gang.pod_sets}
    slots, floor = gang.open_slots(), gang.floor
    left = floor.min_member - gang.taken
    for pod_set in gang.pod_sets:
        missing = max(0, floor.min_task_member.get(pod_set.name, 0) - len(pod_set.taken))
        wanted[pod_set.name] = min(missing, len(slots[pod_set.name]))
        left -= wanted[pod_set.name]
    for pod_set in gang.pod_sets:
        more = max(0, min(left, len(slots[pod_set.name]) - wanted[pod_set.name]))
        wanted[pod_set.name] += more
        left -= more
    return wanted


def minimum_amounts(snapshot: Snapshot, gang: GangView) -> Amounts:
    """The amounts that a gang must get to start, or to have its minimum again; the array may not be changed.

    It is the same until the gang's view or the axis is made anew, and asked for several times in every cycle.
    """
    if gang.least is None or gang.least[0] is not snapshot.axis:
        gang.least = snapshot.axis, amounts_of(snapshot, gang, minimum_wanted(gang))
    return cast("Amounts", gang.least[1])


def amounts_of(snapshot: Snapshot, gang: GangView, slots: Mapping[str, int]) -> Amounts:
    """The amounts that so many more members of each pod set take together, int64 of shape (resources,).

    Of a gang of whose pods nothing is known yet, it is what its PodGroup says that it needs.
    """
    total = np.zeros(snapshot.free.shape[0], dtype=np.int64)
    known = False
    for pod_set in gang.pod_sets:
        if pod_set.cls is not None:
            known = True
            more = times(snapshot.row_of(pod_set.cls), slots.get(pod_set.name, 0))
            total = np.minimum(total + more, MAX_SUM)
    if not known and gang.group.spec.min_resources:
        try:
            return sum_along(snapshot.axis, len(total), vector(gang.group.spec.min_resources))
        except ValueError:  # admission refuses it; queues are compared by this, and one gang must not end the cycle
            return total
    return total
