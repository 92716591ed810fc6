"""The recorder: a thread that writes rows for observations of objects, each batch in one transaction.

Each transaction also stores how far the recorder has read, so no change is lost if the process is killed. The next
recorder reads the later changes that the API server still has, and compares the store with the existing objects. The
recorder then records the remaining gap (`OutageRow`).
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from queue import Empty
from typing import Final

import msgspec
import structlog
from prometheus_client import Counter, Gauge

from history.entries import REMEMBERED, Entries
from history.folding import fold_rows
from history.integral import Amounts, Totals, add
from history.model import MS, OutageRow, RowChanges
from history.observations import Observation, ObservationFeed, apply
from history.past import Past, close_unlisted, gap_text, known_of, past
from history.retain import Retention
from history.settings import HistorySettings
from history.store import HistoryStore, StoreError
from history.tally import Budgeted, Tallies, not_known, spans_of
from history.usage import BEGAN, SEEN, closed_since, usage_before
from muster.api.muster.usage import PublishedUsage
from muster.kube.client import Client
from muster.kube.errors import APIError

log = structlog.get_logger(__name__)

POSITION: Final = "position"
"""Key of the recorder's note with the resource versions up to which all changes are in the store."""
GATHER_S: Final = 0.05
"""Time in seconds within which observations form one transaction; a gang's binding takes less time."""
BEAT_S: Final = 10.0
"""Interval in seconds at which the recorder writes its progress while nothing else is written."""
SHORT_MS: Final = 5 * MS
"""Longest pause of the recorder, in seconds, that is not recorded as a gap; a restart of the process takes less."""
_AGAIN_S: Final = 2.0
MOST_QUEUED: Final = 100_000
"""Maximum number of observations that wait while the store fails; with more, the process ends, and another continues.
"""
EVENTS_WRITTEN: Final = Counter(
    "muster_history_happenings_total", "Events of gangs that were written to the history, by kind of event.", ["what"]
)
FAILED: Final = Counter("muster_history_write_failures_total", "Failed transactions of the store, which are retried.")
GAPS: Final = Counter("muster_history_gaps_total", "Gaps in the recording: periods for which nothing was recorded.")
LEFT_OUT: Final = Counter("muster_history_left_out_total", "Changes of objects that could not be recorded.")
LAST_PASS: Final = Gauge(
    "muster_history_looked_timestamp_seconds",
    "Time of the last recorded state of the cluster, in seconds since the epoch",
)
DURABLE: Final = Gauge("muster_history_durable", "1 if the store outlives the pod of the recorder, else 0")


