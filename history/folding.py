"""Folding: the usage of a time that is over is written per day, and the detail of that time goes; all at once."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, select

from history.integral import Amounts, Owner, Totals, integrate
from history.model import DAY_MS
from history.schema import DAYS, FOLDS, GANGS, GAPS, HAPPENINGS, HOLDINGS, RUNS
from history.scope import EVERYTHING
from history.spans import Window, spans
from history.store import Store
from history.usage import FOLDED
from history.weigh import ALL_NAMES

_FIELDS = Owner._fields
_AMOUNTS = Amounts.__struct_fields__


def fold(store: Store, begin: int, end: int) -> None:
    """Fold a day, or a part of one, of all namespaces."""
    with store.failing():
        totals = integrate(spans(store, Window(begin, end, EVERYTHING)), _FIELDS, begin, end, end)
        with store.engine.begin() as connection:
            _add(store, connection, begin // DAY_MS, totals)
            _drop(connection, end)
            connection.execute(delete(FOLDS).where(FOLDS.c.until <= end))
            connection.execute(delete(GAPS).where(GAPS.c.until <= end))
            store.put_notes(connection, {FOLDED: str(end)})


def fold_namespace(store: Store, namespace: str, begin: int, end: int) -> None:
    """Fold one namespace up to a time, day by day, and without the names of its workloads; before `begin` it is."""
    with store.failing():
        _merge(store, namespace)
        while begin < end:
            until = min(end, (begin // DAY_MS + 1) * DAY_MS)
            found = (
                each._replace(owner=each.owner._replace(name=ALL_NAMES))
                for each in spans(store, Window(begin, until, EVERYTHING, namespace))
            )
            totals = integrate(found, _FIELDS, begin, until, until)
            with store.engine.begin() as connection:
                _add(store, connection, begin // DAY_MS, totals)
                _drop(connection, until, namespace)
                row = {"namespace": namespace, "until": until}
                insert = store.insert(FOLDS)
                connection.execute(insert.on_conflict_do_update(index_elements=["namespace"], set_=row), row)
            begin = until


def _merge(store: Store, namespace: str) -> None:
    """Drop the names of workloads from the usage per day of a namespace."""
    mine = (DAYS.c.namespace == namespace) & (DAYS.c.name != ALL_NAMES)
    with store.engine.begin() as connection:
        for day in connection.execute(select(DAYS.c.day).where(mine).distinct()).scalars().all():
            totals = _of_day(connection, day, mine, (*_FIELDS[:-1], "any"))
            connection.execute(delete(DAYS).where(mine, DAYS.c.day == day))
            _add(store, connection, day, totals)


def _of_day(connection: Connection, day: int, where: Any, names: Sequence[str] = _FIELDS) -> Totals:
    """Return what is written of a day, by these columns of its owner; `any` stands for all names."""
    totals: Totals = {}
    columns = (*_FIELDS, "resource", *_AMOUNTS)
    for row in connection.execute(select(*(DAYS.c[each] for each in columns)).where(where, DAYS.c.day == day)):
        given = dict(zip(columns, row, strict=True)) | {"any": ALL_NAMES}
        key = tuple(given[each] for each in names), given["resource"]
        totals.setdefault(key, Amounts()).add(Amounts(*(int(given[each]) for each in _AMOUNTS)))
    return totals


def _add(store: Store, connection: Connection, day: int, totals: Totals) -> None:
    """Add amounts to those of a day."""
    namespaces = {key[0] for key, _ in totals}
    for chosen in _some(sorted(namespaces)):
        for key, amounts in _of_day(connection, day, DAYS.c.namespace.in_(chosen)).items():
            if key in totals:
                totals[key].add(amounts)
    rows = [
        {
            **dict(zip(_FIELDS, key, strict=True)),
            "day": day,
            "resource": resource,
            **{name: str(getattr(amounts, name)) for name in _AMOUNTS},
        }
        for (key, resource), amounts in totals.items()
    ]
    insert = store.insert(DAYS)
    changed = {name: insert.excluded[name] for name in _AMOUNTS}
    insert = insert.on_conflict_do_update(index_elements=["day", *_FIELDS, "resource"], set_=changed)
    for some in _some(rows):
        connection.execute(insert, some)


def _some(of: Sequence[Any], at_once: int = 500) -> Iterable[Sequence[Any]]:
    return (of[first : first + at_once] for first in range(0, len(of), at_once))


def _drop(connection: Connection, end: int, namespace: str | None = None) -> None:
    """Drop what had ended by then: of gangs that live on the runs, with what happened to them."""
    mine = [] if namespace is None else [GANGS.c.namespace == namespace]

    def of_mine(table: Any) -> list[ColumnElement[bool]]:
        return [table.c.gang.in_(select(GANGS.c.id).where(*mine))] if mine else []

    over = [each.c.ended.is_not(None) & (each.c.ended <= end) for each in (RUNS, HOLDINGS, GANGS)]
    runs = select(RUNS.c.uid).where(over[0], *of_mine(RUNS))
    connection.execute(delete(HAPPENINGS).where(HAPPENINGS.c.run.in_(runs)))
    connection.execute(delete(RUNS).where(over[0], *of_mine(RUNS)))
    connection.execute(delete(HOLDINGS).where(over[1], *of_mine(HOLDINGS)))
    # What happened to a Job itself has no run. Its last restart is told at each look: that stays, to stand once.
    later = HAPPENINGS.alias()
    last = select(func.max(later.c.id)).where(later.c.run == HAPPENINGS.c.run, later.c.what == HAPPENINGS.c.what)
    of_jobs = HAPPENINGS.c.run.not_in(select(RUNS.c.uid)) & (HAPPENINGS.c.at <= end)
    before = HAPPENINGS.c.id < last.scalar_subquery()
    connection.execute(delete(HAPPENINGS).where(of_jobs, before, *of_mine(HAPPENINGS)))
    needed = select(HOLDINGS.c.gang).union(select(RUNS.c.gang))
    connection.execute(delete(GANGS).where(over[2], GANGS.c.id.not_in(needed), *mine))
    connection.execute(delete(HAPPENINGS).where(HAPPENINGS.c.gang.not_in(select(GANGS.c.id))))
