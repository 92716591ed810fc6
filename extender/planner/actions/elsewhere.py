"""Gives a gang that waits for the notices of victims other nodes, once there are enough that nobody has to leave.

A notice may last for an hour, and other gangs end meanwhile. All who wait for free room were tried before in the same
cycle, and reservations of others are kept. The victims stay, and are told so.
"""

from extender.planner.actions.ending import reservations_kept
from extender.planner.actions.makeroom import awaits_room, victims_there
from extender.planner.actions.search import SlotSearch, runs_of_operations
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, counted_free, undone
from extender.planner.state.gangs import GangView

ATTEMPTS = 4
"""Searches in one cycle."""


class Elsewhere:
    """Decides Place for gangs of whose victims some can still be spared."""

    name = "elsewhere"

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        """UID of a gang → version of the snapshot on which it was tried last."""

    def execute(self, session: Session) -> None:
        """Try the gangs that wait, on a cluster that has changed since."""
        before, self._seen = self._seen, {}
        going = {room.gang.key for room in session.decided(decisions.MakeRoom)}
        closed = {close.gang.key for close in session.decided(decisions.ClosePlacement)}
        there = {room.gang.key for room in session.decided(decisions.RoomIsThere)}
        left = ATTEMPTS
        for key in session.snapshot.placed:
            gang = session.gang(key)
            placement = gang.placement if gang is not None and awaits_room(gang) else None
            if gang is None or placement is None or not placement.spec.notices:
                continue
            self._seen[gang.uid] = before.get(gang.uid, -1)
            due = gang.key not in going | closed | there and self._seen[gang.uid] != session.snapshot.version
            if due and left:
                left -= 1
                self._seen[gang.uid] = session.snapshot.version
                session.attempt(gang, _try)


def _try(session: Session, gang: GangView) -> None:
    """Place the gang as if its slots were free, with all victims where they are."""
    snapshot, placement = session.snapshot, gang.placement
    there = victims_there(session, gang, placement) if placement else []
    if all(pod.terminating for _, pod in there):
        return  # nobody can be spared, and its own room comes in a moment
    if gang.taken or any(
        cls is None or cls.gpu is not None or snapshot.one_by_one(cls) or cls.marks for cls in gang.all_classes
    ):
        return  # what its slots hold cannot be given back alone
    slots = [
        (column, snapshot.row_of(pod_set.cls))
        for _, node, pod_set in gang.placed_slots()
        if pod_set is not None and pod_set.cls is not None and (column := snapshot.index.get(node)) is not None
    ]
    statement = Statement(session)
    with undone(statement), counted_free(session, slots), reservations_kept(session, gang):
        ask = session.ask(gang)
        fits = ask.least > 0 and SlotSearch(session, statement, ask).minimum() is None
    if not fits:
        statement.discard()
        return
    runs = runs_of_operations(session, gang, statement.operations)
    session.decide(decisions.Place(gang, runs, gang.next_epoch(), statement.slots))
