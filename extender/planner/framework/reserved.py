"""Room that is reserved for gangs which wait at the head of their queue: the rules, and what a session knows of it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts

ReservationMode = Literal["strict", "reserve", "besteffort"]
"""What the gangs of a queue may do behind one that waits for room.

`strict`: wait, all of them. `reserve`: start where they are not in its way. `besteffort`: start where they fit.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRules:
    """What is reserved for whom."""

    mode: ReservationMode = "reserve"
    """Of queues whose annotation `muster.dev/reservations` does not say otherwise."""
    patience_s: float = 600.0
    """A gang that may start at no known time gets nodes reserved when it has waited for so long."""
    heads: int = 16
    """Gangs that have a reservation at once, at most; one for each queue."""
    start_s: float = 10.0
    """What a gang may need from its placement until it runs; it must end so much before a reservation begins."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftFree:
    """What a gang that is being tried must leave to others, as it is reserved for them, where anything is."""

    columns: NDArray[np.int64]
    amounts: Amounts
    """What must be left free there, int64 of shape (resources, columns)."""
    codes: NDArray[np.int16]
    """The cause that tells for whom, for each column."""
    mark: bytes
    """Equal for equal columns and amounts."""
