"""What is just being written, so that it is used in a moment: bindings of pods without a gang, and placements.

Between the question whether there is room in a queue and the API server's answer, several threads may ask; who asks
later must count what those before it are about to take.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from muster.resources.vector import Vector


@dataclass(frozen=True, slots=True)
class Pledge:
    """What somebody is about to use."""

    queue: str
    requests: Vector
    node: str = ""
    """Where; empty for several nodes, whose room the planner has given away already."""


class Pledges:
    """By holder: the UID of a pod, the key of a gang."""

    def __init__(self) -> None:
        self._pledges: dict[Hashable, Pledge] = {}

    def put(self, holder: Hashable, pledge: Pledge) -> None:
        """The holder is about to use this, in place of what it was about to use before."""
        self._pledges[holder] = pledge

    def drop(self, holder: Hashable) -> None:
        """It is written and counted, or has failed."""
        self._pledges.pop(holder, None)

    def of_others(self, holder: Hashable) -> Iterator[Pledge]:
        """What all but this one are about to use."""
        return (pledge for known, pledge in self._pledges.items() if known != holder)
