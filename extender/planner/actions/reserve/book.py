"""The reservations of one cycle: whose they are, what each other gang may use, and what is to be written down.

The head of a queue is the first of its gangs, in the session's order, that waits for room. It has a reservation if
somebody knows when it can start, or if it has waited for long. Another gang may use the nodes of a reservation if it
has ended by then, or as far as there is room for both: what must be left free is what the head needs less what will
have been given back.

A reservation of an earlier cycle, or of an extender that is gone, counts from the beginning of the cycle, as what its
nodes get back must not go to whoever is tried first. Gangs of the head's own queue that come before it are free of it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from extender.planner import reasons
from extender.planner.actions.obstacles import obstacle
from extender.planner.actions.reserve.ends import End, Releases, releases
from extender.planner.actions.reserve.reservation import Reservation, as_written, earliest, left_to, soonest_empty
from extender.planner.framework import decisions
from extender.planner.framework.answers import LeftFree, ReservationMode
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.kubernetes.meta import readable_time

LOOKS = 4
"""Searches for a reservation in one cycle, at most: each is a dozen trials of a whole gang."""
LOOK_AGAIN_S = 5.0
"""Where a search found nothing (better), the next one for this gang comes so much later, and only if nodes changed."""
_MODES = get_args(ReservationMode)


@dataclass(frozen=True, slots=True)
class Look:
    """A search that found nothing."""

    version: int
    """Of the snapshot's arrays."""
    at: float
    """When, in seconds since the epoch."""
    improving: bool
    """It looked for a better reservation than there was."""
    patient: bool
    """The gang had not waited for so long that nodes are reserved for it without a known time."""


Looks = dict[str, Look]
"""By UID of the gang."""


