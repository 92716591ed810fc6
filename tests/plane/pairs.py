"""A further kube-scheduler and extender beside those of a plane."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import yaml


def option(command: list[str], name: str) -> str:
    """The value of an option of a command line."""
    return next(argument for argument in command if argument.startswith(f"{name}=")).partition("=")[2]


def replaced(command: list[str], values: dict[str, object]) -> list[str]:
    """The command with other values for these options."""
    return [
        f"{name}={values[name]}" if (name := argument.partition("=")[0]) in values else argument for argument in command
    ]


def resettled(command: list[str], file: Path, fields: dict[str, object]) -> list[str]:
    """The command of a process of Muster's with these fields changed in its settings, which are written to `file`."""
    settings = yaml.safe_load(Path(option(command, "--settings")).read_text())
    file.write_text(yaml.safe_dump(settings | fields))
    return replaced(command, {"--settings": file})


def started(command: list[str], log: Path, *, host: str = "") -> subprocess.Popen[bytes]:
    """The running command, on a host name of its own if one is given (a UTS namespace), as its own process group."""
    if host:
        command = ["unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh", *command]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)


def ended(process: subprocess.Popen[bytes]) -> None:
    """Kill it with its children."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
