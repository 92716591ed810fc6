"""Recorder of the planner's inputs, which accepts changes without blocking and writes them in a separate thread.

Changes wait in a bounded queue. If changes arrive too fast, only the latest version of each object is kept. A new file
then begins with all known objects, followed by a line with the number of lost changes. A recording may therefore have
gaps, but contains only changes that happened.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import uuid4

import structlog
from msgspec import Raw
from prometheus_client import Counter, Gauge

from extender.explain.clusterdump import READ
from extender.record import lines
from extender.record.folder import RecordingFolder

log = structlog.get_logger()
LOST = Counter(
    "muster_record_lost_total", "Changes that were lost because they arrived faster than they could be written"
)
BYTES = Gauge("muster_record_bytes", "Size in bytes of the recording file that is being written")
FAILING = Gauge("muster_record_failing", "1 while the recording cannot be written, e.g. because the disk is full")
MOST_WAITING = 20_000
"""Maximum number of changes that wait to be written. If more changes wait, only the latest version of each object is
kept.
"""
FILES = 8
"""Approximate number of files in a folder; a file reaches this part of the folder's maximum size or age."""
SLICE = 100
"""Number of lines that are written without a pause, which takes a few milliseconds. Other threads wait for the
interpreter meanwhile.
"""
PAUSE_S = 0.002
FLUSH_S = 1.0
SLEEP_S = 60.0
"""Seconds without a cycle after which this replica does not lead; cycles usually come within seconds."""
JOIN_S = 10.0


class Waiting(NamedTuple):
    """A change that waits to be written, with the object itself, which the writing thread encodes later."""

    at: float
    kind: str
    key: str
    item: Any
    own: bool


