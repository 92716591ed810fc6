"""The PodGroup of pods that do not belong to a Volcano Job.

The pods belong to batch Jobs, StatefulSets, ReplicaSets or DaemonSets, or have no owner.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.limits import whole_number
from muster.api.muster.gang import workload_note
from muster.api.muster.pools import is_musters
from muster.api.unchecked import value_at
from muster.api.volcano.scheduling import POD_GROUPS, NetworkTopology, PodGroup, PodGroupSpec
from muster.resources.pods import pod_usage, quota
from muster.volcano.podgroup import new_group, spec_changes
from muster.volcano.pods import COPIED_ANNOTATIONS, COPIED_LABELS, DISRUPTION, copied
from muster.volcano.tasks import job_of
from muster.workloads.kind import Verbs, WorkloadKind
from muster.workloads.table import MAKERS, gang_of, gang_rules, group_name, is_independent, min_member, plain_group

_GROUP_ANNOTATIONS = (*names.GANG_KEYS, names.ELASTIC, *names.SCALE_UP_KEYS)
_OF_THE_WORKLOAD = names.GANG_TOPOLOGY_KEYS
"""Annotations that are copied only from the owner. A gang may have several kinds of pods, and these annotations of a
pod apply only to pods of its own kind."""
_OWNER_PREFIX = "volcano.sh/"
_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
_TOPOLOGY_TIER = "volcano.sh/network-topology-highest-tier"
_COMPUTED = ("minMember", "queue", "priorityClassName", "minResources", "networkTopology")
_OPERATOR = "other objects create its pods"
POD_GROUP = WorkloadKind(
    POD_GROUPS,
    templates=(),
    verbs=Verbs(
        ended=lambda group: value_at(group, ("status", "phase")) == "Completed",
        classes=(("spec", "priorityClassName"),),
        instead={
            "cancel": f"{_OPERATOR}, and would wait for the PodGroup forever: first delete these pods or their owner",
            "hold": f"{_OPERATOR}: hold the objects that create them",
            "release": f"{_OPERATOR}: release the objects that create them",
            "resize": f"{_OPERATOR}: change the number of pods in these objects; the gang's minimum is spec.minMember",
        },
    ),
)
"""The kind PodGroup, which a user or an operator creates for pods of their own."""


def group_to_make(pod: Pod) -> str | None:
    """Return the name of the PodGroup that the controller creates for this pod; None if no PodGroup is created."""
    meta = pod.metadata
    if not is_musters(pod.spec.scheduler_name) or pod.finished or meta.deletion_timestamp or job_of(meta):
        return None
    name = group_name(meta)
    return name if gang_of(pod) in {None, name} else None


def inherited(owner: Object, above: Object | None) -> Object:
    """Return the owner, with missing labels and annotations added from the owner's own owner."""
    if above is None:
        return owner
    metadata = structs.replace(
        owner.metadata,
        labels={**above.metadata.labels, **owner.metadata.labels},
        annotations={**above.metadata.annotations, **owner.metadata.annotations},
    )
    return structs.replace(owner, metadata=metadata)


