"""Limits on the rows that are stored per namespace and hour, and on the events that are stored per gang and hour.

If some events of a gang were not stored, one more row contains the number of these events. Rows of gangs, runs and
members beyond the limit are aggregated into daily usage once these objects are deleted (`history.folding`).

Without the hourly limits, a tenant could cause so many events that they fill the store that all users share.
"""

from collections import Counter
from datetime import UTC, datetime
from typing import Final

from history.model import MS, GangEventRow, RecordedGang, What

HOUR_MS: Final = 3_600_000
OF_GANG: Final = 200
"""Maximum number of events that are stored per gang and hour; the end of each member may be an event."""
OF_NAMESPACE: Final = 10_000
"""Maximum number of events that are stored per namespace and hour: enough for a thousand gangs, and about 10 MB."""
ROWS_OF_NAMESPACE: Final = 50_000
"""Maximum number of rows per namespace and hour, about 25 MB; beyond the limit, rows of deleted objects are aggregated.
"""
COUNTED: Final = 200
"""Maximum number of gangs per namespace and hour whose unstored events are counted, so that no tenant fills the
memory."""
_KEPT_LONGER: Final = frozenset({What.STARTED, What.ENDED})
"""Kinds of events for which the limits are twice as high, because these events are needed to understand a gang."""


class HourlyLimit:
    """Counter of the events and rows since the hour began, for each gang and each namespace."""

    def __init__(self) -> None:
        self._begin(0)

    def _begin(self, hour: int) -> None:
        self._hour = hour
        self._gangs: Counter[str] = Counter()
        self._namespaces: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        """Maps a namespace to the number of rows of its gangs, runs and members."""
        self._counted: Counter[str] = Counter()
        """Maps a namespace to the number of its gangs that have an entry in `_more`."""
        self._more: dict[str, tuple[str, int, int]] = {}
        """Maps a gang to the run and time of its last event that was not stored, and to the number of all such events.
        """

    def admits(self, gang: RecordedGang, run: str, what: What, at: int) -> bool:
        """Count an event, and return True if the event is to be stored."""
        times = 2 if what in _KEPT_LONGER else 1
        if self._gangs[gang.id] < OF_GANG * times and self._namespaces[gang.namespace] < OF_NAMESPACE * times:
            self._gangs[gang.id] += 1
            self._namespaces[gang.namespace] += 1
            return True
        _, last, count = self._more.get(gang.id, ("", 0, 0))
        if count or self._counted[gang.namespace] < COUNTED:
            self._counted[gang.namespace] += not count
            self._more[gang.id] = run, max(at, last), count + 1
        return False

    def add_rows(self, namespace: str, rows: int) -> None:
        """Count new rows of gangs, runs and members."""
        self._rows[namespace] += rows

    def is_full(self, namespace: str) -> bool:
        """Return True if the namespace has more rows in this hour than may stay in the store individually."""
        return self._rows[namespace] > ROWS_OF_NAMESPACE

    def end_hour(self, now: int) -> list[GangEventRow]:
        """When the hour is over, return a row for each gang with events that were not stored."""
        hour = now // HOUR_MS
        if hour == self._hour:
            return []
        began = f"{datetime.fromtimestamp(self._hour * HOUR_MS / MS, UTC):%Y-%m-%dT%H}"
        rows = [
            GangEventRow(
                gang=gang, run=run, epoch=0, what=What.MORE, subject=began, at=at,
                text=f"{count} more events of this hour are not stored individually",
            )
            for gang, (run, at, count) in self._more.items()
        ]  # fmt: skip
        self._begin(hour)
        return rows
