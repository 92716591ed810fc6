"""Sums of times in the database: what `history.integral` does with each span, for nearly all of them.

Members of one gang and shape are one row before the gang is looked up: that is what makes it quick. By days, only
spans that go over a midnight are cut by `history.integral`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, case, func, literal, select

from history.integral import Amounts, Owner, Totals, integrate, key_of
from history.model import DAY_MS, End
from history.schema import FOLDS, GANGS, HOLDINGS, RUNS
from history.spans import NOT_LOST, Window, floors, mine, spans, vector_of, within
from history.store import Store

_COLUMNS = {
    "day": (),
    "queue": ("queue",),
    "namespace": ("namespace",),
    "user": ("user",),
    "workload": ("namespace", "kind", "name"),
}
Most = Callable[..., ColumnElement[int]]
"""The largest of several values, in the words of the database."""


def sums(store: Store, window: Window, by: Sequence[str]) -> Totals:
    """Return what was asked, held, used and lost in a window, by any of KEYS."""
    wanted = [name for name in Owner._fields if any(name in _COLUMNS[each] for each in by)]
    days, later = "day" in by, max(floors(store).values(), default=0) > window.since
    most = _greatest(store)
    totals: Totals = {}
    with store.engine.connect() as connection:
        for inner in (_asked(window, most, days=days, later=later), _held(window, most, days=days, later=later)):
            of = inner.subquery()
            columns = [*(GANGS.c[name] for name in wanted), of.c.day, of.c.amounts]
            times = [func.sum(of.c[name]) for name in Amounts.__struct_fields__]
            chosen = select(*columns, *times).join(GANGS, GANGS.c.id == of.c.gang).where(*mine(window, GANGS))
            for row in connection.execute(chosen.group_by(*columns)):
                *whose, day, shape, asked, held, used, lost = row
                owner = Owner(**dict.fromkeys(Owner._fields, "") | dict(zip(wanted, whose, strict=True)))
                key, of_shape = key_of(owner, day, by), Amounts(*map(int, (asked, held, used, lost)))
                for resource, amount in vector_of(shape).items():
                    totals.setdefault((key, resource), Amounts()).add(of_shape, amount)
    if days:
        across = spans(store, window, across=True)
        for place, amounts in integrate(across, by, window.since, window.until, window.until).items():
            totals.setdefault(place, Amounts()).add(amounts)
    return totals


def _greatest(store: Store) -> Most:
    name = "greatest" if store.engine.dialect.name == "postgresql" else "max"
    return lambda *values: getattr(func, name)(*values, type_=BigInteger())


def _asked(window: Window, most: Most, *, days: bool, later: bool) -> Select[Any]:
    """Return the statement for the times of runs by gang and amounts."""
    begin, end = most(RUNS.c.submitted, _floor(window, most, later=later)), _end(RUNS, window)
    times = {"asked": func.sum(most(end - begin, 0)), **dict.fromkeys(("held", "used", "lost"), literal(0))}
    return _by_gang(RUNS, RUNS.c.submitted, RUNS.c.asked, (begin, end), times, window, days=days, later=later)


def _held(window: Window, most: Most, *, days: bool, later: bool) -> Select[Any]:
    """Return the statement for the times of members by gang and amounts."""
    table, end = HOLDINGS.c, _end(HOLDINGS, window)
    begin = most(table.bound, _floor(window, most, later=later))
    used = case((table.ran_from.is_not(None), most(end - most(begin, table.ran_from), 0)), else_=0)
    other = HOLDINGS.alias()
    started = select(func.max(other.c.bound)).where(other.c.gang == table.gang).scalar_subquery()
    is_lost = case(
        (table.reason == str(End.EVICTED), True),
        (table.reason.in_(sorted(NOT_LOST)), False),
        else_=started >= table.ended,
    )
    since = most(begin, func.coalesce(table.ran_from, table.bound), func.coalesce(table.saved, 0))
    times = {
        "asked": literal(0),
        "held": func.sum(most(end - begin, 0)),
        "used": func.sum(used),
        "lost": func.sum(case((is_lost, most(end - since, 0)), else_=0)),
    }
    return _by_gang(HOLDINGS, table.bound, table.amounts, (begin, end), times, window, days=days, later=later)


def _by_gang(
    table: Any,
    since: ColumnElement[int],
    shape: ColumnElement[str],
    part: tuple[ColumnElement[int], ColumnElement[int]],
    times: dict[str, ColumnElement[Any]],
    window: Window,
    *,
    days: bool,
    later: bool,
) -> Select[Any]:
    """Return a statement for times by gang, amounts and day; `later`: some namespaces begin later than the window."""
    day = (part[0] // DAY_MS if days else literal(0)).label("day")
    named = (each.label(name) for name, each in times.items())
    chosen = select(table.c.gang, shape.label("amounts"), day, *named).where(*within(table, since, window))
    if days:
        chosen = chosen.where(part[0] // DAY_MS >= (part[1] - 1) // DAY_MS)
    wanted = mine(window, GANGS)
    if later:
        chosen = chosen.join(GANGS, GANGS.c.id == table.c.gang).outerjoin(FOLDS, FOLDS.c.namespace == GANGS.c.namespace)
        chosen = chosen.where(*wanted)
    elif wanted:
        chosen = chosen.where(table.c.gang.in_(select(GANGS.c.id).where(*wanted)))
    return chosen.group_by(table.c.gang, shape, day)


def _floor(window: Window, most: Most, *, later: bool) -> ColumnElement[int]:
    since: ColumnElement[int] = literal(window.since)
    return most(since, func.coalesce(FOLDS.c.until, 0)) if later else since


def _end(table: Any, window: Window) -> ColumnElement[int]:
    return case((table.c.ended < window.until, table.c.ended), else_=literal(window.until))
