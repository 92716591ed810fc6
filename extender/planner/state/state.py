"""The cluster as the planner knows it, kept by events.

Every `on_*` method takes one object that changed (None: gone) and costs only what changed. Objects that Muster wrote
itself are handed in as soon as the API server has confirmed them, before the watch tells the same; an older version
that arrives later is ignored.

Most of it is kept up to date by each event: nodes, the ledger of what is not free, who matches whose demands. Views of
gangs are not, since a gang of a thousand pods brings thousands of events and is looked at once: an event only notes
which gang it concerns, and `refresh` makes their views. It is used on one loop (`extender.live`); nothing here blocks.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace

from extender.planner import reasons
from extender.planner.ledger import Ledger
from extender.planner.state.answers import Answers
from extender.planner.state.aside import Aside
from extender.planner.state.claimants import Claimants
from extender.planner.state.devicetable import DeviceTable
from extender.planner.state.gangs import ACTIVE, GangView
from extender.planner.state.gangtable import GangTable, version
from extender.planner.state.placedslots import PlacedSlots
from extender.planner.state.podclass import ClassTable
from extender.planner.state.podrecord import PodRecord, record_of
from extender.planner.state.pods import PodTable, goes_on, uses_the_same
from extender.planner.state.templates import Templates
from extender.planner.state.volumes import Volumes
from muster.api.kubernetes.core import Namespace, Node, Pod, PriorityClass
from muster.api.kubernetes.quota import PodDisruptionBudget, ResourceQuota
from muster.api.kubernetes.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.api.muster.placement import Placement, node_of
from muster.api.names import DEFAULT_QUEUE
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup, Queue
from muster.api.volcano.topology import HyperNode, Topology

MAX_LOOKS = 4
"""How often one refresh looks at one gang; what changes even then is looked at again by the next one.

