"""What was asked for and held, as the store has it: whose, how much, from when until when."""

from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, func, or_, select

from history.integral import Owner, Span
from history.model import DAY_MS, End
from history.schema import FOLDS, GANGS, HOLDINGS, RUNS
from history.scope import Scope
from history.store import Store
from muster.resources.vector import Vector

_VECTOR: Final = msgspec.json.Decoder(Vector)
_SHAPES: Final = 4096
"""Different amounts that are remembered: members of one shape share theirs."""
_HELD: Final = ("gang", "amounts", "bound", "ran_from", "ended", "reason", "saved")
NOT_LOST: Final = frozenset({"", str(End.COMPLETED)})
"""Reasons of members whose work was not lost."""


class Window(NamedTuple):
    """What is looked at: a time (ms), and whose."""

    since: int
    until: int
    scope: Scope
    namespace: str | None = None
    queue: str | None = None


def mine(window: Window, table: Any) -> list[ColumnElement[bool]]:
    """Return the conditions that keep others' rows out of an answer, in the database itself."""
    scope = window.scope
    conditions = [] if scope.namespaces is None else [table.c.namespace.in_(sorted(scope.namespaces))]
    conditions += [table.c.namespace == window.namespace] if window.namespace else []
    return conditions + ([table.c.queue == window.queue] if window.queue else [])


def within(table: Any, begin: Any, window: Window, *, across: bool = False) -> list[ColumnElement[bool]]:
    """Return the conditions for rows that overlap a window; `across`: and that may go over a midnight in it."""
    conditions = [begin < window.until, or_(table.c.ended.is_(None), table.c.ended > window.since)]
    days = [begin // DAY_MS < func.coalesce(table.c.ended, window.until) // DAY_MS] if across else []
    return conditions + days


def floors(store: Store) -> dict[str, int]:
    """Return up to when namespaces are folded beyond the days that are folded for all."""
    with store.engine.connect() as connection:
        return {str(name): int(until) for name, until in connection.execute(select(FOLDS.c.namespace, FOLDS.c.until))}


@lru_cache(_SHAPES)
def vector_of(text: str) -> Vector:
    """Return amounts by their text; equal ones are the same object."""
    return _VECTOR.decode(text)


def spans(store: Store, window: Window, *, whole: bool = False, across: bool = False) -> list[Span]:
    """Return what overlaps a window, each from where its namespace is folded; `whole`: what is folded as well.

    `across`: only what goes over a midnight in the window.
    """
    found: list[Span] = []
    of_mine = mine(window, GANGS)
    after = {} if whole else floors(store)
    with store.engine.connect() as connection:
        gangs = select(GANGS.c.id, *(GANGS.c[name] for name in Owner._fields)).where(*of_mine)
        owners = {row[0]: Owner(*row[1:]) for row in connection.execute(gangs)}
        runs = (
            select(RUNS.c.gang, RUNS.c.asked, RUNS.c.submitted, RUNS.c.ended)
            .join(GANGS, GANGS.c.id == RUNS.c.gang)
            .where(*of_mine, *within(RUNS, RUNS.c.submitted, window, across=across))
        )
        for gang, asked, submitted, ended in connection.execute(runs):
            if gang in owners:  # it may have come between the two statements
                begin = max(submitted, after.get(owners[gang].namespace, 0))
                found.append(Span(owners[gang], vector_of(asked), begin, ended))
        held = (
            select(*(HOLDINGS.c[name] for name in _HELD))
            .join(GANGS, GANGS.c.id == HOLDINGS.c.gang)
            .where(*of_mine, *within(HOLDINGS, HOLDINGS.c.bound, window, across=across))
        )
        members = connection.execute(held).all()
        last = _last_starts(connection, window)
    for gang, amounts, bound, ran_from, ended, reason, saved in members:
        if gang not in owners:
            continue
        lost = None
        again = reason not in NOT_LOST and last.get(gang, 0) >= (ended or 0) > 0
        if again or reason == End.EVICTED:
            lost = max(ran_from or bound, saved or 0)
        begin = max(bound, after.get(owners[gang].namespace, 0))
        found.append(Span(owners[gang], vector_of(amounts), begin, ended, True, ran_from, lost))  # noqa: FBT003 - 100,000s
    return [each for each in found if not across or _goes_over_midnight(each, window)]


def _goes_over_midnight(span: Span, window: Window) -> bool:
    first = max(window.since, span.asked_from)
    last = window.until if span.until is None else min(window.until, span.until)
    return first // DAY_MS < (last - 1) // DAY_MS


def _last_starts(connection: Connection, window: Window) -> dict[str, int]:
    """Return the latest binding of each gang of which a member has ended since a window began."""
    of_mine = mine(window, GANGS)
    ended = select(HOLDINGS.c.gang).where(HOLDINGS.c.ended > window.since).distinct()
    found = select(HOLDINGS.c.gang, func.max(HOLDINGS.c.bound)).where(HOLDINGS.c.gang.in_(ended))
    if of_mine:
        found = found.where(HOLDINGS.c.gang.in_(select(GANGS.c.id).where(*of_mine)))
    return {str(gang): int(bound) for gang, bound in connection.execute(found.group_by(HOLDINGS.c.gang))}
