"""The table of workload kinds, and functions that look up rows in it.

The functions find the adapter of a pod, and the gang of pods that do not belong to a Volcano Job.

The gang of pods with a framework is the framework's world: all ranks start together.
"""

import re
from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import PodSchedulingGroup
from muster.api.limits import PODS, RANK, whole_number
from muster.api.muster.gang import DEFAULT_POD_SET, Slot, group_name_for_owner, named_gang, native_gang
from muster.api.muster.pools import is_musters
from muster.workloads.adapter import Adapter, OwnerError, needed
from muster.workloads.apps import DAEMON_SET, DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET
from muster.workloads.batch_job import BATCH_JOB, CRON_JOB
from muster.workloads.jobset import JOB_SET
from muster.workloads.kind import GangRules, PodContext, WorkloadKind
from muster.workloads.leader_worker_set import LEADER_WORKER_SET
from muster.workloads.pod import POD
from muster.workloads.volcano_job import TRAIN_JOB, VOLCANO_JOB

KINDS: tuple[WorkloadKind, ...] = (
    BATCH_JOB,
    CRON_JOB,
    JOB_SET,
    STATEFUL_SET,
    LEADER_WORKER_SET,
    REPLICA_SET,
    DEPLOYMENT,
    DAEMON_SET,
    REPLICATION_CONTROLLER,
    POD,
    VOLCANO_JOB,
    TRAIN_JOB,
)
"""All kinds, in the order in which messages name them. A kind that creates objects of another kind comes after that
kind."""

TIED_OWNERS = (*(kind.resource.kind for kind in KINDS if kind.one_node_each), "Node")
"""Kinds of owners with a certain node for each of their pods, so that the planner need not choose a node."""

MAKERS = frozenset(kind.resource.kind for kind in KINDS if kind.maker)
"""Kinds that create workloads on a schedule."""

INDEXES = tuple(dict.fromkeys(kind.ranks.index for kind in KINDS if kind.ranks and kind.ranks.index))
"""Labels in which controllers write the index of a pod."""

PART_LABELS = tuple(kind.world.part_label for kind in KINDS if kind.world and kind.world.part_label)
"""Labels that distinguish the parts of a workload to which pods belong."""

_BY_NAME: Mapping[tuple[str, str], WorkloadKind] = {
    (kind.resource.api_version, kind.resource.kind): kind for kind in KINDS
}
PLAIN_PREFIX = "podgroup-kueue-"
"""Prefix of PodGroup names for plain pods that form a group by Kueue's label."""
CONTROLLERS: Mapping[tuple[str, str], Resource[Any]] = {
    (kind.ranks.controller.api_version, kind.ranks.controller.kind): kind.ranks.controller
    for kind in KINDS
    if kind.ranks and kind.ranks.controller
}
"""Maps an API version and a kind to a kind of controllers whose pods have ranks; admission reads these controllers."""
_NO_RANKS = {kind.resource.kind: kind.no_ranks for kind in KINDS if kind.no_ranks}
_RECOMMENDED = [kind.ranks.recommended_as for kind in KINDS if kind.ranks and kind.ranks.recommended_as]
_ADVICE = f"; use {', '.join(_RECOMMENDED[:-1])} or {_RECOMMENDED[-1]}"
_NO_POD = PodContext()
_PLAIN_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def kind_of(api_version: str, kind: str) -> WorkloadKind | None:
    """Return the row of a kind; None for a kind that Muster does not know."""
    return _BY_NAME.get((api_version, kind))


def kind_in(manifest: Mapping[str, Any]) -> WorkloadKind | None:
    """Return the row of a manifest's kind; None for a kind that Muster does not know."""
    return kind_of(str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))


def row(resource: Resource[Any]) -> WorkloadKind:
    """Return the row of a kind that is in the table."""
    return _BY_NAME[resource.api_version, resource.kind]


def row_of(owner: OwnerReference | None) -> WorkloadKind | None:
    """Return the row of an owner's kind; None without an owner, or for a kind that Muster does not know."""
    return _BY_NAME.get((owner.api_version, owner.kind)) if owner else None


def gang_rules(owner: OwnerReference | None) -> GangRules | None:
    """Return the rules for an owner's gang; None without an owner, or if its pods' own labels determine the gang."""
    kind = row_of(owner)
    return kind.gang if kind else None


