"""Bounds of the store by age and by size: whole days go, the oldest first, and leave their usage behind."""

import structlog
from sqlalchemy import delete, func, select, text

from history.model import DAY_MS
from history.schema import DAYS, GANGS, GAPS, HAPPENINGS, HOLDINGS, RUNS
from history.scope import EVERYTHING
from history.store import Store
from history.usage import FOLDED, Owner, integrate, spans

log = structlog.get_logger(__name__)
_FIELDS = Owner._fields


def tidy(store: Store, now: int, *, keep_days: int, keep_usage_days: int, megabytes: int) -> int:
    """Fold days that are too old, or for which there is no room, and return their number; today is never folded."""
    today = now // DAY_MS * DAY_MS
    begin = int(store.note(FOLDED) or 0) or _oldest(store) // DAY_MS * DAY_MS
    folded = 0
    while begin and begin < today:
        if begin + DAY_MS + keep_days * DAY_MS > now and store.megabytes() <= megabytes:
            break
        fold(store, begin)
        begin += DAY_MS
        folded += 1
    if folded:
        _shrink(store)
        log.info("days folded into their usage", days=folded)
    if store.megabytes() > megabytes:
        log.warning("the history of today alone is over its limit", megabytes=megabytes, has=round(store.megabytes()))
    with store.failing(), store.engine.begin() as connection:
        connection.execute(delete(DAYS).where(DAYS.c.day < today // DAY_MS - keep_usage_days))
    return folded


def fold(store: Store, begin: int) -> None:
    """Write the usage of the day that begins so, and drop what ended by its end; all at once, or nothing."""
    end = begin + DAY_MS
    totals = integrate(spans(store, EVERYTHING, begin, end), (*_FIELDS, "day"), begin, end, end)
    rows = [
        {
            **dict(zip(_FIELDS, key[:-1], strict=True)),
            "day": begin // DAY_MS,
            "resource": resource,
            **{name: str(getattr(amounts, name)) for name in ("asked", "held", "used", "lost")},
        }
        for (key, resource), amounts in totals.items()
    ]
    with store.failing(), store.engine.begin() as connection:
        for row in rows:
            connection.execute(store.insert(DAYS).on_conflict_do_nothing(), row)
        for table in (HOLDINGS, RUNS):
            connection.execute(delete(table).where(table.c.ended.is_not(None), table.c.ended <= end))
        over = GANGS.c.ended.is_not(None) & (GANGS.c.ended <= end)
        needed = select(HOLDINGS.c.gang).union(select(RUNS.c.gang))
        connection.execute(delete(GANGS).where(over, GANGS.c.id.not_in(needed)))
        connection.execute(delete(HAPPENINGS).where(HAPPENINGS.c.gang.not_in(select(GANGS.c.id))))
        connection.execute(delete(GAPS).where(GAPS.c.until <= end))
        store.put_notes(connection, {FOLDED: str(end)})


def _oldest(store: Store) -> int:
    with store.failing(), store.engine.connect() as connection:
        return int(connection.scalar(select(func.min(RUNS.c.submitted))) or 0)


def _shrink(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        with store.engine.connect() as connection:
            connection.execute(text("PRAGMA incremental_vacuum"))
