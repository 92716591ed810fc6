"""Storms: work that comes in while the controller is killed again and again, by the chance of a seed."""

import random
import time
from typing import Any, Protocol

from leases import kill_controller

from musterctl.plane.plane import Plane


class Storm(Protocol):
    """What a storm is of."""

    def submit(self, number: int) -> None:
        """One more piece of work."""

    def disturb(self) -> None:
        """Something that happens in between."""

    def unfinished(self) -> dict[str, Any]:
        """What is not where it must be in the end, and how it is."""


def rage(storm: Storm, plane: Plane, chance: random.Random, *, jobs: int, kills: int) -> None:
    """Work comes, and is disturbed, as the kills go on; each hits a controller that has led for a moment.

    Returns when all is where it must be.
    """
    for kill in range(kills + 1):
        for number in range(jobs * kill // (kills + 1), jobs * (kill + 1) // (kills + 1)):
            storm.submit(number)
            for _ in range(chance.randint(0, 3)):
                storm.disturb()
        moment = time.monotonic() + chance.uniform(0.0, 1.5)
        while time.monotonic() < moment:
            storm.disturb()
            time.sleep(chance.uniform(0.0, 0.3))
        if kill < kills:
            kill_controller(plane)
    deadline = time.monotonic() + 120 + 5 * kills
    while left := storm.unfinished():
        assert time.monotonic() < deadline, f"not where they must be: {left}"
        time.sleep(0.2)
