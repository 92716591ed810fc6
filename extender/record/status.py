"""Summary of a recording: its time span, the number of objects and cycles, and its gaps."""

from msgspec import Struct

from extender.explain.clusterdump import READ
from extender.record import lines
from extender.record.reading import Recording
from muster.api.kubernetes.meta import format_time


class RecordingGap(Struct, rename="camel"):
    """A period for which a recording lacks changes."""

    since: str
    until: str
    why: str


class RecordingStatus(Struct, rename="camel"):
    """Summary of a recording's content in numbers."""

    since: str = ""
    until: str = ""
    files: int = 0
    bytes: int = 0
    sessions: int = 0
    """Number of starts of the recording process."""
    versions: list[str] = []
    pool: str = ""
    objects: dict[str, int] = {}
    """Maps a kind to the number of objects of this kind at the end of the recording."""
    changes: int = 0
    cycles: int = 0
    decisions: int = 0
    lost: int = 0
    """Number of changes that the recording lacks."""
    gaps: list[RecordingGap] = []
    cuts: dict[str, str] = {}
    """Maps each truncated file to a description of where the file ends."""


def status_of(recording: Recording) -> RecordingStatus:
    """Read a whole recording and return its summary. Raises RecordingError if the input is no recording."""
    found = RecordingStatus(versions=[], gaps=[])
    objects: dict[str, set[str]] = {}
    session, last_s = "", 0.0
    for line in recording:
        match line:
            case lines.Head():
                if session not in {"", line.session}:
                    found.gaps.append(_gap(last_s, line.at, "the process was restarted"))
                found.sessions += line.session != session
                found.versions += [] if line.version in found.versions else [line.version]
                found.pool, session = line.pool, line.session
                objects = {kind: set() for kind in READ}
            case lines.Cycle(decided=decided):
                found.cycles += 1
                found.decisions += len(decided)
            case lines.Lost(changes=changes, since=since, at=at):
                found.lost += changes
                why = f"{changes} changes arrived too fast, or could not be written to the disk"
                found.gaps.append(_gap(since, at, why))
            case lines.KnownLine(kind=kind, object=text) | lines.Put(kind=kind, object=text) if kind in objects:
                objects[kind].add(lines.unpacked(kind, text).metadata.key)
                found.changes += isinstance(line, lines.Put)
            case lines.GoneLine(kind=kind, key=key) if kind in objects:
                objects[kind].discard(key)
                found.changes += 1
        if line.at:
            found.since = found.since or format_time(line.at)
            found.until = format_time(line.at)
            last_s = line.at
    found.files, found.bytes = len(recording.files), sum(file.stat().st_size for file in recording.files)
    found.objects = {kind: len(keys) for kind, keys in objects.items() if keys}
    found.cuts = {path.name: why for path, why in recording.cuts.items()}
    return found


def _gap(since: float, until: float, why: str) -> RecordingGap:
    return RecordingGap(format_time(since), format_time(until), why)
