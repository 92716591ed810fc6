"""What ends when: the one thing that a simulation cannot take from the planner."""

from typing import Protocol

from extender.simulate.members import Member, Workload


class Ends(Protocol):
    """Says how long members of gangs run, in seconds; None: to the end of the simulation."""

    def runs_s(self, workload: Workload, member: Member) -> float | None:
        """Return how long a member runs from its start."""

    def left_s(self, workload: Workload, member: Member, now: float) -> float | None:
        """Return how much longer a member runs that was on a node when the simulation began, at `now`."""
