"""Reservations of nodes for a gang, read from its Placement or newly found, and the queues that each reservation binds.

A reservation is found by placing the gang's whole minimum, as in `allocate`, on the capacity that will be free at a
future time. Free capacity only grows with time, so a binary search finds the earliest time in about a dozen trials.
Affinity between pods is evaluated for the pods that are running now.

A reservation binds all queues if the queue of its gang is entitled to the resources, otherwise only that queue. A queue
may reserve its fair share (or its deserved or guaranteed resources, if these are more), minus its current usage. While
the gang must wait for pods of its own queue, the reservation does not bind other queues, because other queues cannot
shorten the wait. A reservation does not bind other queues for `patience_s`, either, if its gang has not started for a
long time (`expiry_s`). Later gangs of the same queue always leave the reserved capacity free. The module does no I/O
and reads no clock.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.actions.placing import runs_of_operations
from extender.planner.actions.reserve.ends import Releases, used_by_gangs, used_by_queue
from extender.planner.actions.search import SlotSearch
from extender.planner.ask import Ask
from extender.planner.framework.answers import LeftFree
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.reserved import ReservedRoom, left_free
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.noderuns import ranks_of
from muster.api.muster.placement import PodSetPlacement
from muster.api.muster.reason import NOTHING, Reason, stored

LATER_S = 10.0
"""Maximum change of a reservation's expected start for which the Placement is not written again."""
SEARCH_INTERVAL_S = 5.0
"""Seconds between a failed search for a reservation and the gang's next one, if nodes have changed."""


@dataclass(frozen=True, slots=True, eq=False)
class Reservation(ReservedRoom):
    """Capacity reserved for a gang's slots; the gang's expected start `at` is in whole seconds since the epoch."""

    gang: GangView
    pod_sets: list[PodSetPlacement]
    why: Reason = NOTHING
    written: bool = False
    """True if the gang's Placement already contains this reservation."""
    suspended: Reason = NOTHING
    """Reason why the reservation binds only the queue of its gang; empty if the reservation binds all queues."""
    since: float = 0.0
    """Time since which nodes have been reserved for the gang, in whole seconds since the epoch."""


def as_written(session: Session, gang: GangView, releases: Releases) -> Reservation | None:
    """Return the reservation in the gang's Placement, with an updated start time; None if a node rejects the gang."""
    placement, snapshot = gang.placement, session.snapshot
    if placement is None or placement.status.phase != "Reserved":
        return None
    known, rows, counts = {each.name: each for each in gang.pod_sets}, dict[int, Amounts](), Counter[str]()
    for written_set in placement.spec.pod_sets:
        for ranks, node in ranks_of(written_set.runs):
            pod_set, column = known.get(written_set.name), snapshot.index.get(node)
            members = pod_set.classes_of(ranks) if pod_set else {}
            if not members or column is None or node in session.avoided.get(gang.key, ()):
                return None
            for cls, count in members.items():
                if session.node_codes(cls)[column] or snapshot.unknown_resource(cls):
                    return None
                row = rows.setdefault(column, np.zeros(len(snapshot.free), np.int64))
                row += snapshot.row_of(cls) * count
            counts[written_set.name] += len(ranks)
    columns = np.array(sorted(rows), dtype=np.int64)
    if not rows or not gang.satisfied(counts):
        return None
    need: Amounts = np.stack([rows[int(column)] for column in columns], axis=1)
    if (need > snapshot.allocatable[:, columns]).any():
        return None
    at, written = _when(session, placement.status.expected_at, releases.when(columns, need - snapshot.free[:, columns]))
    gained = np.zeros_like(need) if at is None else releases.gained(columns, releases.until(at))
    why = stored(placement.status.why, placement.status.message)
    return Reservation(at, columns, need, gained, gang, placement.spec.pod_sets, why, written=written)


def _when(session: Session, recorded: str, predicted: float | None) -> tuple[float | None, bool]:
    """Return the gang's expected start, and whether the time in the Placement is still accurate enough."""
    before = readable_time(recorded)
    if predicted is None:
        return None, not recorded
    at = float(ceil(max(predicted, session.now)))
    if before is None:
        return at, False
    over = before <= session.now and predicted <= session.now  # the reservation may begin at any moment
    return at, over or -1.0 <= at - before <= LATER_S or (predicted <= session.now < before)


