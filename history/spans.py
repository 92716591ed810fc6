"""Usage in the store: time spans in which gangs requested or held resources, and aggregated days."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, CompoundSelect, Connection, Select, Table, case, func, or_, select, union

from history.integral import Amounts, TimeSpan, Totals, by_queue, integrate
from history.model import DAY_MS, NO_MOVES, MemberEnd, Scope, moves_of, vector_of
from history.schema import DAYS, FOLDS, GANGS, HOLDINGS, RUNS
from history.store import HistoryStore

AMOUNTS: Final = Amounts.__struct_fields__
_OTHERWISE: Final = sorted({*map(str, MemberEnd)} - {MemberEnd.COMPLETED, MemberEnd.EVICTED})
"""Reasons for a member's end after which the member's work is lost only if the gang starts again."""


class Key(NamedTuple):
    """Key of usage: to whom the usage belongs, and its day (counted from 1970).

    A field is empty or 0 if the usage is a sum over all values of the field.
    """

    namespace: str = ""
    queue: str = ""
    user: str = ""
    kind: str = ""
    name: str = ""
    day: int = 0

    def on(self, day: int) -> "Key":
        """Return the key with this day."""
        return self._replace(day=day)


class ReadWindow(NamedTuple):
    """The extent of a query: its period in milliseconds, the user's scope, and further filters."""

    since: int
    until: int
    scope: Scope
    namespace: str | None = None
    queue: str | None = None
    """Queue to which the query is limited; None for all queues. If this field is set, the grouping keys must contain
    the queue."""
    keys: Sequence[str] | None = None
    """Keys of the ended rows to which the query is limited (`of_keys`); None for all rows."""


def floors(store: HistoryStore) -> dict[str, int]:
    """Return a mapping from namespaces to the time until which their usage is aggregated.

    The mapping contains only namespaces that exceeded their share of the store. Their usage is aggregated further than
    the usage of all other namespaces.
    """
    with store.failing(), store.engine.connect() as connection:
        return {str(name): int(until) for name, until in connection.execute(select(FOLDS.c.namespace, FOLDS.c.until))}


def unfolded(
    store: HistoryStore, window: ReadWindow, fields: Collection[str] = Key._fields, *, still: bool = False
) -> Totals[Key]:
    """Return the usage in a window from the rows that are not aggregated yet, grouped by `fields` of the key.

    If `still` is true, include only resources that are still held, but for their whole time in the window, including
    aggregated days.
    """
    on = Key.on if "day" in fields else None
    return integrate(_spans(store, window, fields, still=still), window.since, window.until, on)


def folded(
    connection: Connection, conditions: Iterable[ColumnElement[bool]], fields: Collection[str] = Key._fields
) -> Totals[Key]:
    """Return the usage of aggregated days, grouped by `fields` of the key."""
    names = [name for name in Key._fields if name in fields]
    columns = [DAYS.c[name] for name in ("resource", *AMOUNTS, *names)]
    totals: Totals[Key] = defaultdict(Amounts)
    for resource, asked, held, used, lost, *values in connection.execute(select(*columns).where(*conditions)):
        key = Key(**dict(zip(names, values, strict=True)))
        totals[key, resource].add(Amounts(int(asked), int(held), int(used), int(lost)))
    return totals


