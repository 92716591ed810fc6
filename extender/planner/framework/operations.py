"""Trials as data: the entries of a statement's log, and the scenarios of victim searches, which plugins judge."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Mark


@dataclass(slots=True, eq=False)
class Operation:
    """The members with these ranks are on the node in `column`, and each takes `row`."""

    gang: GangView
    pod_set: str
    ranks: Sequence[int]
    column: int
    row: Amounts
    cls: PodClass
    devices: tuple[tuple[int, ...], ...] = ()
    """The GPUs that each member shares with others, by rank; empty if they share none."""

    @property
    def size(self) -> int:
        """The number of its members."""
        return len(self.ranks)

    @property
    def amount(self) -> Amounts:
        """The room that they take from the node, along the resource axis."""
        return self.row * self.size

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks that each of them is counted under."""
        return self.cls.marks


@dataclass(slots=True, eq=False)
class Eviction:
    """These pods, all of one class, would leave the node in `column`; each frees `row`."""

    gang: GangView
    pods: tuple[PodRecord, ...]
    column: int
    row: Amounts
    cls: PodClass

    @property
    def size(self) -> int:
        """The number of the pods."""
        return len(self.pods)

    @property
    def amount(self) -> Amounts:
        """The room that they free on the node, along the resource axis."""
        return self.row * self.size

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks that each of them is counted under: fewer, where they are being deleted anyway."""
        marks = self.cls.marks
        return tuple(mark for mark in marks if mark[0] != "staying") if self.pods[0].terminating else marks


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Pods of one gang that go together or not at all.

    One pod above the gang's minimum is a chunk; the whole of the rest is one too, since a gang below its minimum is of
    no use.
    """

    gang: GangView
    pods: tuple[PodRecord, ...]
    amounts: Amounts
    """The room that they free in all, int64 of shape (resources,)."""
    moved: bool = False
    """All of them have a new place within the same scenario: their gang loses no room."""


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """One way to let a gang start: it gets `requested` if the chunks go."""

    gang: GangView
    requested: Amounts
    """The amounts that the gang would get, int64 of shape (resources,)."""
    chunks: tuple[Chunk, ...]
    """In the order in which they were taken."""
