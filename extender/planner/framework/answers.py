"""Types of the results that plugins return: causes, node sets, votes, refusals, and rules."""

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
"""For each node, the code of the cause (see `Causes`) why the node cannot take the pod, of shape (nodes,). The code is
0 for nodes that can take the pod."""
MAX_CAUSES = 30_000
"""Maximum number of causes. Codes have only 16 bits, and a cause's text may contain the name of any claim or label."""
ReservationMode = Literal["strict", "reserve", "besteffort"]
"""Gangs after the first waiting gang of a queue wait, start without delaying it, or start anywhere."""


class Causes:
    """Codes for the reasons why nodes cannot take a pod (`reasons.cause`); 0 for nodes that can take the pod."""

    def __init__(self) -> None:
        self.of: list[Reason] = [quoted(text="fits")]
        self.full = False
        """True once all codes are in use; most known causes may then belong to deleted pods."""
        self._codes: dict[str, int] = {"": 0}

    def code(self, cause: Reason | str) -> int:
        """Return the integer code of a cause, which is a Reason or a text; a cause with a new text gets a new code."""
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
    """The reason for the condition in the PodGroup's status, a CamelCase word."""
    message: Reason | str = ""
    """Message for the gang's owner, as a Reason or as text. The message should rarely change, because each new message
    is written to the PodGroup."""


ADMITTED = EnqueueVote(admit=True)
"""The vote that admits the gang; later plugins are not called."""


@dataclass(frozen=True, slots=True)
class QueueRefusal:
    """Refusal of a gang's requests by its queue or an ancestor; amounts are in milli-CPU or base units."""

    reason: str
    """The reason for the condition in the PodGroup's status, a CamelCase word."""
    queue: str
    resource: str
    requested: int
    """The amount of the resource that the gang would add to the queue's usage."""
    used: int
    """The amount of the resource that is already in use, including the guarantees of other queues."""
    limit: int
    message: Reason | str
    """Reason or text for the gang's owner, with the queue, the resource, the amounts, and a remedy."""


@dataclass(frozen=True, slots=True)
class ReclaimState:
    """Usage and quotas of queues, for the message to a gang whose reclaim failed."""

    owed: bool
    """True if the gang's queue, including the gang, would use at most what it deserves."""
    above: frozenset[str]
    """Queues that use more than their share or, if `owed` is true, more than they deserve."""


@dataclass(frozen=True, slots=True)
class StatusAmounts:
    """Resources of a queue and its descendants for the queue's status, in milli-CPU and base units."""

    fair_share: Vector
    deserved: Vector
    usage: Vector | None
    """Mean usage over time; None if no plugin computes the mean usage."""


@dataclass(frozen=True, slots=True, eq=False)
class ClosestDomain:
    """The domain into which a gang that requires a single domain nearly fits, with the domain's nodes."""

    report: Closest
    inside: NDArray[np.bool_]
    """Mask of the domain's nodes, of shape (nodes,)."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """An immutable set of nodes that a part of a gang may use, and the order in which the nodes are filled.

    Functions of the hook `subset_nodes` split a node set into smaller node sets.
    """

    columns: Amounts | None = None
    """Columns of the set's nodes, int64 of shape (nodes of the set,); None for all nodes."""
    ranked: bool = False
    """True if nodes are filled in the order of the columns; False if scores determine the order."""
    along: Amounts | None = None
    """A number for each node, int64 of shape (all nodes,): consecutive ranks are placed in ascending order of these
    numbers. None means the order of node names."""
    most: Amounts | None = None
    """Maximum number of the part's pods per node, int64 of shape (all nodes,); None for no maximum."""
    most_of: bytes = b""
    """Key of the pod class to which `most` applies; empty for all pods of the part."""
    sliced: bool = False
    """True if pods that are placed together in rank order form complete slices."""
    name: str = ""
    """The name of the domain, for messages."""

    def within(self, allowed: NDArray[np.bool_]) -> "NodeSet":
        """Return the set's nodes that `allowed`, bool of shape (all nodes,), permits; their order stays the same."""
        columns = np.flatnonzero(allowed) if self.columns is None else self.columns[allowed[self.columns]]
        return replace(self, columns=columns, sliced=False)

    def order(self, by_name: Amounts) -> Amounts:
        """Return the set's nodes in the set's own order if `ranked` is true, else by adjacency.

        `by_name` lists all nodes in name order.
        """
        if self.columns is None:
            return by_name
        if self.ranked:
            return self.columns
        if self.along is not None:
            return self.columns[np.argsort(self.along[self.columns], kind="stable")]
        return by_name[np.isin(by_name, self.columns)]

    def less(self, placed: Iterable[Operation]) -> "NodeSet":
        """Return the node set for the part's remaining pods; pods that are already placed reduce `most`."""
        if self.most is None:
            return self
        most = self.most.copy()
        for operation in placed:
            if self.most_of in {b"", operation.cls.key}:
                most[operation.column] -= operation.size
        return replace(self, most=most)

    def limit(self, room: Amounts, cls: PodClass) -> Amounts:
        """Return how many pods of a class fit on each node, int64 of shape (all nodes,); 0 outside the set."""
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
    """Reservation mode of queues that do not have the annotation `muster.dev/reservations`."""
    patience_s: float = 600.0
    """Waiting time of a gang after which nodes are reserved even if its start cannot be predicted."""
    expiry_s: float = 14_400.0
    """Time after which a reservation binds only its own queue, for a period of `patience_s`."""
    heads: int = 16
    """Maximum number of reservations that bind all queues at the same time; each queue has at most one reservation."""
    start_s: float = 10.0
    """Time between a gang's placement and the start of its pods. A gang may use reserved nodes if `start_s` and its
    runtime end before the reservation begins."""


@dataclass(frozen=True, slots=True, eq=False)
class LeftFree:
    """Capacity that the current gang must leave free for other gangs' reservations."""

    columns: NDArray[np.int64]
    amounts: Amounts
    """Reserved capacity on the nodes in `columns`, int64 of shape (resources, columns)."""
    codes: NDArray[np.int16]
    """For each column, the code of a cause that names the gang for which the capacity is reserved."""
    mark: bytes
    """A key of the reserved capacity: equal columns and amounts have equal keys."""


class CycleReservations(Protocol):
    """Interface of the reservations of a cycle."""

    @property
    def rooms(self) -> Sequence[ReservedRoom]:
        """Return the reserved capacity, which the ledger records after the cycle."""

    def left_by(self, gang: GangView) -> LeftFree | None:
        """Return the capacity that this gang must leave free for reservations; its own reservation does not count."""

    def over(self, gang: GangView) -> None:
        """End the reservation of a gang because the gang has been placed."""