class HistoryRecorder:
    """The recorder; the thread that holds the Lease calls `run`, which records until `stop` is called."""

    def __init__(
        self,
        client: Client,
        store: HistoryStore,
        settings: HistorySettings,
        *,
        clock_s: Callable[[], float] = time.time,
        changed: Callable[["HistoryRecorder"], None] = lambda _: None,
        published: Callable[[], PublishedUsage | None] = lambda: None,
        budgeted: Callable[[], Budgeted | None] = not_known,
    ) -> None:
        self._client = client
        self._store = store
        self._retention = Retention(store, settings, clock_s)
        self._published = published
        self._budgeted = budgeted
        self._began = 0
        self._imported: dict[int, Totals[str]] = {}
        """Maps the start of a period to the usage that was published before this store was created."""
        self._clock_s = clock_s
        self._changed = changed
        self._stopping = threading.Event()
        self.entries = Entries()
        self.feed = ObservationFeed(client, clock_s)
        self.tallies: Tallies | None = None
        self._trouble: str | None = "it is not the leader yet"
        self._written_s = float("-inf")
        self._blind_since: int | None = None
        self._seen = 0

    def not_ready(self) -> str | None:
        """Return why nothing is being recorded; None if there is no problem."""
        return self._trouble or self.feed.not_ready()

    def stop(self) -> None:
        """Make `run` return after its current work."""
        self._stopping.set()
        self.feed.observations.put(None)

    def run(self) -> None:
        """Record until a signal ends it."""
        while not self._stopping.is_set():
            try:
                self._begin()
                break
            except (StoreError, APIError) as error:
                self._failed(error)
        while not self._stopping.is_set():
            self._pass()
        self.feed.stop()

    # The start of the recorder: changes since the previous one stopped

    def _begin(self) -> None:
        seen = int(self._store.note(SEEN) or 0)
        now = self._now()
        self._began = int(self._store.note(BEGAN) or (0 if seen else now))
        before = self._published() if self._began else None
        self.entries = Entries(self.feed.nodes.of)
        self.entries.hourly.end_hour(now)
        self.entries.reopen(*self._store.open_rows(), self._store.ended_pods(REMEMBERED))
        positions: dict[str, str] = msgspec.json.decode(self._store.note(POSITION) or "{}")
        self.tallies = Tallies(now, self._closed_since, self._budgeted)
        self._trouble = None
        known = known_of(self.entries)
        self.feed.start()
        while not self.feed.synced and not self._stopping.is_set():
            self._stopping.wait(GATHER_S)
        if self._stopping.is_set():
            return
        listed = self.feed.versions
        meanwhile = past(self._client, positions, listed, seen, self._now()) if seen else Past([], ())
        versions, first = self._observe()
        for observation in meanwhile.observations:
            self._apply(observation)
        order = {name: number for number, name in enumerate(self.feed.reflectors)}
        for observation in sorted(first, key=lambda each: order[each.kind] if not each.moment.live else len(order)):
            self._apply(observation)
        lost = close_unlisted(self.entries, known, first, seen, self._now())
        if seen:
            self._record_gap(seen, meanwhile, lost)
        gangs, holdings = len(self.entries.gangs), len(self.entries.holdings)
        log.info("recording", gangs=gangs, holdings=holdings, caughtUp=len(meanwhile.observations))
        self._write(versions)
        if before is not None and self._began:
            self._import(before)

    def _import(self, before: PublishedUsage) -> None:
        """For periods that began before this store was created, continue from the published usage."""
        while not self._stopping.is_set():
            try:
                self._imported = usage_before(self._store, before, self._began, self._now())
                self.tallies = Tallies(self._now(), self._closed_since, self._budgeted)
            except StoreError as error:
                self._failed(error)
                continue
            if self._imported:
                queues = sorted({queue for totals in self._imported.values() for queue, _ in totals})
                log.warning("usage from before this store is continued from the published usage", queues=queues)
            return

    def _closed_since(self, begin: int) -> Totals[str]:
        totals = closed_since(self._store, begin)
        add(totals, self._imported.get(begin, defaultdict(Amounts)))
        return totals

    def _record_gap(self, since: int, meanwhile: Past, lost: int) -> None:
        now = self._now()
        if lost or meanwhile.forgotten or now - since >= SHORT_MS:
            self._gap(since, now, gap_text(missing=bool(lost or meanwhile.forgotten)))

    def _gap(self, since: int, until: int, text: str) -> None:
        GAPS.inc()
        log.warning("gap", seconds=round((until - since) / MS, 1), what=text)
        self.entries.changes.gaps.append(OutageRow(since=since, until=until, text=text))

    def _pass(self) -> None:
        """Wait for the first observation, collect more for a moment, and write them in one transaction."""
        try:
            first = self.feed.observations.get(timeout=BEAT_S)
        except Empty:
            first = None
        if self._stopping.is_set():
            return
        if first is not None:
            self._apply(first)
            self._stopping.wait(GATHER_S)
        self._watch_sight()
        versions, more = self._observe()
        for observation in more:
            self._apply(observation)
        self.entries.changes.gang_events += self.entries.hourly.end_hour(self._now())
        beat = not 0 <= self._clock_s() - self._written_s < BEAT_S
        if self.entries.changes or beat:
            self._write(versions)
        self._changed(self)
        self._retention.apply()

    def _apply(self, observation: Observation) -> None:
        """Process an observation; skip it if the object is unreadable."""
        try:
            apply(self.entries, observation)
        except Exception:
            LEFT_OUT.inc()
            log.exception("left out of the history", resource=observation.kind, uid=observation.uid)

    def _observe(self) -> tuple[dict[str, str], list[Observation]]:
        """Return all queued observations, and the resource versions up to which the observations are complete."""
        self._seen, versions = self._now(), self.feed.versions
        found: list[Observation] = []
        while True:
            try:
                observation = self.feed.observations.get_nowait()
            except Empty:
                return versions, found
            if observation is not None:
                found.append(observation)

    def _watch_sight(self) -> None:
        """Track if all kinds can be read; after a time in which some kinds could not be read, record the gap."""
        now = self._now()
        if not self.feed.following:
            self._blind_since = self._blind_since or now
        elif self._blind_since is not None:
            if now - self._blind_since >= SHORT_MS:
                text = "the API server did not answer the recorder; ends of members in this time may be recorded late"
                self._gap(self._blind_since, now, text)
            self._blind_since = None

    def _write(self, versions: dict[str, str]) -> None:
        """Write the changes and the progress; retry until the write succeeds or a signal ends the process."""
        while True:
            changes = self.entries.changes
            notes = {POSITION: msgspec.json.encode(versions).decode(), BEGAN: str(self._began)}
            if self._blind_since is None:
                notes[SEEN] = str(self._seen)
            try:
                self._store.write(changes, notes)
            except StoreError as error:
                self._failed(error)
                if self._stopping.is_set():
                    return
                continue
            self.entries.take_changes()
            if self._blind_since is None:
                LAST_PASS.set(self._seen / MS)
            self._trouble, self._written_s = None, self._clock_s()
            self._count_events(changes)
            self._sum(changes)
            return

    def _sum(self, changes: RowChanges) -> None:
        """Aggregate the rows of deleted objects in namespaces with too many rows.

        If the aggregation fails, the rows stay until they are aggregated because of their age.
        """
        try:
            fold_rows(self._store, changes.summed)
        except StoreError as error:
            log.warning("rows beyond the hourly limit are not aggregated", why=str(error))

    def _count_events(self, changes: RowChanges) -> None:
        for each in changes.gang_events:
            EVENTS_WRITTEN.labels(each.what).inc()
        try:
            self._tally(changes)
        except StoreError as error:
            log.warning("usage of the new day is not counted yet", why=str(error))
            self.tallies = None

    def _tally(self, changes: RowChanges) -> None:
        """Add the usage of members that have left their nodes to the usage of the current periods.

        For a new period, the usage is read from the store, which already includes these members.
        """
        if self.tallies is None:
            self.tallies = Tallies(self._now(), self._closed_since, self._budgeted)
            return
        begun = self.tallies.renew(self._now(), self._closed_since)
        ended = [each for each in changes.holdings.values() if each.ended is not None]
        self.tallies.close([*spans_of(ended)], but=begun)

    def _failed(self, error: StoreError | APIError) -> None:
        """Report the failure of a write, and wait before the next attempt.

        Raises RuntimeError if too many observations are waiting to be written.
        """
        FAILED.inc()
        if self._trouble != str(error):
            log.error("history was not written; the write is retried", why=str(error))
        self._trouble = str(error)
        if self.feed.observations.qsize() > MOST_QUEUED:
            raise RuntimeError(f"more than {MOST_QUEUED} observations are waiting for the store, which fails: {error}")
        self._stopping.wait(_AGAIN_S)

    def _now(self) -> int:
        return round(self._clock_s() * MS)
