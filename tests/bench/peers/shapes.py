"""What is submitted: so many gangs of so many pods, on so many nodes."""

from typing import NamedTuple


class Shape(NamedTuple):
    """Gangs that are submitted at once, and the nodes of the cluster."""

    gangs: int
    members: int
    nodes: int

    @property
    def pods(self) -> int:
        """Return the number of pods of all gangs."""
        return self.gangs * self.members

    def scaled(self, factor: float) -> "Shape":
        """Return the shape with this part of its nodes and gangs; of a single gang with this part of its members."""
        nodes = max(8, round(self.nodes * factor))
        if self.gangs == 1:
            return Shape(1, max(2, round(self.members * factor)), nodes)
        return Shape(max(2, round(self.gangs * factor)), self.members, nodes)

    def __str__(self) -> str:
        gangs, members = ("" if count == 1 else "s" for count in (self.gangs, self.members))
        return f"{self.gangs:,} gang{gangs} of {self.members:,} pod{members} on {self.nodes:,} nodes"


SHAPES = {
    "30x100": Shape(30, 100, 5_000),
    "1x3000": Shape(1, 3_000, 5_000),
    "500x1": Shape(500, 1, 5_000),
    "500x20": Shape(500, 20, 1_000),
    "20x500": Shape(20, 500, 1_000),
    "1x10000": Shape(1, 10_000, 1_000),
    "10000x1": Shape(10_000, 1, 1_000),
}
"""Muster's own shapes, then the shapes of the public kube-scheduling-perf, by the names of the option `--shapes`."""
