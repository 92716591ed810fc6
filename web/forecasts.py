"""When gangs that wait will start, as `muster ps --start` reckons it from declared and past run times."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from gangs.forecast import Cluster, with_starts
from gangs.rows import Row
from muster.api.kubernetes.core import NODES
from web.aged import Aged
from web.caches import Caches

Gang = tuple[str, str]
"""Namespace and name of a PodGroup."""


class Forecasts:
    """Starts of all gangs that wait; in a cluster of thousands of gangs they are some seconds old."""

    def __init__(self, caches: Caches, now: Callable[[], float]) -> None:
        self._caches = caches
        self._now = now
        self._known: Aged[dict[Gang, Row]] = Aged()

    def told(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows, those of gangs that wait with their interval as far as it is known.

        It is reckoned from gangs of all namespaces: for callers who may see them.
        """
        known = self._known.value(self._caches.total, self._played)
        return [_with(row, known.get((row.namespace, row.gang))) for row in rows]

    def _played(self) -> dict[Gang, Row]:
        rows = [row for each in self._caches.namespaces() for row in self._caches.rows(each)]
        cluster = Cluster(self._caches.whole(), self._caches.all(NODES))
        return {(row.namespace, row.gang): row for row in with_starts(rows, cluster, self._now()) if row.earliest_start}


def _with(row: Row, known: Row | None) -> Row:
    """Return a row with a start that is known, unless it has begun meanwhile."""
    if known is None or known.state != row.state or row.expected_start:
        return row
    return replace(
        row,
        earliest_start=known.earliest_start,
        latest_start=known.latest_start,
        start_known_by=known.start_known_by,
    )