A gang whose templates cannot all be read makes their demands anew at each look, which changes it again.
"""


class State:
    """Nodes, pods, gangs, placements, queues, and which gangs changed."""

    def __init__(self) -> None:
        self.classes = ClassTable()
        self.ledger = Ledger(self.classes)
        """What room is not free, and why."""
        self.nodes = self.ledger.nodes
        self.devices = DeviceTable()
        self.volumes = Volumes()
        self.queues: dict[str, Queue] = {}
        self.quotas: dict[str, dict[str, ResourceQuota]] = {}
        """Namespace → name → quota; namespaces without any are left out."""
        self.budgets: dict[str, PodDisruptionBudget] = {}
        """By key (`namespace/name`)."""
        self.hyper_nodes: dict[str, HyperNode] = {}
        """By name; what they come to is in `planner.topology`."""
        self.hyper_nodes_version = 0
        """Grows with every change of a HyperNode's spec, or of which there are."""
        self.topologies: dict[str, Topology] = {}
        """Kueue's, by name; none where it is not installed."""
        self.pod_table = PodTable()
        self._templates = Templates(self.classes, self.devices)
        self._gangs = GangTable(self._templates)
        self._placed_slots = PlacedSlots(self.ledger)
        self.answers = Answers()
        """What filter answered about pods without a gang that are not bound yet."""
        self.claimants = Claimants(
            self.devices, self.ledger, self.classes, self._templates, self.pod_table.records,
            keep=self._keep_pod, job_changed=self._job_changed,
        )  # fmt: skip
        """Told of slices, classes, claims and templates of devices."""
        self.aside = Aside()
        """Nodes and pods that cannot be evaluated; gangs that cannot say so themselves."""

    # -- what there is ----------------------------------------------------------------------------------------------

    @property
    def pods(self) -> Mapping[str, PodRecord]:
        """Pods by UID, of all schedulers and of no gang too: all of them use nodes."""
        return self.pod_table.records

    @property
    def groups(self) -> Mapping[str, PodGroup]:
        """PodGroups by key (`namespace/name`), whatever their phase."""
        return self._gangs.groups

    @property
    def placements(self) -> Mapping[str, Placement]:
        """Placements by key; one may have been made for a PodGroup that is gone, see `placement_of`."""
        return self._gangs.placements

    @property
    def jobs(self) -> Mapping[str, Job]:
        """Volcano Jobs by UID; a PodGroup names its owner by it."""
        return self._gangs.jobs

    def placement_of(self, key: str) -> Placement | None:
        """The placement of a gang; not one that was made for another PodGroup of its name."""
        return self._gangs.placement_of(key)

    # -- objects that change ----------------------------------------------------------------------------------------

    def on_node(self, old: Node | None, new: Node | None) -> bool:
        """Takes in a node; True if the change matters to scheduling, which a heartbeat does not.

        One that cannot be evaluated is a node that is not there.
        """
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
        """Takes in a pod, also one that some other scheduler places; True if there may be something to decide.

        There is not for a member that is born where its placement says, nor for a pod that goes on where it is bound.
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
            record = record_of(new, self.classes.of_pod(new), known.node if known else "")
            record = self.claimants.equipped(record)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one pod must not end the others
            self._forget_pod(uid)
            self._gang_changed(self.aside.add_pod(new, reasons.aside.error_words(error)))
            return True
        self._keep_pod(record)
        self._meet_queries()
        return not (goes_on(known, record) if known else self._is_expected(record))

    def _is_expected(self, record: PodRecord) -> bool:
        """Whether a pod that is new is a member that its gang's placement sent to the node that it is pinned to."""
        placement = self.placement_of(record.gang) if record.gang and record.pin and not record.gated else None
        if placement is None or record.slot is None or placement.status.phase not in ACTIVE:
            return False
        return (record.epoch, record.pin) == (
            placement.spec.epoch,
            node_of(placement, record.slot.pod_set, record.slot.rank),
        )

    def on_pod_written(self, new: Pod) -> None:
        """Takes in a pod that we wrote; one that the watch has shown as gone meanwhile stays forgotten."""
        if new.metadata.uid in self.pods:
            self.on_pod(None, new)

    def assume(self, uid: str, node: str, devices: tuple[int, ...] = ()) -> bool:
        """Notes that we have just bound a pod, before the watch tells.

        True if there may be something to decide: its gang has its minimum now, or no placed slot is left.
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

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> bool:
        """Takes in a PodGroup: a gang is there, has changed, or is gone; True if that is news."""
        key = self._gangs.on_group(old, new)
        if key is not None:
            group = self.groups.get(key)
            self.ledger.moved(key, (group.spec.queue or DEFAULT_QUEUE) if group else None)
        self._gang_changed(key)
        return key is not None

    def on_pod_group_written(self, new: PodGroup) -> bool:
        """Takes in a PodGroup that we wrote; one that the watch has shown as gone meanwhile stays forgotten.

        True if that is news.
        """
        known = self.groups.get(new.metadata.key)
        if known is None or known.metadata.uid != new.metadata.uid:
            return False
        return self.on_pod_group(known, new)

    def on_placement(self, old: Placement | None, new: Placement | None) -> bool:
        """Takes in a placement, ours or one that somebody edited; True if that is news."""
        key = self._gangs.on_placement(old, new)
        self._gang_changed(key)
        return key is not None

    def on_job(self, old: Job | None, new: Job | None) -> bool:
        """Takes in a Volcano Job: its templates say what its pods will be; True if that is news."""
        key = self._gangs.on_job(old, new)
        self._gang_changed(key)
        return key is not None

    def on_queue(self, old: Queue | None, new: Queue | None) -> None:
        """Takes in a queue; whether it is open is asked when a gang wants to be let in."""
        if new is not None:
            self.queues[new.metadata.name] = new
        elif old is not None:
            self.queues.pop(old.metadata.name, None)

    def on_resource_quota(self, old: ResourceQuota | None, new: ResourceQuota | None) -> None:
        """Takes in a quota of a namespace; how much it leaves is asked when a gang wants to be let in."""
        meta = (new or old or ResourceQuota()).metadata
        quotas = self.quotas.setdefault(meta.namespace, {})
        quotas.pop(meta.name, None)
        if new is not None:
            quotas[meta.name] = new
        if not quotas:
            del self.quotas[meta.namespace]

    def on_budget(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        """Takes in a disruption budget: how many of its pods may be evicted is asked by victim searches."""
        if new is not None:
            self.budgets[new.metadata.key] = new
        elif old is not None:
            self.budgets.pop(old.metadata.key, None)

    def on_hyper_node(self, old: HyperNode | None, new: HyperNode | None) -> bool:
        """Takes in a HyperNode; True if the change matters to scheduling, which its status does not."""
        name = (new or old or HyperNode()).metadata.name
        known = self.hyper_nodes.pop(name, None)
        if new is not None:
            self.hyper_nodes[name] = new
        matters = (known.spec if known else None) != (new.spec if new else None)
        self.hyper_nodes_version += matters
        self.nodes.version += matters  # who did not fit may fit now
        return matters

    def on_topology(self, old: Topology | None, new: Topology | None) -> None:
        """Takes in a Topology of Kueue's."""
        self.nodes.version += 1
        if new is not None:
            self.topologies[new.metadata.name] = new
        elif old is not None:
            self.topologies.pop(old.metadata.name, None)

    def on_priority_class(self, old: PriorityClass | None, new: PriorityClass | None) -> None:
        """Takes in a priority class; gangs have its value from their next change on."""
        if new is not None:
            self._gangs.priorities[new.metadata.name] = new.value
            self._gangs.meek.discard(new.metadata.name)
            if new.preemption_policy == "Never":
                self._gangs.meek.add(new.metadata.name)
        elif old is not None:
            self._gangs.priorities.pop(old.metadata.name, None)
            self._gangs.meek.discard(old.metadata.name)

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> bool:
        """Takes in a namespace, whose labels decide which pods some affinity terms mean; True if that changed any."""
        name = (new or old or Namespace()).metadata.name
        matters = self.classes.queries.on_namespace(name, new.metadata.labels if new else None)
        if matters:
            self._match_again(lambda namespace, _: namespace == name, list(self.pods.values()))
        return matters

    def on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
        """Takes in a volume claim; True if the change matters to scheduling."""
        return self._volumes_changed(self.volumes.on_claim(old, new))

    def on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
        """Takes in a persistent volume; True if the change matters to scheduling."""
        return self._volumes_changed(self.volumes.on_volume(old, new))

    def on_storage_class(self, old: StorageClass | None, new: StorageClass | None) -> bool:
        """Takes in a storage class; True if the change matters to scheduling."""
        return self._volumes_changed(self.volumes.on_storage_class(old, new))

    def _volumes_changed(self, matters: bool) -> bool:  # noqa: FBT001 - private, and the one thing it is told
        self.nodes.version += matters
        return matters

    # -- gangs ------------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Gives every member its slot, and makes the views of the gangs that changed since they were last made."""
        looks: Counter[str] = Counter()
        while due := next((key for key in self._gangs.dirty if looks[key] < MAX_LOOKS), None):
            looks[due] += 1  # a template may bring demands that other gangs meet, or itself
            self.refresh_gang(due)

    def refresh_gang(self, key: str) -> None:
        """Does so for one gang, if it changed."""
        if key not in self._gangs.dirty and key in self._gangs.views:
            return
        other_classes = self._gangs.look(key, self.pod_table.of_gang(key), self.aside.of_gang(key))
        self._meet_queries()
        if other_classes and (key in self._placed_slots or key in self.placements):
            self._follow_placement(key)

    def refreshed(self, key: str) -> GangView | None:
        """One gang, as it is now."""
        self.refresh_gang(key)
        return self.gang(key)

    def gangs(self) -> list[GangView]:
        """All gangs as of the last refresh."""
        return list(self._gangs.views.values())

    def gang(self, key: str) -> GangView | None:
        """One gang as of the last refresh."""
        return self._gangs.views.get(key)

    def started(self, key: str) -> bool:
        """As `GangView.started`, now; the gang is refreshed only where the number of its pods does not decide."""
        certainly = self._gangs.certainly_started(key, self.pod_table)
        if certainly is not None:
            return certainly
        self.refresh_gang(key)
        gang = self.gang(key)
        return gang is not None and gang.started

    def touch_all(self) -> None:
        """Has the next refresh make every view anew, e.g. after becoming the leader."""
        self._gangs.dirty.update(self.groups)

    def _gang_changed(self, key: str | None) -> None:
        if key is not None:
            self._gangs.touch(key)
            self._follow_placement(key)

    def _job_changed(self, uid: str) -> None:
        """What a Job's pods will be is something else by now."""
        self._gang_changed(self._gangs.of_job(self.jobs[uid]))

    def _follow_placement(self, key: str) -> None:
        """Has entries for the slots of the gang's active placement, and only those."""
        placement = self.placements.get(key)
        active = placement is not None and placement.status.phase in ACTIVE
        if active:
            self.refresh_gang(key)
        self._placed_slots.follow(key, self.gang(key) if active else None)

    # -- who meets whose demands ------------------------------------------------------------------------------------

    def _meet_queries(self) -> None:
        """Compares everybody with the queries that are new."""
        queries = self.classes.queries
        while queries.fresh:
            query = queries.fresh.pop()
            key, value = query.pair or ("", None)
            likely = [record for record in self.pods.values() if record.labels.get(key) == value]
            self._match_again(partial(queries.means, query), likely)

    def _match_again(self, meant: Callable[[str, dict[str, str]], bool], records: list[PodRecord]) -> None:
        """Gives the pods (of these) and templates that are meant the class with the demands that they meet now."""
        for record in records:
            if meant(record.namespace, record.labels):
                cls = self.classes.matched_again(record.cls, record.namespace, record.labels)
                if cls is not record.cls:
                    self._keep_pod(replace(record, cls=cls))
        for uid in self._templates.match_again(meant):
            self._job_changed(uid)

    # -- pods -----------------------------------------------------------------------------------------------------

    def _keep_pod(self, record: PodRecord) -> None:
        known = self.pod_table.put(record)
        if known is not None and uses_the_same(known, record):
            self.claimants.named(known, record)
            if record.gang:
                self._gangs.touch(record.gang)
            return
        if known is not None and known.gang and known.gang != record.gang:
            self._gangs.touch(known.gang)
        if record.node:
            self.answers.forget(record.uid)
        self.ledger.follow(record)
        self.claimants.named(known, record)
        if record.gang:
            self._gangs.touch(record.gang)
            if record.taken or record.waiting:
                self._placed_slots.pod_changed(record.gang, record)
            elif record.gang in self._placed_slots:
                self._follow_placement(record.gang)

    def _forget_pod(self, uid: str) -> None:
        self._gang_changed(self.aside.forget_pod(uid))
        self.ledger.left(uid)
        self.answers.forget(uid)
        record = self.pod_table.remove(uid)
        self.claimants.named(record, None)
        if record is None or not record.gang:
            return
        self._gangs.touch(record.gang)
        if record.gang in self._placed_slots:
            self._follow_placement(record.gang)
