"""Limits of the store by age and size.

Data that is too old is aggregated in all namespaces. If the store is too large, data is aggregated in the namespaces
that use more than an equal share. The size of a namespace's data is estimated in the database from the characters of
each row and a fixed cost per row, including indexes. The estimate need not be exact, but its error must be similar for
all namespaces.
"""

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import structlog
from prometheus_client import Gauge
from sqlalchemy import ColumnElement, case, delete, func, select

from history.folding import ALL_NAMES, fold, fold_namespace
from history.model import DAY_MS, MS
from history.schema import DAYS, GANG_EVENTS, GANGS, HOLDINGS, RUNS
from history.settings import HistorySettings
from history.spans import floors
from history.store import HistoryStore, StoreError
from history.usage import FOLDED

log = structlog.get_logger(__name__)
SLICE_MS: Final = 600_000
"""Length (ms) of the parts in which today's data is aggregated; short, so that a flood of events can be aggregated
soon."""
_BYTES: Final = 1_000_000
_ROUNDS: Final = 5
"""Maximum number of attempts to aggregate enough data. Aggregation adds rows with daily usage, so the freed size is
known only afterwards."""
_ROW: Final = 200
"""Estimated bytes of a row in addition to the row's texts, including index entries."""


_TIDY_S: Final = 3600.0
_SIZE_S: Final = 60.0
_GROWN: Final = 1.01
"""Factor by which a store that is too large must grow after an aggregation before data is aggregated again. The size
alone would cause an aggregation at every check, because PostgreSQL does not return the disk space of deleted rows."""
SIZE: Final = Gauge("muster_history_bytes", "Size of the store in bytes.")


