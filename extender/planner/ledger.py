"""The ledger of room that is not free: what has it, who opens and closes each entry, and whom it counts against.

kind       what has the room                             opened by         closed when                     queues
---------  --------------------------------------------  ----------------  ------------------------------  -------
bound      a pod on a node                               State             it has ended or is gone         both
leaving    a pod on a node that is being deleted         State             it is gone                      limits
assumed    what a write that is under way will take: a   Bind,             the API server has answered     both
           pod of no gang on a node, a gang in its queue PlacementWriter
placed     a slot of an active placement                 PlacedSlots       its pod is bound, or the        both
                                                                           placement has ended
allocated  devices of a claim that are not counted with  Claimants;        no pod uses the claim           -
           a pod                                         Ledger if shared
reserved   what the waiting head of a queue needs, less  Planner, every    the next cycle; the node is     -
           what will have been given back by then        cycle             gone

On a node every entry counts against everybody: the verbs and the planner read one sum, `nodes.used`. What pods that
are `leaving` give back is for the gang for which they were evicted, as its slots are `placed` on top of them. What is
`reserved` is not taken yet, and changes with time: it has arrays of its own (`Ledger.reserved`), and counts against
pods and gangs that would still be there when the head starts.

In a queue an entry counts for both, limits and shares, or for limits alone, or not at all (pods of other schedulers).
Within a cycle, what one gang gets is taken from the snapshot's arrays (`extender.planner.framework.statement`); it has
entries when its placement is written.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from msgspec import Struct

from extender.planner.dynamic.needs import SharedClaim
from extender.planner.state.amounts import clipped
from extender.planner.state.nodes import NodeTable
from extender.planner.state.podclass import ClassTable, PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Mark
from extender.planner.state.reserved import ReservedRooms
from muster.api.kubernetes.core import Node
from muster.api.names import DEFAULT_QUEUE
from muster.resources.vector import Vector


@dataclass(slots=True)
class Use:
    """What somebody uses."""

    staying: Vector = field(default_factory=dict)
    leaving: Vector = field(default_factory=dict)
    """What pods use that are being deleted."""

    def add(self, requests: Mapping[str, int], sign: int, *, leaving: bool) -> None:
        """Adds (or with sign -1 takes off) what one pod requests."""
        target = self.leaving if leaving else self.staying
        for resource, amount in requests.items():
            total = target.get(resource, 0) + sign * clipped(amount)
            if total:
                target[resource] = total
            else:
                target.pop(resource, None)

    def copy(self) -> "Use":
        """Another one with the same amounts."""
        return Use(dict(self.staying), dict(self.leaving))


class QueueUse:
    """Amounts by queue and by gang; they depend on what is used now, and not on how it came to that."""

    def __init__(self) -> None:
        self.queues: dict[str, Use] = {}
        """By name, what its own pods use, without those of queues below it; queues that use nothing are left out."""
        self.gangs: dict[str, Use] = {}
        """By key; gangs that use nothing are left out."""
        self.queue_of: dict[str, str] = {}
        """Key of a gang whose PodGroup is known → its queue."""

    def count(
        self, gang: str | None, queue: str, requests: Mapping[str, int], sign: int, *, leaving: bool = False
    ) -> None:
        """Adds (with sign -1: takes off) what one pod takes; `queue` counts until that of its gang is known."""
        if gang is not None:
            _add(self.gangs, gang, requests, sign, leaving=leaving)
        _add(self.queues, self.queue_of.get(gang or "", queue), requests, sign, leaving=leaving)


def _add(uses: dict[str, Use], name: str, requests: Mapping[str, int], sign: int, *, leaving: bool) -> None:
    use = uses.setdefault(name, Use())
    use.add(requests, sign, leaving=leaving)
    if not use.staying and not use.leaving:
        del uses[name]


class Kind(StrEnum):
    """Why the room of an entry is not free."""

    BOUND = "bound"
    LEAVING = "leaving"
    ASSUMED = "assumed"
    PLACED = "placed"
    ALLOCATED = "allocated"


class Entry(Struct, frozen=True, gc=False):
    """What one holder takes from one node and one queue. It is in no cycle: no garbage collection looks at it."""

    kind: Kind
    node: str
    """Empty: none, the queue's amounts are all there is."""
    cls: PodClass
    gang: str | None = None
    queue: str = ""
    """What the pod itself names, which counts while its gang's queue is not known; empty: it counts for no queue."""
    devices: tuple[int, ...] = ()
    """The GPUs that it shares, by number."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What it is counted under on its node: pods that are being deleted are counted under less."""
        marks = self.cls.marks
        leaving = marks and self.kind is Kind.LEAVING
        return tuple(mark for mark in marks if mark[0] != "staying") if leaving else marks


