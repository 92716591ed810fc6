"""Order of victims: the cheapest disruption comes first.

Spare slots come first, because taking a spare slot evicts no pod. Within a queue, lower priorities come first, then
pods above a minimum before whole gangs, then revocable gangs. Next, the gang that would lose the least work comes
first, then the smallest and the youngest gang. Lost work is the number of pods times the time since the gang's last
checkpoint or start. Among queues, the next unit is from the queue that exceeds its fair share most.
"""

import heapq
import math
from collections.abc import Callable, Iterable
from functools import cmp_to_key

import numpy as np

from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.victims.notices import unsaved_s
from extender.planner.victims.units import EvictableUnit
from muster.api.kubernetes.meta import readable_time
from muster.api.names import PREEMPTABLE, REVOCABLE_ZONE

Key = tuple[bool, int, bool, bool, float, int, float, int, int]


def revocable(gang: GangView) -> bool:
    """Return True for a gang marked `preemptable: "true"`, or with the revocable zone `*`."""
    meta = gang.group.metadata
    values = {meta.labels.get(PREEMPTABLE), meta.annotations.get(PREEMPTABLE)}
    return "true" in values or meta.annotations.get(REVOCABLE_ZONE) == "*"


def by_cost(units: list[EvictableUnit], now: float) -> list[EvictableUnit]:
    """Return one queue's evictable units, the cheapest disruption first; units of one gang keep their order.

    Only the gang's own reports of checkpoints affect the cost of its eviction. A gang that reports more checkpoints
    than it has saved is evicted before equal gangs, so a false report harms only the gang itself.
    """
    gangs = {unit.gang.key: unit.gang for unit in units}
    unsaved = {key: unsaved_s(gang, now) for key, gang in gangs.items()}
    created = {key: readable_time(gang.created) or 0.0 for key, gang in gangs.items()}
    kept = {key: not revocable(gang) for key, gang in gangs.items()}

    def key(numbered: tuple[int, EvictableUnit]) -> Key:
        number, unit = numbered
        gang, name, pods = unit.gang, unit.gang.key, len(unit.pods)
        work, evicts = pods * unsaved[name], unit.spares is None
        return evicts, gang.priority, unit.rest, kept[name], work, pods, -created[name], -gang.arrival, number

    return [unit for _, unit in sorted(enumerate(units), key=key)]


def across_queues(session: Session, units: list[EvictableUnit]) -> list[EvictableUnit]:
    """Return several queues' evictable units; each next unit is from the queue that then exceeds its share most."""
    ordered = by_cost(units, session.now)
    first = {unit.gang.queue: unit.gang for unit in reversed(ordered)}
    if len(first) < 2:  # noqa: PLR2004 - a single queue needs no comparison
        return ordered
    stages = [unit for unit in ordered if unit.spares], [unit for unit in ordered if not unit.spares]
    saturation = _saturations(session, first)
    if saturation is None:

        def served(left: str, right: str) -> int:
            return session.hooks.queue_order.call(first[left], first[right])

        place = {queue: at for at, queue in enumerate(sorted(sorted(first), key=cmp_to_key(served), reverse=True))}
        return [unit for stage in stages for unit in sorted(stage, key=lambda unit: place[unit.gang.queue])]
    return [unit for stage in stages for unit in _furthest_first(stage, saturation)]


def _furthest_first(
    units: list[EvictableUnit], saturation: Callable[[str, EvictableUnit | None], float]
) -> list[EvictableUnit]:
    """Return the units in order of eviction: the next unit is always from the queue that exceeds its share most."""
    queues: dict[str, list[EvictableUnit]] = {}
    for unit in units:
        queues.setdefault(unit.gang.queue, []).append(unit)
    heap = sorted((-saturation(queue, None), queue, 0) for queue in queues)
    taken: list[EvictableUnit] = []
    while heap:
        _, queue, position = heapq.heappop(heap)
        unit = queues[queue][position]
        taken.append(unit)
        if position + 1 < len(queues[queue]):
            heapq.heappush(heap, (-saturation(queue, unit), queue, position + 1))
    return taken


def _saturations(session: Session, queues: Iterable[str]) -> Callable[[str, EvictableUnit | None], float] | None:
    """Return a function for the share of a queue in use without the chosen units; None if no plugin has shares."""
    left: dict[str, Amounts] = {}
    fair: dict[str, Amounts] = {}
    for queue in queues:
        allocated = session.hooks.get_queue_allocated_resources.call(queue)
        share = session.hooks.get_queue_fair_share.call(queue)
        if allocated is None or share is None:
            return None
        left[queue], fair[queue] = np.array(allocated, dtype=np.float64), np.asarray(share, dtype=np.float64)

    def saturation(queue: str, gone: EvictableUnit | None) -> float:
        if gone is not None:
            left[queue] -= gone.charged(session.snapshot)
        used = left[queue] > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(used, np.where(fair[queue] > 0, left[queue] / fair[queue], math.inf), 0.0)
        return float(shares.max(initial=0.0))

    return saturation
