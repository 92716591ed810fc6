"""Clears up after nodes when their owner is gone: `python -m realnode.janitor STORAGE --groups … --folders …`.

Like the plane's guard, it waits for the end of its standard input, whose other end the owner holds. It stays outside
of the room, where the room's mounts are not in the way, and ends what no pid file knows: the containers.
"""

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from realnode import cgroups


def start(storage: Path, groups: Iterable[str], folders: Iterable[Path]) -> subprocess.Popen[bytes]:
    """Starts it for that folder, those control groups, and folders that go if they are empty in the end."""
    options = ["--groups", *groups, "--folders", *map(str, folders)]
    return subprocess.Popen(
        [sys.executable, "-m", "realnode.janitor", str(storage), *options],
        stdin=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
        start_new_session=True,
    )


def main() -> None:
    """Waits for the owner's end, then clears up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("storage", type=Path)
    parser.add_argument("--groups", nargs="*", default=[])
    parser.add_argument("--folders", nargs="*", default=[], type=Path)
    wanted = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for group in wanted.groups:
        cgroups.end(group)
    shutil.rmtree(wanted.storage, ignore_errors=True)
    for folder in reversed(wanted.folders):
        with contextlib.suppress(OSError):
            folder.rmdir()


if __name__ == "__main__":
    main()
