"""Storms on real planes record themselves, and the model takes each step that they made.

MUSTER_KEEP_TRACES=1 renews the traces that are kept in tests/model/traces, which tests/model/test_traces.py replays.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import test_controller_storm
import test_queue_storm
import test_storm
from recordings import Recording, held

from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]


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
