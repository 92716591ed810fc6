"""The Python packages of a release: the source distribution, and the wheel."""

import sys
from pathlib import Path

from release import archives
from release.source import Source


def sdist(source: Source, target: Path, scratch: Path) -> None:
    """Write the source distribution: the files of the commit; setuptools would write the current time into it."""
    _build(source, target, "--sdist")
    (archive,) = target.glob("muster-*.tar.gz")
    archives.normalise(archive, scratch / "sdist", source.epoch)


def wheel(source: Source, target: Path) -> None:
    """Write the wheel, which contains the chart."""
    _build(source, target, "--wheel")


def _build(source: Source, target: Path, kind: str) -> None:
    source.run(sys.executable, "-m", "build", kind, "--no-isolation", f"--outdir={target}", str(source.folder))
