"""A storm in which a third of the tenants are hostile, see `innocents`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import Hostile
from innocents import run_storm

from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
MIB = 2**20
MAX_MEMORY = {"extender": 350 * MIB, "controller": 250 * MIB, "webhook": 250 * MIB}
"""The budgets of the design for 50,000 pods; the webhook, which keeps nothing, has none of its own there."""


def test_a_short_hostile_storm(plane: Plane, tmp_path: Path, seed: int) -> None:
    """Twelve gangs at rest, and twelve in each storm."""
    run_storm(plane, tmp_path, seed, gangs=12, making=Hostile, limits=MAX_MEMORY)


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_long_hostile_storm(fresh_plane: Callable[..., Plane], tmp_path: Path, seed: int) -> None:
    """Two hundred gangs each, on a plane of its own."""
    run_storm(fresh_plane(), tmp_path, seed, gangs=200, making=Hostile, limits=MAX_MEMORY)
