"""Aggregation (folding) of the history: usage per day replaces the detailed rows of past days in one transaction."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, func, select, union

from history.integral import FOREVER, Amounts, Totals
from history.model import DAY_MS, EVERYTHING
from history.schema import DAYS, FOLDS, GANG_EVENTS, GANGS, GAPS, HOLDINGS, RUNS
from history.spans import AMOUNTS, Key, ReadWindow, folded, gangs_of, of_keys, unfolded
from history.store import HistoryStore
from history.usage import FOLDED

ALL_NAMES: Final = "*"
"""Placeholder for the names of all workloads of a namespace, in daily usage without workload names."""
_AT_ONCE: Final = 500
"""Maximum number of namespaces or keys in one SQL statement."""
_NAMELESS: Final = frozenset(Key._fields) - {"name"}


def fold(store: HistoryStore, begin: int, end: int) -> None:
    """Replace the details of a day, or of a part of a day, by the usage on that day, for all namespaces."""
    with store.failing():
        totals = unfolded(store, ReadWindow(begin, end, EVERYTHING))
        with store.engine.begin() as connection:
            _add(store, connection, begin // DAY_MS, totals)
            _drop(connection, end)
            connection.execute(delete(FOLDS).where(FOLDS.c.until <= end))
            connection.execute(delete(GAPS).where(GAPS.c.until <= end))
            store.put_notes(connection, {FOLDED: str(end)})


def fold_namespace(store: HistoryStore, namespace: str, begin: int, end: int) -> None:
    """Replace the details of one namespace up to a time by usage per day, without workload names.

    Data before `begin` is already aggregated.
    """
    with store.failing():
        _merge(store, namespace)
        while begin < end:
            until = min(end, (begin // DAY_MS + 1) * DAY_MS)
            totals = unfolded(store, ReadWindow(begin, until, EVERYTHING, namespace), _NAMELESS)
            with store.engine.begin() as connection:
                _add(store, connection, begin // DAY_MS, _of_all_names(totals))
                _drop(connection, until, namespace)
                store.insert_rows(connection, FOLDS, [{"namespace": namespace, "until": until}])
            begin = until


def fold_rows(store: HistoryStore, keys: Collection[str]) -> None:
    """Replace the ended rows with the given keys by usage per day, without workload names; delete ended gangs.

    `spans.of_keys` defines to which rows a key refers.
    """
    waiting = sorted(keys)
    for first in range(0, len(waiting), _AT_ONCE):
        mine = waiting[first : first + _AT_ONCE]
        window = ReadWindow(int(store.note(FOLDED) or 0), FOREVER, EVERYTHING, keys=mine)
        with store.failing():
            totals = _of_all_names(unfolded(store, window, _NAMELESS))
            with store.engine.begin() as connection:
                for day in {key.day for key, _ in totals}:
                    _add(store, connection, day, {each: totals[each] for each in totals if each[0].day == day})
                gangs = {*mine, *connection.execute(gangs_of(mine)).scalars()}
                connection.execute(delete(GANG_EVENTS).where(GANG_EVENTS.c.run.in_(mine)))
                for table in (RUNS, HOLDINGS):
                    connection.execute(delete(table).where(of_keys(table, mine)))
                needed = (select(table.c.gang).where(table.c.gang.in_(gangs)) for table in (RUNS, HOLDINGS))
                over = GANGS.c.id.in_(gangs) & GANGS.c.ended.is_not(None) & GANGS.c.id.not_in(union(*needed))
                connection.execute(delete(GANGS).where(over))
                left = GANG_EVENTS.c.gang.not_in(select(GANGS.c.id).where(GANGS.c.id.in_(gangs)))
                connection.execute(delete(GANG_EVENTS).where(GANG_EVENTS.c.gang.in_(gangs), left))


def _merge(store: HistoryStore, namespace: str) -> None:
    """Merge the daily usage of all workloads of a namespace, which drops the workloads' names."""
    mine = (DAYS.c.namespace == namespace) & (DAYS.c.name != ALL_NAMES)
    with store.engine.begin() as connection:
        for day in connection.execute(select(DAYS.c.day).where(mine).distinct()).scalars().all():
            of_day = mine, DAYS.c.day == day
            totals = folded(connection, of_day, _NAMELESS)
            connection.execute(delete(DAYS).where(*of_day))
            _add(store, connection, day, _of_all_names(totals))


def _of_all_names(totals: Totals[Key]) -> dict[tuple[Key, str], Amounts]:
    return {(key._replace(name=ALL_NAMES), resource): amounts for (key, resource), amounts in totals.items()}


def _add(store: HistoryStore, connection: Connection, day: int, totals: Mapping[tuple[Key, str], Amounts]) -> None:
    """Add usage to the stored usage of a day."""
    names = sorted({key.namespace for key, _ in totals})
    for first in range(0, len(names), _AT_ONCE):
        namespaces = names[first : first + _AT_ONCE]
        for place, amounts in folded(connection, (DAYS.c.day == day, DAYS.c.namespace.in_(namespaces))).items():
            if place in totals:
                totals[place].add(amounts)
    rows = [
        {**key._asdict(), "resource": resource, **{name: str(getattr(amounts, name)) for name in AMOUNTS}}
        for (key, resource), amounts in totals.items()
    ]
    store.insert_rows(connection, DAYS, rows)


def _drop(connection: Connection, end: int, namespace: str | None = None) -> None:
    """Delete the rows of runs, members and events that ended before a time.

    Of a gang that has not ended, only the ended runs and their events are deleted.
    """
    mine = [] if namespace is None else [GANGS.c.namespace == namespace]

    def of_mine(table: Any) -> list[ColumnElement[bool]]:
        return [table.c.gang.in_(select(GANGS.c.id).where(*mine))] if mine else []

    over = [each.c.ended.is_not(None) & (each.c.ended <= end) for each in (RUNS, HOLDINGS, GANGS)]
    runs = select(RUNS.c.uid).where(over[0], *of_mine(RUNS))
    connection.execute(delete(GANG_EVENTS).where(GANG_EVENTS.c.run.in_(runs)))
    connection.execute(delete(RUNS).where(over[0], *of_mine(RUNS)))
    connection.execute(delete(HOLDINGS).where(over[1], *of_mine(HOLDINGS)))
    # Events of a Job itself have no run. Its last restart is observed in each pass, so its event stays, to be recorded
    # once.
    later = GANG_EVENTS.alias()
    last = select(func.max(later.c.id)).where(later.c.run == GANG_EVENTS.c.run, later.c.what == GANG_EVENTS.c.what)
    of_jobs = GANG_EVENTS.c.run.not_in(select(RUNS.c.uid)) & (GANG_EVENTS.c.at <= end)
    before = GANG_EVENTS.c.id < last.scalar_subquery()
    connection.execute(delete(GANG_EVENTS).where(of_jobs, before, *of_mine(GANG_EVENTS)))
    needed = select(HOLDINGS.c.gang).union(select(RUNS.c.gang))
    connection.execute(delete(GANGS).where(over[2], GANGS.c.id.not_in(needed), *mine))
    connection.execute(delete(GANG_EVENTS).where(GANG_EVENTS.c.gang.not_in(select(GANGS.c.id))))
