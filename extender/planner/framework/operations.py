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
    """An allocation: members with these ranks get slots on the node in `column`, each with the resources `row`."""

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
        """Number of members that get slots."""
        return len(self.ranks)

    @property
    def amount(self) -> Amounts:
        """Resources that the members take from the node, along the resource axis."""
        return self.row * self.size

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Marks (ids of queries and host ports) with which each member is counted on its node."""
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
    """Number of spare slots that the gang gives up."""

    @property
    def size(self) -> int:
        """Number of evicted pods, or of spare slots that are given up."""
        return len(self.pods) + self.seats

    @property
    def amount(self) -> Amounts:
        """Resources that the pods free on the node, along the resource axis."""
        return self.row * self.size

    @property
    def devices(self) -> tuple[tuple[int, ...], ...]:
        """GPUs that each evicted pod shares with other pods."""
        return tuple(pod.devices for pod in self.pods)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Marks with which each pod is counted on its node; fewer for pods being deleted, none for spare slots."""
        return self.cls.counted_under(leaving=self.pods[0].terminating) if self.pods else ()


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Pods of one gang that are evicted together: one pod above the gang's minimum, or all remaining pods."""

    gang: GangView
    pods: tuple[PodRecord, ...]
    amounts: Amounts
    """Resources that the gang's queue is charged for these pods, int64 of shape (resources,)."""
    moved: bool = False
    """True if all pods of the chunk have a new slot in the same scenario, so that the gang loses nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """Evictions that would allow a gang to start.

    If all chunks are evicted, the gang gets the resources `requested`, int64 of shape (resources,).
    """

    gang: GangView
    requested: Amounts
    chunks: tuple[Chunk, ...]
    """The evicted chunks, in the order in which the search chose them."""

    def only(self, chunks: Sequence[Chunk]) -> "Scenario":
        """Return a copy of the scenario with only these chunks."""
        return replace(self, chunks=tuple(chunks))
