"""Gives gangs their nodes: the whole minimum under one Statement or nothing, then what else fits.

Members under the minimum are of no use, and those above it are welcome; hence the two steps. The minimum is tried pod
set by pod set and taken back as a whole at the first one that fails; what else fits is added to it one by one (or
sub-group by sub-group), and what does not fit is left out.

The search is a short one: pod sets in two orders, nodes by score, no going back over what other gangs got. A gang that
would fit only in a third order waits, which costs time and breaks nothing; an exhaustive search would cost every gang
behind it more. What makes a cycle cheap is not to try at all: while nothing is freed, room only shrinks, so that of
gangs with the same shape only the first is tried, in this cycle and in those after it.
"""

from collections.abc import Hashable, Sequence
from functools import cmp_to_key

import numpy as np

from extender.actions.fill import fill
from extender.framework import decisions
from extender.framework.session import Session
from extender.framework.shortage import Shortage, shortage
from extender.framework.statement import Operation, Statement
from extender.state.gangs import GangView, PodSetView
from muster.api.placement import PodSetPlacement, runs_of

IN_FLIGHT_LIMIT = 256
"""Seats that may be on their way at once (a single larger gang excepted), so that the members of one gang reach
kube-scheduler together and its barrier stays short."""


class Allocate:
    """Tries every gang that was let in and has open seats, in the session's order."""

    name = "allocate"

    def __init__(self) -> None:
        self._order: dict[str, int] = {}
        self._failures: dict[Hashable, Shortage] = {}
        """Shape of a gang that did not fit → why. Within a cycle room only shrinks, so its like need not be tried."""
        self._version = -1

    def execute(self, session: Session) -> None:
        """Decides Place for the gangs that fit, Unschedulable with the reason for those that do not."""
        if self._version != session.snapshot.version:
            self._failures.clear()
            self._version = session.snapshot.version
        in_flight = session.snapshot.in_flight
        for gang in self._ordered(session):
            if in_flight >= IN_FLIGHT_LIMIT:
                return
            in_flight += session.attempt(gang, self._look) or 0

    def _look(self, session: Session, gang: GangView) -> int:
        """Places one gang, if it is ready and fits; returns the number of seats placed."""
        if not session.ask("job_ready", gang):
            session.decide(decisions.Unschedulable(gang, "NotEnoughPods", _not_ready(gang)))
            return 0
        session.call_all("pre_job_allocation", gang)
        statement = Statement(session)
        try:
            return self._try(session, statement, gang)
        except Exception:
            statement.discard()
            raise

    def _ordered(self, session: Session) -> list[GangView]:
        """The gangs to try; sorting begins with the last cycle's order, which is nearly right."""
        gangs = [gang for gang in session.snapshot.gangs if session.attempt(gang, wants_nodes)]
        gangs.sort(key=lambda gang: self._order.get(gang.key, len(self._order)))
        ordered = session.ordered_gangs(gangs)
        self._order = {gang.key: position for position, gang in enumerate(ordered)}
        return ordered

    def _try(self, session: Session, statement: Statement, gang: GangView) -> int:
        shape = _shape(session, gang)
        if shape in self._failures:
            session.decide(_waits(gang, self._failures[shape]))
            return 0
        failed = _place_minimum(session, statement, gang)
        if failed is not None:
            statement.discard()
            self._failures[shape] = failed
            session.decide(_waits(gang, failed))
            return 0
        _place_rest(session, statement, gang)
        operations = statement.commit()
        placed = sum(len(operation.ranks) for operation in operations)
        if placed:
            session.decide(decisions.Place(gang, _runs(session, gang, operations), gang.next_epoch(), placed))
        elif gang.started:
            _say_why_extras_wait(session, gang)
        return placed


def _shape(session: Session, gang: GangView) -> Hashable:
    """Equal for gangs that fit or do not fit alike."""
    wanted = minimum_wanted(gang)
    if any(pod_set.mixed for pod_set in gang.pod_sets):
        return gang.key
    sets = tuple(
        (pod_set.name, pod_set.cls.key if pod_set.cls else b"", wanted[pod_set.name]) for pod_set in gang.pod_sets
    )
    return sets, frozenset(session.avoided.get(gang.key, ()))


def wants_nodes(session: Session, gang: GangView) -> bool:
    """Whether this action tries the gang: it was let in, and something is missing that no placement holds yet."""
    let_in = gang.key in session.enqueued or gang.group.status.phase not in {"", "Pending", "Completed"}
    return let_in and not gang.active and (not gang.started or any(gang.open_seats().values()))


def _not_ready(gang: GangView) -> str:
    have = sum(len(seats) for seats in gang.open_seats().values()) + gang.taken
    return f"{have} of the {gang.min_member} pods that start together exist"


def minimum_wanted(gang: GangView) -> dict[str, int]:
    """How many open seats of each pod set must be filled for the gang to start; all 0 once it has."""
    wanted = {pod_set.name: 0 for pod_set in gang.pod_sets}
    if gang.started:
        return wanted
    seats = gang.open_seats()
    left = gang.min_member - gang.taken
    if gang.min_member >= sum(pod_set.minimum for pod_set in gang.pod_sets):
        for pod_set in gang.pod_sets:
            missing = max(0, pod_set.minimum - len(pod_set.taken))
            wanted[pod_set.name] = min(missing, len(seats[pod_set.name]))
            left -= wanted[pod_set.name]
    for pod_set in gang.pod_sets:
        more = max(0, min(left, len(seats[pod_set.name]) - wanted[pod_set.name]))
        wanted[pod_set.name] += more
        left -= more
    return wanted


