"""Tar archives with the same bytes for the same content: sorted names, one time, no owner."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_EXECUTABLE: Final = 0o111


def write(target: Path, members: Mapping[str, bytes | Path], epoch: int, *, compress: bool = False) -> None:
    """Write a tar archive of regular files: name and content, or the file that has the content."""
    with target.open("wb") as raw:
        if not compress:
            _tar(raw, members, epoch)
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            _tar(packed, members, epoch)


def _tar(stream: io.BufferedIOBase, members: Mapping[str, bytes | Path], epoch: int) -> None:
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(members.items()):
            member = tarfile.TarInfo(name)
            member.mtime, member.mode = epoch, 0o644
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
                continue
            member.size = content.stat().st_size
            member.mode = 0o755 if content.stat().st_mode & _EXECUTABLE else 0o644
            with content.open("rb") as file:
                archive.addfile(member, file)


def normalise(archive: Path, folder: Path, epoch: int) -> None:
    """Write a compressed archive of regular files again, in reproducible form.

    The archive is first unpacked into the empty folder.
    """
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    write(archive, files, epoch, compress=True)
