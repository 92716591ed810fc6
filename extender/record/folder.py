"""Files of a recording, in a folder with a maximum size and age; the oldest files are deleted.

A file is compressed, and flushed about every second, so that a killed process loses the lines of at most one second. A
truncated file contains all lines that were flushed.
"""

import gzip
import os
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from extender.record.lines import AnyLine, encoded
from muster.api.kubernetes.meta import format_time

PATTERN = "muster-recording-*.jsonl.gz"
_LEVEL = 6


class FolderError(Exception):
    """Raised if the folder of a recording is not writable; the message reports the reason to users."""


class RecordingFolder:
    """Writer of a recording's successive files in one folder. Not thread safe."""

    def __init__(self, folder: Path, *, most_bytes: int, most_age_s: float, wall_s: Callable[[], float]) -> None:
        """Create the folder if it is missing. Raises FolderError if the folder is not writable."""
        self.folder = folder
        self.most_bytes = most_bytes
        self.most_age_s = most_age_s
        self._wall_s = wall_s
        self._file: gzip.GzipFile | None = None
        self._path: Path | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK):
                raise PermissionError(f"{folder} cannot be written to")
        except OSError as error:
            raise FolderError(f"{folder}: a recording cannot be written there: {error.strerror or error}") from error

    def begin(self, session: str, number: int) -> None:
        """End the open file, begin the next file with a later name, and delete old files."""
        self.close()
        self.trim()
        stem = f"muster-recording-{format_time(self._wall_s(), micros=True).replace(':', '').replace('-', '')}"
        self._path = self.folder / f"{stem}-{session}-{number:06}.jsonl.gz"
        self._file = gzip.GzipFile(self._path, "xb", _LEVEL, mtime=0)

    def write(self, line: AnyLine) -> None:
        """Write a line into the open file."""
        if self._file is not None:
            self._file.write(encoded(line) + b"\n")

    def flush(self) -> None:
        """Write all lines to the disk, so that they survive the end of the process."""
        if self._file is not None:
            self._file.flush(zlib.Z_SYNC_FLUSH)

    def close(self) -> None:
        """Close the open file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def drop(self) -> None:
        """Abandon the open file after an error, without finishing it."""
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):
                file.close()

    @property
    def size(self) -> int:
        """Size of the open file on disk in bytes."""
        return self._path.stat().st_size if self._path is not None and self._path.exists() else 0

    def trim(self) -> None:
        """Delete the oldest files, except the open file, until the total size and age are within their limits."""
        files = [path for path in sorted(self.folder.glob(PATTERN)) if self._file is None or path != self._path]
        sizes = {path: path.stat() for path in files}
        total = sum(each.st_size for each in sizes.values()) + (self.size if self._file is not None else 0)
        oldest = self._wall_s() - self.most_age_s
        for path in files:
            if total <= self.most_bytes and sizes[path].st_mtime >= oldest:
                break
            path.unlink(missing_ok=True)
            total -= sizes[path].st_size
