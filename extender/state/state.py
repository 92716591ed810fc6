"""The cluster as the planner knows it, kept by events.

Every method takes one object that changed (None: gone) and costs only what changed. Objects that Muster wrote itself
are handed in as soon as the API server has confirmed them, before the watch tells the same; an older version that
arrives later is ignored. The caller holds the lock; nothing here blocks.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from extender.state.gangs import ACTIVE, GangView, PodRecord, once_whole
from extender.state.holds import Holds
from extender.state.nodes import NodeTable
from extender.state.podclass import ClassTable
from extender.state.queries import Labels
from extender.state.templates import Templates
from extender.state.views import record_of, view_of
from extender.state.volumes import Volumes
from muster.api.batch import Job
from muster.api.core import Namespace, Node, Pod, PriorityClass
from muster.api.placement import Placement
from muster.api.scheduling import PodGroup, Queue
from muster.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass


def version(text: str) -> int:
    """A resourceVersion as a number; the API server promises that they can be compared since 1.35."""
    return int(text) if text.isdigit() else 0


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects that a state holds as they came."""

    nodes: list[Node]
    namespaces: dict[str, Labels]
    jobs: list[Job]
    groups: list[PodGroup]
    placements: list[Placement]


class State:
    """Nodes, pods, gangs, placements, queues, and which gangs changed."""

    def __init__(self) -> None:
        self.nodes = NodeTable()
        self.classes = ClassTable()
        self.volumes = Volumes()
        self.pods: dict[str, PodRecord] = {}
        self.groups: dict[str, PodGroup] = {}
        self.placements: dict[str, Placement] = {}
        self.jobs: dict[str, Job] = {}
        self.queues: dict[str, Queue] = {}
        self.priorities: dict[str, int] = {}
        self.dirty: set[str] = set()
        self._members: dict[str, dict[str, PodRecord]] = {}
        self._views: dict[str, GangView] = {}
        self._holds = Holds(self.nodes)
        self._assumed: dict[str, str] = {}
        self._taken: Counter[str] = Counter()
        self._group_of_job: dict[str, str] = {}
        self._templates = Templates(self.classes)
        self._arrivals: dict[str, int] = {}
        self._counter = count()

    # -- objects ----------------------------------------------------------------------------------------------------

    def on_node(self, old: Node | None, new: Node | None) -> bool:
        """A node; True if it matters to scheduling."""
        if new is not None:
            return self.nodes.put(new)
        if old is not None:
            self.nodes.remove(old.metadata.name)
        return True

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """A pod of any scheduler."""
        if new is None:
            if old is not None:
                self._forget_pod(old.metadata.uid)
            return
        known = self.pods.get(new.metadata.uid)
        if known and version(new.metadata.resource_version) < version(known.resource_version):
            return
        assumed = self._assumed.get(new.metadata.uid, "")
        self._keep_pod(record_of(new, self.classes.of_pod(new), assumed), known)
        self._meet_queries()

    def on_pod_written(self, new: Pod) -> None:
        """A pod that we wrote; one that the watch has shown as gone meanwhile stays forgotten."""
        if new.metadata.uid in self.pods:
            self.on_pod(None, new)

    def assume(self, uid: str, node: str) -> None:
        """A pod that we have just bound, before the watch tells."""
        record = self.pods.get(uid)
        if record is not None and not record.node:
            self._assumed[uid] = node
            self._keep_pod(replace(record, node=node, gated=False), record)

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """A gang."""
        if new is None:
            known = self.groups.get(old.metadata.key) if old else None
            if old is not None and known is not None and known.metadata.uid == old.metadata.uid:
                del self.groups[old.metadata.key]
                self._arrivals.pop(old.metadata.uid, None)
                owner = old.metadata.controller
                if owner is not None:
                    self._group_of_job.pop(owner.uid, None)
                self._touch(old.metadata.key)
                self._hold(old.metadata.key)
            return
        known = self.groups.get(new.metadata.key)
        if known and known.metadata.uid == new.metadata.uid and _older(new, known):
            return
        self.groups[new.metadata.key] = new
        self._arrivals.setdefault(new.metadata.uid, next(self._counter))
        owner = new.metadata.controller
        if owner is not None:
            self._group_of_job[owner.uid] = new.metadata.key
        self._touch(new.metadata.key)
        self._hold(new.metadata.key)

    def on_placement(self, old: Placement | None, new: Placement | None) -> None:
        """A placement, ours or one that somebody edited."""
        if new is None:
            known = self.placements.get(old.metadata.key) if old else None
            if old is not None and known is not None and known.metadata.uid == old.metadata.uid:
                del self.placements[old.metadata.key]
                self._touch(old.metadata.key)
                self._hold(old.metadata.key)
            return
        known = self.placements.get(new.metadata.key)
        if known and known.metadata.uid == new.metadata.uid and _older(new, known):
            return
        self.placements[new.metadata.key] = new
        self._touch(new.metadata.key)
        self._hold(new.metadata.key)

    def on_job(self, old: Job | None, new: Job | None) -> None:
        """A Volcano Job: its templates say what its pods will be."""
        job = new or old
        if job is None:
            return
        same = old is not None and new is not None and old.spec == new.spec
        if new is None:
            self.jobs.pop(job.metadata.uid, None)
        else:
            self.jobs[job.metadata.uid] = new
        if not same:
            self._templates.forget(job.metadata.uid)
        key = self._group_of_job.get(job.metadata.uid)
        if key and not same:
            self._touch(key)
            self._hold(key)

    def on_queue(self, old: Queue | None, new: Queue | None) -> None:
        """A queue."""
        if new is not None:
            self.queues[new.metadata.name] = new
        elif old is not None:
            self.queues.pop(old.metadata.name, None)

    def on_priority_class(self, old: PriorityClass | None, new: PriorityClass | None) -> None:
        """A priority class."""
        if new is not None:
            self.priorities[new.metadata.name] = new.value
        elif old is not None:
            self.priorities.pop(old.metadata.name, None)

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> bool:
        """A namespace: its labels decide which pods some affinity terms mean. True if that changed anything."""
        meta = (new or old or Namespace()).metadata
        queries = self.classes.queries
        known = queries.namespaces.get(meta.name)
        if new is None:
            queries.namespaces.pop(meta.name, None)
        elif known == new.metadata.labels:
            return False
        else:
            queries.namespaces[meta.name] = new.metadata.labels
        if not any(query.follows_namespaces for query in queries.alive()):
            return False
        self._match_again(lambda namespace, _: namespace == meta.name, list(self.pods.values()))
        return True

    def on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
        """A volume claim; True if it matters to scheduling."""
        gone = self.volumes.remove_claim(old.metadata.key) if old and new is None else False
        return self._volumes_changed(self.volumes.put_claim(new) if new else gone)

    def on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
        """A persistent volume; True if it matters to scheduling."""
        gone = self.volumes.remove_volume(old.metadata.name) if old and new is None else False
        return self._volumes_changed(self.volumes.put_volume(new) if new else gone)

    def on_storage_class(self, old: StorageClass | None, new: StorageClass | None) -> bool:
        """A storage class; True if it matters to scheduling."""
        gone = self.volumes.remove_class(old.metadata.name) if old and new is None else False
        return self._volumes_changed(self.volumes.put_class(new) if new else gone)

    def _volumes_changed(self, matters: bool) -> bool:  # noqa: FBT001 - private, and the one thing it is told
        self.nodes.version += matters
        return matters

    # -- views ------------------------------------------------------------------------------------------------------

    def gangs(self) -> list[GangView]:
        """All gangs; only those that changed are looked at anew."""
        while self.dirty:  # a template may bring demands that other gangs meet
            self._look(self.dirty.pop())
        return list(self._views.values())

    def gang(self, key: str) -> GangView | None:
        """One gang as it is now."""
        if key in self.dirty or key not in self._views:
            self.dirty.discard(key)
            self._look(key)
        return self._views.get(key)

    def placement_of(self, key: str) -> Placement | None:
        """The placement of a gang; not one that was made for another PodGroup of its name."""
        placement, group = self.placements.get(key), self.groups.get(key)
        same = placement and group and placement.spec.pod_group_uid == group.metadata.uid
        return placement if same else None

    def taken(self, key: str) -> int:
        """How many pods of a gang are bound or have succeeded; never less than the seats that are taken."""
        return self._taken[key]

    def all_taken(self) -> dict[str, int]:
        """The same of every gang that has any."""
        return dict(self._taken)

    def started(self, key: str) -> bool:
        """As `GangView.started`, without a look at every member where that is not needed."""
        placement, group = self.placement_of(key), self.groups.get(key)
        if once_whole(placement):
            return True
        if group is None or not self._taken[key] or self._taken[key] < group.spec.min_member:
            return False
        gang = self.gang(key)
        return gang is not None and gang.started

    def _look(self, key: str) -> None:
        group = self.groups.get(key)
        if group is None:
            self._views.pop(key, None)
            return
        known = self._views.get(key)
        view = self._views[key] = self._view(group)
        self._meet_queries()
        if key in self._holds and known and known.classes != view.classes:
            self._hold(key)

    def assumed(self) -> dict[str, str]:
        """UID → node of pods that we have bound, before the watch tells."""
        return dict(self._assumed)

    def objects(self) -> Objects:
        """What everything else is made from, pods aside."""
        return Objects(
            [node for node in self.nodes.nodes if node is not None],
            dict(self.classes.queries.namespaces),
            list(self.jobs.values()),
            list(self.groups.values()),
            list(self.placements.values()),
        )

    def touch_all(self) -> None:
        """Look at every gang again, e.g. after becoming the leader."""
        self.dirty.update(self.groups)

    def held_seats(self) -> int:
        """Seats of active placements whose pods are not bound yet, over all gangs."""
        return self._holds.seats()

    def _view(self, group: PodGroup) -> GangView:
        key, owner = group.metadata.key, group.metadata.controller
        return view_of(
            group,
            list(self._members.get(key, {}).values()),
            self._templates,
            job=self.jobs.get(owner.uid) if owner else None,
            placement=self.placement_of(key),
            priority=self.priorities.get(group.spec.priority_class_name, 0),
            arrival=self._arrivals[group.metadata.uid],
        )

    # -- who meets whose demands ------------------------------------------------------------------------------------

    def _meet_queries(self) -> None:
        """Compare everybody with the queries that are new."""
        queries = self.classes.queries
        while queries.fresh:
            query = queries.fresh.pop()
            key, value = query.pair or ("", None)
            likely = [record for record in self.pods.values() if record.labels.get(key) == value]
            self._match_again(partial(queries.means, query), likely)

    def _match_again(self, meant: Callable[[str, dict[str, str]], bool], records: list[PodRecord]) -> None:
        """Give the pods (of these) and templates that are meant the class with the demands that they meet now."""
        for record in records:
            if meant(record.namespace, record.labels):
                cls = self.classes.matched_again(record.cls, record.namespace, record.labels)
                if cls is not record.cls:
                    self._keep_pod(replace(record, cls=cls), record)
        for uid in self._templates.match_again(meant):
            key = self._group_of_job.get(uid)
            if key:
                self._touch(key)
                self._hold(key)

    # -- pods and what they use -------------------------------------------------------------------------------------

    def _count_taken(self, before: PodRecord | None, after: PodRecord | None) -> None:
        for record, change in ((before, -1), (after, 1)):
            if record is not None and record.gang and record.taken:
                self._taken[record.gang] += change
                if not self._taken[record.gang]:
                    del self._taken[record.gang]

    def _keep_pod(self, record: PodRecord, known: PodRecord | None) -> None:
        self._count_taken(known, record)
        if known is not None and known.gang and known.gang != record.gang:
            self._members.get(known.gang, {}).pop(known.uid, None)
            self._touch(known.gang)
        self.pods[record.uid] = record
        if record.node and record.phase not in {"Succeeded", "Failed"}:
            self.nodes.charge(record.uid, record.node, record.cls, leaving=record.terminating)
        else:
            self.nodes.discharge(record.uid)
        if record.gang:
            self._members.setdefault(record.gang, {})[record.uid] = record
            self._touch(record.gang)
            if record.taken or record.waiting:
                self._holds.seat_changed(record.gang, record)
            elif record.gang in self._holds:
                self._hold(record.gang)

    def _forget_pod(self, uid: str) -> None:
        self._assumed.pop(uid, "")
        self.nodes.discharge(uid)
        record = self.pods.pop(uid, None)
        self._count_taken(record, None)
        if record is None or not record.gang:
            return
        members = self._members.get(record.gang, {})
        members.pop(uid, None)
        if not members:
            self._members.pop(record.gang, None)
        self._touch(record.gang)
        if record.gang in self._holds:
            self._hold(record.gang)

    def _hold(self, key: str) -> None:
        """Charge the seats of the gang's active placement, and only those."""
        placement = self.placements.get(key)
        active = placement is not None and placement.status.phase in ACTIVE
        self._holds.hold(key, self.gang(key) if active else None)

    def _touch(self, key: str) -> None:
        self.dirty.add(key)


def _older(new: Placement | PodGroup, known: Placement | PodGroup) -> bool:
    return version(new.metadata.resource_version) < version(known.metadata.resource_version)
