"""Answers of plugins where a number or an array does not say it all."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.planner.reasons.topology import Closest
from muster.resources.vector import Vector


@dataclass(frozen=True, slots=True)
class EnqueueVote:
    """An opinion on a gang that wants to be let in; without one a plugin answers None."""

    admit: bool
    reason: str = ""
    """One word, for a condition."""
    message: str = ""
    """A sentence for the gang's owner. It should stay the same while nothing changes for the gang: each new one is
    written to the PodGroup."""


ADMITTED = EnqueueVote(admit=True)
"""The gang is let in, whatever the plugins after this one would say."""


@dataclass(frozen=True, slots=True)
class QueueRefusal:
    """A queue, on the way from the gang's own up to the root, that has no room for what is asked."""

    reason: str
    """One word, for a condition."""
    queue: str
    """The queue that refuses, which may be one above the gang's."""
    resource: str
    requested: int
    """The amount that would be added, in milli-CPU or base units, as the other two."""
    used: int
    """The amount that the queue uses already, guarantees of others included."""
    limit: int
    message: str
    """A sentence for the gang's owner: which queue, which resource, how much, and what to do."""


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """Where a queue stands, for its status: amounts in milli-CPU and base units, with those of the queues below."""

    fair_share: Vector
    deserved: Vector
    usage: Vector | None
    """Its mean over time; None where it is not kept."""


@dataclass(frozen=True, slots=True, eq=False)
class ClosestDomain:
    """The domain that comes closest to holding a gang that must be in one, with its nodes."""

    said: Closest
    inside: NDArray[np.bool_]
    """Of shape (nodes,)."""