def source_of(meta: ObjectMeta) -> Resource[Any] | None:
    """Return the kind of the owner that must be read before `adapter_for`; None for a pod without an owner.

    Raises OwnerError if pods of the owner's kind have no ranks.
    """
    owner = meta.controller
    if owner is None:
        return None
    resource = CONTROLLERS.get((owner.api_version, owner.kind))
    if resource:
        return resource
    reason = why_no_ranks(owner.kind) or f"Muster does not know how pods of a {owner.kind} find their rank{_ADVICE}"
    raise OwnerError(f"{reason}. This pod belongs to {owner.kind} {owner.name}", owner.kind)


def why_no_ranks(kind: str) -> str:
    """Return why pods of this kind have no ranks, and kinds to use instead; "" if they may have ranks."""
    reason = _NO_RANKS.get(kind, "")
    return f"{reason}{_ADVICE}" if reason else ""


def adapter_for(owner: Object | None, pod: PodContext = _NO_POD) -> Adapter:
    """Return the adapter for a pod, or for any pod of the owner; `owner` is of the kind that `source_of` names."""
    for kind in reversed(KINDS):  # a kind that creates another kind comes after it, and is checked first here
        if kind.ranks is None:
            continue
        controller = kind.ranks.controller
        if isinstance(owner, controller.type) if controller else owner is None:
            adapter = kind.ranks.adapter(owner, pod)
            if adapter:
                return adapter
    raise TypeError(f"no kind of workload has an adapter for a {type(owner).__name__}")


def gang_of(pod: Pod) -> str | None:
    """Return the name of the pod's gang, in the pod's namespace; None for a pod without a gang.

    The gang is the PodGroup that the pod names in labels or annotations, else its native PodGroup, unless another
    scheduler places the pod.
    """
    named = named_gang(pod.metadata)
    if named is not None or not is_musters(pod.spec.scheduler_name):
        return named
    return native_gang_of(pod.metadata, pod.spec.scheduling_group)


def native_gang_of(meta: ObjectMeta, group: PodSchedulingGroup | None) -> str | None:
    """Return the name of the gang in a pod's `spec.schedulingGroup`; None if the field is not set.

    Some controllers give a PodGroup to each of their workloads (`WorkloadKind.grouped`), even if a workload requests
    none. For workloads of these kinds, Muster's own rules determine the gang. Admission marks the template of a
    workload that requests a PodGroup.
    """
    if group is None or not group.pod_group_name:
        return None
    kind = row_of(meta.controller)
    if kind and kind.grouped and names.NATIVE_GROUP not in meta.annotations:
        return None
    return native_gang(group.pod_group_name)


def slot_of(meta: ObjectMeta) -> Slot | None:
    """Return the slot of a pod: by Volcano's task and index, Muster's annotation, or its controller's index.

    Returns None if a pod has none of them, or a rank above the limit; the planner then assigns the first free rank.
    """
    annotations, labels = meta.annotations, meta.labels
    if task := task_of(meta):
        own = annotations.get(names.TASK_INDEX) or labels.get(names.TASK_INDEX)
        return _slot(task, own or annotations.get(names.MEMBER_INDEX))
    for index in (
        annotations.get(names.MEMBER_INDEX),
        *(place.get(key) for key in INDEXES for place in (labels, annotations)),  # a template may have the annotation
    ):
        slot = _slot(DEFAULT_POD_SET, index)
        if slot:
            return slot
    return None


def task_of(meta: ObjectMeta) -> str:
    """Return the task in a pod's annotation or label from Volcano; empty for a pod of no task."""
    return meta.annotations.get(names.TASK_SPEC) or meta.labels.get(names.TASK_SPEC, "")


def _slot(pod_set: str, index: str | None) -> Slot | None:
    rank = whole_number(index, RANK.value)
    return None if rank is None else Slot(pod_set, rank)


def makes_all_alike(group: ObjectMeta) -> bool:
    """Return True if all pods of a PodGroup are created from one template, by an owner of the PodGroup."""
    rows = (row_of(each) for each in group.owner_references)
    return any(kind is not None and kind.one_template for kind in rows)


_WORLDS = [(kind, kind.world) for kind in KINDS if kind.world]


def group_name(meta: ObjectMeta) -> str:
    """Return the name of the PodGroup for a pod, by its world, its owner, or its Kueue label."""
    for _, world in _worlds_of(meta):
        return world
    if plain := plain_group(meta):
        return f"{PLAIN_PREFIX}{plain}"
    return group_name_for_owner(meta.controller.uid if meta.controller else meta.uid)


