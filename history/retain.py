"""Bounds of the store by age and by size: what is too old goes for all, and what has no room by even shares."""

import structlog
from sqlalchemy import delete, func, select

from history.folding import fold, fold_namespace
from history.model import DAY_MS
from history.schema import DAYS, GANGS, RUNS
from history.shares import to_fold, weigh
from history.spans import floors
from history.store import Store
from history.usage import FOLDED

log = structlog.get_logger(__name__)
_BYTES = 1_000_000
_ROUNDS = 5
"""Folding leaves usage behind: what comes free is known afterwards."""


def tidy(store: Store, now: int, *, keep_days: int, keep_usage_days: int, megabytes: float) -> int:
    """Fold what is too old, and that for which there is no room; return how many days, and parts of namespaces."""
    today = now // DAY_MS * DAY_MS
    folded = _by_age(store, min(today, now - keep_days * DAY_MS))
    with store.failing(), store.engine.begin() as connection:
        connection.execute(delete(DAYS).where(DAYS.c.day < today // DAY_MS - keep_usage_days))
    folded += _by_room(store, now, megabytes)
    if folded:
        store.shrink()
    return folded


def _by_age(store: Store, before: int) -> int:
    """Fold the whole days that end before a time, for all."""
    begin, days = int(store.note(FOLDED) or 0) or _oldest(store) // DAY_MS * DAY_MS, 0
    while begin and begin + DAY_MS <= before:
        fold(store, begin, begin + DAY_MS)
        begin += DAY_MS
        days += 1
    if days:
        log.info("days folded into their usage", days=days)
    return days


def _by_room(store: Store, now: int, megabytes: float) -> int:
    """Fold the oldest of those namespaces that have more than their share, until all fits."""
    count = 0
    for _ in range(_ROUNDS):
        if store.megabytes() <= megabytes:
            return count
        pieces, fixed = weigh(store, now)
        total = sum(each.size for each in pieces) + sum(fixed.values())
        room = megabytes * _BYTES
        if store.engine.dialect.name == "sqlite":  # its size is known; PostgreSQL keeps room that has come free
            room *= total / (store.megabytes() * _BYTES)
        wanted = to_fold(pieces, fixed, round(room))
        if not wanted:
            if total > room:
                log.warning("the history is over its limit with what cannot be folded yet", megabytes=megabytes)
            return count
        for namespace, until in wanted.items():
            begin = max(int(store.note(FOLDED) or 0), floors(store).get(namespace, 0))
            fold_namespace(store, namespace, begin or _oldest(store, namespace) or until - 1, until)
            log.info("the oldest of a namespace folded, as it has more than its share of the room", namespace=namespace)
            count += 1
    return count


def _oldest(store: Store, namespace: str | None = None) -> int:
    oldest = select(func.min(RUNS.c.submitted))
    if namespace is not None:
        oldest = oldest.join(GANGS, GANGS.c.id == RUNS.c.gang).where(GANGS.c.namespace == namespace)
    with store.failing(), store.engine.connect() as connection:
        return int(connection.scalar(oldest) or 0)
