"""Answers of plugins where a number or an array does not say it all."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.reasons.topology import Closest
from extender.planner.state.amounts import Amounts
from muster.resources.vector import Vector

Codes = NDArray[np.int16]
"""A code per node, of shape (nodes,); 0 where the node takes the pod."""
MAX_CAUSES = 30_000
"""Words name claims and labels, so there can be many; the codes are 16 bits wide."""


class Causes:
    """Codes ↔ words. Code 0 means that the node takes the pod."""

    def __init__(self) -> None:
        self.words: list[str] = ["fits"]
        self._codes: dict[str, int] = {"": 0}

    def code(self, words: str) -> int:
        """The code of these words; new words get a new code."""
        code = self._codes.get(words)
        if code is None:
            if len(self.words) > MAX_CAUSES and words != reasons.cause.OTHER:
                return self.code(reasons.cause.OTHER)
            code = self._codes[words] = len(self.words)
            self.words.append(words)
        return code


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


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """Some nodes, and in which order pods go there. It is not changed."""

    columns: Amounts | None = None
    """int64 of shape (nodes of the set,); None: all nodes."""
    ranked: bool = False
    """The columns are in the order in which nodes are filled; else scores decide."""
    along: Amounts | None = None
    """int64 of shape (all nodes,): neighbouring ranks get nodes with neighbouring numbers; None: by the names."""
    most: Amounts | None = None
    """int64 of shape (all nodes,): at most so many pods of the part per node; None: as many as fit."""
    sliced: bool = False
    """Pods that are placed in one go, in the order of their ranks, stand in whole slices then."""
    name: str = ""
    """The name for people: the domain."""

    def within(self, allowed: NDArray[np.bool_]) -> "NodeSet":
        """The nodes of the set that are allowed, bool of shape (all nodes,), in the same order."""
        columns = np.flatnonzero(allowed) if self.columns is None else self.columns[allowed[self.columns]]
        return replace(self, columns=columns, sliced=False)

    def order(self, by_name: Amounts) -> Amounts:
        """The nodes in their order if they are ranked, else beside each other; `by_name` has all nodes by name."""
        if self.columns is None:
            return by_name
        if self.ranked:
            return self.columns
        if self.along is not None:
            return self.columns[np.argsort(self.along[self.columns], kind="stable")]
        return by_name[np.isin(by_name, self.columns)]

    def limit(self, room: Amounts) -> Amounts:
        """Room per node, int64 of shape (all nodes,), as far as it is in the set."""
        if self.columns is None:
            return room
        limited = np.zeros_like(room)
        limited[self.columns] = room[self.columns]
        return limited if self.most is None else np.minimum(limited, self.most)


EVERYWHERE = NodeSet()


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
