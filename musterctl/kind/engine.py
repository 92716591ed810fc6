"""The machine's container engine, docker or podman, and how other programs are run."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from musterctl.plane.machine import LocalError

ENGINES: Final = ("docker", "podman")
PROVIDER_VARIABLE: Final = "KIND_EXPERIMENTAL_PROVIDER"
"""The environment variable that tells kind which engine to use."""
_TAIL_LINES: Final = 25


@dataclass(frozen=True, slots=True)
class Engine:
    """A container engine that answers."""

    name: str
    program: Path

    def __call__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Runs the engine; its output."""
        return run([str(self.program), *arguments], environment=environment)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make kind use it."""
        return {PROVIDER_VARIABLE: self.name}


def run(command: list[str], *, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Runs a program; its output, or a LocalError with the command and the end of what the program said."""
    result = subprocess.run(
        command, input=stdin, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if result.returncode:
        told = "\n".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-_TAIL_LINES:])
        shown = " ".join([Path(command[0]).name, *command[1:]])
        raise LocalError(f"`{shown}` failed with exit code {result.returncode}:\n{told}")
    return result.stdout


def find() -> Engine:
    """The engine that answers; the one that kind is told to use by its variable, if it is."""
    told = os.environ.get(PROVIDER_VARIABLE, "")
    wanted = (told,) if told in ENGINES else ENGINES
    silent = []
    for name in wanted:
        program = shutil.which(name)
        if program is None:
            continue
        try:
            run([program, "info"])
        except LocalError as error:
            silent.append(str(error))
        else:
            return Engine(name, Path(program))
    if silent:
        raise LocalError(f"the container engine does not answer; is it running, and may you use it? {silent[0]}")
    raise LocalError(
        f"there is no container engine: {' or '.join(wanted)} must be on the PATH. "
        "`muster up` without --provider needs none"
    )


def required(program: str, where: str) -> Path:
    """A program on the PATH; `where` says where to get it."""
    found = shutil.which(program)
    if found is None:
        raise LocalError(f"{program} is not on the PATH: {where}")
    return Path(found)
