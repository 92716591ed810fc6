"""Base class of preempt, reclaim and consolidate, which evict victims for gangs that find no free capacity.

Each cycle searches for victims for a few gangs of each queue: the first gang, and other gangs in rotation. After a
failed search, gangs of the same shape are skipped until a relevant change (`attempts`). A solution consists of
evictions and a placement for the waiting gang. The waiting gang's members stay gated until the capacity is free. The
placement is written before any eviction, so that another planner could continue the evictions.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from extender.planner.actions.allocate import wants_nodes
from extender.planner.actions.asker import FULL_QUEUE, Asker, refused_by
from extender.planner.actions.attempts import Key, VictimSearches
from extender.planner.actions.ending import EndingInOrder, in_queue_order, needs_leaving, room_of_leaving
from extender.planner.actions.failures import shape_of
from extender.planner.actions.makeroom import disruption_budgets, evict_at_once, failed_to_evict, leaving_pods
from extender.planner.actions.placing import runs_of_operations
from extender.planner.actions.search import SlotSearch, reservations_kept
from extender.planner.actions.victimrules import Excluded, ExcludingRules
from extender.planner.framework import decisions
from extender.planner.framework.operations import Operation, Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, undone
from extender.planner.state.gangphase import GangPhase
from extender.planner.state.gangs import GangView
from extender.planner.victims.capacity import domains_of, helpful, needs_of
from extender.planner.victims.disturb import Why, ignores_marks, may_disturb
from extender.planner.victims.notices import latest_end, notices_for
from extender.planner.victims.solver import Search, solve
from extender.planner.victims.units import Catalogue, EvictableUnit, decide_given, permitted, spare_units
from muster.api.muster.placement import NodeSpares
from muster.api.muster.reason import NOTHING, Reason
from muster.api.volcano.scheduling import NO_ROOM

ATTEMPTS_PER_QUEUE = 2
ATTEMPTS = 8
"""Maximum number of searches for victims per cycle, for one queue and in total. A search may take tens of
milliseconds."""
MOST_VICTIMS = 5_000
"""Maximum number of a gang's victims; its Placement lists them, and etcd limits an object's size."""
_LACKS_CAPACITY = frozenset({NO_ROOM, *FULL_QUEUE})
_RUNNING = (GangPhase.WHOLE, GangPhase.STRANDED)


class Evicting:
    """Base class of the actions that evict victims."""

    name = ""
    moves = False
    """True if the action gives new slots to its victims instead of leaving them without nodes."""
    borrowers = False
    """True if the victims are gangs on borrowed spare slots, which are evicted without notice."""
    takes_spares = False
    """True if the spare slots of gangs are taken before any pod is evicted."""
    by_shares = False
    """True if shares of queues decide about victims, so that a change on any node may permit a search."""
    first_alone = False
    """True if the other gangs of a queue are skipped when no victims are found for the queue's first gang."""

    def __init__(self) -> None:
        self._catalogue = Catalogue()
        self.running: list[GangView] = []
        """Gangs that have nodes and no active placement in this cycle."""
        self.lowest: dict[str, int] = {}
        """Maps a queue to the lowest priority of its running gangs."""
        self._ending = EndingInOrder()
        self._attempts = VictimSearches()
        self._rules = ExcludingRules()
        self._keys: dict[str, Key] = {}
        """Maps the key of a gang to its search key in this cycle."""

    def execute(self, session: Session) -> None:
        """Decide Place and MakeRoom for gangs that get capacity from evictions."""
        waiting = [why for why in session.decided(decisions.Unschedulable) if why.reason in _LACKS_CAPACITY]
        if not waiting:
            return
        self._catalogue.forget_others(session.snapshot.gangs)
        self._keys.clear()
        self.running = [gang for gang in session.snapshot.gangs if gang.phase in _RUNNING]
        self.lowest = {}
        for gang in self.running:
            self.lowest[gang.queue] = min(gang.priority, self.lowest.get(gang.queue, gang.priority))
        self._ending = in_queue_order(session, [why.gang for why in waiting if why.reason == NO_ROOM])
        self._rules.note(self._try_some(session, waiting))
        no_room = [why for why in waiting if why.reason == NO_ROOM and why.gang.key not in self._ending.taken]
        self._rules.report(session, no_room, self._key)

    def _try_some(self, session: Session, waiting: Sequence[decisions.Unschedulable]) -> Excluded:
        """Search for victims for gangs in rotation; return the failed searches with the rules that excluded victims."""
        self._attempts.begin(session, self.running)
        hopeless: dict[Hashable, bool] = {}
        skipped = self._ending.taken.keys() | (() if self.first_alone else session.postponed)
        due = [why for why in waiting if why.gang.key not in skipped]
        if not self.first_alone:
            due = [why for why in due if self._due(session, why, hopeless)]
        key = partial(self._key, session)
        queues, failed = Counter[str](), Excluded()
        for why in self._attempts.in_turn(due, None if self.first_alone else key, ATTEMPTS // ATTEMPTS_PER_QUEUE):
            gang = why.gang
            if queues.total() >= ATTEMPTS:
                break
            if queues[gang.queue] >= ATTEMPTS_PER_QUEUE:
                continue
            found = None
            if self._due(session, why, hopeless):
                queues[gang.queue] += 1
                found = session.attempt(gang, partial(self._try, refused=refused_by(why)))
                if not found:
                    self._attempts.failed(session, self.running, key(gang))
                    hopeless[key(gang), refused_by(why)] = True
                    if why.reason == NO_ROOM:
                        words = NOTHING if gang.key in session.failures else self.why_not(session, gang)
                        failed[gang.queue, key(gang)[2]] = words
            if self.first_alone and not found:
                queues[gang.queue] = ATTEMPTS_PER_QUEUE
                self._attempts.passed(gang.queue)
        return failed

    def _due(self, session: Session, why: decisions.Unschedulable, hopeless: dict[Hashable, bool]) -> bool:
        """Return True if a search for the gang is allowed and not known to fail.

        `hopeless` caches whether a search with a certain key is known to fail.
        """
        if why.gang.key in session.postponed or not self.worthwhile(why.gang):
            return False
        key, refused = self._key(session, why.gang), refused_by(why)
        known = hopeless.get((key, refused))
        if known is None:
            anywhere = self.by_shares or bool(refused)
            known = self._attempts.hopeless(session, why.gang, key, anywhere=anywhere)
            hopeless[key, refused] = known
        return not known and self._may_ask(session, why.gang)

    def _key(self, session: Session, gang: GangView) -> Key:
        """Return the key under which the gang's failed searches are remembered; constant within a cycle."""
        known = self._keys.get(gang.key)
        if known is None:
            shape = gang.priority, shape_of(session, session.ask(gang))
            known = self._keys[gang.key] = gang.queue, gang.creator, shape
        return known

    def _may_ask(self, session: Session, gang: GangView) -> bool:
        """Return False for a gang that never preempts, that has a placement, or whose last evictions had no effect.

        Every gang may get its own spare slots back, even if its priority class never preempts.
        """
        if not (gang.preempts or self.borrowers) or gang.active or failed_to_evict(gang, session.now):
            return False
        return (gang.pending or wants_nodes(session, gang)) and session.hooks.job_ready.call(gang)

    # -- methods that subclasses override -----------------------------------------------------------------------

    def worthwhile(self, gang: GangView) -> bool:
        """Return True if victims may exist; called for every waiting gang, so it must be fast."""
        raise NotImplementedError

    def allowed(self, _session: Session, _asker: Asker) -> bool:
        """Return True if this action is allowed to free capacity for the gang."""
        return True

    def units(self, session: Session, asker: Asker) -> list[EvictableUnit]:
        """Return the evictable units that may be victims, in order of preference."""
        raise NotImplementedError

    def agreed(self, _session: Session, _scenario: Scenario) -> bool:
        """Return True if the plugins agree with the scenario."""
        return True

    def reason(self, gang: GangView, found: Sequence[EvictableUnit]) -> Reason:
        """Return the reason for the eviction, which is shown to the owners of the victims."""
        raise NotImplementedError

    def spares_left(
        self, _session: Session, _gang: GangView, _operations: Sequence[Operation]
    ) -> list[NodeSpares] | None:
        """Return the spare slots that the gang keeps after its members are placed on others; None if unchanged."""
        return None

    def why_not(self, _session: Session, _gang: GangView) -> Reason:
        """Return the rule that excluded all victims, as a reason for the gang's owner; empty if none did."""
        return NOTHING

    # -- one gang ---------------------------------------------------------------------------------------------------

    def victims_of(self, session: Session, asker: Asker, why: Why) -> list[EvictableUnit]:
        """Return the evictable units that can help the gang if they are evicted."""
        found: list[EvictableUnit] = []
        leaving = leaving_pods(session)
        useful = None if asker.queue_full else np.logical_or.reduce([need.usable for need in asker.needs])
        for gang in self.running:
            if not may_disturb(session, asker.gang, gang, why):
                continue
            units = self._catalogue.units_of_gang(session, gang, useful, anyway=ignores_marks(session, gang, why))
            if leaving and any(pod.uid in leaving for unit in units for pod in unit.pods):
                continue
            if self.takes_spares:
                units = [*spare_units(session, gang), *units]
            found += units if asker.queue_full else helpful(units, asker.needs)
        return found

    def _try(self, session: Session, gang: GangView, *, refused: str) -> bool:
        ask = session.ask(gang)
        if not ask.least:
            return False
        needs = needs_of(session, gang, ask.chosen(session.hooks))
        if not needs or not (ask.any_members or any(need.usable.any() for need in needs)):
            return False
        with room_of_leaving(session), self._ending.kept_from(session, gang), reservations_kept(session, gang):
            asker = Asker(ask, needs, refused)
            if not self.allowed(session, asker):
                return False
            units = permitted(self.units(session, asker), disruption_budgets(session))
            for inside in domains_of(session, gang, needs, units):
                if inside is not None:
                    own = [replace(need, usable=need.usable & inside) for need in needs]
                    asker = Asker(ask, own, refused)
                    units = permitted(self.units(session, asker), disruption_budgets(session))
                found = self._search(session, asker, units)
                if found is not None:
                    session.snapshot.leaving.update((pod.uid, pod) for unit in found for pod in unit.pods)
                    return True
        return False

    def _search(self, session: Session, asker: Asker, units: list[EvictableUnit]) -> list[EvictableUnit] | None:
        """Decide evictions and placement, and return the victims; None if there is no solution."""
        gang, statement, ask = asker.gang, Statement(session), asker.ask
        slots, amounts = SlotSearch(session, statement, ask), session.amounts(ask)
        place, agreed = partial(self._placed, slots), partial(self.agreed, session)
        search = Search(session, statement, ask, amounts, asker.needs, place=place, agreed=agreed, moved=self.moves)
        with undone(statement):
            found = self.solve(search, units)
        pods = sum(len(unit.pods) for unit in found or ())
        if not found or pods > MOST_VICTIMS:
            statement.discard()
            return None if found else found
        if not pods and needs_leaving(session, {operation.column for operation in statement.operations}):
            statement.discard()  # spare slots can be used at once, so also after the terminating pods have ended
            return []
        self._decide(session, statement, gang, found)
        return found

    def solve(self, search: Search, units: list[EvictableUnit]) -> list[EvictableUnit] | None:
        """Return the units to evict; empty if no eviction is needed, None if there is no solution."""
        return solve(search, units)

    def _placed(self, search: SlotSearch, units: Sequence[EvictableUnit]) -> Sequence[EvictableUnit] | None:
        """Place the gang as if the given units were evicted; return the units to evict, or None without a solution."""
        return units if search.minimum() is None else None

    def _decide(self, session: Session, statement: Statement, gang: GangView, found: list[EvictableUnit]) -> None:
        operations = statement.commit_victims()
        session.admit(gang)
        session.withdraw(gang, decisions.Unschedulable, decisions.Reserve, decisions.Unreserve)
        if session.cycle_reservations is not None:
            session.cycle_reservations.over(gang)
        victims = tuple((unit.gang, pod) for unit in found for pod in unit.pods)
        reason = self.reason(gang, found)
        notices = () if self.borrowers else notices_for(session, gang, victims)
        until = latest_end(notices)
        for moved in {unit.gang.key: unit.gang for unit in found}.values() if self.moves else ():
            own = [operation for operation in operations if operation.gang is moved]
            runs = runs_of_operations(session, moved, own, gated=True)
            gone = tuple((moved, pod) for victim, pod in victims if victim is moved)
            session.decide(decisions.Place(moved, runs, moved.next_epoch(), len(gone), gone, reason, waits_until=until))
        mine = [operation for operation in operations if operation.gang is gang]
        slots, epoch = sum(len(operation.ranks) for operation in mine), gang.next_epoch()
        runs = runs_of_operations(session, gang, mine, gated=bool(victims))
        place = decisions.Place(
            gang, runs, epoch, slots, victims, reason if victims else NOTHING, self.spares_left(session, gang, mine),
            notices=notices, waits_until=until,
        )  # fmt: skip
        session.decide(place)
        decide_given(session, found)
        if notices or not victims:  # the next cycle notifies the victims, after the placement is written
            return
        wholes = [unit.gang for unit in found if unit.rest and not self.moves]
        evict_at_once(session, gang, epoch, victims, reason, wholes, self.name)
