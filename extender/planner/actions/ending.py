"""Assignment of the capacity of terminating pods to waiting gangs.

Victim searches assign the capacity of terminating pods to waiting gangs in scheduling order, so that no further pod is
evicted for these gangs. A gang that fits on the capacity of terminating pods just waits and gets no placement yet. The
action `allocate` does not give the assigned capacity to gangs that come later in the scheduling order.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

import numpy as np

from extender.planner.actions.failures import shape_of
from extender.planner.actions.makeroom import leaving_pods
from extender.planner.actions.search import SlotSearch, reservations_kept
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.victims.notices import expected_to_go

OF_A_QUEUE = 8
MOST_GANGS_CHECKED = 32
"""Maximum number of gangs, per queue and in total, that an action tries on capacity of terminating pods."""


@dataclass(slots=True)
class EndingInOrder:
    """The slots that waiting gangs will take, in scheduling order, once pods have terminated."""

    taken: dict[str, list[Operation]] = field(default_factory=dict)
    """Maps the key of a gang that waits without needing evictions to the slots that it will take."""
    position: dict[str, int] = field(default_factory=dict)
    """Maps the key of each processed gang to its position in the scheduling order."""

    @contextmanager
    def kept_from(self, session: Session, gang: GangView) -> Iterator[None]:
        """Within a `with` block, withhold the capacity that gangs earlier in the scheduling order will use."""
        mine, statement = self.position.get(gang.key, MOST_GANGS_CHECKED), Statement(session)
        for key, operations in self.taken.items():
            if self.position[key] < mine:
                statement.repeat(operations)
        try:
            yield
        finally:
            statement.discard()


def in_queue_order(session: Session, waiting: Sequence[GangView]) -> EndingInOrder:
    """Return the slots that the given gangs will take on the capacity of terminating pods."""
    found, failed = EndingInOrder(), set[Hashable]()
    columns = [column for _, column in _going(session)]
    with room_of_leaving(session) as some:
        if not some:
            return found
        statements: list[Statement] = []
        for place, gang in enumerate(islice(session.in_order(_first(waiting)), MOST_GANGS_CHECKED)):
            found.position[gang.key] = place
            shape = gang.queue, gang.creator, shape_of(session, session.ask(gang))
            if shape in failed or not _may_use(session, gang, columns):
                continue
            statement = Statement(session)
            if session.attempt(gang, partial(_fits, statement=statement)):
                statements.append(statement)
                found.taken[gang.key] = list(statement.operations)
            else:
                statement.discard()
                failed.add(shape)
        for statement in reversed(statements):
            statement.discard()
    return found


def _first(waiting: Iterable[GangView]) -> list[GangView]:
    """Return the first gangs of each queue, at most `OF_A_QUEUE` per queue."""
    by_queue: dict[str, list[GangView]] = {}
    for gang in waiting:
        of_queue = by_queue.setdefault(gang.queue, [])
        if len(of_queue) < OF_A_QUEUE:
            of_queue.append(gang)
    return list(chain.from_iterable(by_queue.values()))


def _may_use(session: Session, gang: GangView, columns: list[int]) -> bool:
    """Return True if these nodes accept the gang's pods, or may accept them once a claim that the pods name is free."""
    classes = filter(None, gang.all_classes)
    return any(cls.needs.named or bool((session.node_codes(cls)[columns] == 0).any()) for cls in classes)


def _fits(session: Session, gang: GangView, *, statement: Statement) -> bool:
    """Place the gang's minimum on the statement; return False if it does not fit or is already placed."""
    ask = session.ask(gang)
    if not ask.least or session.queue_refusal(ask) is not None:
        return False
    with reservations_kept(session, gang):
        return SlotSearch(session, statement, ask).minimum() is None


@contextmanager
def room_of_leaving(session: Session) -> Iterator[bool]:
    """Count the capacity of pods that are terminating or due for eviction as free; return True if such pods exist.

    A placement's victims are not counted, because the placement already holds their capacity.
    """
    snapshot, going = session.snapshot, _going(session)
    room = np.zeros_like(snapshot.free)
    for pod, column in going:
        room[:, column] += snapshot.row_on(pod.cls, column)
    snapshot.free += room
    _take_devices(snapshot, going, -1)
    for pod, _ in going:
        session.claims.use(pod.cls, -1)
    try:
        yield bool(going)
    finally:
        snapshot.free -= room
        _take_devices(snapshot, going, 1)
        for pod, _ in going:
            session.claims.use(pod.cls, 1)


def needs_leaving(session: Session, columns: Collection[int]) -> bool:
    """Return True if a placement on these nodes, made within `room_of_leaving`, must wait for terminating pods."""
    snapshot = session.snapshot
    room = {column: snapshot.free[:, column].copy() for column in columns}
    for pod, column in _going(session):
        if column in room:
            if pod.cls.gpu is not None or pod.cls.needs.named:  # such pods are rare, and waiting for them does no harm
                return True
            room[column] -= snapshot.row_on(pod.cls, column)
    return any(bool((free < 0).any()) for free in room.values())


def _going(session: Session) -> list[tuple[PodRecord, int]]:
    """Return the pods that are terminating or due for eviction and will probably end soon, with their node's column."""
    index = session.snapshot.index
    leaving = (pod for pod in leaving_pods(session).values() if pod.node in index)
    return [(pod, index[pod.node]) for pod in leaving if expected_to_go(session, pod)]


def _take_devices(snapshot: Snapshot, pods: Sequence[tuple[PodRecord, int]], sign: int) -> None:
    """Count the shared GPUs of these pods as used on their nodes; with sign -1, as free."""
    for pod, column in pods:
        if pod.cls.gpu is not None:
            snapshot.devices.add_share(pod.cls.gpu, column, pod.devices, sign)
