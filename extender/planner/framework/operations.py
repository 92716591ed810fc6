"""The entries of a trial's log: members that are given a place, and pods that would leave theirs."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podrecord import PodRecord
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
