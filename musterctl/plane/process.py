"""A component of a local control plane, as an ordinary process that is started in its own session and recognised later.

The pid file contains the pid; environment variables of the process name the control plane and the component. Another
process may have reused a pid. A process without these environment variables never counts as the component, and never
gets a signal. Signals are sent through a pidfd that is opened before the environment is read, so that the signal
reaches the checked process.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from musterctl.plane.machine import LocalError

PLANE_VARIABLE: Final = "MUSTER_PART_OF"
"""Environment variable of each component and all its descendants, with the folder of the control plane."""
PART_VARIABLE: Final = "MUSTER_PART"
"""Environment variable of each component and all its descendants, with the name of the component."""
_KILL_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.01


class PlaneProcess:
    """A program of a control plane, with a pid file and a log in `folder`; `command()` returns its command line."""

    def __init__(self, name: str, folder: Path, command: Callable[[], list[str]], *, grace_s: float = 10.0) -> None:
        self.name = name
        self.log_file = folder / "log" / f"{name}.log"
        self._folder = folder
        self._pid_file = folder / "run" / f"{name}.pid"
        self._command = command
        self._grace_s = grace_s
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def started(self) -> bool:
        """Return True if the process was started and has not been stopped since, even if the process has died."""
        return self._pid_file.exists()

    @property
    def alive(self) -> bool:
        """Return True while the started process is alive."""
        return self.pid is not None

    @property
    def pid(self) -> int | None:
        """Return the pid of the process if the process is alive, otherwise None."""
        if self._child is not None:
            self._child.poll()  # reaps it
        try:
            pid = int(self._pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None  # never started, or the machine crashed during the write
        return pid if _belongs(pid, _markers(self._folder, self.name)) else None

    @property
    def word(self) -> str:
        """Return the state of the process as one word: running, dead (it was started and has ended) or stopped."""
        return "running" if self.alive else "dead" if self.started else "stopped"

    def start(self) -> None:
        """Start the process unless the process is alive."""
        if self.alive:
            return
        command = self._command()
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        self._pid_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, PLANE_VARIABLE: str(self._folder), PART_VARIABLE: self.name},
                start_new_session=True,
            )
        while self._child.poll() is None and not _belongs(self._child.pid, _markers(self._folder, self.name)):
            time.sleep(_POLL_S)  # right after an exec, /proc shows no environment
        self._pid_file.write_text(str(self._child.pid))

    def stop(self) -> None:
        """Stop the process and all its descendants: with SIGTERM, and after the grace period with SIGKILL."""
        self.signal(signal.SIGTERM)
        self.finish()

    def finish(self) -> None:
        """Finish a stop after SIGTERM was sent.

        The function is separate from `stop`, so that several components can end at the same time.
        """
        self.signal(signal.SIGCONT)  # a suspended process would not handle the SIGTERM
        with self._opened() as descriptor:
            if descriptor is not None:
                _wait_end(descriptor, self._grace_s)
        self.kill()
        self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the process and all its descendants at once."""
        kill_leftovers(self._folder, self.name)
        if self._child is not None:
            self._child.wait()

    def restart(self) -> None:
        """Stop the process if it is running, then start it; its command line is computed again."""
        self.stop()
        self.start()

    def signal(self, signum: int) -> bool:
        """Send a signal to the component's process; return False if there is no process."""
        with self._opened() as descriptor:
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, signum)
            return descriptor is not None

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the log and, if the caller started the process, its exit status."""
        how = self._end
        return f"{self._tail(lines)}\n(it ended{how})" if how else self._tail(lines)

    def death(self) -> LocalError:
        """Return an error for a process that has ended unexpectedly; the message contains the end of the log."""
        return LocalError(f"{self.name} ended{self._end}. The end of {self.log_file}:\n{self._tail()}")

    @property
    def _end(self) -> str:
        """Return the exit status of the process as text; "" while it is alive, or if another process has started it."""
        code = self._child.poll() if self._child else None
        return "" if code is None else f" with exit code {code}" if code >= 0 else f" by {signal.Signals(-code).name}"

    def _tail(self, lines: int = 20) -> str:
        if not self.log_file.exists():
            return "(no log)"
        with self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - 400 * lines))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def _opened(self) -> contextlib.AbstractContextManager[int | None]:
        return _opened(self.pid, _markers(self._folder, self.name))


def kill_leftovers(folder: Path, part: str = "") -> None:
    """Kill all processes of a control plane, or of one of its components, and wait until all of them have ended."""
    markers = _markers(folder, part)
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while pids := [int(each.name) for each in Path("/proc").glob("[0-9]*") if _belongs(int(each.name), markers)]:
        if time.monotonic() > deadline:
            raise LocalError(f"processes {pids} of {part or folder} do not end, not even by SIGKILL")
        for pid in pids:
            with _opened(pid, markers) as descriptor:
                if descriptor is not None:
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        time.sleep(_POLL_S)


def _markers(folder: Path, part: str) -> set[bytes]:
    """Return the environment variables that identify the processes of a component, or of a whole control plane."""
    found = {PLANE_VARIABLE: str(folder)} | ({PART_VARIABLE: part} if part else {})
    return {f"{name}={value}".encode() for name, value in found.items()}


def _belongs(pid: int, markers: set[bytes]) -> bool:
    """Return True if the process is alive and has these variables."""
    try:
        return markers <= set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))  # empty for an ended process
    except OSError:
        return False  # it has ended, or belongs to another user


@contextlib.contextmanager
def _opened(pid: int | None, markers: set[bytes]) -> Iterator[int | None]:
    """Return a pidfd of the process, or None if it is not alive or does not have these variables."""
    try:
        descriptor = os.pidfd_open(pid) if pid else None
    except ProcessLookupError:
        descriptor = None
    if pid is None or descriptor is None:
        yield None
        return
    try:
        yield descriptor if _belongs(pid, markers) else None
    finally:
        os.close(descriptor)


def _wait_end(descriptor: int, timeout_s: float) -> None:
    """Wait until the process of a pidfd has ended, or the time is up."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.poll(timeout_s * 1000)


def start_guard(*folders: Path) -> subprocess.Popen[bytes]:
    """Start a process that ends the control planes in these folders when its owner, the calling process, ends.

    The pipe to its standard input closes whenever the owner (a test run, `muster up --foreground`) ends, even by
    SIGKILL.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "musterctl.plane.process", *map(str, folders)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def _guard(folders: Sequence[Path]) -> None:
    """Wait for the end of the owner, then stop each control plane's components in reverse order of their start."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdin.buffer.read()
    for folder in folders:
        pid_files = sorted((folder / "run").glob("*.pid"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        for path in pid_files:
            PlaneProcess(path.stem, folder, list).stop()
        kill_leftovers(folder)


if __name__ == "__main__":
    _guard([Path(folder) for folder in sys.argv[1:]])
