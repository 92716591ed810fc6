"""Copies of the repository in which mutants are written and tests may leave files."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"
PACKAGES: tuple[str, ...] = tuple(sorted(tomllib.loads(_PROJECT.read_text())["tool"]["importlinter"]["root_packages"]))
TIER = "tests/unit"
# Files that git ignores and tests read.
_FETCHED = "web/static/vendor"


def product(root: Path) -> dict[str, str]:
    """Return the text of each module of the product, by its path in the tree."""
    found = [path for package in PACKAGES for path in (root / package).rglob("*.py")]
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted(found)}


def tests(root: Path) -> dict[str, str]:
    """Return the text of each file of tests of the tier, by its path in the tree."""
    found = (root / TIER).rglob("test_*.py")
    return {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in sorted(found)}


def clone(root: Path, to: Path) -> Path:
    """Copy all files that git tracks or would add, and compile them: workers write no bytecode."""
    shutil.rmtree(to, ignore_errors=True)
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in filter(None, listing.stdout.split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    if (root / _FETCHED).is_dir():
        shutil.copytree(root / _FETCHED, to / _FETCHED)
    subprocess.run([sys.executable, "-m", "compileall", "-q", *PACKAGES, TIER], cwd=to, check=True, env=environment(to))
    return to


def environment(root: Path) -> dict[str, str]:
    """Return the environment of a process that imports the product from the clone, not the installed one.

    20 random runs of the whole controller take place in the process of their test, whose coverage is recorded.
    """
    inherited = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    without = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return without | {"MUSTER_RUNS": "20", "PYTHONPATH": os.pathsep.join([str(root), *inherited])}


@contextmanager
def written(path: Path, text: str) -> Iterator[None]:
    """Replace a file's text within the context; its time stamp moves by a minute, so that it is compiled again."""
    before, stamp = path.read_bytes(), path.stat().st_mtime
    path.write_text(text, encoding="utf-8")
    os.utime(path, (stamp + 60, stamp + 60))
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, (stamp, stamp))
