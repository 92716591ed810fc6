"""Parts as processes: started, ended, known again, and never mistaken for somebody else's."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from musterctl.plane.process import PART_VARIABLE, PLANE_VARIABLE, PlaneProcess

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
)
PARENT = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
OWNER = """
import sys, time
from pathlib import Path
from musterctl.plane import process
from musterctl.plane.process import PlaneProcess
folder = Path(sys.argv[1])
process.start_guard(folder)
part = PlaneProcess("sleeper", folder, lambda: ["sleep", "60"])
part.start()
print(part.pid, flush=True)
time.sleep(60)
"""


@contextmanager
def foreign(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours, with more variables."""
    process = subprocess.Popen(["sleep", "60"], env=os.environ | environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def part(folder: Path, *command: str, grace_s: float = 5.0) -> PlaneProcess:
    """A part that runs the command."""
    return PlaneProcess("part", folder, lambda: list(command), grace_s=grace_s)


def wait_for_log(one: PlaneProcess) -> str:
    """The part's log as soon as it is not empty."""
    deadline = time.monotonic() + 10
    while not one.log_file.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return one.log_file.read_text()


def gone(pid: int) -> bool:
    """Whether the process ends within a few seconds."""
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_start_twice_is_harmless_and_another_handle_finds_it(tmp_path: Path) -> None:
    """A second start does nothing; a handle made later (by another command) sees and stops the same process."""
    one = part(tmp_path, "sleep", "60")
    one.start()
    pid = one.pid
    one.start()
    other = part(tmp_path, "sleep", "60")
    assert pid is not None
    assert (one.pid, other.pid, other.alive) == (pid, pid, True)
    other.stop()
    assert gone(pid)
    assert not one.alive
    assert not one.started


def test_a_part_is_known_from_its_first_moment(tmp_path: Path) -> None:
    """No part counts as dead because the kernel does not show its environment for a moment after an exec."""
    for _ in range(100):
        one = part(tmp_path, "sleep", "60")
        one.start()
        assert one.alive
        one.kill()


@pytest.mark.parametrize(
    "environment", [{}, {PLANE_VARIABLE: "/another", PART_VARIABLE: "part"}], ids=["none", "another"]
)
def test_stale_pid_file_never_signals_a_foreign_process(tmp_path: Path, environment: dict[str, str]) -> None:
    """A pid that has come to mean a process of another plane, or of no plane, counts as dead, whatever is done."""
    with foreign(environment) as process:
        (tmp_path / "run").mkdir()
        (tmp_path / "run/part.pid").write_text(str(process.pid))
        late = part(tmp_path, "sleep", "60")
        assert (late.started, late.pid, late.word) == (True, None, "dead")
        assert not late.signal(signal.SIGKILL)
        late.kill()
        late.stop()
        assert process.poll() is None


def test_deaf_part_is_killed_after_the_grace_period(tmp_path: Path) -> None:
    """What ignores SIGTERM is killed."""
    one = part(tmp_path, sys.executable, "-c", STUBBORN, grace_s=0.1)
    one.start()
    wait_for_log(one)
    one.stop()
    assert not one.alive


def test_frozen_part_is_stopped_gently(tmp_path: Path) -> None:
    """A part that a test froze with SIGSTOP still gets its chance to end by itself."""
    one = part(tmp_path, "sleep", "60")
    one.start()
    one.signal(signal.SIGSTOP)
    one.stop()
    assert one._child is not None
    assert one._child.returncode == -signal.SIGTERM


def test_killing_takes_descendants_along(tmp_path: Path) -> None:
    """What a part started itself ends with it, even if the part died on its own."""
    one = part(tmp_path, sys.executable, "-c", PARENT)
    one.start()
    child = int(wait_for_log(one))
    one.signal(signal.SIGKILL)
    one.stop()
    assert gone(child)


def test_death_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    """The error for a dead part names its exit code, its log file and the last lines in it."""
    one = part(tmp_path, "sh", "-c", "seq 100; echo no such flag; exit 3")
    one.start()
    assert one._child is not None
    one._child.wait()
    message = str(one.death())
    assert message.startswith("part ended with exit code 3")
    assert str(one.log_file) in message
    assert message.endswith("100\nno such flag")
    assert "\n50\n" not in message


def test_the_end_of_a_log_says_how_the_part_ended(tmp_path: Path) -> None:
    """A part that was killed has no line about it in its log."""
    one = part(tmp_path, "sh", "-c", "echo begun; sleep 60")
    one.start()
    wait_for_log(one)
    assert one.log_tail() == "begun"
    one.signal(signal.SIGSEGV)
    assert one._child is not None
    one._child.wait()
    assert one.log_tail() == "begun\n(it ended by SIGSEGV)"


def test_guard_ends_the_parts_of_an_owner_that_was_killed(tmp_path: Path) -> None:
    """However the owner ends, the guard sees it and stops what the owner started."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    assert gone(pid)
