"""Usage as the store has it: of spans of time in which a gang asked for or held resources, and of folded days."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, case, func, or_, select

from history.integral import Amounts, TimeSpan, Totals, integrate
from history.model import DAY_MS, MemberEnd, Scope, vector_of
from history.schema import DAYS, FOLDS, GANGS, HOLDINGS, RUNS
from history.store import HistoryStore

AMOUNTS: Final = Amounts.__struct_fields__
_OTHERWISE: Final = sorted({*map(str, MemberEnd)} - {MemberEnd.COMPLETED, MemberEnd.EVICTED})
"""Ends after which work is lost if the gang starts again."""


class Key(NamedTuple):
    """Whose usage is, and of which day, counted from 1970; empty, and 0, where it is summed over that."""

    namespace: str = ""
    queue: str = ""
    user: str = ""
    kind: str = ""
    name: str = ""
    day: int = 0

    def on(self, day: int) -> "Key":
        """Return the key of the same on a day."""
        return self._replace(day=day)


class ReadWindow(NamedTuple):
    """A window of reading: a time (ms), and a scope."""

    since: int
    until: int
    scope: Scope
    namespace: str | None = None
    queue: str | None = None


def floors(store: HistoryStore) -> dict[str, int]:
    """Return up to when namespaces are folded beyond the days that are folded for all."""
    with store.engine.connect() as connection:
        return {str(name): int(until) for name, until in connection.execute(select(FOLDS.c.namespace, FOLDS.c.until))}


def unfolded(
    store: HistoryStore, window: ReadWindow, fields: Collection[str] = Key._fields, *, still: bool = False
) -> Totals[Key]:
    """Return the usage of a window after what is folded of it, by these fields of its key.

    `still`: only of what is held and has not ended, with the part of it that is folded.
    """
    on = Key.on if "day" in fields else None
    return integrate(_spans(store, window, fields, still=still), window.since, window.until, on)


def folded(
    connection: Connection, conditions: Iterable[ColumnElement[bool]], fields: Collection[str] = Key._fields
) -> Totals[Key]:
    """Return the usage of folded days, by these fields of its key."""
    names = [name for name in Key._fields if name in fields]
    columns = [DAYS.c[name] for name in ("resource", *AMOUNTS, *names)]
    totals: Totals[Key] = defaultdict(Amounts)
    for resource, asked, held, used, lost, *values in connection.execute(select(*columns).where(*conditions)):
        key = Key(**dict(zip(names, values, strict=True)))
        totals[key, resource].add(Amounts(int(asked), int(held), int(used), int(lost)))
    return totals


def days_of(window: ReadWindow) -> list[ColumnElement[bool]]:
    """Return the conditions for folded days that begin in a window."""
    first, last = (-(-at // DAY_MS) for at in (window.since, window.until))
    return [*_mine(window, DAYS), DAYS.c.day >= first, DAYS.c.day < last]


_Owners = dict[str, tuple[Key, int]]
"""Gang → its key, and from when on it counts."""


def _spans(store: HistoryStore, window: ReadWindow, fields: Collection[str], *, still: bool) -> Iterator[TimeSpan[Key]]:
    after = {} if still else floors(store)
    with store.engine.connect() as connection:
        owners = _owners(connection, window, fields, after)
        if not still:
            yield from _asked(connection, window, owners)
        yield from _held(connection, window, owners, still=still)


def _owners(connection: Connection, window: ReadWindow, fields: Collection[str], after: Mapping[str, int]) -> _Owners:
    names = [name for name in Key._fields if name in fields and name in GANGS.c]
    columns = [GANGS.c.id, GANGS.c.namespace, *(GANGS.c[name] for name in names)]
    return {
        gang: (Key(**dict(zip(names, values, strict=True))), after.get(namespace, 0))
        for gang, namespace, *values in connection.execute(select(*columns).where(*_mine(window, GANGS)))
    }


def _asked(connection: Connection, window: ReadWindow, owners: _Owners) -> Iterator[TimeSpan[Key]]:
    table = RUNS.c
    chosen = select(table.gang, table.asked, table.submitted, table.ended)
    for gang, amounts, begin, end in connection.execute(chosen.where(*_overlap(RUNS, table.submitted, window))):
        if gang in owners:  # it may have come between two statements
            key, floor = owners[gang]
            yield TimeSpan(key, vector_of(amounts), max(begin, floor), end)


def _held(connection: Connection, window: ReadWindow, owners: _Owners, *, still: bool) -> Iterator[TimeSpan[Key]]:
    """Yield what members held; it is lost if they were evicted, or their gang has started again since."""
    table, other = HOLDINGS.c, HOLDINGS.alias()
    started = select(func.max(other.c.bound)).where(other.c.gang == table.gang).scalar_subquery()
    is_lost = case((table.reason.in_(_OTHERWISE), started >= table.ended), else_=table.reason == str(MemberEnd.EVICTED))
    chosen = select(table.gang, table.amounts, table.bound, table.ran_from, table.ended, is_lost, table.saved)
    conditions = _overlap(HOLDINGS, table.bound, window) + ([table.ended.is_(None)] if still else [])
    for gang, amounts, bound, ran_from, end, lost, saved in connection.execute(chosen.where(*conditions)):
        if gang in owners:
            key, floor = owners[gang]
            lost_from = max(ran_from or bound, saved or 0) if lost else None
            yield TimeSpan(key, vector_of(amounts), max(bound, floor), end, True, ran_from, lost_from)  # noqa: FBT003


def _mine(window: ReadWindow, table: Any) -> list[ColumnElement[bool]]:
    """Return the conditions that keep others' rows out of an answer, in the database itself."""
    scope = window.scope
    conditions = [] if scope.namespaces is None else [table.c.namespace.in_(sorted(scope.namespaces))]
    conditions += [table.c.namespace == window.namespace] if window.namespace else []
    return conditions + ([table.c.queue == window.queue] if window.queue else [])


def _overlap(table: Any, begin: Any, window: ReadWindow) -> list[ColumnElement[bool]]:
    """Return the conditions for rows of a window's gangs that overlap its time."""
    of_mine = _mine(window, GANGS)
    conditions = [table.c.gang.in_(select(GANGS.c.id).where(*of_mine))] if of_mine else []
    return [*conditions, begin < window.until, or_(table.c.ended.is_(None), table.c.ended > window.since)]
