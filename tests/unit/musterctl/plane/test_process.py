"""Parts as processes: started, ended, known again, and never mistaken for somebody else's."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from musterctl.plane.process import Part, PidFile

STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
)
PARENT = "import subprocess, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
OWNER = """
import sys, time
from pathlib import Path
from musterctl.plane import guard
from musterctl.plane.process import Part
folder = Path(sys.argv[1])
guard.start(folder)
part = Part("sleeper", folder, lambda: ["sleep", "60"])
part.start()
print(part.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def foreign() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def part(folder: Path, *command: str, grace_s: float = 5.0) -> Part:
    """A part that runs the command."""
    return Part("part", folder, lambda: list(command), grace_s=grace_s)


def wait_for_log(one: Part) -> str:
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


@pytest.mark.parametrize("field", ["start_ticks", "boot_id"])
def test_stale_pid_file_never_signals_a_foreign_process(
    tmp_path: Path, foreign: subprocess.Popen[bytes], field: str
) -> None:
    """A pid file whose start time or boot does not match counts as dead, whatever is done with the part."""
    one = part(tmp_path, "sleep", "60")
    one.start()
    true = msgspec.json.decode((tmp_path / "run/part.json").read_bytes(), type=PidFile)
    one.stop()
    ticks = int(Path(f"/proc/{foreign.pid}/stat").read_text().rpartition(")")[2].split()[19])
    identity = PidFile(pid=foreign.pid, start_ticks=ticks, boot_id=true.boot_id)
    stale = msgspec.structs.replace(identity, **{field: {"start_ticks": ticks - 1, "boot_id": "another"}[field]})
    (tmp_path / "run/part.json").write_bytes(msgspec.json.encode(stale))
    late = part(tmp_path, "sleep", "60")
    assert late.started
    assert late.pid is None
    assert not late.signal(signal.SIGKILL)
    late.kill()
    late.stop()
    assert foreign.poll() is None


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


def test_guard_ends_the_parts_of_an_owner_that_was_killed(tmp_path: Path) -> None:
    """However the owner ends, the guard sees it and stops what the owner started."""
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    assert gone(pid)