def left_to(session: Session, reservations: Sequence[Reservation]) -> LeftFree | None:
    """Return the capacity that other gangs must leave free for these reservations."""
    if not reservations:
        return None
    columns, amounts = left_free(reservations, session.snapshot.free.shape[0])
    codes = np.zeros(len(columns), dtype=np.int16)
    for each in reservations:
        why = reasons.cause.reserved(gang=session.called(each.gang))
        codes[np.searchsorted(columns, each.columns)] = session.causes.code(why)
    return LeftFree(columns, amounts, codes, columns.tobytes() + amounts.tobytes())


@dataclass(frozen=True, slots=True)
class ReservationSearch:
    """Inputs of a failed search for a reservation."""

    version: int
    """Version of the snapshot's arrays."""
    at: float
    """Time of the search, in seconds since the epoch."""
    improving: bool
    """True if the gang already had a reservation, and the search was for an earlier start."""
    patient: bool
    """True if the gang had not yet waited for `patience_s`."""


ReservationSearches = dict[str, ReservationSearch]
"""Maps the UID of a gang to its last search that found no reservation."""


def worth_it(search: ReservationSearch, last: ReservationSearch | None) -> bool:
    """Return True if a new search for a reservation may succeed although the last search failed."""
    if last is None or last.improving != search.improving:
        return True
    changed = (last.version, last.patient) != (search.version, search.patient)
    return changed and search.at >= last.at + SEARCH_INTERVAL_S


def earliest(
    session: Session, gang: GangView, releases: Releases, taken: Amounts, before: float | None
) -> Reservation | None:
    """Return the earliest reservation without `taken` capacity that starts before `before`; None if there is none."""
    free = session.snapshot.free - taken
    most = len(releases.times) if before is None else releases.until(before)
    steps = np.flatnonzero(np.diff(releases.times[:most], append=np.inf) > 0) + 1  # after each distinct time

    def tried(step: int) -> list[Operation] | None:
        return _trial(session, gang, releases.freed(free, int(steps[step])))

    found = _first(len(steps), tried)
    if found is None:
        return None
    count = int(steps[found[0]])
    at = float(ceil(max(float(releases.times[count - 1]), session.now)))
    columns, need = _need(session, found[1])
    gained = releases.gained(columns, releases.until(at))
    return Reservation(at, columns, need, gained, gang, runs_of_operations(session, gang, found[1]))


def soonest_empty(session: Session, gang: GangView, taken: Amounts, *, of_others: bool) -> Reservation | None:
    """Return a reservation without an expected start, preferably on the nodes that gangs use least.

    Returns None if the gang fits nowhere. With `of_others`, only capacity that gangs of other queues use is expected to
    become free.
    """
    snapshot = session.snapshot
    others = (each for each in snapshot.gangs if each.queue != gang.queue)
    used = used_by_gangs(snapshot, others if of_others else None)
    wanted = np.flatnonzero(sum(snapshot.row_of(cls) for cls in gang.all_classes if cls is not None))
    share = (used[wanted] / np.maximum(snapshot.allocatable[wanted], 1)).max(axis=0, initial=0.0)
    order = snapshot.order[np.argsort(share[snapshot.order], kind="stable")]
    order = order[share[order] > 0]

    def tried(step: int) -> list[Operation] | None:
        free = snapshot.free - taken
        free[:, order[: step + 1]] += used[:, order[: step + 1]]
        return _trial(session, gang, free)

    found = _first(len(order), tried)
    if found is None:
        return None
    columns, need = _need(session, found[1])
    return Reservation(None, columns, need, np.zeros_like(need), gang, runs_of_operations(session, gang, found[1]))


def _first(count: int, tried: Callable[[int], list[Operation] | None]) -> tuple[int, list[Operation]] | None:
    """Return the lowest number below `count` for which `tried` returns a result, with this result.

    If `tried` returns a result for a number, `tried` must return a result for all higher numbers, too.
    """
    result = tried(count - 1) if count else None
    if result is None:
        return None
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        operations = tried(middle)
        if operations is None:
            low = middle + 1
        else:
            high, result = middle, operations
    return high, result


