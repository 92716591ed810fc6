"""Searches for reservations of queues' first waiting gangs, limited in number per cycle."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from heapq import nsmallest

import numpy as np

from extender.planner.actions.reserve.ends import Releases
from extender.planner.actions.reserve.reservation import (
    Reservation,
    ReservationSearch,
    ReservationSearches,
    earliest,
    judged,
    soonest_empty,
    worth_it,
)
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import readable_time

SEARCHES_A_CYCLE = 4
"""Maximum number of searches for reservations per cycle; each search places a whole gang about a dozen times."""


class HeadSearches:
    """The searches for reservations of one cycle.

    The argument `searched` contains the failed searches for reservations, and is passed from cycle to cycle.
    """

    def __init__(self, session: Session, gangs: Sequence[GangView], searched: ReservationSearches) -> None:
        self._session = session
        self._searched = searched
        self._count = 0
        self._again = _due(gangs, searched)
        self._asked: set[str] = set()
        """UIDs of gangs for which a search was due in this cycle; failed searches of other gangs are forgotten."""

    def keep(self, gangs: Iterable[GangView]) -> None:
        """Keep the failed searches of gangs that this cycle skips."""
        self._asked.update(gang.uid for gang in gangs)

    def forget_others(self) -> None:
        """Forget the failed searches of gangs for which no search was due in this cycle."""
        for uid in self._searched.keys() - self._asked:
            del self._searched[uid]

    def search(
        self, gang: GangView, known: Reservation | None, others: Sequence[Reservation],
        known_releases: Callable[[], Releases],
    ) -> Reservation | None:  # fmt: skip
        """Return a reservation that begins earlier than the gang's known reservation; None if there is no such one.

        `others` are the reservations of other queues that bind all queues. `known_releases` returns the expected
        releases of capacity; it is called only for a search.
        """
        session = self._session
        search = ReservationSearch(
            session.snapshot.version, session.now, known is not None, patient=not patience_is_over(session, gang)
        )
        last = self._searched.get(gang.uid)
        self._asked.add(gang.uid)
        if self._count >= SEARCHES_A_CYCLE or (last and gang.uid not in self._again) or not worth_it(search, last):
            return None
        self._count += 1
        taken = np.zeros_like(session.snapshot.free)
        for each in others:
            taken[:, each.columns] += each.need
        before = None if known is None or known.at is None else known.at - 1.0
        found = earliest(session, gang, known_releases(), taken, before)
        stuck = known is not None and known.at is None and bool(known.only)
        if found is None and not search.patient and (known is None or stuck):
            found = soonest_empty(session, gang, taken, of_others=True)
        if found is None and not search.patient and known is None:
            found = soonest_empty(session, gang, taken, of_others=False)
        if found is None:
            self._searched[gang.uid] = search
            return None
        return judged(session, found)


def _due(gangs: Sequence[GangView], searched: ReservationSearches) -> AbstractSet[str]:
    """Return the UIDs of the gangs for which a failed search for a reservation may be repeated.

    If more queues have waiting gangs than one cycle can search for, at most half of the cycle's searches are
    repetitions.
    """
    if len({gang.queue for gang in gangs}) <= SEARCHES_A_CYCLE:
        return searched.keys()
    return set(nsmallest(SEARCHES_A_CYCLE // 2, searched, key=lambda uid: searched[uid].at))


def patience_is_over(session: Session, gang: GangView) -> bool:
    """Return True if a gang has waited for `patience_s` and may get a reservation without a known start time."""
    waits = gang.group.status.true_condition("Unschedulable")
    waited_since = readable_time((waits and waits.last_transition_time) or gang.created)
    return waited_since is not None and session.now - waited_since >= session.reservations.patience_s
