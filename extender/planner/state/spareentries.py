"""Ledger entries of spare slots, which a gang holds for members that it may lose and lists in its placement.

Spare slots use capacity on their node and in the gang's queue, like members. A spare slot uses capacity from the write
of the placement until the gang uses the slot, ends, or gets other spare slots. Only gangs that borrow spare slots are
placed on spare slots. A lent spare slot counts only in the queue, because the borrower's pods count on the node.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from extender.planner.ledger import Ledger
from extender.planner.ledgerentry import EntryKind, LedgerEntry
from extender.planner.state.amounts import put_entry
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import ClassTable, PodClass
from muster.api.limits import PODS, SPARES
from muster.api.muster.placement import BorrowedSpares, NodeSpares
from muster.api.names import DEFAULT_QUEUE
from muster.resources.vector import Vector, add, scale

SpareRunOfClass = tuple[NodeSpares, PodClass]
"""Spare slots on one node, with the class of the members that fit into the slots."""
SpareRunKey = tuple[str, str, str]
"""UID of the gang that holds spare slots, the pod set of the slots, and their node."""
MOST_BORROWED = 1_024
"""Maximum number of borrowed slots that are read per gang; no gang needs more borrowed slots."""


def runs(gang: GangView) -> bool:
    """Return True for a gang that has started and has members that have not finished."""
    return gang.started and any(pod_set.alive for pod_set in gang.pod_sets)


def spare_runs_of(gang: GangView) -> list[SpareRunOfClass]:
    """Return the gang's spare slots with ledger entries; empty without members and active placement."""
    placement = gang.placement
    if placement is None or not placement.spec.spares or not (gang.active or runs(gang)):
        return []
    classes = {pod_set.name: pod_set.cls for pod_set in gang.pod_sets}
    found: list[SpareRunOfClass] = []
    for run in placement.spec.spares[: SPARES.value]:
        cls = classes.get(run.pod_set)
        if cls is not None and run.node and run.count <= PODS.value:
            found.append((run, cls))
    return found


def borrowed_spares_of(gang: GangView) -> list[BorrowedSpares]:
    """Return the borrowed spare slots on which the gang runs or will run."""
    placement = gang.placement
    if placement is None or not placement.spec.borrows or not (gang.active or runs(gang)):
        return []
    return placement.spec.borrows[:MOST_BORROWED]


def lent(loans: Iterable[BorrowedSpares]) -> Counter[SpareRunKey]:
    """Return the number of lent spare slots, keyed by gang, pod set and node."""
    found: Counter[SpareRunKey] = Counter()
    for loan in loans:
        found[loan.lender, loan.pod_set, loan.node] += loan.count
    return found


def spares_by_queue(gangs: Iterable[GangView], parents: Mapping[str, str]) -> dict[str, Vector]:
    """Return the resources of spare slots in each queue, including the queue's descendants."""
    found: dict[str, Vector] = {}
    for gang in gangs:
        for seats, cls in spare_runs_of(gang):
            name, seen = gang.queue, set[str]()
            while name and name not in seen:
                found[name] = add(found.get(name, {}), scale(cls.requests, seats.count))
                seen.add(name)
                name = parents.get(name, "")
    return found


class SpareEntries:
    """The ledger entries of spare slots; all entries of a gang are updated together."""

    def __init__(self, ledger: Ledger, classes: ClassTable) -> None:
        self._ledger = ledger
        self._classes = classes
        self._kept: dict[str, tuple[str, list[SpareRunOfClass]]] = {}
        """Maps a gang to its UID and its spare slots."""
        self._key_of: dict[str, str] = {}
        """Maps the UID of a gang that keeps spare slots to its key."""
        self._open: dict[str, list[tuple[str, str, int]]] = {}
        """Maps a gang to the holders of the ledger entries of its spare slots."""
        self._loans: dict[str, list[BorrowedSpares]] = {}
        """Maps a borrowing gang to its borrowed slots."""
        self._lent: Counter[SpareRunKey] = Counter()

    def follow(self, key: str, gang: GangView | None) -> None:
        """Set the entries to a gang's spare slots that are not lent; None means that the gang is gone."""
        loans = borrowed_spares_of(gang) if gang is not None else []
        before = put_entry(self._loans, key, loans or None) or []
        if loans != before:
            self._lent.subtract(lent(before))
            self._lent.update(lent(loans))
            self._lent = +self._lent
            for lender in {loan.lender for loan in (*before, *loans)}:
                self._write_entries(self._key_of.get(lender, ""))
        runs, known = (spare_runs_of(gang) if gang is not None else []), self._kept.get(key, ("", []))
        if (gang is not None and (gang.uid, runs) == known) or not (runs or known[1]):
            return
        self._kept.pop(key, None)
        self._key_of.pop(known[0], None)
        if gang is not None and runs:
            self._kept[key] = gang.uid, runs
            self._key_of[gang.uid] = key
        self._write_entries(key)

    def _write_entries(self, key: str) -> None:
        """Replace all ledger entries of a gang's spare slots by new entries."""
        for holder in self._open.pop(key, ()):
            self._ledger.close(holder)
        uid, runs = self._kept.get(key, ("", []))
        opened: list[tuple[str, str, int]] = []
        for each, cls in runs:
            away = min(each.count, self._lent[uid, each.pod_set, each.node])
            for count, node in ((each.count - away, each.node), (away, "")):
                if count:
                    opened.append(("spare", key, len(opened)))
                    amounts = self._classes.of_amounts(scale(cls.requests, count))
                    self._ledger.open(opened[-1], LedgerEntry(EntryKind.SPARE, node, amounts, key, DEFAULT_QUEUE))
        if opened:
            self._open[key] = opened