class PlannerRecorder:
    """Recorder of the planner's inputs into a folder.

    All threads may call `saw`, `gone` and `record`, which never block.

    The first file begins with the first planning cycle, when the caches are filled and this replica is the leader.
    Before the first cycle, and at times without cycles, only the latest version of each object is kept.
    """

    def __init__(self, folder: RecordingFolder, head: lines.Head, *, wall_s: Callable[[], float]) -> None:
        self._folder = folder
        self._head = head
        self._head.session = uuid4().hex[:12]
        self._wall_s = wall_s
        self._known: dict[str, dict[str, Raw]] = {kind: {} for kind in READ}
        """Maps a kind and a key to the object's latest version as text, with which the next file begins."""
        self._queue: deque[Waiting | lines.AnyLine] = deque()
        self._overflow: dict[tuple[str, str], Waiting] = {}
        """Latest versions of objects that changed while the queue was full."""
        self._lost, self._lost_since = 0, 0.0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._awake, self._snapshot_s = False, 0.0
        """True while planning cycles run, and the time of the last snapshot."""
        self._writing, self._began_s = False, 0.0
        """True while a file is open, and the time when the file was begun."""
        self._last_s = 0.0
        """Time of the last written line."""
        self._failing, self._unsure = False, 0
        """True while writes to the disk fail, and the number of changes that may be lost because of the last error."""

    def saw(self, kind: str, item: Any, *, own: bool = False) -> None:
        """Record an object that was added or changed."""
        self._add(Waiting(self._wall_s(), kind, item.metadata.key, item, own))

    def gone(self, kind: str, key: str, *, own: bool = False) -> None:
        """Record that an object was deleted."""
        self._add(Waiting(self._wall_s(), kind, key, None, own))

    def record(self, line: lines.AnyLine) -> None:
        """Record a line that is not a change of an object; if the line has no time, it gets the present time."""
        line.at = line.at or self._wall_s()
        self._add(line)

    def start(self) -> None:
        """Start the writing thread, which first writes the changes that are already waiting."""
        self._thread.start()

    def stop(self) -> None:
        """Write all waiting changes, and close the file properly."""
        self._stopped.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)
        else:
            self._write_batch(last=True)

    def _add(self, each: Waiting | lines.AnyLine) -> None:
        with self._lock:
            if not self._lost and len(self._queue) < MOST_WAITING:
                self._queue.append(each)
                return
            if not self._lost:
                self._lost_since = each.at
            self._lost += 1
            if isinstance(each, Waiting):
                self._overflow[each.kind, each.key] = each
            elif isinstance(each, lines.ConfigLine):
                self._head.config = each.text

    def _run(self) -> None:
        while not self._stopped.wait(FLUSH_S):
            self._write_batch()
        self._write_batch(last=True)

    def _write_batch(self, *, last: bool = False) -> None:
        """Write waiting changes; after a failed write, try again with a new file."""
        try:
            self.write()
            if last:
                self._end("stopped")
            FAILING.set(0)
            self._failing = False
        except OSError as error:
            FAILING.set(1)
            if not self._failing:
                log.warning("the recording cannot be written; the extender retries", why=str(error))
            self._failing = True
            self._writing, self._unsure = False, 1
            self._folder.drop()

    def write(self) -> None:
        """Write all waiting changes. Raises OSError if a write fails."""
        while self._queue:
            for _ in range(min(SLICE, len(self._queue))):
                self._one(self._queue.popleft())
            self._pause()
        self._catch_up()
        if self._awake and self._head.planner and self._wall_s() - self._snapshot_s > SLEEP_S:
            self._end("no further cycles: another replica leads")
            self._awake = False
        self._folder.flush()
        BYTES.set(self._folder.size)

    def _one(self, each: Waiting | lines.AnyLine) -> None:
        """Write one line if a file is open; otherwise only store the line's content for the start of the next file."""
        line = self._line(each) if isinstance(each, Waiting) else each
        if line is None:
            return
        if isinstance(line, lines.ConfigLine):
            self._head.config = line.text
        elif isinstance(line, lines.SnapshotLine):
            self._awake, self._snapshot_s = True, line.at
        if self._awake and (not self._writing or self._due()):
            self._begin(line.at)
        if self._writing:
            self._folder.write(line)
            self._last_s = line.at

    def _catch_up(self) -> None:
        """If changes were lost, begin a new file with the latest versions of all objects."""
        with self._lock:
            overflow, self._overflow = self._overflow, {}
            lost, self._lost, self._unsure = self._lost + self._unsure, 0, 0
        for each in overflow.values():
            self._line(each)
        if not lost or not self._awake:
            return
        LOST.inc(lost)
        log.warning("the recording lacks changes, because they arrived faster than they could be written", changes=lost)
        self._begin(self._wall_s())
        self._folder.write(lines.Lost(at=self._wall_s(), changes=lost, since=self._lost_since))

    def _pause(self) -> None:
        """Let other threads run for a moment, except when the recorder is being stopped."""
        if threading.current_thread() is self._thread:
            self._stopped.wait(PAUSE_S)

    def _line(self, each: Waiting) -> lines.AnyLine | None:
        """Return a change's line, and store the object for the next file; None for fields that planning ignores."""
        known = self._known[each.kind]
        if each.item is None:
            known.pop(each.key, None)
            return lines.GoneLine(at=each.at, kind=each.kind, key=each.key, own=each.own)
        text, before = lines.packed(each.item), known.get(each.key)
        known[each.key] = text
        if before is not None and not each.own and lines.alike(before, text):
            return None
        return lines.Put(at=each.at, kind=each.kind, object=text, own=each.own)

    def _due(self) -> bool:
        """Return True if the open file must be ended because of its size or age."""
        too_old = self._wall_s() - self._began_s > self._folder.most_age_s / FILES
        return too_old or self._folder.size > self._folder.most_bytes / FILES

    def _begin(self, at: float) -> None:
        """Begin a file with all objects known at this time."""
        self._end("")
        self._began_s = self._wall_s()
        self._folder.begin(self._head.session, self._head.number)
        self._head.at = at
        self._folder.write(self._head)
        self._head.number += 1
        for kind, objects in self._known.items():
            for number, text in enumerate(objects.values(), 1):
                self._folder.write(lines.KnownLine(kind=kind, object=text))
                if number % SLICE == 0:
                    self._pause()
        self._folder.write(lines.ObjectsEndLine(at=at))
        self._writing = True

    def _end(self, why: str) -> None:
        if self._writing:
            at = self._wall_s() if why else self._last_s  # the next file continues at the time of its first change
            self._folder.write(lines.EndLine(at=at, why=why))
            self._folder.close()
        self._writing = False
