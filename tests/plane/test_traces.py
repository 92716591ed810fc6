"""Storms on real planes record themselves, and the model takes each step that they made (tests/model/test_traces.py).

MUSTER_KEEP_TRACES=1 renews the traces that are kept in tests/model/traces.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from recordings import Recording
from test_storm import run_storm

from interleavings.trace import write

from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]


def test_a_storm(fresh_plane: Callable[..., Plane], tmp_path: Path, seed: int) -> None:
    """Fourteen gangs and two kills."""
    plane = fresh_plane(traced=True)
    with Recording(plane, tmp_path) as recording:
        run_storm(plane, "default", gangs=14, kills=2, seed=seed)
    write(tmp_path / "storm.jsonl.gz", recording.entries())
