"""One part of a plane as an ordinary process: started in a session of its own, known again by its pid file.

The pid file holds the pid, the process's start time and the boot id. A pid alone can come to mean a foreign process;
the three together cannot, and a part whose pid file does not match a living process counts as dead. Signals go through
a pidfd that is opened before the check, so that the process which is checked is the one which is signalled.
"""

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from musterctl.plane.errors import PartError

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
PLANE_VARIABLE: Final = "MUSTER_PART_OF"
"""Environment variable of every part and all its descendants: the folder of the plane."""
PART_VARIABLE: Final = "MUSTER_PART"
"""Environment variable of every part and all its descendants: the part's name."""
_SECOND_GRACE_S: Final = 2.0
_KILL_PATIENCE_S: Final = 10.0


class PidFile(msgspec.Struct, frozen=True):
    """The process that a part is, so that no other can be taken for it; what stands in the pid file."""

    pid: int
    start_ticks: int
    """Start time in clock ticks since boot, from /proc/<pid>/stat."""
    boot_id: str

    @property
    def alive(self) -> bool:
        """Whether that very process lives; a zombie does not."""
        return self.boot_id == _boot_id() and _start_ticks(self.pid) == self.start_ticks


class Part:
    """One program of a plane, as `command()` says how to start it.

    `folder` is the plane's folder; the pid file is `run/<name>.json` and the log `log/<name>.log` in it.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        command: Callable[[], list[str]],
        *,
        grace_s: float = 10.0,
    ) -> None:
        self.name = name
        self.log_file = folder / "log" / f"{name}.log"
        self._folder = folder
        self._pid_file = folder / "run" / f"{name}.json"
        self._command = command
        self._grace_s = grace_s
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def started(self) -> bool:
        """Whether it was started and not stopped since; it may have died."""
        return self._pid_file.exists()

    @property
    def alive(self) -> bool:
        """Whether the very process lives that was started, not one that got its pid."""
        return self._identity() is not None

    @property
    def pid(self) -> int | None:
        """The pid while its process lives, else None."""
        identity = self._identity()
        return identity.pid if identity else None

    def start(self) -> None:
        """Starts it unless it lives already."""
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
        ticks = _start_ticks(self._child.pid)
        if ticks is not None:
            _write(self._pid_file, PidFile(pid=self._child.pid, start_ticks=ticks, boot_id=_boot_id()))

    def stop(self) -> None:
        """Ends it: SIGTERM, a second one after the grace period, then SIGKILL for all that is left of its group."""
        self.signal(signal.SIGTERM)
        self.finish()

    def finish(self) -> None:
        """The rest of `stop` after the first SIGTERM, so that several parts can end at the same time."""
        self.signal(signal.SIGCONT)  # a stopped process would not see the SIGTERM
        if not self._wait_end(self._grace_s):
            self.signal(signal.SIGTERM)
            self._wait_end(_SECOND_GRACE_S)
        self.kill()
        self._pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """Ends it and everything in its process group with SIGKILL, at once."""
        identity = self._identity()
        if identity is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(identity.pid, signal.SIGKILL)
            self._wait_end(_KILL_PATIENCE_S)
        kill_leftovers(self._folder, self.name)

    def restart(self) -> None:
        """Stops it, if it runs, and starts it with a command line that is worked out anew."""
        self.stop()
        self.start()

    def signal(self, signum: int) -> bool:
        """Sends a signal to its process; False if there is none."""
        with _verified(self._identity()) as descriptor:
            if descriptor is None:
                return False
            signal.pidfd_send_signal(descriptor, signum)
            return True

    def log_tail(self, lines: int = 20) -> str:
        """The last lines of its log."""
        if not self.log_file.exists():
            return "(no log)"
        with self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - 400 * lines))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])

    def death(self) -> PartError:
        """The error that tells of its death, with the tail of its log."""
        code = self._child.poll() if self._child else None
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by {signal.Signals(-code).name}"
        return PartError(f"{self.name} ended{how}. The end of {self.log_file}:\n{self.log_tail()}")

    def _identity(self) -> PidFile | None:
        """Its process according to the pid file, if that lives; reaps it if it was our child and ended."""
        if self._child is not None:
            self._child.poll()
        try:
            identity = msgspec.json.decode(self._pid_file.read_bytes(), type=PidFile)
        except (FileNotFoundError, msgspec.DecodeError):
            return None  # never started, or the machine went down in the middle of writing it
        return identity if identity.alive else None

    def _wait_end(self, timeout_s: float) -> bool:
        """Waits until its process has ended, and reaps it if it was our child; False if the time is up first."""
        with _verified(self._identity()) as descriptor:
            if descriptor is not None and not _readable(descriptor, timeout_s):
                return False
        if self._child is not None:
            self._child.wait()
        return True


def kill_leftovers(folder: Path, part: str = "") -> None:
    """Kills every process that a plane (or one part of it) left behind, wherever it hides: by its environment."""
    markers = {f"{PLANE_VARIABLE}={folder}".encode()}
    if part:
        markers.add(f"{PART_VARIABLE}={part}".encode())
    for entry in Path("/proc").iterdir():
        ticks = _start_ticks(int(entry.name)) if entry.name.isdigit() else None
        if ticks is None:
            continue
        identity = PidFile(pid=int(entry.name), start_ticks=ticks, boot_id=_boot_id())
        with (
            _verified(identity) as descriptor,
            contextlib.suppress(OSError),
        ):  # it ended meanwhile, or is another user's
            if descriptor is not None and markers <= set((entry / "environ").read_bytes().split(b"\0")):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                _readable(descriptor, _KILL_PATIENCE_S)


@contextlib.contextmanager
def _verified(identity: PidFile | None) -> Iterator[int | None]:
    """A pidfd of exactly that process, or None if it does not live."""
    try:
        descriptor = os.pidfd_open(identity.pid) if identity else None
    except ProcessLookupError:
        descriptor = None
    if identity is None or descriptor is None:
        yield None
        return
    try:
        yield descriptor if identity.alive else None
    finally:
        os.close(descriptor)


def _readable(descriptor: int, timeout_s: float) -> bool:
    """Waits until the pidfd says that its process ended."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat after the program's name, or None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if it does not live (any more)."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZX" else int(fields[19])


def _boot_id() -> str:
    """The kernel's id of this boot: pids and start times of an earlier boot mean nothing."""
    return _BOOT_ID.read_text().strip()


def _write(path: Path, identity: PidFile) -> None:
    """Writes the pid file in one step."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(msgspec.json.encode(identity))
    temporary.replace(path)