def _place_minimum(session: Session, statement: Statement, gang: GangView) -> Shortage | None:
    """Fills the seats the gang needs to start; None on success, else what the first pod set that fails is short of."""
    wanted = minimum_wanted(gang)
    seats = gang.open_seats()
    first: Shortage | None = None
    for order in _orders(session, gang):
        start = statement.checkpoint()
        failed = False
        for pod_set in order:
            ranks = _first(session, pod_set, seats[pod_set.name], wanted[pod_set.name])
            before = statement.checkpoint()
            placed = fill(session, statement, gang, pod_set, ranks)
            if placed < len(ranks):
                failed = True
                statement.rollback(before)  # the causes are counted with the gang's other pod sets in their places
                first = first or shortage(session, gang, pod_set, len(ranks), placed)
                break
        if not failed:
            return None
        statement.rollback(start)
    return first


def _waits(gang: GangView, lacks: Shortage) -> decisions.Unschedulable:
    return decisions.Unschedulable(gang, "NotEnoughResources", lacks.message, lacks)


def _first(session: Session, pod_set: PodSetView, ranks: Sequence[int], count: int) -> list[int]:
    """At least so many of these ranks: whole sub-groups, and pods that the task order prefers before others."""
    chosen: list[int] = []
    for unit in pod_set.units(_preferred(session, pod_set, ranks)):
        if len(chosen) >= count:
            break
        chosen += unit if pod_set.unit > 1 else unit[:1]
    return sorted(chosen)


def _preferred(session: Session, pod_set: PodSetView, ranks: Sequence[int]) -> Sequence[int]:
    """Ranks in the plugins' task order where all of them have pods and are placed singly; else as they are."""
    if pod_set.unit > 1 or not all(rank in pod_set.waiting for rank in ranks):
        return ranks

    def compare(left: int, right: int) -> int:
        return session.ask("task_order", pod_set.waiting[left], pod_set.waiting[right]) or left - right

    return sorted(ranks, key=cmp_to_key(compare))


def _place_rest(session: Session, statement: Statement, gang: GangView) -> None:
    """Fills open seats above the minimum as far as there is room; of a sub-group all or none."""
    filled = {(operation.pod_set, rank) for operation in statement.operations for rank in operation.ranks}
    seats = gang.open_seats()
    for pod_set in session.ordered_pod_sets(gang):
        ranks = [rank for rank in seats[pod_set.name] if (pod_set.name, rank) not in filled]
        if pod_set.unit == 1:
            fill(session, statement, gang, pod_set, _preferred(session, pod_set, ranks))
            continue
        for unit in pod_set.units(ranks):
            before = statement.checkpoint()
            if fill(session, statement, gang, pod_set, unit) < len(unit):
                statement.rollback(before)


def _orders(session: Session, gang: GangView) -> list[list[PodSetView]]:
    """Orders of pod sets to try: greedy pods first, as they are hardest to place; then as written.

    Whoever follows others comes after them in both.
    """
    totals = session.snapshot.allocatable.sum(axis=1)

    def share(pod_set: PodSetView) -> float:
        if pod_set.cls is None:
            return 0.0
        row = session.snapshot.row_of(pod_set.cls)
        return float((row / np.maximum(totals, 1)).max(initial=0.0))

    written = sorted(gang.pod_sets, key=_follows)
    greedy = sorted(written, key=lambda pod_set: (_follows(pod_set), -share(pod_set)))
    return [greedy] if greedy == written else [greedy, written]


def _follows(pod_set: PodSetView) -> bool:
    """Whether its pods must go where pods of another kind are: those come first, as they may be of the same gang."""
    together = pod_set.cls.neighbours.together if pod_set.cls else None
    return together is not None and pod_set.cls is not None and together.mark not in pod_set.cls.matched


def _runs(session: Session, gang: GangView, operations: list[Operation]) -> list[PodSetPlacement]:
    """The placement's seats: those taken already and those just allocated, in rank order."""
    seats: dict[str, dict[int, str]] = {pod_set.name: dict(pod_set.taken) for pod_set in gang.pod_sets}
    for operation in operations:
        node = session.snapshot.name(operation.column)
        seats[operation.pod_set] |= dict.fromkeys(operation.ranks, node)
    followers = {pod_set.name for pod_set in gang.pod_sets if _follows(pod_set)}
    return [
        PodSetPlacement(
            name=name,
            runs=runs_of(taken),
            held=name in followers and len(followers) < len(seats),
        )
        for name, taken in seats.items()
        if taken
    ]


def _say_why_extras_wait(session: Session, gang: GangView) -> None:
    for pod_set in gang.pod_sets:
        ranks = gang.open_seats()[pod_set.name]
        if ranks:
            session.decide(_waits(gang, shortage(session, gang, pod_set, len(ranks), 0, kind="extra")))
            return
