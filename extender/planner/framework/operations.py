"""Tentative changes as data: the entries of a statement's log, and the scenarios that plugins accept or reject."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Mark


@dataclass(slots=True, eq=False)
class Operation:
    """An allocation: members with these ranks get slots on the node in `column`, with the resources `row` each."""

    gang: GangView
    pod_set: str
    ranks: Sequence[int]
    column: int
    row: Amounts
    cls: PodClass
    devices: tuple[tuple[int, ...], ...] = ()
    """GPUs that each member shares with other pods, by rank; empty if the members share no GPUs."""

    @property
    def size(self) -> int:
        """Number of members."""
        return len(self.ranks)

    @property
    def amount(self) -> Amounts:
        """Resources that the members take from the node, along the resource axis."""
        return self.row * self.size

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Ids of the queries and host ports under which each member is counted."""
        return self.cls.marks


@dataclass(slots=True, eq=False)
class Eviction:
    """An eviction: pods of one class leave the node in `column`, and each pod frees the resources `row`.

    An eviction without pods means that the gang gives up spare slots on this node.
    """

    gang: GangView
    pods: tuple[PodRecord, ...]
    column: int
    row: Amounts
    cls: PodClass
    seats: int = 0
    """Spare slots that the gang gives up."""

    @property
    def size(self) -> int:
        """Number of pods, or of spare slots."""
        return len(self.pods) + self.seats

    @property
    def amount(self) -> Amounts:
        """Resources that the pods free on the node, along the resource axis."""
        return self.row * self.size

    @property
    def devices(self) -> tuple[tuple[int, ...], ...]:
        """GPUs that each of the pods shares with other pods."""
        return tuple(pod.devices for pod in self.pods)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Marks (ids) under which each pod is counted: fewer for pods that are being deleted, none for spare slots."""
        return self.cls.counted_under(leaving=self.pods[0].terminating) if self.pods else ()


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Pods of one gang that are evicted together: one pod above the gang's minimum, or all remaining pods."""

    gang: GangView
    pods: tuple[PodRecord, ...]
    amounts: Amounts
    """Resources that the queue is charged for these pods, int64 of shape (resources,)."""
    moved: bool = False
    """True if all pods of the chunk have a new slot in the same scenario, so that the gang loses nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """Evictions that allow a gang to start.

    With the evictions of all chunks, the gang gets `requested`, int64 of shape (resources,).
    """

    gang: GangView
    requested: Amounts
    chunks: tuple[Chunk, ...]
    """Chunks in the order in which the search chose them."""

    def only(self, chunks: Sequence[Chunk]) -> "Scenario":
        """Return the scenario with only these chunks."""
        return replace(self, chunks=tuple(chunks))
