"""Reader of recordings, which reads the files of a folder in order, each file up to the end of its written part."""

import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from extender.explain.clusterdump import READ
from extender.planner.timing import timing_of
from extender.record import lines
from extender.record.folder import PATTERN
from muster.api.kubernetes.meta import format_time

_CHUNK = 1 << 16
_GZIP = 31
"""Window bits for zlib that select the gzip format."""


class RecordingError(ValueError):
    """Raised for input that is not a recording or that this version cannot read; the message gives the reason."""


class Recording:
    """A recording in a folder or a single file; each iteration reads from the start and keeps no lines."""

    def __init__(self, path: Path) -> None:
        """Open a recording. Raises RecordingError if there is no recording at the path."""
        self.path = path
        self.files = sorted(path.glob(PATTERN)) if path.is_dir() else [path]
        if not self.files:
            raise RecordingError(f"{path}: there is no recording in this folder: no file is called {PATTERN}")
        self.cuts: dict[Path, str] = {}
        """Maps each file that has been read and is truncated to a description of where the file ends."""
        self.problems: dict[str, None] = {}
        """Sentences about unusable values in the files that have been read; default values replaced these."""

    def __iter__(self) -> Iterator[lines.AnyLine]:
        """Yield all lines of the recording, file by file. Raises RecordingError for a file of another kind."""
        for file in self.files:
            yield from self._lines(file)

    def _lines(self, file: Path) -> Iterator[lines.AnyLine]:
        number = 0
        for number, text in enumerate(self._texts(file), 1):
            try:
                line = lines.decoded(text)
            except msgspec.DecodeError as error:
                if number == 1:
                    raise RecordingError(_other_format(file, text)) from error
                raise RecordingError(
                    f"{file}: line {number} cannot be read: {error}. It may be from a later version of Muster."
                ) from error
            if number == 1:
                self._check(file, line)
            yield line
        if not number and file not in self.cuts:
            raise RecordingError(f"{file}: it is empty")

    def _texts(self, file: Path) -> Iterator[bytes]:
        """Yield the complete lines of a file; if the file ends in the middle of a line, record this in `cuts`."""
        unzip, rest, whole = zlib.decompressobj(_GZIP), b"", 0
        try:
            with file.open("rb") as content:
                while chunk := content.read(_CHUNK):
                    *texts, rest = (rest + unzip.decompress(chunk)).split(b"\n")
                    whole += len(texts)
                    yield from texts
        except zlib.error as error:
            if not whole:
                raise RecordingError(f"{file}: this is not a file of a recording: {error}") from error
            self.cuts[file] = f"it is damaged after line {whole}: {error}"
            return
        except OSError as error:
            raise RecordingError(f"{file}: it cannot be read: {error.strerror}") from error
        if not unzip.eof:
            self.cuts[file] = f"it ends after line {whole}: the process was killed, or still writes it"

    def _check(self, file: Path, line: lines.AnyLine) -> None:
        if not isinstance(line, lines.Head):
            raise RecordingError(f"{file}: it does not begin like a file of a recording")
        if line.format != lines.FORMAT:
            raise RecordingError(f"{file}: its format is {line.format!r}; this version reads {lines.FORMAT!r}")
        self.problems |= dict.fromkeys(timing_of(line.settings)[1])


def _other_format(file: Path, text: bytes) -> str:
    try:
        found = msgspec.json.decode(text, type=dict)
    except msgspec.DecodeError:
        found = {}
    format_read = found.get("format")
    if isinstance(format_read, str):
        return f"{file}: its format is {format_read!r}; this version reads {lines.FORMAT!r}"
    return f"{file}: it is not a file of a recording (`muster record`, or the extender's recordFolder)"


class RecordingGap(msgspec.Struct, rename="camel"):
    """A period for which a recording lacks changes."""

    since: str
    until: str
    why: str


class RecordingStatus(msgspec.Struct, rename="camel"):
    """Summary of a recording: its time span, the number of objects and cycles, and its gaps."""

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
