"""Gives gangs that have their minimum more, of what nobody needs to start.

Queues are weighed again after each pod (or sub-group) that a gang gets, as they are after each gang that starts; so
queues share what is left, and not who comes first. Where very many pods wait, a step is some of them.
"""

from collections.abc import Sequence
from functools import partial
from math import ceil

from extender.planner.actions.reserve.book import Book
from extender.planner.actions.search import place_more
from extender.planner.actions.slotlimit import SlotLimit
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, undone
from extender.planner.state.gangs import GangView

STEPS = 256
"""Steps in one cycle, about: each looks for a node, and weighs queues."""


def grow(session: Session, trials: Sequence[tuple[GangView, Statement]], limit: SlotLimit, book: Book) -> None:
    """Adds to each gang's statement what it gets besides, as long as there is room for any of them."""
    statements = {gang.key: statement for gang, statement in trials}
    waiting = sum(_open(gang, statement) for gang, statement in trials)
    alone = len({gang.queue for gang, _ in trials}) == 1
    step = waiting if alone else ceil(waiting / STEPS)
    more = set(statements)
    for gang in session.turns([gang for gang, _ in trials], lambda gang: gang.key in more):
        add = partial(_add, statement=statements[gang.key], most=step, limit=limit, book=book)
        if not session.attempt(gang, add):
            more.discard(gang.key)


def _add(session: Session, gang: GangView, *, statement: Statement, most: int, limit: SlotLimit, book: Book) -> bool:
    """Gives one gang so many more pods of the first pod set that has room; False if that was all it can get."""
    if not limit.admit(gang):
        return False
    before = statement.slots
    with undone(statement), book.room_for(gang, growth=True):
        for pod_set in session.ordered_pod_sets(gang):
            place_more(session, statement, gang, {each.name: most if each is pod_set else 0 for each in gang.pod_sets})
            if statement.slots > before:
                break
    limit.add(gang, statement.slots - before)
    return statement.slots > before and _open(gang, statement) > 0


def _open(gang: GangView, statement: Statement) -> int:
    return sum(len(ranks) for ranks in gang.open_slots().values()) - statement.slots