def plain_group(meta: ObjectMeta) -> str:
    """Return the PodGroup name of plain pods with Kueue's label; "" for other pods, or without the group's size.

    Kueue creates a Workload with the label's value as its name, so a valid value is a DNS name in lower case.
    """
    name = meta.labels.get(names.KUEUE_GROUP, "")
    known = meta.controller is None and whole_number(meta.annotations.get(names.KUEUE_TOTAL), PODS.value)
    return name if known and _PLAIN_NAME.fullmatch(name) else ""


def holds_min_resources(group: ObjectMeta) -> bool:
    """Return True if a PodGroup's minResources are reserved in its queue, because a user or another tool created it.

    A PodGroup that Muster creates never requests more than its pods request.
    """
    owner = group.controller
    if owner is None:
        return names.KUEUE_GROUP not in group.labels
    return row_of(owner) is None and not group.name.endswith(owner.uid)


def world_of(meta: ObjectMeta) -> tuple[Resource[Any], str] | None:
    """Return the kind and name of the pod's workload; None if the pods of one controller form the whole world."""
    for kind, _ in _worlds_of(meta):
        return kind.resource, meta.labels[kind.ranks.name_label] if kind.ranks else ""
    return None


def world_size(pod: Pod, owner: Object | None) -> int | None:
    """Return the number of ranks in the world of a pod, as in its environment; None for a pod without a framework.

    `owner` is the pod's controller. The result is also None if pods of the owner's kind have no ranks, or if the owner
    could not be read.
    """
    ref = pod.metadata.controller
    source = CONTROLLERS.get((ref.api_version, ref.kind)) if ref else None
    if source is None or names.FRAMEWORK not in pod.metadata.labels or not isinstance(owner, source.type):
        return None
    return adapter_for(owner, PodContext(pod.metadata, pod.spec)).size() or None


def is_independent(pod: Pod, owner: Object | None) -> bool:
    """Return True if the pod can start without other pods, because it has no framework and no minimum."""
    given = [meta.annotations for meta in ((owner.metadata, pod.metadata) if owner else (pod.metadata,))]
    annotated = any(key in each for each in given for key in names.MIN_MEMBER_KEYS)
    labels = pod.metadata.labels | (owner.metadata.labels if owner else {})
    annotated = annotated or bool(plain_group(pod.metadata))
    return not annotated and _asked(pod, owner) == 1 and names.FRAMEWORK not in labels


def min_member(pod: Pod, owner: Object | None, ended: int = 0) -> int:
    """Return the number of pods that must start together, from an annotation, the world or `spec.scheduling`; else 1.

    The result is at most the number of pods that exist at a time: the owner may have been scaled down, or have its
    JobSet's annotation. The result is also at most the number of pods that can still start, plus the number of
    succeeded pods that still exist (`ended`). `owner` is the pod's controller, if it can be read.
    """
    rules = gang_rules(pod.metadata.controller)
    alone = world_of(pod.metadata) is None  # otherwise the members of other owners are left too
    left = rules.left(owner) if owner and rules and rules.left and alone else None
    least = _min_member(pod, owner, rules)
    return least if left is None else max(1, min(least, left + ended))


def _min_member(pod: Pod, owner: Object | None, rules: GangRules | None) -> int:
    at_once = rules.at_once(owner) if owner and rules and rules.at_once else None
    most = world_size(pod, owner) or at_once
    if plain_group(pod.metadata):
        return whole_number(pod.metadata.annotations.get(names.KUEUE_TOTAL), PODS.value) or 1
    for meta in (owner.metadata, pod.metadata) if owner else (pod.metadata,):
        for key in names.MIN_MEMBER_KEYS:
            least = whole_number(meta.annotations.get(key), PODS.value)
            if least:
                return min(least, most or least)
    if not (most and owner and names.FRAMEWORK in owner.metadata.labels | pod.metadata.labels):
        return min(_asked(pod, owner), most or PODS.value)
    elastic = pod.metadata.annotations.get(names.ELASTIC) or owner.metadata.annotations.get(names.ELASTIC)
    return needed(most, elastic)


def _asked(pod: Pod, owner: Object | None) -> int:
    """Return the minimum in the owner's own fields, such as a batch Job's `spec.scheduling`; 1 without such a field."""
    rules = gang_rules(pod.metadata.controller)
    return min(rules.minimum(owner) or 1, PODS.value) if owner and rules and rules.minimum else 1


def _worlds_of(meta: ObjectMeta) -> list[tuple[WorkloadKind, str]]:
    if names.FRAMEWORK not in meta.labels or meta.controller is None:
        return []
    return [(kind, name) for kind, world in _WORLDS if (name := world.group(meta))]
