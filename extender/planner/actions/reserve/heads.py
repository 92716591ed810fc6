"""Reservations of one cycle: each queue's first waiting gang, its reserved capacity, and changes to Placements.

The first waiting gang of a queue is the first gang, in the session's order, that waits for capacity in this queue. The
first waiting gang receives a reservation if its start can be predicted, or if it has waited for a long time. Another
gang may use reserved nodes if it will end before the reservation begins, or if the capacity suffices for both gangs.
The reserved capacity is the demand of the first waiting gang, minus the capacity that will be free when the reservation
begins.

A reservation binds all queues if the queue of its gang is entitled to the resources (`judged`), otherwise only its
gang's queue. A queue therefore cannot withhold capacity to which it is not entitled. A reservation of an earlier cycle
applies from the beginning of the cycle, so that the first gang in order cannot take capacity that has become free. A
gang need not respect a reservation of its own queue if it comes before the reservation's gang.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import get_args

import numpy as np

from extender.planner import reasons
from extender.planner.actions.obstacles import obstacle
from extender.planner.actions.reserve.ends import End, Releases, releases
from extender.planner.actions.reserve.reservation import Reservation, ReservationSearches, as_written, judged, left_to
from extender.planner.actions.reserve.searches import HeadSearches, patience_is_over
from extender.planner.framework import decisions
from extender.planner.framework.answers import LeftFree, ReservationMode
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api import names
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.reason import NOTHING, Reason

MOST_LIVE = 4
"""Maximum number of reservations as a multiple of the setting `heads`, including reservations that bind only their own
queue."""
_MODES = get_args(ReservationMode)


class HeadReservations:
    """The reservations of one cycle, updated while `allocate` processes one gang after another.

    The argument `searched` contains the failed searches for reservations, and is passed from cycle to cycle.
    """

    def __init__(self, session: Session, gangs: Sequence[GangView], searched: ReservationSearches) -> None:
        self._session = session
        self._rules = session.reservations
        self._searches = HeadSearches(session, gangs, searched)
        self._releases: Releases | None = None
        self._placed: list[End] = []
        self._heads: dict[str, GangView] = {}
        """Maps a queue to its first waiting gang, once `allocate` has reached that gang."""
        self._live: dict[str, Reservation] = {}
        """Maps a queue to its current reservation."""
        self._views: dict[tuple[str, ...], LeftFree | None] = {}
        """Maps a tuple of queues to the capacity that their reservations reserve, which other gangs must leave free."""
        self._position: dict[str, int] = {}
        self._load(gangs)

    def _load(self, gangs: Sequence[GangView]) -> None:
        """Load the reservations from the gangs' placements, and keep the first reservation of each queue."""
        reserved = [gang for gang in gangs if _has_reserved_status(gang) and not gang.taken]
        for gang in self._session.ordered_gangs(reserved) if reserved else ():
            full = gang.queue in self._live or self._full()
            if full or self.mode(gang.queue) == "besteffort" or obstacle(self._session, gang) is not None:
                continue
            found = self._session.attempt(gang, self._published)
            if found is not None:
                self._live[gang.queue] = found
        if self._live:
            mates = [gang for gang in gangs if gang.queue in self._live]
            self._position = {gang.key: place for place, gang in enumerate(self._session.in_job_order(mates))}

    def _published(self, session: Session, gang: GangView) -> Reservation | None:
        """Return the reservation in a gang's Placement; None if the reservation is over."""
        found = as_written(session, gang, self._known_releases())
        if found is None or (found.at is None and not found.written and not patience_is_over(session, gang)):
            return None
        return self._judged(found)

    def _full(self) -> bool:
        """Return True if `heads` reservations bind all queues, or `MOST_LIVE` times `heads` reservations exist."""
        heads, binding = self._rules.heads, sum(not each.only for each in self._live.values())
        return binding >= heads or len(self._live) >= MOST_LIVE * heads

    def mode(self, queue: str) -> ReservationMode:
        """Return the queue's reservation mode, which determines how gangs behind its first waiting gang are treated."""
        known = self._session.snapshot.queues.get(queue)
        text = known.metadata.annotations.get(names.RESERVATIONS, "").strip().lower() if known else ""
        return text if text in _MODES else self._rules.mode  # type: ignore[return-value]  # validated before

    # -- the gang that is being placed ------------------------------------------------------------------------------

    def behind(self, gang: GangView) -> GangView | None:
        """Return the first waiting gang of a strict queue if this gang must wait behind it; otherwise None."""
        head = self._heads.get(gang.queue)
        return head if head is not None and not gang.started and self.mode(gang.queue) == "strict" else None

    @contextmanager
    def room_for(self, gang: GangView, *, growth: bool = False) -> Iterator[bytes]:
        """Within a `with` block, apply the reservations that this gang must respect.

        Yields a key of the capacity that the gang must leave free; equal keys mean equal capacity.

        A started gang that lacks members may use all free capacity, because its running members make no progress
        without the missing members. Independent pods always respect the reservations.
        """
        reserved = None if gang.started and not growth and not gang.independent else self.left_by(gang)
        self._session.reserved = reserved
        try:
            yield reserved.mark if reserved else b""
        finally:
            self._session.reserved = None

    def in_the_way(self, gang: GangView) -> Reason:
        """Return the reservations that keep this gang from suitable nodes; call this method only inside `room_for`."""
        session = self._session
        if session.reserved is None:
            return NOTHING
        columns = session.reserved.columns
        hit = np.zeros(len(columns), dtype=np.bool_)
        for cls in filter(None, gang.all_classes):
            scarce = session.scarce(cls)[columns] == session.reserved.codes
            hit |= (session.codes(cls, gang)[columns] == 0) & scarce
        nodes = set(columns[hit].tolist())
        found = []
        for each in self._live.values():
            own = [session.snapshot.name(column) for column in each.columns.tolist() if column in nodes]
            if own and self._minds(gang, each):
                found.append((session.called(each.gang), own, each.at))
        return reasons.queues.in_the_way(found) if found else NOTHING

    def placed(self, gang: GangView, operations: Sequence[Operation]) -> None:
        """Update the reservations after a gang has been placed in this cycle."""
        self.over(gang)
        own = self._live.get(gang.queue)
        if own is not None:  # the queue uses more now, so it may reserve less
            self._live[gang.queue] = self._judged(own)
            self._views.clear()
        runtime_s = gang.runtime_s
        if runtime_s is None:
            return
        end = self._session.now + runtime_s
        self._placed += [(end, each.column, each.amount, gang.key) for each in operations]
        self._releases = None
        for reservation in self._live.values():
            if self._ends_before(gang, reservation):
                for operation in operations:
                    here = reservation.columns == operation.column
                    reservation.gained[:, here] += operation.amount[:, None]
                self._views.clear()

    # -- a gang that waits ------------------------------------------------------------------------------------------

    def waits(self, gang: GangView) -> Reason:
        """Reserve nodes for a gang that does not fit if it is its queue's first waiting gang; return why it waits."""
        if gang.queue in self._heads:
            return NOTHING
        self._heads[gang.queue] = gang
        reservation = self._live.get(gang.queue)
        if gang.taken or self.mode(gang.queue) == "besteffort" or (reservation is None and self._full()):
            return NOTHING
        own = reservation if reservation is not None and reservation.gang.key == gang.key else None
        others = [each for queue, each in self._live.items() if queue != gang.queue and not each.only]
        better = self._searches.search(gang, own, others, self._known_releases)
        if better is not None:
            self._live[gang.queue] = own = replace(better, why=self._why(better))
            self._views.clear()
        if own is None:
            return NOTHING
        # The reason in the Placement contains no names.
        return self._why(own) if self._session.inputs.names_others else own.why

    def stay(self, gangs: Sequence[GangView]) -> None:
        """Record that this cycle skips gangs, so that later gangs of their queues still wait behind them."""
        self._heads = {gang.queue: gang for gang in reversed(gangs)} | self._heads
        self._searches.keep(gangs)

    def _judged(self, reservation: Reservation) -> Reservation:
        """Return a reservation with the queues that it binds now; after a change, its Placement is written again."""
        found = judged(self._session, reservation)
        known = found.gang.placement.status.reserved_at if found.gang.placement else ""
        if found.why.params.get("aside", found.why) == found.suspended and readable_time(known) == found.since:
            return found
        return replace(found, why=self._why(found), written=False)

    def close(self) -> None:
        """Decide Reserve for new and changed reservations, and Unreserve for reservations that have ended."""
        session = self._session
        session.cycle_reservations = self
        self._searches.forget_others()
        before = [gang for gang in session.snapshot.gangs if _has_reserved_status(gang)]
        placed = {place.gang.key for place in session.decided(decisions.Place)}
        live = {each.gang.key: each for each in self._live.values() if each.gang.key not in session.failures}
        for gang in before:
            if gang.key not in live and gang.key not in placed:
                session.decide(decisions.Unreserve(gang, reasons.queues.OVER))
        for key, each in live.items():
            if key not in placed and not each.written:
                session.decide(decisions.Reserve(each.gang, each.pod_sets, each.at, each.since, self._why(each)))

    def _why(self, reservation: Reservation) -> Reason:
        """Return the reason for a reservation, which lists the reserved nodes in natural order."""
        found, until, snapshot = self._known_releases(), reservation.at or 0.0, self._session.snapshot
        order = snapshot.order[np.isin(snapshot.order, reservation.columns)]
        nodes = [snapshot.name(int(column)) for column in order]
        ending = found.owners_in(reservation.columns, found.until(until)) if reservation.at is not None else []
        named = self._session.inputs.names_others
        if named:
            gangs = {gang.key: gang for gang in snapshot.gangs}
            ending = [str(self._session.called(gangs[each])) if each in gangs else each for each in ending]
        return reasons.queues.reserved(
            nodes, reservation.at, ending, self._rules.patience_s, reservation.suspended, named=named
        )

    # -- capacity that is left free ---------------------------------------------------------------------------------

    @property
    def rooms(self) -> Sequence[Reservation]:
        """Return the current reservations."""
        return list(self._live.values())

    def left_by(self, gang: GangView) -> LeftFree | None:
        """Return the reserved capacity that this gang must leave free, even if it is now first in its queue."""
        if not self._live:
            return None
        view = tuple(queue for queue, each in self._live.items() if self._minds(gang, each))
        if view not in self._views:
            self._views[view] = left_to(self._session, [self._live[queue] for queue in view])
        return self._views[view]

    def over(self, gang: GangView) -> None:
        """End the reservation of a gang because the gang has been placed."""
        own = self._live.get(gang.queue)
        if own is not None and own.gang.key == gang.key:
            del self._live[gang.queue]
            self._views.clear()

    def _known_releases(self) -> Releases:
        if self._releases is None:
            self._releases = releases(self._session, self._placed)
        return self._releases

    def _ends_before(self, gang: GangView, reservation: Reservation) -> bool:
        if reservation.at is None or gang.runtime_s is None:
            return False
        return self._session.now + self._rules.start_s + gang.runtime_s <= reservation.at

    def _minds(self, gang: GangView, reservation: Reservation) -> bool:
        """Return True if the gang must leave the reservation's capacity free."""
        counts = reservation.only in {"", gang.queue}
        return counts and not (self._comes_before(gang, reservation) or self._ends_before(gang, reservation))

    def _comes_before(self, gang: GangView, reservation: Reservation) -> bool:
        """Return True for the reservation's gang, and for gangs before that gang in the same queue."""
        if reservation.gang.queue != gang.queue:
            return False
        place = self._position.get(reservation.gang.key)
        return reservation.gang.key == gang.key or (place is not None and self._position.get(gang.key, place) < place)


def _has_reserved_status(gang: GangView) -> bool:
    return gang.placement is not None and gang.placement.status.phase == "Reserved"