class Retention:
    """Enforcer of one store's limits: aggregates old data each hour, and excess data within a minute."""

    def __init__(self, store: HistoryStore, settings: HistorySettings, clock_s: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._clock_s = clock_s
        self._tidied_s = self._sized_s = float("-inf")
        self._left_megabytes = 0.0

    def apply(self) -> None:
        """Measure the store; aggregate old data if it is due, and data of a store that is too large.

        A failure is logged but not raised.
        """
        now_s, settings = self._clock_s(), self._settings
        if 0 <= now_s - self._sized_s < _SIZE_S:
            return
        self._sized_s = now_s
        try:
            size = self._store.megabytes()
            SIZE.set(size * _BYTES)
            most = max(settings.max_megabytes, self._left_megabytes * _GROWN)
            if size <= most and 0 <= now_s - self._tidied_s < _TIDY_S:
                return
            self._tidied_s = now_s
            tidy(
                self._store,
                round(now_s * MS),
                keep_days=settings.keep_days,
                keep_usage_days=settings.keep_usage_days,
                megabytes=settings.max_megabytes,
            )
            self._left_megabytes = self._store.megabytes()
            SIZE.set(self._left_megabytes * _BYTES)
        except StoreError as error:
            log.warning("the history of old days was not aggregated", why=str(error))


def tidy(store: HistoryStore, now: int, *, keep_days: int, keep_usage_days: int, megabytes: float) -> int:
    """Aggregate data that is too old or that exceeds the store's size limit.

    Return the number of aggregated days plus the number of aggregated parts of namespaces.
    """
    today = now // DAY_MS * DAY_MS
    folded = _by_age(store, min(today, now - keep_days * DAY_MS))
    with store.failing(), store.engine.begin() as connection:
        connection.execute(delete(DAYS).where(DAYS.c.day < today // DAY_MS - keep_usage_days))
    folded += _by_size(store, now, megabytes)
    if folded:
        store.shrink()
    return folded


def _by_age(store: HistoryStore, before: int) -> int:
    """Aggregate all whole days that end before a time, for all namespaces."""
    begin, days = int(store.note(FOLDED) or 0) or _oldest(store) // DAY_MS * DAY_MS, 0
    while begin and begin + DAY_MS <= before:
        fold(store, begin, begin + DAY_MS)
        begin += DAY_MS
        days += 1
    if days:
        log.info("days aggregated into daily usage", days=days)
    return days


def _by_size(store: HistoryStore, now: int, megabytes: float) -> int:
    """Aggregate the oldest data of namespaces above their share, until the store is within its limit."""
    count = 0
    for _ in range(_ROUNDS):
        if store.megabytes() <= megabytes:
            return count
        parts, fixed = weigh(store, now)
        total = sum(each.size for each in parts) + sum(fixed.values())
        limit = megabytes * _BYTES
        if store.engine.dialect.name == "sqlite":  # its size is known; PostgreSQL does not return freed space
            limit *= total / (store.megabytes() * _BYTES)
        wanted = to_fold(parts, fixed, round(limit))
        if not wanted:
            if total > limit:
                log.warning(
                    "the history exceeds its limit with data that cannot be aggregated yet", megabytes=megabytes
                )
            return count
        for namespace, until in wanted.items():
            begin = max(int(store.note(FOLDED) or 0), floors(store).get(namespace, 0))
            fold_namespace(store, namespace, begin or _oldest(store, namespace) or until - 1, until)
            log.info(
                "oldest data of a namespace aggregated, because the namespace exceeds its share of the store",
                namespace=namespace,
            )
            count += 1
    return count


def _oldest(store: HistoryStore, namespace: str | None = None) -> int:
    oldest = select(func.min(RUNS.c.submitted))
    if namespace is not None:
        oldest = oldest.join(GANGS, GANGS.c.id == RUNS.c.gang).where(GANGS.c.namespace == namespace)
    with store.failing(), store.engine.connect() as connection:
        return int(connection.scalar(oldest) or 0)


class FoldablePart(NamedTuple):
    """A part of one namespace's recorded past that can be aggregated."""

    namespace: str
    until: int
    """End (ms) of the part; all earlier data of the namespace is aggregated before this part or together with it."""
    size: int
    """Bytes that aggregation frees."""


def to_fold(parts: Iterable[FoldablePart], fixed: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return a mapping from a namespace to the time up to which its data is to be aggregated.

    After these aggregations, the store needs at most `limit` bytes.

    `fixed` maps a namespace to the bytes of its data that cannot be aggregated. The oldest part of the largest
    namespace is always aggregated first. The data of a namespace within its equal share is not aggregated, even if the
    store then exceeds the limit.
    """
    past: dict[str, deque[FoldablePart]] = defaultdict(deque)
    has = Counter(fixed)
    for part in sorted(parts, key=lambda each: each.until):
        past[part.namespace].append(part)
        has[part.namespace] += part.size
    over, found = sum(has.values()) - limit, dict[str, int]()
    largest = [(-size, namespace) for namespace, size in has.items()]
    heapq.heapify(largest)
    while over > 0 and largest and has[largest[0][1]] * len(has) > limit:
        _, namespace = heapq.heappop(largest)
        if past[namespace]:
            part = past[namespace].popleft()
            found[namespace] = part.until
            over -= part.size
            has[namespace] -= part.size
            heapq.heappush(largest, (-has[namespace], namespace))
    return found


def weigh(store: HistoryStore, now: int) -> tuple[list[FoldablePart], Counter[str]]:
    """Return the parts that can be aggregated, and each namespace's number of bytes that cannot be aggregated.

    The past is divided into days, and today into slices. The last slice is never aggregated, because some of its data
    may not be written yet. The workload names in aggregated days count as the oldest part.
    """
    parts, fixed = list[FoldablePart](), Counter[str]()
    today = now // DAY_MS * DAY_MS
    names = Counter[str]()
    with store.failing(), store.engine.connect() as connection:
        for chosen in _sizes(today):
            for namespace, until, size in connection.execute(chosen):
                if until is None or until > now - SLICE_MS:
                    fixed[namespace] += int(size)
                else:
                    parts.append(FoldablePart(namespace, int(until), int(size)))
        named = DAYS.c.name != ALL_NAMES
        for namespace, has_name, size in connection.execute(
            select(DAYS.c.namespace, named, _bytes(DAYS)).group_by(DAYS.c.namespace, named)
        ):
            (names if has_name else fixed)[namespace] += int(size)
    parts += [FoldablePart(namespace, 0, size) for namespace, size in names.items()]
    return parts, fixed


def _sizes(today: int) -> Iterator[Any]:
    """Yield SQL statements that select namespace, end of a day or slice, and bytes of the data to aggregate in it."""
    until = _until(GANGS.c.ended, today)
    yield select(GANGS.c.namespace, until, _bytes(GANGS)).group_by(GANGS.c.namespace, until)
    for table in (RUNS, HOLDINGS):
        until = _until(table.c.ended, today)
        of = select(GANGS.c.namespace, until, _bytes(table)).join(GANGS, GANGS.c.id == table.c.gang)
        yield of.group_by(GANGS.c.namespace, until)
    removed = case(
        (GANGS.c.ended.is_not(None), GANGS.c.ended), (RUNS.c.uid.is_(None), GANG_EVENTS.c.at), else_=RUNS.c.ended
    )
    until = _until(removed, today)
    of = select(GANGS.c.namespace, until, _bytes(GANG_EVENTS)).join(GANGS, GANGS.c.id == GANG_EVENTS.c.gang)
    yield of.outerjoin(RUNS, RUNS.c.uid == GANG_EVENTS.c.run).group_by(GANGS.c.namespace, until)


def _until(ended: ColumnElement[Any], today: int) -> ColumnElement[Any]:
    whole_days, slices = (ended // DAY_MS + 1) * DAY_MS, (ended // SLICE_MS + 1) * SLICE_MS
    return case((ended < today, whole_days), else_=slices).label("until")


def _bytes(table: Any) -> ColumnElement[Any]:
    """Return the SQL expression for the estimated total bytes of rows; the lengths of texts differ most."""
    texts = [func.length(each) for each in table.c if each.type.python_type is str]
    return func.sum(sum(texts[1:], texts[0]) + _ROW)
