"""Clears up after nodes when their owner is gone: `python -m realnode.guard STORAGE GROUP…`.

Like the plane's guard, it waits for the end of its standard input, whose other end the owner holds. It stays outside
of the nodes' namespaces, where their mounts are not in the way, and ends what no pid file knows: the containers.
"""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from realnode import cgroups


def start(storage: Path, groups: Iterable[str]) -> subprocess.Popen[bytes]:
    """Starts it for that folder and those control groups."""
    return subprocess.Popen(
        [sys.executable, "-m", "realnode.guard", str(storage), *groups],
        stdin=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
    )


def main(storage: Path, *groups: str) -> None:
    """Waits for the owner's end, then clears up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for group in groups:
        cgroups.end(group)
    shutil.rmtree(storage, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
