"""Headlamp's front end and its Volcano plugin, built once from the npm package @kinvolk/headlamp-plugin.

The package, made for those who write plugins, has the compiled front end and the source of the plugins that the project
ships: `official-plugins/volcano` among them, which its own `headlamp-plugin build` turns into what a release has.
Nothing of either is changed. The page around the front end is `../headlamp/page.jsx`, since the package lacks that.
"""

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from musterctl.plane import binaries
from musterctl.plane.machine import LocalError, locked

_RECIPE = Path(__file__).parents[1] / "headlamp"
_PACKAGE = Path("node_modules/@kinvolk/headlamp-plugin")
_TAIL_LINES = 25


@dataclass(frozen=True, slots=True)
class Headlamp:
    """Where the built files are."""

    page: Path
    """The folder of the page."""
    plugin: Path
    """The folder of the Volcano plugin: main.js and package.json."""


def missing() -> str:
    """The programs of the build that are not installed, for the reason of a skip; empty if all are."""
    return ", ".join(name for name in ("node", "npm") if not shutil.which(name))


def built() -> Headlamp:
    """Both, after building them if this version was not built yet (about 4 min on 2 cores, and 1 GB meanwhile)."""
    files = [file for file in sorted(_RECIPE.iterdir()) if file.is_file()]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    folder = binaries.user_cache() / "headlamp" / key
    if not folder.exists():
        with locked(folder.with_suffix(".lock")):
            if not folder.exists():
                _build(files, folder)
    return Headlamp(folder / "page", folder / "plugin")


def _build(files: list[Path], folder: Path) -> None:
    """Builds both beside the folder, then gives it its name."""
    work, partial = folder.with_suffix(".work"), folder.with_suffix(".partial")
    for each in (work, partial):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    for file in files:
        shutil.copy(file, work)
    log = folder.with_suffix(".log")
    log.unlink(missing_ok=True)
    _run(log, work, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    shutil.copytree(work / _PACKAGE / "official-plugins" / "volcano", work / "volcano")
    (work / "volcano" / "node_modules").symlink_to(work / "node_modules")  # its tsconfig.json looks there only
    _run(log, work, "node", str(_PACKAGE / "bin" / "headlamp-plugin.js"), "build", "volcano")
    _run(log, work, "npm", "run", "build")
    shutil.move(work / "dist", partial / "page")
    shutil.move(work / "volcano" / "dist", partial / "plugin")
    shutil.copy(work / "volcano" / "package.json", partial / "plugin")
    shutil.rmtree(work)
    partial.rename(folder)


def _run(log: Path, folder: Path, *command: str) -> None:
    environment = os.environ | {"CI": "true", "NODE_OPTIONS": "--max-old-space-size=4096"}
    with log.open("ab") as output:
        result = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        )
    if result.returncode:
        said = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
        raise LocalError(f"{' '.join(command)} failed in {folder}; all that it said is in {log}:\n{said}")
