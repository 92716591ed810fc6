"""Native PodGroups; a native PodGroup is a gang if one of its pods uses one of Muster's schedulers.

In the API, only the pods of a native PodGroup name a scheduler. Until a pod of the group is known, Muster ignores the
group. The gang of a native PodGroup has another name than the group. If a Volcano PodGroup also has the gang's name,
Muster excludes the gang from scheduling.

Groups of a CompositePodGroup (a group of groups) are excluded from planning if the CompositePodGroup has constraints
across its groups.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from extender.planner import reasons
from extender.planner.state.amounts import discard, put_entry
from extender.planner.state.devicetable import ClaimRef
from extender.planner.state.gangtable import is_older
from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, CompositePodGroup, NativePodGroup, Workload
from muster.api.muster.gang import native_gang
from muster.api.muster.native import as_group, binds_parts, held_queue, is_native, pool_of_group, queue_of
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup

MOST_LEVELS = 8
"""Maximum number of levels of CompositePodGroups that are checked above a group; the API allows four levels."""


@dataclass(slots=True, eq=False)
class NativeGroups:
    """Native PodGroups, keyed by their gang's key. `gangs` contains the state's gangs; `put` adds or removes a gang.

    `changed` marks a gang whose reason in `excluded` has changed, and `namespace_queue` returns a namespace's queue.
    `claims_changed` is called with the previous and the current claims that the pods of a group share.
    """

    gangs: Mapping[str, PodGroup]
    excluded: dict[str, str]
    put: Callable[[PodGroup | None, PodGroup | None], bool]
    changed: Callable[[str], None]
    namespace_queue: Callable[[str], str]
    claims_changed: Callable[[Collection[ClaimRef], Collection[ClaimRef]], None]
    pool: str
    groups: dict[str, NativePodGroup] = field(default_factory=dict)
    _composites: dict[str, CompositePodGroup] = field(default_factory=dict)
    _workloads: dict[str, Object] = field(default_factory=dict)
    _of_workload: dict[str, set[str]] = field(default_factory=dict)
    """Maps a Workload to the keys of its gangs."""
    _reported: dict[str, tuple[tuple[str, str], str]] = field(default_factory=dict)
    """Maps a gang to its oldest pod, whose scheduler decides whether the gang is Muster's, and to the queue that this
    pod names."""
    _podless: set[str] = field(default_factory=set)
    """Keys of gangs without pods. A later group of the same name is Muster's only once the group has a pod."""

    def on_group(self, old: NativePodGroup | None, new: NativePodGroup | None) -> bool:
        """Update a native PodGroup; return True if the update changes a gang."""
        meta = (new or old or NativePodGroup()).metadata
        key = f"{meta.namespace}/{native_gang(meta.name)}"
        known = self.groups.get(key)
        if new is None and (known is None or known.metadata.uid != meta.uid):
            return False
        if new is not None and known is not None and is_older(new, known):
            return False
        put_entry(self.groups, key, new)
        if key in self._podless and (new is None or known is None or new.metadata.uid != known.metadata.uid):
            self._podless.discard(key)
            self._reported.pop(key, None)
        before, after = _claims_of(known), _claims_of(new)
        if before != after:
            self.claims_changed(before, after)
        discard(self._of_workload, _workload_of(known), key)
        if workload := _workload_of(new):
            self._of_workload.setdefault(workload, set()).add(key)
        return self.settle(key)

    def on_written(self, new: NativePodGroup) -> bool:
        """Update a group that Muster has written, unless the watch has reported that the group was deleted."""
        known = self.groups.get(f"{new.metadata.namespace}/{native_gang(new.metadata.name)}")
        return known is not None and known.metadata.uid == new.metadata.uid and self.on_group(known, new)

    def on_workload(self, old: Workload | None, new: Workload | None) -> bool:
        """Update a Workload, whose labels may name its groups' queue; return True if the update changes a gang."""
        meta = (new or old or Workload()).metadata
        known = put_entry(self._workloads, meta.key, Object(metadata=new.metadata) if new else None)
        before, after = (queue_of(each) if each else "" for each in (known, new))
        keys = self._of_workload.get(meta.key, ()) if before != after else ()
        return bool([key for key in keys if self.settle(key)])

    def on_composite(self, old: CompositePodGroup | None, new: CompositePodGroup | None) -> bool:
        """Update a CompositePodGroup; return True if the update changes a gang."""
        meta = (new or old or CompositePodGroup()).metadata
        known = put_entry(self._composites, meta.key, new)
        if known is not None and new is not None and known.spec == new.spec:
            return False
        parts = [
            key
            for key, group in self.groups.items()
            if group.spec.parent_composite_pod_group_name and group.metadata.namespace == meta.namespace
        ]
        return bool([key for key in parts if self.settle(key)])

    def on_namespace(self, namespace: str) -> bool:
        """Update a namespace whose queue has changed; return True if the update changes a gang."""
        keys = [key for key, group in self.groups.items() if group.metadata.namespace == namespace]
        return bool([key for key in keys if self.settle(key)])

    def on_pod(self, record: PodRecord) -> None:
        """Record a pod; its group may thereby become a gang of Muster."""
        if record.gang is None or not record.ours:
            return
        self._podless.discard(record.gang)
        reported, age = self._reported.get(record.gang), (record.created, record.name)
        if reported is not None and reported[0] <= age:
            return
        self._reported[record.gang] = age, record.queue
        if record.gang in self.groups and (reported is None or reported[1] != record.queue):
            self.settle(record.gang)

    def without_pods(self, key: str) -> None:
        """Record that a gang has no pods left; the gang's group still belongs to Muster."""
        if key in self.groups:
            self._podless.add(key)
        else:
            self._reported.pop(key, None)

    def settle(self, key: str) -> bool:
        """Update the gang of a group to the group's current content; return True if the update changes the gang."""
        group, known = self.groups.get(key), self.gangs.get(key)
        if known is not None and is_native(known) and (group is None or group.metadata.uid != known.metadata.uid):
            self.put(known, None)
            known = None
        foreign = known if known is not None and not is_native(known) else None
        excluded = self._exclude(key, self._obstacle(group, foreign) if group is not None else "")
        gang = self._gang(key, group) if group is not None and foreign is None else None
        if gang is None:
            return excluded
        return self.put(known, gang) or excluded

    def _gang(self, key: str, group: NativePodGroup) -> PodGroup | None:
        """Return the gang of a group; None if the group is not known to be Muster's or is in another pool.

        If Muster has written a group's phase, the group remains a gang of Muster; the phase also records the pool.
        """
        gang = as_group(group, self._queue(key, group))
        return gang if key in self._reported or (gang.status.phase and pool_of_group(group) == self.pool) else None

    def _obstacle(self, group: NativePodGroup, foreign: PodGroup | None) -> str:
        """Return the reason, as a sentence, why the gang cannot be evaluated; empty for other gangs."""
        if foreign is not None:
            one, other = POD_GROUPS.group, NATIVE_POD_GROUPS.group
            return reasons.exclusions.same_name(
                name=foreign.metadata.name, one=one, native=group.metadata.name, other=other
            )
        parent, namespace = group.spec.parent_composite_pod_group_name, group.metadata.namespace
        for _ in range(MOST_LEVELS):
            if not parent:
                return ""
            above = self._composites.get(f"{namespace}/{parent}")
            if above is None:
                return reasons.exclusions.composite_missing(parent=parent)
            if binds_parts(above.spec):
                break
            parent = above.spec.parent_composite_pod_group_name
        return reasons.exclusions.composite(parent=parent) if parent else ""

    def _exclude(self, key: str, why: str) -> bool:
        if put_entry(self.excluded, key, why or None) == (why or None):
            return False
        self.changed(key)
        return True

    def _queue(self, key: str, group: NativePodGroup) -> str:
        """Return the first queue named by the nodes, the group, its Workload, its pods, or its namespace."""
        if held := held_queue(group):
            return held
        workload = self._workloads.get(_workload_of(group))
        _, of_pods = self._reported.get(key, (("", ""), ""))
        of_workload = queue_of(workload) if workload else ""
        return queue_of(group) or of_workload or of_pods or self.namespace_queue(group.metadata.namespace)


def _workload_of(group: NativePodGroup | None) -> str:
    """Return the key of the Workload from which a group was created; empty without a Workload."""
    reference = group.spec.workload_ref if group is not None else None
    if group is None or reference is None or not reference.workload_name:
        return ""
    return f"{group.metadata.namespace}/{reference.workload_name}"


def _claims_of(group: NativePodGroup | None) -> frozenset[ClaimRef]:
    """Return the claims that the pods of a group share, including the templates of claims created for the group."""
    if group is None:
        return frozenset()
    claims, namespace = group.spec.resource_claims, group.metadata.namespace
    named = {each.resource_claim_name for each in claims} - {None, ""}
    templates = {each.resource_claim_template_name for each in claims} - {None, ""}
    refs = {ClaimRef(f"{namespace}/{name}") for name in named}
    return frozenset(refs | {ClaimRef(template=f"{namespace}/{name}") for name in templates})
