"""The cluster as known to the planner, updated by watch events.

Every method `on_*` takes one object before and after its change (None: missing); the cost of a call depends only on the
change. Objects that Muster has written are added once the API server has confirmed the write, before the watch reports
these objects. Older versions of an object that arrive later are ignored.

After each event, the nodes, the ledger, and the matches of pods with compared demands are up to date. Views of gangs
(`planner.state.views`) are updated later. The state is used on one event loop (`extender.cluster`); its code never
blocks.
"""

from collections.abc import Iterator

from msgspec.structs import astuple, replace

from extender.planner import reasons
from extender.planner.state import podchanges
from extender.planner.state.gangphase import ACTIVE
from extender.planner.state.gangtable import version
from extender.planner.state.pods import PodRecord, record_of
from extender.planner.state.views import Views
from muster.api.kubernetes.core import Namespace, Node, Pod, PriorityClass
from muster.api.kubernetes.scheduling import NativePodGroup
from muster.api.muster.native import is_native
from muster.api.muster.placement import Placement, node_of_slot
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup, Queue
from muster.resources.runtime import UNKNOWN
from muster.volcano.queuelimits import limits_of


class PlannerState(Views):
    """The state of a cluster, with one method for each kind of object that changes it."""

    def on_node(self, old: Node | None, new: Node | None) -> bool:
        """Update a node; return True if the change is relevant to scheduling, unlike a heartbeat."""
        name = (new or old or Node()).metadata.name
        self.exclusions.nodes.pop(name, "")
        if new is not None:
            if self.nodes.knows(new):
                return False
            try:
                self.ledger.put_node(new)
            except Exception as error:  # noqa: BLE001 - an error in one node must not affect the others
                self.exclusions.nodes[name] = reasons.exclusions.error_text(error)
            else:
                self.claimants.equip_nodes({name})
                return True
        column = self.nodes.index.get(name)
        if column is not None:
            self.answers.forget_node(column)
            self.ledger.remove_node(name)
        return True

    def on_pod(self, old: Pod | None, new: Pod | None) -> bool:
        """Update a pod of any scheduler; return True if the change may require a decision of the planner.

        The result is False for a new member that is pinned according to its placement, and for a pod that keeps running
        on its node. The result is also False for a pod that another scheduler binds.
        """
        if new is None:
            if old is not None:
                self._forget_pod(old.metadata.uid)
            return True
        uid = new.metadata.uid
        known = self.pods.get(uid)
        if known and version(new.metadata.resource_version) < version(known.resource_version):
            return False
        self._gang_changed(self.exclusions.forget_pod(uid))
        try:
            there = podchanges.as_charged(known, new)
            record = record_of(there, self.classes.of_pod(there), known.node if known else "", self.pool)
            record = self.claimants.equipped(podchanges.charged(known, record))
        except Exception as error:  # noqa: BLE001 - an error in one pod must not affect the others
            if left := podchanges.unread(known, new):
                self._keep_pod(left)
            else:
                self._forget_pod(uid)
            self._gang_changed(self.exclusions.add_pod(new, reasons.exclusions.error_text(error)))
            return True
        if known is not None and astuple(known) == astuple(record):  # Muster's own write
            return False
        self._keep_pod(record)
        if known is not None and podchanges.differs_in_messages(known, record):
            return False
        self._compare()
        expected = podchanges.keeps_running(known, record) if known else self._is_expected(record)
        return not (expected or podchanges.only_takes_capacity(known, record))

    def _is_expected(self, record: PodRecord) -> bool:
        """Return True for a new member that is pinned according to its gang's placement."""
        placement = self.placement_of(record.gang) if record.gang and not record.gated else None
        if placement is None or record.slot is None or placement.status.phase not in ACTIVE:
            return False
        return (record.epoch, record.pin) == (placement.spec.epoch, node_of_slot(placement, record.slot))

    def on_pod_written(self, new: Pod) -> None:
        """Update a pod that Muster has written, unless the watch has reported that the pod was deleted."""
        if new.metadata.uid in self.pods:
            self.on_pod(None, new)

    def assume(self, uid: str, node: str, devices: tuple[int, ...] = ()) -> bool:
        """Update a pod that Muster has just bound, before the watch reports the binding.

        Return True if the binding may require a decision of the planner, because the gang has reached its minimum or
        has no placed slot left.
        """
        record = self.pod_table.bound(uid, node, devices)
        if record is None:
            return False
        self._keep_pod(self.claimants.equipped(record))
        if not record.gang:
            return False
        group = self.groups.get(record.gang)
        least = group.spec.min_member if group is not None else 0
        if not self.ledger.placed[record.gang] or self.some_done(record.gang):
            return True
        return self.pod_table.taken[record.gang] == least

    def ending(self) -> Iterator[PodRecord]:
        """Yield the pods without a gang that are on a node, or are being bound to a node, and declare a runtime."""
        yield from self.pod_table.ending.values()
        for holder in self.ledger.assumed:
            record = self.pod_table.records.get(str(holder))
            if record is not None and not record.gang and not record.node and record.runtime is not UNKNOWN:
                yield replace(record, node=self.ledger.entries[holder].node)

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> bool:
        """Update a PodGroup; return True if the change is relevant to planning, unlike a message in its status."""
        key = (new or old or PodGroup()).metadata.key
        known = self.groups.get(key)
        if new is not None and known is not None and is_native(known):
            self._put_group(known, None)
        news = self._put_group(old, new) and _planned(known) != _planned(new)
        return (key in self.native.groups and self.native.settle(key)) or news

    def on_pod_group_written(self, new: PodGroup) -> bool:
        """Update a PodGroup that Muster has written, unless the watch has reported its deletion; see `on_pod_group`."""
        known = self.groups.get(new.metadata.key)
        if known is None or known.metadata.uid != new.metadata.uid:
            return False
        return self.on_pod_group(known, new)

    def on_native_written(self, new: NativePodGroup) -> bool:
        """Update a native PodGroup that Muster has written, unless the watch has reported its deletion."""
        return self.native.on_written(new)

    def on_placement(self, old: Placement | None, new: Placement | None) -> bool:
        """Update a Placement, written by Muster or edited by others; return True if the update changes the state."""
        if new is not None:
            self.failures.remember(new.metadata.key, new.status.avoided)
        key = self._gangs.on_placement(old, new)
        self._gang_changed(key)
        return key is not None

    def on_job(self, old: Job | None, new: Job | None) -> bool:
        """Update a Volcano Job with its pod templates; return True if the update changes the state."""
        key = self._gangs.on_job(old, new)
        self._gang_changed(key)
        return key is not None

    def on_queue(self, old: Queue | None, new: Queue | None) -> bool:
        """Update a queue of any pool; return True if the change is relevant to planning, unlike numbers of gangs."""
        name = (new or old or Queue()).metadata.name
        before = _limits(self.queues.get(name))
        self.access.on_queue(old, new)
        if before != _limits(self.queues.get(name)):
            self.ledger.queues.limits_changed()
        return _planned(old) != _planned(new)

    def on_priority_class(self, old: PriorityClass | None, new: PriorityClass | None) -> None:
        """Update a PriorityClass; a gang gets the new value when the gang changes next."""
        name = (new or old or PriorityClass()).metadata.name
        self._gangs.priorities.update_class(name, new)

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> bool:
        """Update a namespace; return True if new labels are relevant to an affinity or to the queues of its pods."""
        name = (new or old or Namespace()).metadata.name
        of_queues = self.access.on_namespace(old, new)
        of_terms = self.classes.queries.on_namespace(name, new.metadata.labels if new else None)
        if (old.queue if old else "") != (new.queue if new else ""):
            of_queues = self.native.on_namespace(name) or of_queues
        if of_terms:
            self.comparisons.relabelled(name)
            self._compare()
        return of_terms or of_queues


def _planned(item: PodGroup | Queue | None) -> object:
    """Return an object's planning fields; kinds without a status subresource change generation with each message."""
    if item is None:
        return None
    phase = item.status.phase if isinstance(item, PodGroup) else item.status.state
    return replace(item.metadata, resource_version="", generation=0), item.spec, phase


def _limits(queue: Queue | None) -> object:
    """Return the fields that determine the limits of a queue and of its descendants."""
    return queue and (queue.spec.parent, queue.spec.capability, limits_of(queue.metadata.annotations))
