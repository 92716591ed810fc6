"""The domain that came closest to holding a gang that must be in one."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class Closest(Struct, frozen=True, rename="camel"):
    """What a required topology lacks, for one part of a gang."""

    part: str
    """The pod set or sub-group; empty for the gang as a whole."""
    topology: str
    level: str
    """The level that is required, for people."""
    domain: str
    """The domain of that level that holds most of the pods; empty if there is none."""
    held: int
    """Pods that it has room for."""
    wanted: int
    """Pods that must be in one domain."""
    domains: int
    """Domains of that level."""
    why: str = ""
    """Why no domain can be right: there is no such topology or level."""

    @property
    def message(self) -> str:
        """A sentence without a full stop."""
        who = f"{self.part}: " if self.part else ""
        if self.why:
            return f"{who}{self.why}"
        pods = "1 pod" if self.wanted == 1 else f"{self.wanted} pods"
        need = f"{who}{pods} must be in one domain of level {self.level}"
        if not self.domain:
            return f"{need}, and no node is in one"
        if self.held >= self.wanted:
            return f"{need}; {self.domain} has the room, but nodes or other pods there do not let all of them in"
        among = "the only one there is" if self.domains == 1 else f"the closest of {self.domains}"
        return f"{need}; {self.domain}, {among}, has room for {self.held}: {self.wanted - self.held} short"


class ClosestDomain(Struct, frozen=True):
    """The same with the nodes of the domain, for those who look for what would have to move."""

    said: Closest
    inside: NDArray[np.bool_]
    """bool of shape (nodes,)."""
