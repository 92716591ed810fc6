"""The source distribution: MANIFEST.in names every file of the repository, so that its tests run from it."""

import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ALWAYS = {"LICENSE", "MANIFEST.in", "pyproject.toml", "setup.py"}
"""What setuptools adds without being asked."""


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is a source distribution")
def test_every_file_is_in_the_source_distribution() -> None:
    """By MANIFEST.in, or as a module or data of a package."""
    rules = [line.split() for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()]
    included = [pattern for rule, *patterns in rules if rule == "include" for pattern in patterns]
    grafted = [f"{folder}/" for rule, *folders in rules if rule == "graft" for folder in folders]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    data = ["*.py", *settings["package-data"]["*"]]

    def there(file: str) -> bool:
        top, inside, name = file.partition("/")
        if not inside:
            return file in ALWAYS or any(fnmatch(file, pattern) for pattern in included)
        packaged = any(fnmatch(top, pattern) for pattern in settings["packages"]["find"]["include"])
        in_package = packaged and any(fnmatch(Path(name).name, pattern) for pattern in data)
        return in_package or any(file.startswith(folder) for folder in grafted)

    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert len(tracked) > 1000
    assert [file for file in tracked if not there(file)] == []