def days_of(window: ReadWindow) -> list[ColumnElement[bool]]:
    """Return the SQL conditions that select aggregated days that begin in a window."""
    first, last = (-(-at // DAY_MS) for at in (window.since, window.until))
    of_queue = [DAYS.c.queue == window.queue] if window.queue else []
    return [*_mine(window, DAYS), *of_queue, DAYS.c.day >= first, DAYS.c.day < last]


_CHARGED: Final = ("queue", "user")
"""Fields of a key that are columns of each row. In rows of earlier versions, these columns are empty, and the gang's
values count instead."""


_Owners = dict[str, tuple[Key, int]]
"""Maps a gang to its key, and to the time until which its usage is aggregated further than usual (0 if it is not)."""


def _spans(store: HistoryStore, window: ReadWindow, fields: Collection[str], *, still: bool) -> Iterator[TimeSpan[Key]]:
    after = {} if still else floors(store)
    with store.engine.connect() as connection:
        owners, charged = _owners(connection, window, fields, after), _Charged(fields)
        rows = _held(connection, window, owners, charged, still=still)
        for span in rows if still else chain(_asked(connection, window, owners, charged), rows):
            if not window.queue or span.key.queue == window.queue:
                yield span


class _Charged:
    """Splitter of time spans: if a gang moved to another queue, its time span becomes one time span for each queue."""

    def __init__(self, fields: Collection[str]) -> None:
        self._fields = [name for name in _CHARGED if name in fields]
        self._keys: dict[tuple[Key, str, str], Key] = {}

    def spans(self, span: TimeSpan[Key], queue: str, user: str, moves: str) -> Iterator[TimeSpan[Key]]:
        """Yield the row's time span with its key; if its gang moved to another queue, one time span per queue."""
        if not self._fields:
            yield span
            return
        owner = span.key
        mine = span._replace(key=self._key(owner, queue, user))
        if moves == NO_MOVES or "queue" not in self._fields:
            yield mine
        else:
            yield from by_queue(mine, moves_of(moves), lambda each: self._key(owner, each, user))

    def _key(self, owner: Key, queue: str, user: str) -> Key:
        found = self._keys.get((owner, queue, user))
        if found is None:
            found = owner
            found = found._replace(queue=queue or owner.queue) if "queue" in self._fields else found
            found = found._replace(user=user or owner.user) if "user" in self._fields else found
            self._keys[owner, queue, user] = found
        return found


def _owners(connection: Connection, window: ReadWindow, fields: Collection[str], after: Mapping[str, int]) -> _Owners:
    names = [name for name in Key._fields if name in fields and name in GANGS.c]
    columns = [GANGS.c.id, GANGS.c.namespace, *(GANGS.c[name] for name in names)]
    return {
        gang: (Key(**dict(zip(names, values, strict=True))), after.get(namespace, 0))
        for gang, namespace, *values in connection.execute(select(*columns).where(*_mine(window, GANGS)))
    }


def _asked(connection: Connection, window: ReadWindow, owners: _Owners, charged: _Charged) -> Iterator[TimeSpan[Key]]:
    table = RUNS.c
    chosen = select(table.gang, table.asked, table.submitted, table.ended, table.queue, table.user, table.moves)
    chosen = chosen.where(*_overlap(RUNS, table.submitted, window))
    for gang, amounts, begin, end, queue, user, moves in connection.execute(chosen):
        if gang in owners:  # it may have been added between two statements
            key, floor = owners[gang]
            yield from charged.spans(TimeSpan(key, vector_of(amounts), max(begin, floor), end), queue, user, moves)


@cache
def _members() -> Select[Any]:
    """Return the SQL query for the resources that members held, with the times of each member.

    A member's work is lost if the member was evicted, or if its gang restarted later.
    """
    table, other = HOLDINGS.c, HOLDINGS.alias()
    started = select(func.max(other.c.bound)).where(other.c.gang == table.gang, other.c.node != "").scalar_subquery()
    is_lost = case((table.reason.in_(_OTHERWISE), started >= table.ended), else_=table.reason == str(MemberEnd.EVICTED))
    times = table.bound, table.ran_from, table.ended, is_lost, table.saved
    return select(table.gang, table.amounts, *times, table.queue, table.user, table.moves)


def _held(
    connection: Connection, window: ReadWindow, owners: _Owners, charged: _Charged, *, still: bool
) -> Iterator[TimeSpan[Key]]:
    """Yield the time spans in which members held resources."""
    conditions = _overlap(HOLDINGS, HOLDINGS.c.bound, window) + ([HOLDINGS.c.ended.is_(None)] if still else [])
    rows = connection.execute(_members().where(*conditions))
    for gang, amounts, bound, ran_from, end, lost, saved, queue, user, moves in rows:
        if gang in owners:
            key, floor = owners[gang]
            lost_from = max(ran_from or bound, saved or 0) if lost else None
            span = TimeSpan(key, vector_of(amounts), max(bound, floor), end, True, ran_from, lost_from)  # noqa: FBT003
            yield from charged.spans(span, queue, user, moves)


def _mine(window: ReadWindow, table: Table) -> list[ColumnElement[bool]]:
    """Return the SQL conditions for rows that are visible to the user and that the window selects."""
    conditions = visible(window.scope, table)
    if window.keys is not None:
        conditions.append(table.c.id.in_(gangs_of(window.keys)))
    return conditions + ([table.c.namespace == window.namespace] if window.namespace else [])


def visible(scope: Scope, table: Table) -> list[ColumnElement[bool]]:
    """Return the SQL conditions for gangs, or aggregated days, that are visible to a user."""
    conditions: list[ColumnElement[bool]] = []
    if scope.namespaces is not None:
        conditions.append(table.c.namespace.in_(sorted(scope.namespaces)))
    if scope.born:  # a CASE, as a long OR is too deep for SQLite
        begin = table.c.submitted if table is GANGS else table.c.day * DAY_MS
        conditions.append(begin >= case(dict(scope.born), value=table.c.namespace, else_=0))
    return conditions


def of_keys(table: Table, keys: Sequence[str]) -> ColumnElement[bool]:
    """Return the SQL condition for ended rows with the given keys: UIDs of runs, or UIDs of pods that held nodes.

    The row of spare slots also has the UID of its run as a key.
    """
    mine: ColumnElement[bool] = RUNS.c.uid.in_(keys)
    if table is HOLDINGS:
        mine = HOLDINGS.c.pod.in_(keys) | (HOLDINGS.c.run.in_(keys) & (HOLDINGS.c.node == ""))
    return mine & table.c.ended.is_not(None)


def gangs_of(keys: Sequence[str]) -> CompoundSelect[Any]:
    """Return the SQL statement for the gangs of the ended rows with the given keys."""
    return union(*(select(table.c.gang).where(of_keys(table, keys)) for table in (RUNS, HOLDINGS)))


def _overlap(table: Any, begin: Any, window: ReadWindow) -> list[ColumnElement[bool]]:
    """Return the SQL conditions for rows of the window's gangs that overlap the window's time."""
    of_mine = _mine(window, GANGS)
    conditions = [table.c.gang.in_(select(GANGS.c.id).where(*of_mine))] if of_mine else []
    if window.keys is not None:
        conditions.append(of_keys(table, window.keys))
    if window.queue:
        conditions.append(table.c.queue.in_(["", window.queue]) | (table.c.moves != NO_MOVES))
    return [*conditions, begin < window.until, or_(table.c.ended.is_(None), table.c.ended > window.since)]
