"""Recorder: takes notes without blocking its callers, and writes them in a thread of its own.

Changes wait in a queue with a bound. Where they come faster than they can be written, only the latest version of each
object is kept. The file ends with a line that says how many changes were lost, and the next one begins with all that is
known. A recording may have a gap, but it never says what was not.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import uuid4

import structlog
from msgspec import Raw
from prometheus_client import Counter, Gauge

from extender.record import lines
from extender.record.ring import Ring

log = structlog.get_logger()
LOST = Counter(
    "muster_record_lost_total", "Changes that were lost because they arrived faster than they could be written"
)
BYTES = Gauge("muster_record_bytes", "Size in bytes of the recording file that is being written")
FAILING = Gauge("muster_record_failing", "1 while the recording cannot be written, e.g. because the disk is full")
MOST_WAITING = 20_000
"""Changes that wait to be written; of further ones only the latest of each object."""
FILES = 8
"""The ring has about so many files: a file takes this part of all bytes, and of the age."""
SLICE = 100
"""Lines that are written at a time; some milliseconds, in which other threads wait for the interpreter."""
PAUSE_S = 0.002
FLUSH_S = 1.0
SLEEP_S = 60.0
"""Without a cycle for so long this replica does not lead: cycles come every second or so, or after a long one later."""
JOIN_S = 10.0


class Waiting(NamedTuple):
    """A change that is to be written: the object itself, as it is encoded in the thread only."""

    at: float
    kind: str
    key: str
    item: Any
    own: bool


class PlannerRecorder:
    """Records into a ring; `saw`, `gone` and `say` are for any thread, and never wait.

    A file begins with the first cycle, when the caches are filled and this replica leads. Before that, and while there
    are no cycles, only the latest version of each object is kept.
    """

    def __init__(self, ring: Ring, head: lines.Head, *, wall_s: Callable[[], float]) -> None:
        self._ring = ring
        self._head = head
        self._head.session = uuid4().hex[:12]
        self._wall_s = wall_s
        self._known: dict[str, dict[str, Raw]] = {kind: {} for kind in lines.RESOURCES}
        """Kind → key → text of each object as it was noted last: the beginning of the next file."""
        self._queue: deque[Waiting | lines.AnyLine] = deque()
        self._overflow: dict[tuple[str, str], Waiting] = {}
        """Latest versions of objects that came while the queue was full."""
        self._lost, self._lost_since = 0, 0.0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._awake, self._snapshot_s = False, 0.0
        """True while there are cycles, and the time of the last one."""
        self._writing, self._began_s = False, 0.0
        """True while a file is open, and the time of its beginning."""
        self._last_s = 0.0
        """Time of the last line."""
        self._failing, self._unsure = False, 0
        """True while the disk does not take anything; 1 after an error: changes may not be on the disk."""

    def saw(self, kind: str, item: Any, *, own: bool = False) -> None:
        """Note an object that came or changed."""
        self._add(Waiting(self._wall_s(), kind, item.metadata.key, item, own))

    def gone(self, kind: str, key: str, *, own: bool = False) -> None:
        """Note that an object is gone."""
        self._add(Waiting(self._wall_s(), kind, key, None, own))

    def record(self, line: lines.AnyLine) -> None:
        """Note a line of another kind; one without a time gets that of now."""
        line.at = line.at or self._wall_s()
        self._add(line)

    def start(self) -> None:
        """Start the thread; what was noted before is written, too."""
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, and end the file."""
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
        """Write what waits; a disk that does not take it is tried again, with a new file."""
        try:
            self.write()
            if last:
                self._end("stopped")
            FAILING.set(0)
            self._failing = False
        except OSError as error:
            FAILING.set(1)
            if not self._failing:
                log.warning("the recording cannot be written; it is tried again", why=str(error))
            self._failing = True
            self._writing, self._unsure = False, 1
            self._ring.drop()

    def write(self) -> None:
        """Write all that waits. Raises OSError where the disk does not take it."""
        while self._queue:
            for _ in range(min(SLICE, len(self._queue))):
                self._one(self._queue.popleft())
            self._pause()
        self._catch_up()
        if self._awake and self._head.planner and self._wall_s() - self._snapshot_s > SLEEP_S:
            self._end("no cycles any more: another replica leads")
            self._awake = False
        self._ring.flush()
        BYTES.set(self._ring.size)

    def _one(self, each: Waiting | lines.AnyLine) -> None:
        """Write one line, or keep what it says for the beginning of a file."""
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
            self._ring.write(line)
            self._last_s = line.at

    def _catch_up(self) -> None:
        """After changes were lost, restart with the latest versions of all objects."""
        with self._lock:
            overflow, self._overflow = self._overflow, {}
            lost, self._lost, self._unsure = self._lost + self._unsure, 0, 0
        for each in overflow.values():
            self._line(each)
        if not lost or not self._awake:
            return
        LOST.inc(lost)
        log.warning("changes were lost to the recording: they came faster than it is written", changes=lost)
        self._begin(self._wall_s())
        self._ring.write(lines.Lost(at=self._wall_s(), changes=lost, since=self._lost_since))

    def _pause(self) -> None:
        """Leave the interpreter to others for a moment, except at the end."""
        if threading.current_thread() is self._thread:
            self._stopped.wait(PAUSE_S)

    def _line(self, each: Waiting) -> lines.AnyLine | None:
        """Return the line of a change, and keep the object for the beginning of the next file.

        None for a change of nothing that the planner reads, as the heartbeat of a node is.
        """
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
        """Return True if the file is long enough, or old enough."""
        too_old = self._wall_s() - self._began_s > self._ring.most_age_s / FILES
        return too_old or self._ring.size > self._ring.most_bytes / FILES

    def _begin(self, at: float) -> None:
        """Begin a file with all that is known at this time."""
        self._end("")
        self._began_s = self._wall_s()
        self._ring.begin(self._head.session, self._head.number)
        self._head.at = at
        self._ring.write(self._head)
        self._head.number += 1
        for kind, objects in self._known.items():
            for number, text in enumerate(objects.values(), 1):
                self._ring.write(lines.KnownLine(kind=kind, object=text))
                if number % SLICE == 0:
                    self._pause()
        self._ring.write(lines.ObjectsEndLine(at=at))
        self._writing = True

    def _end(self, why: str) -> None:
        if self._writing:
            at = self._wall_s() if why else self._last_s  # the next file goes on at the time of its first change
            self._ring.write(lines.EndLine(at=at, why=why))
            self._ring.close()
        self._writing = False
