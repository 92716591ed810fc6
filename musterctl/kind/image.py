"""Muster's image, built with docker or podman for `make image` and `muster up --provider kind`.

The base image is always given by digest: a base with a tag is pulled, and its digest is printed, so that the build can
be repeated.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from musterctl.plane.machine import LocalError

ENGINES: Final = ("docker", "podman")
PROVIDER_VARIABLE: Final = "KIND_EXPERIMENTAL_PROVIDER"
"""The environment variable that selects the container engine of kind."""
_TAIL_LINES: Final = 25
ROOT: Final = Path(__file__).resolve().parents[2]
BASE: Final = "docker.io/library/python:3.11-slim-bookworm"
"""The default base image, with the Python version of the lock files."""
REPOSITORY: Final = "localhost/muster"
"""The image's name on this machine. The host part of the name keeps engines from searching for the image in a
registry."""
_LOCAL: Final = "localhost/"
"""Prefix of images that were built on this machine and are in no registry."""
LOCKS: Final = ("requirements.lock", "requirements-tracing.lock")
_EARLIEST_S: Final = 315_532_800
"""The year 1980 in seconds since 1970, the earliest time that files in a wheel can have."""
_ID_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Engine:
    """A container engine (docker or podman) that responds."""

    name: str
    program: Path

    def __call__(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Run the engine, and return its output."""
        return run([str(self.program), *arguments], environment=environment)

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that make kind use this engine."""
        return {PROVIDER_VARIABLE: self.name}


def run(
    command: Sequence[str | Path],
    *,
    stdin: str | None = "",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> str:
    """Run a program, and return its output.

    If `stdin` is None, the program reads the standard input of this process. If the program fails, raise LocalError
    with the command and the end of its output.
    """
    result = subprocess.run(
        command,
        cwd=folder,
        input=stdin,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        output = "\n".join((result.stderr.strip() or result.stdout.strip()).splitlines()[-_TAIL_LINES:])
        shown = " ".join([Path(command[0]).name, *map(str, command[1:])])
        raise LocalError(f"`{shown}` failed with exit code {result.returncode}:\n{output}")
    return result.stdout


def find_engine() -> Engine:
    """Return a container engine that responds.

    If kind's environment variable is set, only the engine that it names is tried.
    """
    named = os.environ.get(PROVIDER_VARIABLE, "")
    wanted = (named,) if named in ENGINES else ENGINES
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
        raise LocalError(
            f"the container engine does not respond; check that it is running and that you may use it: {silent[0]}"
        )
    raise LocalError(
        f"there is no container engine: {' or '.join(wanted)} must be on the PATH. "
        "`muster up` without --provider needs none"
    )


def required(program: str, where: str) -> Path:
    """Return the path of a program.

    If the program is missing, raise LocalError; `where` describes how to install it.
    """
    found = shutil.which(program)
    if found is None:
        raise LocalError(f"{program} is not on the PATH: {where}")
    return Path(found)


def build(engine: Engine, *, base: str = BASE, lock: str = LOCKS[0]) -> str:
    """Build the image, and return its reference.

    The tag depends on the content, so that a changed image has a new reference.
    """
    if not (ROOT / "Dockerfile").is_file():
        raise LocalError(
            "an installed Muster has no Dockerfile: build the image in the repository with `make image`, "
            "and name it with --image"
        )
    epoch = source_date_epoch()
    with tempfile.TemporaryDirectory() as folder:
        id_file = Path(folder) / "id"
        engine(*command(engine.name, base=digest_of(engine, base), lock=lock, epoch=epoch, id_file=id_file))
        identity = id_file.read_text(encoding="utf-8").strip().removeprefix("sha256:")
    reference = f"{REPOSITORY}:{version('muster')}-{identity[:_ID_DIGITS]}"
    engine("tag", identity, reference)
    return reference


def command(engine: str, *, base: str, lock: str, epoch: int, id_file: Path) -> list[str]:
    """Return the engine's arguments for the build; only podman can set one timestamp for all files."""
    values = {"BASE": base, "LOCK": lock, "SOURCE_DATE_EPOCH": epoch, "VERSION": version("muster")}
    return [
        "build",
        f"--file={ROOT / 'Dockerfile'}",
        f"--iidfile={id_file}",
        *(f"--build-arg={name}={value}" for name, value in values.items()),
        *([f"--timestamp={epoch}"] if engine == "podman" else []),
        str(ROOT),
    ]


def digest_of(engine: Engine, base: str) -> str:
    """Return the base image with its digest; pull an image that is given by tag, unless it was built locally."""
    if "@sha256:" in base:
        return base
    if not base.startswith(_LOCAL):
        engine("pull", base)
    elif not engine("images", "--quiet", base).strip():
        raise LocalError(f"there is no image {base} on this machine, and images named {_LOCAL}… are in no registry")
    digests = engine("image", "inspect", '--format={{join .RepoDigests "\\n"}}', base).split()
    return digests[0] if digests else base  # docker's older store has digests only for images from a registry


def source_date_epoch() -> int:
    """Return the timestamp of all files, in seconds since 1970: SOURCE_DATE_EPOCH, or else the last commit's time."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        return _EARLIEST_S
    asked = [git, "-C", str(ROOT), "log", "-1", "--format=%ct"]
    result = subprocess.run(asked, capture_output=True, text=True, check=False)
    return int(result.stdout) if result.returncode == 0 else _EARLIEST_S


@click.command()
@click.option("--base", default=BASE, show_default=True, help="The base image, by digest or tag.")
@click.option("--lock", type=click.Choice(LOCKS), default=LOCKS[0], show_default=True, help="What is installed.")
@click.option("--tag", help="Another reference for the image, e.g. the one to push.")
def main(base: str, lock: str, tag: str) -> None:
    """Builds Muster's image with docker or podman."""
    try:
        engine = find_engine()
        digest = digest_of(engine, base)
        click.echo(f"building on {digest}; to repeat this build: make image BASE={digest}")
        reference = build(engine, base=digest, lock=lock)
        if tag:
            engine("tag", reference, tag)
    except LocalError as error:
        raise click.ClickException(str(error)) from error
    click.echo(reference + (f" and {tag}" if tag else ""))


if __name__ == "__main__":
    main()
