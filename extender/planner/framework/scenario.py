"""The proposal of a victim search: a gang that would get room, and pods that would go or move. Plugins judge it."""

from dataclasses import dataclass

from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podrecord import PodRecord


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