def _trial(session: Session, gang: GangView, free: Amounts) -> list[Operation] | None:
    """Return the operations that place the gang's minimum on the capacity `free`; restore the session afterwards."""
    snapshot, reserved = session.snapshot, session.reserved
    before, statement = snapshot.free, Statement(session)
    snapshot.free, session.reserved = free, None
    try:
        ask = session.ask(gang)
        fits = not _too_little(session, ask) and SlotSearch(session, statement, ask).minimum() is None
        operations = list(statement.operations) if fits else []
    finally:
        statement.discard()
        snapshot.free, session.reserved = before, reserved
    return operations or None


def _too_little(session: Session, ask: Ask) -> bool:
    """Return True if a pod set does not fit even alone; this cheap check ends most trials that would fail."""
    for pod_set in ask.gang.pod_sets:
        need = ask.minimum[pod_set.name]
        if need and pod_set.cls is not None and not pod_set.mixed:
            room = np.where(session.node_codes(pod_set.cls) == 0, session.room(pod_set.cls), 0)
            if int(np.minimum(room, need).sum()) < need:
                return True
    return False


def _need(session: Session, operations: list[Operation]) -> tuple[NDArray[np.int64], Amounts]:
    """Return the columns of the nodes of these operations, and the resources that the operations take on each node."""
    columns = np.unique(np.array([operation.column for operation in operations], dtype=np.int64))
    need = np.zeros((session.snapshot.free.shape[0], len(columns)), dtype=np.int64)
    for operation in operations:
        need[:, columns == operation.column] += operation.amount[:, None]
    return columns, need


def judged(session: Session, reservation: Reservation) -> Reservation:
    """Return the reservation with the queues that it binds now; `suspended` says why it binds only its own queue."""
    queue, rules, suspended = reservation.gang.queue, session.reservations, NOTHING
    since = _since(session, reservation.gang)
    if session.now >= since + rules.expiry_s:
        suspended = reasons.queues.expired(after_s=rules.expiry_s)
    elif _waits_for_its_own(session, reservation):
        suspended = reasons.queues.FOR_ITS_OWN
    elif not _within_share(session, queue, reservation.need):
        suspended = reasons.queues.OVER_SHARE
    if (suspended, since) == (reservation.suspended, reservation.since):
        return reservation
    return replace(reservation, only=queue if suspended else "", suspended=suspended, since=since)


def _since(session: Session, gang: GangView) -> float:
    """Return the time since which nodes have been reserved for the gang.

    The result is the present time once the reservation's maximum duration (`expiry_s`) and the following pause
    (`patience_s`) are over.
    """
    rules, now = session.reservations, float(floor(session.now))
    known = readable_time(gang.placement.status.reserved_at) if gang.placement else None
    if known is None or known > now or session.now >= known + rules.expiry_s + rules.patience_s:
        return now
    return known


def _within_share(session: Session, queue: str, need: Amounts) -> bool:
    """Return True if the queue may reserve `need`, int64 of shape (resources, nodes), or no plugin has shares."""
    hooks = session.hooks
    fair, used = hooks.get_queue_fair_share.call(queue), hooks.get_queue_allocated_resources.call(queue)
    if fair is None or used is None:
        return True
    deserved = hooks.get_queue_deserved_resources.call(queue)
    share = fair if deserved is None else np.maximum(fair, deserved)
    wanted = need.sum(axis=1)
    return bool((used + wanted <= share)[np.flatnonzero(wanted)].all())


def _waits_for_its_own(session: Session, reservation: Reservation) -> bool:
    """Return True if the gang does not fit on a reserved node alongside the pods of the gang's own queue."""
    columns, snapshot = reservation.columns, session.snapshot
    own = used_by_queue(snapshot, reservation.gang.queue)[:, columns]
    return bool((reservation.need > snapshot.allocatable[:, columns] - own)[np.nonzero(reservation.need)].any())