def pod_group(pod: Pod, owner: Object | None, world: Object | None = None, ended: int = 0) -> PodGroup:
    """Return the PodGroup for this pod and its siblings; `owner` is the pods' controller, if it can be read.

    `world` is the workload of a gang with pods of several controllers. The PodGroup may name the default queue;
    admission then replaces it with the namespace's queue. `ended` is the number of pods that have succeeded and still
    exist.
    """
    members = min_member(pod, owner, ended)
    annotations = {
        key: value
        for key, value in (owner.metadata.annotations if owner else {}).items()
        if key.startswith(_OWNER_PREFIX) or key in _OF_THE_WORKLOAD
    }
    own = pod.metadata.annotations
    for source in (owner.metadata, pod.metadata) if owner else (pod.metadata,):
        annotations |= copied(source.annotations, _GROUP_ANNOTATIONS) | copied(source.labels, (names.SCALE_UP,))
    rules = gang_rules(pod.metadata.controller)
    if owner and rules and rules.level and (level := rules.level(owner)):  # the pod has no native PodGroup
        annotations[names.TOPOLOGY_REQUIRED] = level
    if is_independent(pod, owner):
        annotations[names.INDEPENDENT] = "true"
    top = world or owner
    annotations |= workload_note(top.metadata, MAKERS) if top else {}
    annotations |= copied(own, COPIED_ANNOTATIONS) | dict([*copied(own, DISRUPTION).items()][:1])
    # For a pod with a controller, the annotation comes from its template, which any user may write.
    annotations |= copied(owner.metadata.annotations if owner else own, (names.CREATED_BY,))
    name, labels = group_name(pod.metadata), copied(pod.metadata.labels, (*COPIED_LABELS, names.KUEUE_GROUP))
    spec = PodGroupSpec(
        min_member=members,
        queue=queue_of(pod, owner) or names.DEFAULT_QUEUE,
        priority_class_name=pod.spec.priority_class_name,
        min_resources=dict(quota(pod_usage(pod.spec).times(members))),
        network_topology=_topology(pod.metadata.annotations),
    )
    meta = ObjectMeta(name=name, namespace=pod.metadata.namespace, labels=labels, annotations=annotations)
    of = _reference(world) if world else pod.metadata.controller or _reference(pod)
    # Only the owner's own controller certainly has the right to the owner's finalizers, which some clusters require.
    owner_reference = None if plain_group(pod.metadata) else structs.replace(of, block_owner_deletion=False)
    return new_group(meta, spec, pod.spec.scheduler_name, owner_reference)


def in_the_queue_of(existing: PodGroup, wanted: PodGroup) -> PodGroup:
    """Return the PodGroup with the existing PodGroup's queue; a gang moves only if its pods name another queue."""
    return structs.replace(wanted, spec=structs.replace(wanted.spec, queue=existing.spec.queue))


def update(existing: PodGroup, wanted: PodGroup) -> dict[str, Any]:
    """Return the merge patch that brings a PodGroup up to date; empty if nothing has changed.

    The patch never changes the node pool of a PodGroup.
    """
    patch = spec_changes(existing, wanted, _COMPUTED)
    for name in ("labels", "annotations"):
        old, new = getattr(existing.metadata, name), getattr(wanted.metadata, name)
        changed = {key: value for key, value in new.items() if key != names.NODE_POOL and old.get(key) != value}
        if changed:
            patch.setdefault("metadata", {})[name] = changed
    return patch


def _topology(annotations: Mapping[str, str]) -> NetworkTopology | None:
    """Return the network topology that a pod's annotations request; an unknown mode counts as hard."""
    mode, tier = annotations.get(_TOPOLOGY_MODE), annotations.get(_TOPOLOGY_TIER, "")
    if mode is None and not tier:
        return None
    highest = whole_number(tier)
    return NetworkTopology(mode="soft" if (mode or "").lower() == "soft" else "hard", highest_tier_allowed=highest)


def queue_of(pod: Pod, owner: Object | None) -> str:
    """Return the queue to which the owner or pod was moved, else the queue named by the pod or its owner, else ""."""
    metas = (pod.metadata, owner.metadata) if owner else (pod.metadata,)
    for meta in reversed(metas):
        if moved := meta.annotations.get(names.MOVED_TO):
            return moved
    for meta in metas:
        queue = meta.labels.get(names.QUEUE) or meta.annotations.get(names.VOLCANO_QUEUE)
        if queue:
            return queue
    return ""


def _reference(workload: Object) -> OwnerReference:
    """Return a reference to the workload, or to the pod itself if it has no owner; the reference may lack the kind."""
    meta, api_version, kind = workload.metadata, workload.api_version or "v1", workload.kind or "Pod"
    return OwnerReference(api_version=api_version, kind=kind, name=meta.name, uid=meta.uid, controller=True)
