"""The source of a release: an export of the commit, with the version written into its files."""

import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from musterctl.kind.image import run
from musterctl.plane.machine import LocalError
from web.site import LIVE

ROOT: Final = Path(__file__).resolve().parents[2]
VENDORED: Final = tuple(f"web/static/{name}" for name in LIVE)
"""Scripts that npm installs as its lock file lists them; they are not in the repository."""
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?")
"""Versions that both Python packages and Helm charts can have."""
_PLACES: Final = {
    "pyproject.toml": re.compile(r'(?m)^(version = ")[^"]+(")$'),
    "charts/muster/Chart.yaml": re.compile(r"(?m)^((?:version|appVersion): )\S+()$"),
}
"""The files that contain the version."""


class ReleaseError(LocalError):
    """A failed step of a release; the message names the step, and what to do."""


@dataclass(frozen=True, slots=True)
class Source:
    """The exported commit."""

    folder: Path
    version: str
    commit: str
    epoch: int
    """Time of the commit in seconds since 1970, the timestamp of all files."""

    def run(self, *command: str | Path) -> str:
        """Run a program in the export, with settings that make its output reproducible; return its output."""
        fixed = {"SOURCE_DATE_EPOCH": str(self.epoch), "TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}
        return run(command, environment={**fixed, "PYTHONPATH": str(self.folder)}, folder=self.folder)


def version_of(folder: Path) -> str:
    """Return the version in pyproject.toml."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def export(folder: Path, version: str, root: Path = ROOT) -> Source:
    """Export the checked-out commit into an empty folder; without a version, keep its own.

    The scripts that npm has installed are added. Changes that are not committed are an error.
    """
    if changed := run(["git", "status", "--porcelain"], folder=root).splitlines():
        raise ReleaseError(f"a release is built from a commit: commit or remove {len(changed)} files, {changed[0]} …")
    if missing := [name for name in VENDORED if not (root / name).is_file()]:
        raise ReleaseError(f"the web page needs {missing[0]}: install npm, and run `make {missing[-1]}`")
    commit, epoch = run(["git", "log", "-1", "--format=%H %ct"], folder=root).split()
    archive = folder.with_suffix(".tar")
    run(["git", "-c", "tar.umask=0022", "archive", "--format=tar", f"--output={archive}", "HEAD"], folder=root)
    folder.mkdir(parents=True)
    shutil.unpack_archive(archive, folder, filter="tar")
    archive.unlink()
    for name in VENDORED:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(root / name, folder / name)
    if version:
        write_version(folder, version)
    return Source(folder, version or version_of(folder), commit, int(epoch))


def write_version(folder: Path, version: str) -> None:
    """Write the version into all files that contain it."""
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is not a version: it must be like 1.2.3 or 1.2.3-rc.1")
    for name, place in _PLACES.items():
        file = folder / name
        text, count = place.subn(rf"\g<1>{version}\g<2>", file.read_text(encoding="utf-8"))
        if not count:
            raise ReleaseError(f"{name} has no line with the version, as {place.pattern!r} finds it")
        file.write_text(text, encoding="utf-8")
