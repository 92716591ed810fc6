"""Storms on real planes record themselves, and the model takes each step that they made.

MUSTER_KEEP_TRACES=1 renews the traces that are kept in tests/model/traces, which tests/model/test_traces.py replays.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import test_controller_storm
import test_queue_storm
import test_storm
from interleavings.replay import replay
from interleavings.trace import write
from recordings import Recording

from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
KEPT = Path(__file__).parents[1] / "model" / "traces"


def held(recording: Recording, folder: Path, name: str) -> None:
    """The model takes every step of a recording; it is kept if that is asked for."""
    entries = recording.entries()
    write((KEPT if "MUSTER_KEEP_TRACES" in os.environ else folder) / f"{name}.jsonl.gz", entries)
    found = replay(entries)
    sys.stderr.write(f"\n{name}: {found}\n")
    assert not found.failure, found.told()


def test_a_storm(fresh_plane: Callable[..., Plane], tmp_path: Path, seed: int) -> None:
    """Gangs come and go, a node too, and the pair's processes are killed."""
    plane = fresh_plane(traced=True)
    with Recording(plane, tmp_path) as recording:
        test_storm.run_storm(plane, "default", gangs=14, kills=2, seed=seed)
    held(recording, tmp_path, "storm")


def test_a_queue_storm(fresh_plane: Callable[..., Plane], tmp_path: Path, seed: int) -> None:
    """Room is made for gangs of higher priority and of queues that deserve it."""
    plane = fresh_plane(traced=True)
    with Recording(plane, tmp_path) as recording:
        test_queue_storm.run_storm(plane, "default", gangs=12, kills=1, seed=seed)
    held(recording, tmp_path, "queues")


def test_a_storm_of_jobs(fresh_plane: Callable[..., Plane], tmp_path: Path, seed: int) -> None:
    """Jobs restart and are aborted under a controller that is killed."""
    plane = fresh_plane(traced=True)
    with Recording(plane, tmp_path) as recording:
        test_controller_storm.run_storm(plane, "default", jobs=8, kills=2, seed=seed)
    held(recording, tmp_path, "jobs")
