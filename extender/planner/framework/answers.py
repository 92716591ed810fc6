"""Answers of plugins where a number or an array does not say it all: causes, node sets, votes, refusals, rules."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.framework.operations import Operation
from extender.planner.reasons.topology import Closest
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.reserved import ReservedRoom
from muster.api.muster.reason import Reason, quoted, reason_of
from muster.resources.vector import Vector

Codes = NDArray[np.int16]
"""A code of `Causes` per node, of shape (nodes,); 0 where the node takes the pod."""
MAX_CAUSES = 30_000
"""Words name claims and labels, so there can be many; the codes are 16 bits wide."""
ReservationMode = Literal["strict", "reserve", "besteffort"]
"""Rule for the gangs of a queue behind one that waits for room: wait, start where not in its way, start anywhere."""


class Causes:
    """Codes of refusals ↔ their causes (`reasons.cause`); code 0 means that the node takes the pod."""

    def __init__(self) -> None:
        self.of: list[Reason] = [quoted(text="fits")]
        self.full = False
        """True once a cause got no code of its own; most of the others may be of pods that are gone."""
        self._codes: dict[str, int] = {"": 0}

    def code(self, cause: Reason | str) -> int:
        """Return the code of a cause, in data or in words; one with new words gets a new code."""
        words = str(cause)
        code = self._codes.get(words)
        if code is None:
            if len(self.of) > MAX_CAUSES and cause != reasons.cause.OTHER:
                self.full = True
                return self.code(reasons.cause.OTHER)
            code = self._codes[words] = len(self.of)
            self.of.append(reason_of(cause))
        return code


@dataclass(frozen=True, slots=True)
class EnqueueVote:
    """An opinion on a gang that is to be admitted; a plugin without one answers None."""

    admit: bool
    reason: str = ""
    """One word, for a condition."""
    message: Reason | str = ""
    """Reason for the gang's owner, in data or in words; each new one is written to the PodGroup: keep it stable."""


ADMITTED = EnqueueVote(admit=True)
"""Admits the gang; the plugins after this one are not asked."""


@dataclass(frozen=True, slots=True)
class QueueRefusal:
    """A queue, the gang's or one above it, without room for the amounts asked; in milli-CPU or base units."""

    reason: str
    """One word, for a condition."""
    queue: str
    resource: str
    requested: int
    """The amount that would be added."""
    used: int
    """The amount that the queue uses already, guarantees of others included."""
    limit: int
    message: Reason | str
    """Reason for the gang's owner, in data or in words: which queue, which resource, how
    much, and what to do."""


@dataclass(frozen=True, slots=True)
class ReclaimStanding:
    """The use and quota of queues for a gang that would reclaim resources."""

    owed: bool
    """The gang's queue has no more than it deserves with the gang."""
    above: frozenset[str]
    """Queues that have more than their share, or, where the gang's is owed, than they deserve."""


@dataclass(frozen=True, slots=True)
class QueueStanding:
    """Amounts of a queue for its status, in milli-CPU and base units, with those of the queues below."""

    fair_share: Vector
    deserved: Vector
    usage: Vector | None
    """Mean over time; None where it is not kept."""


@dataclass(frozen=True, slots=True, eq=False)
class ClosestDomain:
    """The domain that comes closest to holding a gang that must be in one, with its nodes."""

    said: Closest
    inside: NDArray[np.bool_]
    """Of shape (nodes,)."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """Nodes that a part of a gang may be given, and their order; the hook `subset_nodes` refines it. Immutable."""

    columns: Amounts | None = None
    """int64 of shape (nodes of the set,); None: all nodes."""
    ranked: bool = False
    """The columns are in the order in which nodes are filled; else scores decide."""
    along: Amounts | None = None
    """int64 of shape (all nodes,): neighbouring ranks get nodes with neighbouring numbers; None: by the names."""
    most: Amounts | None = None
    """int64 of shape (all nodes,): at most so many pods of the part per node; None: as many as fit."""
    most_of: bytes = b""
    """Key of the class of pods that `most` is about; empty: any pods of the part."""
    sliced: bool = False
    """Pods that are placed in one go, in the order of their ranks, stand in whole slices then."""
    name: str = ""
    """The domain, for messages."""

    def within(self, allowed: NDArray[np.bool_]) -> "NodeSet":
        """Return the nodes of the set that are allowed, bool of shape (all nodes,), in the same order."""
        columns = np.flatnonzero(allowed) if self.columns is None else self.columns[allowed[self.columns]]
        return replace(self, columns=columns, sliced=False)

    def order(self, by_name: Amounts) -> Amounts:
        """Return the nodes in their order if ranked, else beside each other; `by_name` has all nodes by name."""
        if self.columns is None:
            return by_name
        if self.ranked:
            return self.columns
        if self.along is not None:
            return self.columns[np.argsort(self.along[self.columns], kind="stable")]
        return by_name[np.isin(by_name, self.columns)]

    def less(self, placed: Iterable[Operation]) -> "NodeSet":
        """Return the set for the pods of the part that follow these."""
        if self.most is None:
            return self
        most = self.most.copy()
        for operation in placed:
            if self.most_of in {b"", operation.cls.key}:
                most[operation.column] -= operation.size
        return replace(self, most=most)

    def limit(self, room: Amounts, cls: PodClass) -> Amounts:
        """Return the room per node for pods of a class, int64 of shape (all nodes,), 0 outside the set."""
        if self.columns is None:
            return room
        limited = np.zeros_like(room)
        limited[self.columns] = room[self.columns]
        if self.most is None or self.most_of not in {b"", cls.key}:
            return limited
        return np.minimum(limited, self.most)


EVERYWHERE = NodeSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationRules:
    """Rules for reserving room for gangs that wait at the head of their queue."""

    mode: ReservationMode = "reserve"
    """Of queues whose annotation `muster.dev/reservations` does not say otherwise."""
    patience_s: float = 600.0
    """Time after which a gang whose start cannot be predicted gets nodes reserved."""
    expiry_s: float = 14_400.0
    """Time after which a reservation counts for its own queue only, for as long as `patience_s`."""
    heads: int = 16
    """Gangs that have a reservation at once, at most; one for each queue."""
    start_s: float = 10.0
    """Time from placement to running; a gang must end so much before a reservation begins."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftFree:
    """Room that the gang that is tried must leave to reservations of others."""

    columns: NDArray[np.int64]
    amounts: Amounts
    """Reserved there, int64 of shape (resources, columns)."""
    codes: NDArray[np.int16]
    """Cause per column that names the gang it is reserved for."""
    mark: bytes
    """Equal for equal columns and amounts."""


class Kept(Protocol):
    """The reservations of a cycle."""

    @property
    def rooms(self) -> Sequence[ReservedRoom]:
        """Return the reserved amounts, for the ledger after the cycle."""

    def left_by(self, gang: GangView) -> LeftFree | None:
        """Return the room that this gang leaves to others; nothing of what is reserved for itself."""

    def over(self, gang: GangView) -> None:
        """Keep nothing more for a gang that has got its room."""
