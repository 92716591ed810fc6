"""What is in a recording: from when until when, how many objects and cycles, and where something is missing."""

from msgspec import Struct

from extender.record import lines
from extender.record.reading import Recording
from muster.api.kubernetes.meta import format_time


class Gap(Struct, rename="camel"):
    """A stretch for which changes are missing."""

    since: str
    until: str
    why: str


class RecordingStatus(Struct, rename="camel"):
    """The content of a recording in numbers."""

    since: str = ""
    until: str = ""
    files: int = 0
    bytes: int = 0
    sessions: int = 0
    """Starts of the process that recorded."""
    versions: list[str] = []
    pool: str = ""
    objects: dict[str, int] = {}
    """Kind → objects at the end."""
    changes: int = 0
    cycles: int = 0
    decisions: int = 0
    lost: int = 0
    """Changes that were lost."""
    gaps: list[Gap] = []
    cuts: dict[str, str] = {}
    """Files that end before their end."""


def status_of(recording: Recording) -> RecordingStatus:
    """Read a recording to its end. Raises RecordingError for what is none."""
    counting = _Counting()
    for line in recording:
        counting.take(line)
    found = counting.found
    found.files, found.bytes = len(recording.files), sum(file.stat().st_size for file in recording.files)
    found.objects = {kind: len(keys) for kind, keys in counting.objects.items() if keys}
    found.cuts = {path.name: why for path, why in recording.cuts.items()}
    return found


class _Counting:
    def __init__(self) -> None:
        self.found = RecordingStatus(versions=[], gaps=[])
        self.objects: dict[str, set[str]] = {}
        self._session = ""
        self._last_s = 0.0

    def take(self, line: lines.AnyLine) -> None:
        found = self.found
        match line:
            case lines.Head():
                self._head(line)
            case lines.Cycle(decided=decided):
                found.cycles += 1
                found.decisions += len(decided)
            case lines.Lost(changes=changes, since=since, at=at):
                found.lost += changes
                self._missing(since, at, f"{changes} changes came too fast, or the disk did not take them")
            case _:
                self._object(line)
        if line.at:
            found.since = found.since or format_time(line.at)
            found.until = format_time(line.at)
            self._last_s = line.at

    def _head(self, head: lines.Head) -> None:
        found = self.found
        self.objects = {kind: set() for kind in lines.RESOURCES}
        found.pool = head.pool
        if head.version not in found.versions:
            found.versions.append(head.version)
        if head.session != self._session:
            found.sessions += 1
            if self._session:
                self._missing(self._last_s, head.at, "the process was started anew")
        self._session = head.session

    def _object(self, line: lines.AnyLine) -> None:
        match line:
            case lines.Known(kind=kind, object=text) | lines.Put(kind=kind, object=text) if kind in self.objects:
                self.objects[kind].add(lines.unpacked(kind, text).metadata.key)
                self.found.changes += isinstance(line, lines.Put)
            case lines.Gone(kind=kind, key=key) if kind in self.objects:
                self.objects[kind].discard(key)
                self.found.changes += 1

    def _missing(self, since: float, until: float, why: str) -> None:
        self.found.gaps.append(Gap(format_time(since), format_time(until), why))