class Ledger:
    """Every entry by its holder, and their sums by node (`nodes.used`) and by queue (`queues`).

    A holder has one entry: the UID of a pod, the key of a gang, a `PlacedSlot`, or a pair of a word and a claim's key.
    An entry may be about a node that is not known yet.
    """

    def __init__(self, classes: ClassTable) -> None:
        self.entries: dict[Hashable, Entry] = {}
        self.nodes = NodeTable(lambda: ((entry.node, entry.cls) for entry in self.entries.values()))
        self.queues = QueueUse()
        self.placed: Counter[str] = Counter()
        """Key of a gang → its placed slots; gangs without any are left out."""
        self.claim_users: Counter[str] = Counter()
        """Key of a claim → pods on nodes that use it."""
        self.shared_users: dict[str, Counter[str]] = {}
        """Key of a claim to devices that has none yet, and that several pods may use → node → pods there that do."""
        self.reserved = ReservedRooms()
        self._classes = classes
        self._by_node: dict[str, set[Hashable]] = {}
        self._by_gang: dict[str, set[Hashable]] = {}

    # -- entries ----------------------------------------------------------------------------------------------------

    def open(self, holder: Hashable, entry: Entry) -> None:
        """Lets the holder have this room, in place of what it had before."""
        known = self.entries.get(holder)
        if known is not None:
            if known == entry:
                return
            self.close(holder)
        self.entries[holder] = entry
        self._by_node.setdefault(entry.node, set()).add(holder)
        if entry.gang is not None:
            self._by_gang.setdefault(entry.gang, set()).add(holder)
        self._count(entry, 1)

    def close(self, holder: Hashable) -> Entry | None:
        """Gives the room back, and says what that was; nothing happens if the holder has none."""
        entry = self.entries.pop(holder, None)
        if entry is not None:
            _unindex(self._by_node, entry.node, holder)
            if entry.gang is not None:
                _unindex(self._by_gang, entry.gang, holder)
            self._count(entry, -1)
        return entry

    def put_node(self, node: Node) -> None:
        """Adds or updates a node; raises if it cannot be evaluated, and all is as before then."""
        with self._emptied(node.metadata.name):
            self.nodes.put(node)

    def remove_node(self, name: str) -> None:
        """Forgets a node; its entries stay until their holders go."""
        self.reserved.changed(self.nodes.index[name], None)
        with self._emptied(name):
            self.nodes.remove(name)

    @contextmanager
    def _emptied(self, node: str) -> Iterator[None]:
        """Has a node be empty for a moment: what its entries take depends on what the node is."""
        there = {holder: self.entries.pop(holder) for holder in self._by_node.get(node, ())}
        for entry in there.values():
            self._add(entry, -1)
        try:
            yield
        finally:
            self.entries.update(there)
            for entry in there.values():
                self._add(entry, 1)

    def moved(self, gang: str, queue: str | None) -> None:
        """A gang is in this queue from now on, with all that it has; None: its PodGroup is gone."""
        if self.queues.queue_of.get(gang) == queue:
            return
        its = [self.entries[holder] for holder in self._by_gang.get(gang, ())]
        for entry in its:
            self._add_to_queue(entry, -1)
        if queue is None:
            del self.queues.queue_of[gang]
        else:
            self.queues.queue_of[gang] = queue
        for entry in its:
            self._add_to_queue(entry, 1)

    def _count(self, entry: Entry, sign: int) -> None:
        self._add(entry, sign)
        if entry.kind is Kind.PLACED and entry.gang and entry.node:
            _tally(self.placed, entry.gang, sign)
        for claim in entry.cls.claims:
            _tally(self.claim_users, claim.key, sign)
        for shared in entry.cls.needs.shared:
            self._count_shared(shared, entry.node, sign)

    def _add(self, entry: Entry, sign: int) -> None:
        self.nodes.count(entry.node, entry.cls, entry.devices, entry.marks, sign)
        self._add_to_queue(entry, sign)

    def _add_to_queue(self, entry: Entry, sign: int) -> None:
        if entry.queue:
            taken = self.nodes.taken(entry.cls, self.nodes.index.get(entry.node))
            self.queues.count(entry.gang, entry.queue, taken, sign, leaving=entry.kind is Kind.LEAVING)

    def _count_shared(self, shared: SharedClaim, node: str, sign: int) -> None:
        """Counts one more user (or one less) of a claim without devices; the first opens its entry."""
        users = self.shared_users.setdefault(shared.key, Counter())
        _tally(users, node, sign)
        holder = ("claim", shared.key)
        if not users:
            del self.shared_users[shared.key]
            self.close(holder)
        elif sign > 0:
            known = self.entries.get(holder)
            at = known.node if known is not None and known.node in users else node
            self.open(holder, Entry(Kind.ALLOCATED, at, self._classes.of_amounts(dict(shared.rows))))

    # -- pods -------------------------------------------------------------------------------------------------------

    def follow(self, pod: PodRecord) -> None:
        """Has an entry for a pod while it is on a node; one that is assumed stays until its binding is answered."""
        if pod.uses_node:
            kind = Kind.LEAVING if pod.terminating else Kind.BOUND
            queue = (pod.queue or DEFAULT_QUEUE) if pod.gang or pod.ours else ""
            self.open(pod.uid, Entry(kind, pod.node, pod.cls, pod.gang, queue, pod.devices))
        elif pod.node or not self.is_assumed(pod.uid):
            self.left(pod.uid)

    def left(self, uid: str) -> None:
        """The pod has ended or is gone; the head of a queue may have been waiting for its room."""
        entry = self.close(uid)
        part = self.nodes.part_of(entry.node, entry.cls) if entry is not None else None
        if part is not None:
            self.reserved.changed(*part)

    # -- writes that are under way ----------------------------------------------------------------------------------

    def assume(self, holder: str, queue: str, cls: PodClass, *, node: str = "", devices: tuple[int, ...] = ()) -> None:
        """Takes a write to have succeeded until it is answered: `holder` is the UID of a pod, or the key of a gang."""
        self.open(holder, Entry(Kind.ASSUMED, node, cls, None, queue, devices))

    def answered(self, holder: str) -> bool:
        """The write is answered, and what has come of it has another entry by now; True if it was the only one."""
        return self.is_assumed(holder) and self.close(holder) is not None

    def is_assumed(self, holder: str) -> bool:
        """Whether a write of this holder is under way that would take room."""
        known = self.entries.get(holder)
        return known is not None and known.kind is Kind.ASSUMED


def _unindex(table: dict[str, set[Hashable]], key: str, holder: Hashable) -> None:
    holders = table[key]
    holders.discard(holder)
    if not holders:
        del table[key]


def _tally(counter: Counter[str], key: str, change: int) -> None:
    counter[key] += change
    if not counter[key]:
        del counter[key]
