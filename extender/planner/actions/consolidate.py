"""The action that moves small gangs to other nodes if the free capacity is too scattered for a waiting gang.

Pods are moved only if every moved pod has a new slot in a placement of its gang. A move restarts the pod, so at most
`MOST_MOVED` pods are moved. KAI-Scheduler limits consolidation to the same number of pods by default.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain

import numpy as np

from extender.planner import reasons
from extender.planner.actions.asker import Asker
from extender.planner.actions.evicting import Evicting
from extender.planner.actions.search import SlotSearch, moved
from extender.planner.framework.operations import Operation, Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from extender.planner.victims.disturb import moves_agreed
from extender.planner.victims.moves import Bundle, bundles_of, keep_untouched, solve_moves, stays, whole_node
from extender.planner.victims.order import by_cost
from extender.planner.victims.solver import Search
from extender.planner.victims.units import EvictableUnit
from muster.api.muster.reason import Reason

Slot = tuple[int, tuple[int, ...]]
"""Slot of a pod: the column of its node, and the shared GPUs that the pod uses."""
MOST_MOVED = 16
"""Maximum number of pods that are moved so that one gang fits."""
MOST_CONSIDERED = 512
"""Maximum number of evictable units per search; units with few pods that free much capacity come first."""


class Consolidate(Evicting):
    """The action consolidate, whose victims are preemptable gangs of any queue that fit elsewhere."""

    name = "consolidate"
    moves = True

    def worthwhile(self, _gang: GangView) -> bool:
        """Return True if at least one gang is running."""
        return bool(self.running)

    def allowed(self, session: Session, asker: Asker) -> bool:
        """Return True if the gang's queue is not full and the total free capacity suffices for the gang."""
        free = np.maximum(session.snapshot.free, 0).sum(axis=1)
        wanted = sum(session.snapshot.row_of(need.cls) * need.pods for need in asker.needs)
        return not asker.queue_full and bool((free >= wanted).all())

    def units(self, session: Session, asker: Asker) -> list[EvictableUnit]:
        """Return evictable units: units with few pods come first, then units on nodes where the gang nearly fits."""
        found = [unit for unit in self.victims_of(session, asker, "move") if len(unit.pods) <= MOST_MOVED]
        largest = max(asker.needs, key=lambda need: int(session.snapshot.row_of(need.cls).max(initial=0)))
        row = session.snapshot.row_of(largest.cls)
        lacks = (np.maximum(row[:, None] - session.snapshot.free, 0) / np.maximum(row[:, None], 1)).max(axis=0)
        worst = {id(unit): float(lacks[unit.columns].max(initial=0.0)) for unit in found}
        nearest = sorted(by_cost(found, session.now), key=lambda unit: (len(unit.pods), worst[id(unit)]))
        return list(dict.fromkeys(chain.from_iterable(bundles_of(nearest[:MOST_CONSIDERED]))))

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Return True if the scenario moves at most `MOST_MOVED` pods and all plugins agree."""
        return sum(len(chunk.pods) for chunk in scenario.chunks) <= MOST_MOVED and moves_agreed(session, scenario)

    def reason(self, gang: GangView, _found: Sequence[EvictableUnit]) -> Reason:
        """Return the reason for the move, which is shown to the owners of moved gangs."""
        return reasons.placements.moved(queue=gang.queue)

    def solve(self, search: Search, units: list[EvictableUnit]) -> list[EvictableUnit] | None:
        """Return the evictable units that must move so that the gang fits; None without a solution."""
        return solve_moves(search, units)

    def _placed(self, search: SlotSearch, units: Sequence[EvictableUnit]) -> Sequence[EvictableUnit] | None:
        """Place the gang as if the given units were evicted, and give new slots to the units that cannot stay."""
        if search.minimum() is not None:
            return None
        moving = _settle(search.session, search.statement, _apart(units))
        going = {id(unit) for bundle in moving or () for unit in bundle}
        return None if moving is None else [unit for unit in units if id(unit) in going]


def _settle(session: Session, statement: Statement, bundles: list[Bundle]) -> list[Bundle] | None:
    """Give new slots to the bundles that cannot stay.

    If the bundles that can stay leave too little capacity, they are moved, too. Returns all moved bundles; None if the
    moved bundles do not fit.
    """
    moving = _not_staying(session, statement, bundles)
    before = statement.checkpoint()
    if _all_moved(session, statement, moving):
        return moving
    statement.rollback(before)
    first = set(map(id, moving))
    rest = [bundle for bundle in bundles if id(bundle) not in first]
    for unit in chain.from_iterable(rest):
        statement.evict(unit.gang, unit.pods)
    if not rest or not _all_moved(session, statement, moving):
        return None
    also = _not_staying(session, statement, rest)
    return [*moving, *also] if _all_moved(session, statement, also) else None


def _not_staying(session: Session, statement: Statement, bundles: list[Bundle]) -> list[Bundle]:
    """Return the bundles that must move, after putting back those that can stay, in the order of descending cost."""
    touched = keep_untouched(session, statement, bundles)
    return [bundle for bundle in reversed(touched) if not stays(session, statement, bundle)]


def _all_moved(session: Session, statement: Statement, bundles: list[Bundle]) -> bool:
    """Give these bundles new slots, the largest bundle first.

    Return False if a bundle fits nowhere, or would only get its old slots.
    """
    for bundle in sorted(bundles, key=lambda bundle: -_size(session, bundle)):
        before = statement.checkpoint()
        if not all(moved(session, statement, unit.gang, unit.pods) for unit in bundle):
            return False
        if _slots_of(statement.operations_since(before)) == _slots_held(session, bundle):
            return False  # a restart on the same nodes would be useless
    return True


def _apart(units: Sequence[EvictableUnit]) -> list[Bundle]:
    """Group units that stay or move together: all units of a gang that moves as a whole, otherwise each unit alone."""
    whole = {unit.gang.key for unit in units if unit.rest}
    bundles: dict[Hashable, list[EvictableUnit]] = {}
    for unit in units:
        bundles.setdefault(unit.gang.key if unit.gang.key in whole else id(unit), []).append(unit)
    return [tuple(bundle) for bundle in bundles.values()]


def _size(session: Session, bundle: Bundle) -> float:
    """Return the largest fraction of a node that one pod of the bundle takes, because large pods are placed first."""
    whole = whole_node(session)
    return max(float((unit.rows / whole).max(initial=0.0)) for unit in bundle)


def _slots_of(operations: Sequence[Operation]) -> Counter[Slot]:
    """Return the node and the shared GPUs of every member that has been placed."""
    return Counter(
        (operation.column, devices)
        for operation in operations
        for devices in operation.devices or [()] * operation.size
    )


def _slots_held(session: Session, bundle: Bundle) -> Counter[Slot]:
    """Return the node and the shared GPUs that each pod of the bundle uses now."""
    index = session.snapshot.index
    return Counter(
        (index[pod.node], pod.devices if pod.cls.gpu else ())
        for unit in bundle
        for pod in unit.pods
        if pod.node in index
    )
