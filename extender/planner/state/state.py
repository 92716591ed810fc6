"""The cluster as the planner knows it, kept by events.

Every `on_*` method takes one object that changed (None: gone) and costs only what changed. Objects that Muster wrote
itself are handed in as soon as the API server has confirmed them, before the watch tells the same; an older version
that arrives later is ignored.

Nodes and the ledger are up to date after each event. So are the matches of pods with demands, apart from demands that
are still compared with the pods that exist (`planner.state.comparisons`): a gang waits until its own are. Views of
gangs are not, nor the placed slots of members that failed or are gone, since a gang of a thousand pods brings thousands
of events: an event only marks the gang, and `refresh` makes the views. It is used on one loop (`extender.cluster`);
nothing here blocks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter

from msgspec.structs import replace

from extender.planner import reasons
from extender.planner.ledger import Ledger
from extender.planner.state.access import Access
from extender.planner.state.answers import Answers
from extender.planner.state.aside import Aside
from extender.planner.state.avoided import Failures
from extender.planner.state.charges import as_charged, charged, unread
from extender.planner.state.claimants import Claimants
from extender.planner.state.comparisons import Comparisons
from extender.planner.state.devicetable import DeviceTable
from extender.planner.state.gangs import ACTIVE, GangView
from extender.planner.state.gangtable import GangTable, version
from extender.planner.state.nativegroups import NativeGroups
from extender.planner.state.placedslots import PlacedSlots
from extender.planner.state.podclass import ClassTable
from extender.planner.state.pods import PodRecord, PodTable, goes_on, record_of, uses_the_same
from extender.planner.state.spareseats import SpareEntries
from extender.planner.state.tables import Tables
from extender.planner.state.templates import Templates
from muster.api.kubernetes.core import Namespace, Node, Pod, PriorityClass
from muster.api.kubernetes.scheduling import NativePodGroup
from muster.api.muster.creator import creator_of
from muster.api.muster.native import is_native
from muster.api.muster.node_faults import DEFAULT_RULES, Rules
from muster.api.muster.placement import Placement, node_of
from muster.api.muster.pools import DEFAULT_POOL
from muster.api.names import DEFAULT_QUEUE
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup, Queue
from muster.resources.runtime import UNKNOWN
from muster.volcano.queuelimits import limits_of

MAX_LOOKS = 4
"""Looks at one gang in one refresh; a gang whose templates cannot all be read changes again with each look."""


class State(Tables):
    """Nodes, pods, gangs, placements and queues, and the marks of gangs that changed."""

    def __init__(
        self,
        looks: int | None = None,
        later: Callable[[], None] = lambda: None,
        *,
        pool: str = DEFAULT_POOL,
        rules: Rules = DEFAULT_RULES,
    ) -> None:
        """Make an empty state of a node pool: what it is given of other pools is not planned.

        Nodes are suspect by the `rules`.

        It compares new queries with pods at once (`looks` is None), or at most about so often in one event: then it
        calls `later` for what is left, and `compare` goes on with it.
        """
        self._looks, self._later = looks, later
        self._released = False
        self.classes = ClassTable()
        self.access = Access(pool)
        self.ledger = Ledger(self.classes, self.access.queues)
        self.ledger.nodes.rules = rules
        super().__init__(self.ledger.nodes)
        self.devices = DeviceTable()
        self.pool = pool
        self.queues: Mapping[str, Queue] = self.access.queues
        """By name, those of the pool."""
        self.pod_table = PodTable()
        self.pods: Mapping[str, PodRecord] = self.pod_table.records
        """By UID, pods of all schedulers, with a gang or without."""
        self._templates = Templates(self.classes, self.devices)
        self._gangs = GangTable(self._templates)
        self.groups: Mapping[str, PodGroup] = self._gangs.groups
        """By key (`namespace/name`), whatever their phase."""
        self.placements: Mapping[str, Placement] = self._gangs.placements
        """By key; one may have been made for a PodGroup that is gone, see `placement_of`."""
        self.jobs: Mapping[str, Job] = self._gangs.jobs
        """Volcano Jobs by UID, by which a PodGroup names its owner."""
        self._placed_slots = PlacedSlots(self.ledger)
        self._spares = SpareEntries(self.ledger, self.classes)
        self.failures = Failures()
        self._unfollowed: set[str] = set()
        """Keys of gangs whose pods failed or are gone, maybe all of them: the next view tells of their placed slots."""
        self.answers = Answers()
        """Answers of filter about pods without a gang that are not bound yet."""
        self.claimants = Claimants(
            self.devices, self.ledger, self.classes, self._templates, self.pod_table.records,
            equip=self._equip, job_changed=self._job_changed,
        )  # fmt: skip
        self.comparisons = Comparisons(
            self.classes, self.pod_table, self._templates,
            keep=self._keep_pod, job_changed=self._job_changed, equipped=self.claimants.equipped,
            released=self._release,
        )  # fmt: skip
        self.aside = Aside()
        self.native = NativeGroups(
            self.groups, self.aside.gangs,
            put=self._put_group, changed=self._gang_changed, namespace_queue=self.access.queue_of_namespace,
            claims_changed=self.claimants.on_group, pool=pool,
        )  # fmt: skip

    def on_node(self, old: Node | None, new: Node | None) -> bool:
        """Take a node; return True if the change matters to scheduling, which a heartbeat does not."""
        name = (new or old or Node()).metadata.name
        self.aside.nodes.pop(name, "")
        if new is not None:
            if self.nodes.knows(new):
                return False
            try:
                self.ledger.put_node(new)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one node must not end the others
                self.aside.nodes[name] = reasons.aside.error_words(error)
            else:
                self.claimants.equip_nodes({name})
                return True
        column = self.nodes.index.get(name)
        if column is not None:
            self.answers.forget_node(column)
            self.ledger.remove_node(name)
        return True

    def on_pod(self, old: Pod | None, new: Pod | None) -> bool:
        """Take a pod of any scheduler; return True if there may be something to decide.

        There is not for a new member that is pinned as its placement says, nor for a pod that goes on on its node.
        """
        if new is None:
            if old is not None:
                self._forget_pod(old.metadata.uid)
            return True
        uid = new.metadata.uid
        known = self.pods.get(uid)
        if known and version(new.metadata.resource_version) < version(known.resource_version):
            return False
        self._gang_changed(self.aside.forget_pod(uid))
        try:
            there = as_charged(known, new)
            record = record_of(there, self.classes.of_pod(there), known.node if known else "", self.pool)
            record = self.claimants.equipped(charged(known, record))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one pod must not end the others
            if left := unread(known, new):
                self._keep_pod(left)
            else:
                self._forget_pod(uid)
            self._gang_changed(self.aside.add_pod(new, reasons.aside.error_words(error)))
            return True
        self._keep_pod(record)
        self._compare()
        return not (goes_on(known, record) if known else self._is_expected(record))

    def _is_expected(self, record: PodRecord) -> bool:
        """Return True for a new member that is pinned as its gang's placement says."""
        placement = self.placement_of(record.gang) if record.gang and record.pin and not record.gated else None
        if placement is None or record.slot is None or placement.status.phase not in ACTIVE:
            return False
        return (record.epoch, record.pin) == (
            placement.spec.epoch,
            node_of(placement, record.slot.pod_set, record.slot.rank),
        )

    def on_pod_written(self, new: Pod) -> None:
        """Take a pod that Muster wrote, unless the watch has shown meanwhile that it is gone."""
        if new.metadata.uid in self.pods:
            self.on_pod(None, new)

    def assume(self, uid: str, node: str, devices: tuple[int, ...] = ()) -> bool:
        """Take a pod that Muster has just bound, before the watch tells.

        Return True if there may be something to decide: its gang has its minimum now, or no placed slot is left.
        """
        record = self.pod_table.bound(uid, node, devices)
        if record is None:
            return False
        self._keep_pod(self.claimants.equipped(record))
        if not record.gang:
            return False
        group = self.groups.get(record.gang)
        least = group.spec.min_member if group is not None else 0
        return not self.ledger.placed[record.gang] or self.pod_table.taken[record.gang] == least

    def ending(self) -> Iterator[PodRecord]:
        """Yield the pods of no gang that are on a node, or just being bound to one, and declare a runtime."""
        yield from self.pod_table.ending.values()
        for holder in self.ledger.assumed:
            record = self.pod_table.records.get(str(holder))
            if record is not None and not record.gang and not record.node and record.runtime is not UNKNOWN:
                yield replace(record, node=self.ledger.entries[holder].node)

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> bool:
        """Take a PodGroup; return True if that is news."""
        key = (new or old or PodGroup()).metadata.key
        known = self.groups.get(key)
        if new is not None and known is not None and is_native(known):
            self._put_group(known, None)
        news = self._put_group(old, new)
        return (key in self.native.groups and self.native.settle(key)) or news

    def _put_group(self, old: PodGroup | None, new: PodGroup | None) -> bool:
        key = self._gangs.on_group(old, new)
        if key is not None:
            group = self.groups.get(key)
            queue = (group.spec.queue or DEFAULT_QUEUE) if group else None
            self.ledger.moved(key, queue, creator_of(group.metadata.annotations) if group else "")
        self._gang_changed(key)
        return key is not None

    def on_pod_group_written(self, new: PodGroup) -> bool:
        """Take a PodGroup that Muster wrote, unless the watch has shown meanwhile that it is gone; True if news."""
        known = self.groups.get(new.metadata.key)
        if known is None or known.metadata.uid != new.metadata.uid:
            return False
        return self.on_pod_group(known, new)

    def on_native_written(self, new: NativePodGroup) -> bool:
        """Take a native PodGroup that Muster wrote, unless the watch has shown meanwhile that it is gone."""
        return self.native.on_written(new)

    def on_placement(self, old: Placement | None, new: Placement | None) -> bool:
        """Take a placement, as Muster wrote it or edited; return True if that is news."""
        if new is not None:
            self.failures.remember(new.metadata.key, new.status.avoided)
        key = self._gangs.on_placement(old, new)
        self._gang_changed(key)
        return key is not None

    def on_job(self, old: Job | None, new: Job | None) -> bool:
        """Take a Volcano Job with the templates of its pods; return True if that is news."""
        key = self._gangs.on_job(old, new)
        self._gang_changed(key)
        return key is not None

    def on_queue(self, old: Queue | None, new: Queue | None) -> None:
        """Take a queue of any pool."""
        name = (new or old or Queue()).metadata.name
        before = _limits(self.queues.get(name))
        self.access.on_queue(old, new)
        if before != _limits(self.queues.get(name)):
            self.ledger.queues.limits_changed()

    def on_priority_class(self, old: PriorityClass | None, new: PriorityClass | None) -> None:
        """Take a priority class; gangs have its value from their next change on."""
        name = (new or old or PriorityClass()).metadata.name
        self._gangs.priorities.put(name, new)

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> bool:
        """Take a namespace; return True if its labels matter to an affinity term, or to the queues of its pods."""
        name = (new or old or Namespace()).metadata.name
        of_queues = self.access.on_namespace(old, new)
        of_terms = self.classes.queries.on_namespace(name, new.metadata.labels if new else None)
        if (old.queue if old else "") != (new.queue if new else ""):
            of_queues = self.native.on_namespace(name) or of_queues
        if of_terms:
            self.comparisons.relabelled(name)
            self._compare()
        return of_terms or of_queues

    def refresh(self) -> None:
        """Give every member its slot, and make the views of the gangs that changed."""
        looks: Counter[str] = Counter()
        while due := next((key for key in self._gangs.dirty if looks[key] < MAX_LOOKS), None):
            looks[due] += 1  # a template may bring demands that pods of this gang or another meet
            self._look(due)
            if self._looks is None or not self._gangs.dirty:
                self._compare()
        for key in looks:
            self._hold(key)

    def refresh_gang(self, key: str) -> None:
        """Do so for one gang, if it changed."""
        if key not in self._gangs.dirty and key in self._gangs.views:
            return
        self._look(key)
        self._compare()
        self._hold(key)

    def compare(self, looks: int) -> bool:
        """Compare new queries with pods, about so often; return True if there may be something to decide."""
        self._released = False
        self.comparisons.work(looks)
        return self._released or not self.comparisons.pending

    def _equip(self, uids: list[str]) -> None:
        self.comparisons.equip(uids)
        self._compare()

    def _release(self, keys: set[str]) -> None:
        self._gangs.dirty.update(keys)
        self._released = True

    def _look(self, key: str) -> None:
        other_classes = self._gangs.look(key, self.pod_table.of_gang(key), self.aside.of_gang(key))
        unfollowed = key in self._unfollowed
        self._unfollowed.discard(key)
        if unfollowed or (other_classes and (key in self._placed_slots or key in self.placements)):
            self._follow_placement(key)
        self._spares.follow(key, self._gangs.views.get(key))

    def _hold(self, key: str) -> None:
        """Have a gang wait for the comparison of its demands."""
        view = self._gangs.views.get(key)
        if view is not None:
            view.compared = not self.comparisons.hold(view)

    def _compare(self) -> None:
        if self.comparisons.pending:
            self.comparisons.work(self._looks)
            if self.comparisons.pending:
                self._later()

    def refreshed(self, key: str) -> GangView | None:
        """Return one gang, as it is now."""
        self.refresh_gang(key)
        return self.gang(key)

    def gangs(self) -> list[GangView]:
        """Return all gangs as of the last refresh, in the order in which they were first seen."""
        return sorted(self._gangs.views.values(), key=attrgetter("arrival"))

    def gang(self, key: str) -> GangView | None:
        """Return one gang as of the last refresh."""
        return self._gangs.views.get(key)

    def started(self, key: str) -> bool:
        """Return `GangView.started` as of now; the gang is refreshed only if the number of its pods does not decide."""
        certainly = self._gangs.certainly_started(key, self.pod_table)
        if certainly is not None:
            return certainly
        gang = self.refreshed(key)
        return gang is not None and gang.started

    def placement_of(self, key: str) -> Placement | None:
        """Return the placement of a gang; not one that was made for another PodGroup of its name."""
        return self._gangs.placement_of(key)

    def touch_all(self) -> None:
        """Have the next refresh make every view again, e.g. after becoming the leader."""
        self._gangs.dirty.update(self.groups)

    def _gang_changed(self, key: str | None) -> None:
        if key is not None:
            self._gangs.dirty.add(key)
            self._follow_placement(key)

    def _job_changed(self, uid: str) -> None:
        """Mark the gang of a Job whose pods will be of another class."""
        self._gang_changed(self._gangs.of_job(self.jobs[uid]))

    def _follow_placement(self, key: str) -> None:
        """Have entries for the slots of the gang's active placement, and only those."""
        placement = self.placements.get(key)
        active = placement is not None and placement.status.phase in ACTIVE
        if active:
            self.refresh_gang(key)
        self._placed_slots.follow(key, self.gang(key) if active else None)

    def _keep_pod(self, record: PodRecord) -> None:
        known = self.pod_table.put(record)
        self.failures.note(known, record)
        self.native.on_pod(record)
        if known is not None and uses_the_same(known, record):
            self.claimants.named(known, record)
            if record.gang:
                self._gangs.dirty.add(record.gang)
            return
        if known is not None and known.gang and known.gang != record.gang:
            self._gangs.dirty.add(known.gang)
        if record.node:
            self.answers.forget(record.uid)
        self.ledger.follow(record)
        self.claimants.named(known, record)
        if record.gang:
            self._gangs.dirty.add(record.gang)
            if record.alive or record.waiting:
                self._placed_slots.pod_changed(record.gang, record)
            elif record.gang in self._placed_slots:
                self._unfollowed.add(record.gang)

    def _forget_pod(self, uid: str) -> None:
        self._gang_changed(self.aside.forget_pod(uid))
        self.ledger.left(uid)
        self.answers.forget(uid)
        record = self.pod_table.remove(uid)
        self.claimants.named(record, None)
        if record is None or not record.gang:
            return
        if not self.pod_table.has_pods(record.gang):
            self.native.without_pods(record.gang)
        self._gangs.dirty.add(record.gang)
        if record.gang in self._placed_slots:
            self._unfollowed.add(record.gang)


def _limits(queue: Queue | None) -> object:
    """Return what decides about the limits of a queue and of those below it."""
    return queue and (queue.spec.parent, queue.spec.capability, limits_of(queue.metadata.annotations))