class Book:
    """Reservations while `allocate` tries one gang after the other. `looked` is kept from one cycle to the next."""

    def __init__(self, session: Session, gangs: Sequence[GangView], looked: Looks) -> None:
        self._session = session
        self._rules = session.reservations
        self._looked = looked
        self._looks = 0
        self._releases: Releases | None = None
        self._placed: list[End] = []
        self._heads: dict[str, GangView] = {}
        """Queue → its head, as far as it has been met."""
        self._live: dict[str, Reservation] = {}
        """By queue."""
        self._views: dict[tuple[float | None, str], LeftFree | None] = {}
        """What gangs of this runtime may not use; those of a queue for themselves if they come before its head."""
        self._position: dict[str, int] = {}
        self._load(gangs)

    def _load(self, gangs: Sequence[GangView]) -> None:
        """Takes over the reservations that placements tell of, the first of each queue."""
        told = [gang for gang in gangs if _says_reserved(gang) and not gang.taken]
        for gang in self._session.ordered_gangs(told):
            full = gang.queue in self._live or len(self._live) >= self._rules.heads
            if full or self.mode(gang.queue) == "besteffort" or obstacle(self._session, gang) is not None:
                continue
            found = self._session.attempt(gang, lambda session, gang: as_written(session, gang, self._known_releases()))
            untimed = found is not None and found.at is None and not found.written
            if found is not None and not (untimed and not patience_is_over(self._session, gang)):
                self._live[gang.queue] = found
        if self._live:
            mates = [gang for gang in gangs if gang.queue in self._live]
            self._position = {gang.key: place for place, gang in enumerate(self._session.in_job_order(mates))}

    def mode(self, queue: str) -> ReservationMode:
        """What gangs of this queue may do behind one that waits for room."""
        known = self._session.snapshot.queues.get(queue)
        said = known.metadata.annotations.get(names.RESERVATIONS, "").strip().lower() if known else ""
        return said if said in _MODES else self._rules.mode  # type: ignore[return-value]  # it is one of them

    # -- a gang that is tried ---------------------------------------------------------------------------------------

    def behind(self, gang: GangView) -> GangView | None:
        """The head that this gang must let go first, as its queue is strict; None if it may be tried."""
        head = self._heads.get(gang.queue)
        return head if head is not None and not gang.started and self.mode(gang.queue) == "strict" else None

    @contextmanager
    def room_for(self, gang: GangView, *, growth: bool = False) -> Iterator[bytes]:
        """Has the session show what this gang may use; equal marks mean equal restrictions.

        A gang that has started and lacks members may use everything: else what runs of it would be in vain.
        """
        reserved = None if gang.started and not growth else self._view(gang)
        self._session.reserved = reserved
        try:
            yield reserved.mark if reserved else b""
        finally:
            self._session.reserved = None

    def in_the_way(self, gang: GangView) -> str:
        """Which reservations stop this gang from using nodes that have room for it; empty if none does.

        To be asked inside `room_for`.
        """
        session = self._session
        if session.reserved is None:
            return ""
        hit = np.zeros(len(session.reserved.columns), dtype=np.bool_)
        for cls in gang.classes:
            if cls is not None:
                columns = session.reserved.columns
                hit |= (session.codes(cls, gang)[columns] == 0) & (
                    session.scarce(cls)[columns] == session.reserved.codes
                )
        nodes = {int(column) for column in session.reserved.columns[hit]}
        found = []
        for each in self._live.values():
            own = [session.snapshot.name(int(column)) for column in each.columns if int(column) in nodes]
            if own and not self._free_of(gang, each):
                found.append((each.gang.key, own, each.at))
        return reasons.reservations.in_the_way(found)

    def placed(self, gang: GangView, operations: Sequence[Operation]) -> None:
        """A gang got nodes in this cycle."""
        own = self._live.get(gang.queue)
        if own is not None and own.gang.key == gang.key:
            del self._live[gang.queue]
            self._views.clear()
        runtime_s = gang.runtime_s
        if runtime_s is None:
            return
        end = self._session.now + runtime_s
        self._placed += [(end, each.column, each.amount, gang.key) for each in operations]
        self._releases = None
        for reservation in self._live.values():
            if self._ends_before(gang, reservation):
                self._give_back(reservation, operations)

    def _give_back(self, reservation: Reservation, operations: Sequence[Operation]) -> None:
        place = {int(column): position for position, column in enumerate(reservation.columns)}
        for operation in operations:
            if operation.column in place:
                reservation.gained[:, place[operation.column]] += operation.amount
                self._views.clear()

    # -- a gang that waits ------------------------------------------------------------------------------------------

    def waits(self, gang: GangView) -> str:
        """A gang does not find room; if it is the first of its queue, what is reserved for it, in words.

        What is reserved for another one of the queue stays until it has a reservation itself: it is free of that, and
        may be gone in a moment.
        """
        if gang.queue in self._heads:
            return ""
        self._heads[gang.queue] = gang
        told = self._live.get(gang.queue)
        if gang.taken or self.mode(gang.queue) == "besteffort":
            return ""
        if told is None and len(self._live) >= self._rules.heads:
            return ""
        own = told if told is not None and told.gang.key == gang.key else None
        better = self._look(gang, own)
        if better is not None:
            self._live[gang.queue] = own = better
            self._views.clear()
        return own.message if own else ""

    def _look(self, gang: GangView, known: Reservation | None) -> Reservation | None:
        """A reservation that begins before the one that is known; None if there is none."""
        session = self._session
        look = Look(
            session.snapshot.version, session.now, known is not None, patient=not patience_is_over(session, gang)
        )
        if self._looks >= LOOKS or not worth_it(look, self._looked.get(gang.uid)):
            return None
        self._looks += 1
        taken = self._taken_but(gang.queue)
        before = None if known is None or known.at is None else known.at - 1.0
        found = earliest(session, gang, self._known_releases(), taken, before)
        if found is None and known is None and not look.patient:
            found = soonest_empty(session, gang, taken)
        if found is None:
            self._looked[gang.uid] = look
        return None if found is None else replace(found, message=self._message(found))

    # -- the end of a cycle -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Decides what is to be written: Reserve for what is new or has changed, Unreserve for what is over."""
        session = self._session
        placed = {place.gang.key for place in session.decided(decisions.Place)}
        session.reserved_in_all = left_to(session, list(self._live.values()))
        session.reserved_rooms = list(self._live.values())
        live = {each.gang.key: each for each in self._live.values() if each.gang.key not in session.failures}
        for gang in session.snapshot.gangs:
            if _says_reserved(gang) and gang.key not in live and gang.key not in placed:
                session.decide(decisions.Unreserve(gang, reasons.reservations.OVER))
        for key, each in live.items():
            if key not in placed and not each.written:
                session.decide(decisions.Reserve(each.gang, each.pod_sets, each.at, self._message(each)))

    def _message(self, reservation: Reservation) -> str:
        """Of a reservation whose time has changed, too."""
        found, until = self._known_releases(), reservation.at or 0.0
        nodes = [self._session.snapshot.name(int(column)) for column in _in_order(self._session, reservation)]
        ending = found.who(reservation.columns, found.until(until)) if reservation.at is not None else []
        return reasons.reservations.reserved(nodes, reservation.at, ending, self._rules.patience_s)

    # -- what is left -----------------------------------------------------------------------------------------------

    def _known_releases(self) -> Releases:
        if self._releases is None:
            self._releases = releases(self._session.snapshot, self._session.now, self._placed)
        return self._releases

    def _ends_before(self, gang: GangView, reservation: Reservation) -> bool:
        if reservation.at is None or gang.runtime_s is None:
            return False
        return self._session.now + self._rules.start_s + gang.runtime_s <= reservation.at

    def _free_of(self, gang: GangView, reservation: Reservation) -> bool:
        """Whether the gang may use all of the reservation's nodes."""
        return self._comes_before(gang, reservation) or self._ends_before(gang, reservation)

    def _comes_before(self, gang: GangView, reservation: Reservation) -> bool:
        """Whether it is the gang of the reservation, or one before it in the same queue."""
        if reservation.gang.queue != gang.queue:
            return False
        place = self._position.get(reservation.gang.key)
        return reservation.gang.key == gang.key or (place is not None and self._position.get(gang.key, place) < place)

    def _view(self, gang: GangView) -> LeftFree | None:
        if not self._live:
            return None
        own = self._live.get(gang.queue)
        view = gang.runtime_s, gang.queue if own is not None and self._comes_before(gang, own) else ""
        if view not in self._views:
            self._views[view] = left_to(
                self._session, [each for each in self._live.values() if not self._free_of(gang, each)]
            )
        return self._views[view]

    def _taken_but(self, queue: str) -> Amounts:
        """What is reserved for other queues, int64 of shape (resources, nodes)."""
        taken = np.zeros_like(self._session.snapshot.free)
        for other, each in self._live.items():
            if other != queue:
                taken[:, each.columns] += each.need
        return taken


def _says_reserved(gang: GangView) -> bool:
    return gang.placement is not None and gang.placement.status.phase == "Reserved"


def _in_order(session: Session, reservation: Reservation) -> list[int]:
    """Its nodes in natural order of their names."""
    order = session.snapshot.order
    return [int(column) for column in order[np.isin(order, reservation.columns)]]


def worth_it(look: Look, last: Look | None) -> bool:
    """Whether a search may find what the last one did not."""
    if last is None or last.improving != look.improving:
        return True
    changed = (last.version, last.patient) != (look.version, look.patient)
    return changed and look.at >= last.at + LOOK_AGAIN_S


def patience_is_over(session: Session, gang: GangView) -> bool:
    """Whether it has waited for so long that nodes are reserved for it although no time is known."""
    told = (each for each in gang.group.status.conditions if each.type == "Unschedulable" and each.status == "True")
    since = next((each.last_transition_time for each in told), None) or gang.created
    waited_since = readable_time(since)
    return waited_since is not None and session.now - waited_since >= session.reservations.patience_s
