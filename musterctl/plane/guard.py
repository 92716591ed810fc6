"""Ends a plane when the process that owns it is gone: `python -m musterctl.plane.guard FOLDER`.

The owner (a test run, `muster up --foreground`) holds the other end of the guard's standard input. However the owner
ends, even by SIGKILL, that pipe closes, and the guard stops whatever of the plane still runs.
"""

import signal
import subprocess
import sys
from pathlib import Path

from musterctl.plane.process import Part, kill_leftovers


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Starts a guard for the plane in that folder; when its standard input closes, it ends the plane."""
    return subprocess.Popen(
        [sys.executable, "-m", "musterctl.plane.guard", str(folder)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def main(folder: Path) -> None:
    """Waits for the end of the owner; then ends the parts, those first that were started last."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    pid_files = sorted((folder / "run").glob("*.pid"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in pid_files:
        Part(path.stem, folder, list).stop()
    kill_leftovers(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
