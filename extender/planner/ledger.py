"""The ledger: entries for all capacity that is not free, each with its holder, and the entries' sums by node and queue.

kind       holder of the capacity                        opened by         closed when                     queues
---------  --------------------------------------------  ----------------  ------------------------------  -------
bound      a pod on a node                               State             pod has ended or is gone        both
leaving    a pod on a node that is being deleted         State             pod is gone                     limits
assumed    an unanswered write: the binding of a pod     Bind,             API server has answered         both
           without a gang, or a gang's placement         PlacementWriter
placed     a slot of an active placement                 PlacedSlots       pod is bound to the node, or    both; -
                                                                           placement has ended             if moved
spare      a slot that a running gang holds for members  SpareEntries      gang has ended, has taken the   both
           that it may lose                                                slot, or holds other slots
allocated  devices of a claim that are not counted with  Claimants;        no pod uses the claim           -
           a pod                                         Ledger if shared
reserved   the first waiting gang of a queue, minus      Planner, every    next cycle has begun, or node   -
           amounts that pods will have freed by then     cycle             is gone

On a node, every entry counts for all pods; the verbs and the planner use the same sum, `nodes.used`. The capacity of
`leaving` pods belongs to the gang for which the pods were evicted. While victims end, both entries count: their
`leaving` entries and the `placed` slots of the gang for which they were evicted. `reserved` capacity is not in use yet
and changes with time, so it has separate arrays (`Ledger.reserved`). Reserved capacity is not available to pods and
gangs that would still be running when the first waiting gang starts.

In a queue, an entry counts towards limits and shares, or only towards limits; entries of other schedulers' pods do not
count. The devices of a named claim count once in each queue with pods that use the claim. The entry for a named claim's
devices counts only in the queue, and is opened when the queue's first pod uses the claim. The order in which queues
begin to use a claim therefore makes no difference. A parent of several queues that use a claim also counts the devices
once (`limits.ClaimQueues`).

In a queue, an entry counts for at most as much as the node offers or has offered (`NodeTable.charged`).

A gang's entries count for the queue that its PodGroup names or, if the PodGroup has been deleted, named last. A deleted
PodGroup's queue is stored only in memory; after a restart, the entries count for the queue that the pods name. Within a
cycle, a gang's new slots change only the snapshot's arrays (`extender.planner.framework.statement`). Entries for a
gang's new slots are opened when its placement is written.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from extender.planner.dynamic.needs import SharedClaim
from extender.planner.ledgerentry import EntryKind, LedgerEntry
from extender.planner.limits import ClaimUse
from extender.planner.queueuse import QueueUse
from extender.planner.state.amounts import clipped, discard, tally
from extender.planner.state.nodes import NodeTable
from extender.planner.state.podclass import ClassTable, PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.reserved import ReservedRooms
from muster.api.kubernetes.core import Node
from muster.api.names import DEFAULT_QUEUE
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import GPU, Vector, add


class Ledger:
    """All entries by holder, and their sums by node (`nodes.used`) and by queue (`queues`).

    Each holder of capacity has one entry in the ledger. A holder is the UID of a pod, the key of a gang, a
    `PlacedSlot`, or a pair of a word and a claim's key. An entry may refer to an unknown node.
    """

    def __init__(self, classes: ClassTable, queues: Mapping[str, Queue] = MappingProxyType({})) -> None:
        self.entries: dict[Hashable, LedgerEntry] = {}
        self.nodes = NodeTable(lambda: ((entry.node, entry.cls) for entry in self.entries.values()))
        self.queues = QueueUse(queues)
        self.placed: Counter[str] = Counter()
        """Maps the key of a gang to the number of its placed slots; without zeros."""
        self.claim_users: Counter[str] = Counter()
        """Maps the key of a volume claim to the number of pods on nodes that use the claim."""
        self.device_users: dict[str, dict[str, Counter[ClaimUse]]] = {}
        """Maps a device claim and a queue to the pods on nodes and the placed slots that use the claim."""
        self.shared_users: dict[str, Counter[str]] = {}
        """Maps a shared claim without devices and a node to the number of pods on the node that use the claim."""
        self.reserved = ReservedRooms()
        self.left_behind: set[str] = set()
        """Keys of gangs that still have entries although their PodGroup was deleted. The entries count for the gang's
        last queue.
        """
        self.assumed: dict[Hashable, None] = {}
        """Holders of entries for writes to which the API server has not responded yet."""
        self._classes = classes
        self._by_node: dict[str, set[Hashable]] = {}
        self._by_gang: dict[str, set[Hashable]] = {}

    def open(self, holder: Hashable, entry: LedgerEntry) -> None:
        """Open the holder's entry, and close the holder's previous entry."""
        known = self._put(holder, entry)
        if known is not None and known.gang != entry.gang:
            self._forget(known.gang)

    def _put(self, holder: Hashable, entry: LedgerEntry) -> LedgerEntry | None:
        """Open the holder's entry and return the holder's previous entry, if any."""
        known = self.entries.get(holder)
        if known == entry:
            return known
        if known is not None:
            self._take_off(holder)
        self.entries[holder] = entry
        if entry.kind is EntryKind.ASSUMED:
            self.assumed[holder] = None
        self._by_node.setdefault(entry.node, set()).add(holder)
        if entry.gang is not None:
            self._by_gang.setdefault(entry.gang, set()).add(holder)
        self._count_entry(entry, 1)
        return known

    def close(self, holder: Hashable) -> LedgerEntry | None:
        """Close the holder's entry and return it; None if the holder has no entry."""
        entry = self._take_off(holder)
        if entry is not None:
            self._forget(entry.gang)
        return entry

    def _take_off(self, holder: Hashable) -> LedgerEntry | None:
        entry = self.entries.pop(holder, None)
        if entry is not None:
            self.assumed.pop(holder, None)
            discard(self._by_node, entry.node, holder)
            if entry.gang is not None:
                discard(self._by_gang, entry.gang, holder)
            self._count_entry(entry, -1)
        return entry

    def _forget(self, gang: str | None) -> None:
        """Forget the queue of a gang without a PodGroup once the gang has no entries."""
        if gang in self.left_behind and gang not in self._by_gang:
            self.moved(gang, None)

    def holders_on(self, node: str) -> list[Hashable]:
        """Return the holders of a node's entries, such as UIDs of pods; the planner need not know the node."""
        return list(self._by_node.get(node, ()))

    def put_node(self, node: Node) -> None:
        """Add or update a node; for a node that cannot be evaluated, raise an error and change nothing."""
        with self._emptied(node.metadata.name):
            self.nodes.put_node(node)

    def remove_node(self, name: str) -> None:
        """Remove a node; its entries stay until their holders are gone."""
        self.reserved.changed(self.nodes.index[name], None)
        with self._emptied(name):
            self.nodes.remove(name)

    def equip(self, name: str, devices: Vector) -> None:
        """Set the devices of a node; the planner need not know the node yet."""
        if not self.nodes.is_equipped(name, devices):
            with self._emptied(name):
                self.nodes.equip(name, devices)

    @contextmanager
    def _emptied(self, node: str) -> Iterator[None]:
        """Remove a node's entries while the node is changed, because the size of the entries depends on the node."""
        there = {holder: self.entries.pop(holder) for holder in self._by_node.get(node, ())}
        for entry in there.values():
            self._add(entry, -1)
        try:
            yield
        finally:
            self.entries.update(there)
            for entry in there.values():
                self._add(entry, 1)

    def moved(self, gang: str, queue: str | None, user: str = "") -> None:
        """Move a gang's entries to this queue and creator; a `queue` of None means that the gang's PodGroup is gone.

        Without a PodGroup, the entries stay unchanged, because deleting a PodGroup must not free quota of its queue.
        """
        known = self.queues
        if queue is None and gang in known.queue_of:
            self.reserve(gang, {})
        if queue is None and gang in self._by_gang:
            self.left_behind.add(gang)
            return
        self.left_behind.discard(gang)
        if known.queue_of.get(gang) == queue and (queue is None or known.user_of.get(gang) == user):
            return
        users = [self.entries[holder] for holder in self._by_gang.get(gang, ())]
        for entry in users:
            self._count_named(entry, -1)
        its = [self.entries[holder] for holder in self._by_gang.get(gang, ())]
        for entry in its:
            self._add_to_queue(entry, -1)
        if queue is None:
            known.queue_of.pop(gang, None)
            known.user_of.pop(gang, None)
        else:
            known.queue_of[gang], known.user_of[gang] = queue, user
        for entry in its:
            self._add_to_queue(entry, 1)
        for entry in users:
            self._count_named(entry, 1)

    def reserve(self, gang: str, floor: Vector) -> None:
        """Charge the gang at least `floor` while it has pods; with an empty `floor`, charge only what its pods use."""
        known, used = self.queues.minimums, Vector()
        if gang in known:
            used = known.used(gang)
        elif floor:
            its = (self.entries[holder] for holder in self._by_gang.get(gang, ()))
            for entry in (each for each in its if each.queue and not each.claim):
                taken = self.nodes.charged(entry.cls, entry.node)
                used = add(used, {resource: clipped(amount) for resource, amount in taken.items()})
        self.queues.reserve(gang, floor, used)

    def _count_entry(self, entry: LedgerEntry, sign: int) -> None:
        self._add(entry, sign)
        if entry.kind is EntryKind.PLACED and entry.gang and entry.node:
            tally(self.placed, entry.gang, sign)
        for claim in entry.cls.claims:
            tally(self.claim_users, claim.key, sign)
        for shared in entry.cls.needs.shared:
            self._count_shared(shared, entry.node, sign)
        self._count_named(entry, sign)

    def _add(self, entry: LedgerEntry, sign: int) -> None:
        self.nodes.count(entry.node, entry.cls, entry.devices, entry.marks, sign)
        self._add_to_queue(entry, sign)

    def _add_to_queue(self, entry: LedgerEntry, sign: int) -> None:
        if entry.queue:
            taken = self.nodes.charged(entry.cls, entry.node)
            leaving = entry.kind is EntryKind.LEAVING
            self.queues.count(entry.gang, entry.queue, taken, sign, leaving=leaving, user=entry.user, claim=entry.claim)
            if entry.node and (gpus := taken.get(GPU, 0)):
                queue = self.queues.queue_of.get(entry.gang or "", entry.queue)
                tally(self.queues.gpus, (queue, entry.node), sign * clipped(gpus))

    def _count_shared(self, shared: SharedClaim, node: str, sign: int) -> None:
        """Add (or subtract) a user of a claim without devices.

        When the first user is added, the claim's entry is opened.
        """
        users = self.shared_users.setdefault(shared.key, Counter())
        tally(users, node, sign)
        holder = ("claim", shared.key)
        if not users:
            del self.shared_users[shared.key]
            self.close(holder)
        elif sign > 0:
            known = self.entries.get(holder)
            at = known.node if known is not None and known.node in users else node
            self.open(holder, LedgerEntry(EntryKind.ALLOCATED, at, self._classes.of_amounts(dict(shared.rows))))

    def _count_named(self, entry: LedgerEntry, sign: int) -> None:
        """Add (or subtract) a user of an entry's named claims.

        When the first user in a queue is added, the claim's entry in this queue is opened.
        """
        for claim in entry.cls.needs.named:
            queue = self.queues.queue_of.get(entry.gang or "", entry.queue)
            queues = self.device_users.setdefault(claim.key, {})
            users = queues.setdefault(queue, Counter())
            tally(users, (entry.kind is EntryKind.LEAVING, entry.gang or "", claim.rows), sign)
            holder = ("claim", claim.key, queue)
            if queue:
                self.queues.claims.set_user(claim.key, queue, min(users, default=None))
            if users and queue:
                leaving, gang, rows = min(users)
                kind = EntryKind.LEAVING if leaving else EntryKind.ALLOCATED
                devices = self._classes.of_amounts(dict(rows))
                self._put(holder, LedgerEntry(kind, "", devices, gang or None, queue, claim=claim.key))
            elif queue:
                self._take_off(holder)
            if not users:
                del queues[queue]
                if not queues:
                    del self.device_users[claim.key]

    def users_of_claim(self, key: str) -> dict[str, int]:
        """Return, for each queue, the number of pods on nodes and placed slots that use a device claim."""
        return {queue: users.total() for queue, users in self.device_users.get(key, {}).items()}

    def follow(self, pod: PodRecord) -> None:
        """Open a ledger entry for a pod that is on a node; close the entry of any other pod.

        The entry of an assumed binding stays until the API server responds.
        """
        if pod.uses_node:
            kind = EntryKind.LEAVING if pod.terminating else EntryKind.BOUND
            queue = (pod.queue or DEFAULT_QUEUE) if pod.ours else ""
            self.open(pod.uid, LedgerEntry(kind, pod.node, pod.cls, pod.gang, queue, pod.devices, pod.creator))
        elif pod.node or pod.uid not in self.assumed:
            self.left(pod.uid)

    def left(self, uid: str) -> None:
        """Close the entry of a pod that has ended or is gone; reservations may now use its capacity."""
        entry = self.close(uid)
        part = self.nodes.part_of(entry.node, entry.cls) if entry is not None else None
        if part is not None:
            self.reserved.changed(*part)

    def assume(
        self, holder: str, queue: str, cls: PodClass, *, node: str = "", devices: tuple[int, ...] = (), user: str = ""
    ) -> None:
        """Count a write as done until the API server responds; `holder` is the UID of a pod, or the key of a gang."""
        self.open(holder, LedgerEntry(EntryKind.ASSUMED, node, cls, None, queue, devices, user))

    def answered(self, holder: str) -> bool:
        """Close the entry of a write after the API server's response; return True if there was an entry.

        When the response arrives, the written object already has its own entry.
        """
        return holder in self.assumed and self.close(holder) is not None
