"""Control groups of nodes: made in every hierarchy, and ended with every process in them."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_POLL_S = 0.05
_PATIENCE_S = 60.0
_CPUSETS = ("cpuset.cpus", "cpuset.mems")


def writable() -> bool:
    """Whether there are hierarchies, and groups can be made in each."""
    found = hierarchies()
    return bool(found) and all(os.access(each, os.W_OK) for each in found)


def hierarchies() -> list[Path]:
    """The one tree of version 2, or those of version 1, each for some controllers."""
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    trees = {each.resolve() for each in ROOT.glob("*/") if (each / "cgroup.procs").exists()}
    return sorted(trees)


def make(name: str) -> None:
    """A group of that name in every hierarchy, with all processors and memory nodes."""
    for tree in hierarchies():
        group = tree / name
        group.mkdir()
        for setting in _CPUSETS:  # version 1: a group without them takes no process
            if (tree / setting).exists():
                (group / setting).write_text((tree / setting).read_text())


def end(name: str) -> None:
    """Kills every process in the group and below it, again until none comes after, and removes the group."""
    deadline = time.monotonic() + _PATIENCE_S
    for tree in hierarchies():
        while (tree / name).exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{tree / name} has processes that do not end within {_PATIENCE_S:.0f} s of SIGKILL")
            for group in _bottom_up(tree / name):
                for pid in processes(group):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):  # its processes are still ending
                    group.rmdir()
            time.sleep(_POLL_S)


def processes(group: Path) -> list[int]:
    """The processes in that very group; 0 stands for those that this process cannot see, and is left out."""
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split() if pid != "0"]
    except OSError:  # it went away, or (version 2) is threaded
        return []


def _bottom_up(group: Path) -> Iterator[Path]:
    for folder, _, _ in os.walk(group, topdown=False):
        yield Path(folder)
