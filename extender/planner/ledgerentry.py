"""An entry of the ledger (`extender.planner.ledger`): the capacity of one holder."""

from enum import StrEnum

from msgspec import Struct

from extender.planner.state.podclass import PodClass
from extender.planner.state.queries import Mark


class EntryKind(StrEnum):
    """The kind of a ledger entry: bound, leaving or assumed pod, placed or spare slot, or a claim's devices."""

    BOUND = "bound"
    LEAVING = "leaving"
    ASSUMED = "assumed"
    PLACED = "placed"
    SPARE = "spare"
    ALLOCATED = "allocated"


class LedgerEntry(Struct, frozen=True, gc=False):
    """The capacity of one holder on a node and in a queue; not garbage-collected, because it has no cycles."""

    kind: EntryKind
    node: str
    """Name of the entry's node; empty for an entry that counts only in a queue."""
    cls: PodClass
    gang: str | None = None
    queue: str = ""
    """The queue that the pod names, until its gang's is known; empty if the entry counts in none."""
    devices: tuple[int, ...] = ()
    user: str = ""
    """Creator that the pod's annotation names, used while the creator of the pod's gang is unknown."""
    claim: str = ""
    """Key of the claim if the entry holds the devices of a claim; empty for pods."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Marks (ids of queries and host ports) with which the entry is counted on its node."""
        return self.cls.counted_under(leaving=self.kind is EntryKind.LEAVING)
