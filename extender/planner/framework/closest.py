"""The domain that came closest to holding a gang that must be in one."""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from extender.planner.reasons.topology import Closest


class ClosestDomain(Struct, frozen=True):
    """What is said of it, and its nodes, for those who look for what would have to move."""

    said: Closest
    inside: NDArray[np.bool_]
    """bool of shape (nodes,)."""
