"""Types of plugin answers other than numbers and arrays: causes, node sets, votes, refusals, rules."""

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
"""A code of `Causes` for each node, of shape (nodes,); 0 if the node can take the pod."""
MAX_CAUSES = 30_000
"""Maximum number of causes, because texts may contain any name of a claim or label, and codes have 16 bits."""
ReservationMode = Literal["strict", "reserve", "besteffort"]
"""Rule for gangs behind their queue's first waiting gang: wait, start without delaying it, or start anywhere."""


class Causes:
    """Codes of refusals, and their causes (`reasons.cause`); code 0 means that the node can take the pod."""

    def __init__(self) -> None:
        self.of: list[Reason] = [quoted(text="fits")]
        self.full = False
        """True once a cause got no code of its own; most known causes may belong to deleted pods."""
        self._codes: dict[str, int] = {"": 0}

    def code(self, cause: Reason | str) -> int:
        """Return the code of a cause, given as data or as text; a new text gets a new code."""
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
    """A vote on the admission of a gang; a plugin without an opinion returns None."""

    admit: bool
    reason: str = ""
    """One word for the condition."""
    message: Reason | str = ""
    """Reason for the gang's owner, as data or as text; it should rarely change, because each new one is written to the
    PodGroup."""


ADMITTED = EnqueueVote(admit=True)
"""The vote that admits the gang; later plugins are not called."""


@dataclass(frozen=True, slots=True)
class QueueRefusal:
    """Refusal of requests by the gang's queue or an ancestor, in milli-CPU or base units."""

    reason: str
    """One word for the condition."""
    queue: str
    resource: str
    requested: int
    """The quantity that would be added."""
    used: int
    """The quantity that the queue uses already, including guarantees of other queues."""
    limit: int
    message: Reason | str
    """Reason for the gang's owner, as data or as text: the queue, the resource, the quantities, and what to do."""


@dataclass(frozen=True, slots=True)
class ReclaimState:
    """Usage and quotas of queues for a gang that would reclaim resources."""

    owed: bool
    """True if the gang's queue, including the gang, has at most what it deserves."""
    above: frozenset[str]
    """Queues above their share, or above what they deserve if the gang's queue has less than it deserves."""


@dataclass(frozen=True, slots=True)
class StatusAmounts:
    """Resources of a queue for its status, in milli-CPU and base units, including its descendants."""

    fair_share: Vector
    deserved: Vector
    usage: Vector | None
    """Mean over time; None if it is not computed."""


@dataclass(frozen=True, slots=True, eq=False)
class ClosestDomain:
    """The domain that comes closest to holding a gang with a required domain, with its nodes."""

    report: Closest
    inside: NDArray[np.bool_]
    """Mask of the domain's nodes, of shape (nodes,)."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """Nodes that a part of a gang may use, and their order; the hook `subset_nodes` refines the set. Immutable."""

    columns: Amounts | None = None
    """int64 of shape (nodes of the set,); None for all nodes."""
    ranked: bool = False
    """True if nodes are filled in the order of the columns; otherwise scores decide."""
    along: Amounts | None = None
    """int64 of shape (all nodes,): consecutive ranks get nodes with consecutive numbers; None: in the order of
    names."""
    most: Amounts | None = None
    """int64 of shape (all nodes,): maximum number of the part's pods per node; None for no maximum."""
    most_of: bytes = b""
    """Key of the pod class to which `most` applies; empty for any pods of the part."""
    sliced: bool = False
    """True if pods that are placed together, in rank order, form whole slices."""
    name: str = ""
    """The name of the domain, for messages."""

    def within(self, allowed: NDArray[np.bool_]) -> "NodeSet":
        """Return the nodes of the set that are allowed, bool of shape (all nodes,), in the same order."""
        columns = np.flatnonzero(allowed) if self.columns is None else self.columns[allowed[self.columns]]
        return replace(self, columns=columns, sliced=False)

    def order(self, by_name: Amounts) -> Amounts:
        """Return the nodes in their order if ranked, otherwise by adjacency; `by_name` contains all nodes by name."""
        if self.columns is None:
            return by_name
        if self.ranked:
            return self.columns
        if self.along is not None:
            return self.columns[np.argsort(self.along[self.columns], kind="stable")]
        return by_name[np.isin(by_name, self.columns)]

    def less(self, placed: Iterable[Operation]) -> "NodeSet":
        """Return the set for the part's remaining pods, with `most` reduced by the placed pods."""
        if self.most is None:
            return self
        most = self.most.copy()
        for operation in placed:
            if self.most_of in {b"", operation.cls.key}:
                most[operation.column] -= operation.size
        return replace(self, most=most)

    def limit(self, room: Amounts, cls: PodClass) -> Amounts:
        """Return the number of pods of a class that fit per node, int64 of shape (all nodes,), 0 outside the set."""
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
    """Rules for reservations for the first waiting gangs of queues."""

    mode: ReservationMode = "reserve"
    """Default for queues without the annotation `muster.dev/reservations`."""
    patience_s: float = 600.0
    """Time after which a gang whose start cannot be predicted gets nodes reserved."""
    expiry_s: float = 14_400.0
    """Time after which a reservation binds only its own queue, for a period of `patience_s`."""
    heads: int = 16
    """Maximum number of reservations that bind all queues at the same time; each queue has at most one."""
    start_s: float = 10.0
    """Time from placement to running, added to a gang's runtime to check that it ends before a reservation begins."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftFree:
    """Capacity that the current gang must leave free for other gangs' reservations."""

    columns: NDArray[np.int64]
    amounts: Amounts
    """Reserved capacity in these columns, int64 of shape (resources, columns)."""
    codes: NDArray[np.int16]
    """A cause for each column, which names the gang that the capacity is reserved for."""
    mark: bytes
    """Equal for equal columns and quantities."""


class CycleReservations(Protocol):
    """Interface to the reservations of a cycle."""

    @property
    def rooms(self) -> Sequence[ReservedRoom]:
        """Return the reserved capacity, for the ledger after the cycle."""

    def left_by(self, gang: GangView) -> LeftFree | None:
        """Return the capacity that this gang must leave free; its own reservation does not count."""

    def over(self, gang: GangView) -> None:
        """End the reservation of a gang that was placed."""
