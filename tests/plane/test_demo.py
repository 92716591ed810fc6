"""`muster demo` leaves what was there before."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.plane, pytest.mark.long]
MUSTER = Path(sys.executable).with_name("muster")


@pytest.mark.parametrize(("more", "line"), [
    ([], "✓ torch-second starts as a whole once there is free capacity"),
    (["--faults"], "✓ a node died and a gang was preempted"),
])  # fmt: skip
def test_the_demo_leaves_nothing(tmp_path: Path, more: list[str], line: str) -> None:
    """Of a plane that it made; the story came true."""
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run([MUSTER, "demo", *more], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert line in done.stdout
    assert [*tmp_path.glob("muster/*")] == []
