"""The pod of a slot: the task's template with the labels of a gang member and the additions of plugins.

A pod is *born pinned* to its node if the gang's placement has a node for it, otherwise *born gated*: visible, but not
schedulable yet.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy

from msgspec import to_builtins

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.creator import passed_on
from muster.api.muster.gang import pinned_affinity
from muster.api.muster.placement import Placement, pin_of
from muster.api.muster.pools import in_pool, pool_of_scheduler
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest, add_env, containers, mount
from muster.volcano.plugins.base import JobPlugin
from muster.volcano.podgroup import group_name
from muster.volcano.tasks import PodSlot, owner_of, partition_of, queue_of, scheduler_of

COPIED_ANNOTATIONS = ("volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone")
COPIED_LABELS = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
DISRUPTION = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
"""Annotations with the disruption budget of a gang, of which the first existing one is used."""
_NUMA_POLICY = "volcano.sh/numa-topology-policy"


def complete_pod(job: Job, slot: PodSlot, plugins: Iterable[JobPlugin]) -> Manifest:
    """Return the pod with the Job's volumes and the additions of its plugins, before it is pinned or gated.

    A label of the pod records whether the admission review of the Job also covers the pod. The review of the Job does
    not cover a pod whose annotations, from the template or plugins, need a review of their own.
    """
    manifest = pod(job, slot)
    mount(job, manifest)
    own = {each.get("name"): {one.get("name") for one in each.get("env") or []} for each in containers(manifest)}
    for plugin in plugins:
        variables = plugin.env(job, slot)
        if variables:
            for container in containers(manifest, init=plugin.env_in_init_containers):
                add_env(container, variables)
        plugin.shape(job, slot, manifest)
    for container in containers(manifest):
        if env := container.get("env"):
            # Kubernetes expands $(NAME) only if the variable is defined before: users' variables can refer to plugins'
            # variables
            users = own.get(container.get("name"), set())
            container["env"] = [one for last in (False, True) for one in env if (one.get("name") in users) == last]
    metadata = manifest["metadata"]
    metadata["labels"][names.REVIEWED] = "true" if names.REVIEWED_FOR.isdisjoint(metadata["annotations"]) else "false"
    return manifest


def pod(job: Job, slot: PodSlot) -> Manifest:
    """Return the pod from the Job and its template, without volumes and plugins."""
    template = deepcopy(slot.task.template)
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    spec["schedulerName"] = _scheduler(spec.get("schedulerName") or "", scheduler_of(job.spec))
    if spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"  # so that pods find each other by name, as in Volcano
    if job.spec.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.spec.priority_class_name
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": slot.name,
            "namespace": job.metadata.namespace,
            "labels": {**(metadata.get("labels") or {}), **_labels(job, slot)},
            "annotations": {
                **passed_on(job.metadata.annotations, metadata.get("annotations") or {}),
                **_annotations(job, slot),
            },
            "ownerReferences": [to_builtins(owner_of(job))],
            **({"finalizers": metadata["finalizers"]} if metadata.get("finalizers") else {}),
        },
        "spec": spec,
    }


def _scheduler(own: str, of_job: str) -> str:
    """Return the scheduler that the template names, otherwise the Job's scheduler.

    The default pool's scheduler is replaced by the scheduler of the Job's pool.
    """
    pool = pool_of_scheduler(of_job)
    return in_pool(own, pool) if own in names.SCHEDULERS and pool else own or of_job


def task_labels(job: Job, task: TaskSpec) -> dict[str, str]:
    """Return the labels that all pods of a task share."""
    return {
        names.TASK_SPEC: task.name,
        names.JOB_NAME: job.metadata.name,
        names.JOB_NAMESPACE: job.metadata.namespace,
        names.QUEUE_NAME: queue_of(job.spec),
    }


def _labels(job: Job, slot: PodSlot) -> dict[str, str]:
    labels = {names.TASK_INDEX: str(slot.index), **task_labels(job, slot.task)}
    partition = partition_of(slot.task, slot.index)
    if partition:
        labels[names.PARTITION_ID] = partition
    if names.REPLICATED_JOB in ((slot.task.template.get("metadata") or {}).get("labels") or {}):
        labels[names.COMPLETION_INDEX] = str(slot.index)  # Kubeflow's clients find the pods of a step by this label
    return labels | copied(job.metadata.labels, COPIED_LABELS)


def _annotations(job: Job, slot: PodSlot) -> dict[str, str]:
    annotations = {
        names.TASK_INDEX: str(slot.index),
        names.TASK_SPEC: slot.task.name,
        names.JOB_NAME: job.metadata.name,
        names.QUEUE_NAME: queue_of(job.spec),
        names.JOB_VERSION: str(job.status.version),
        names.TEMPLATE_UID: f"{job.metadata.name}-{slot.task.name}",
        names.JOB_RETRY_COUNT: str(job.status.retry_count),
        names.GROUP_NAME: group_name(job),
    }
    if slot.task.topology_policy:
        annotations[_NUMA_POLICY] = slot.task.topology_policy
    own = (slot.task.template.get("metadata") or {}).get("annotations") or {}
    of_job = job.metadata.annotations
    budgets = [] if any(key in own for key in DISRUPTION) else [*copied(of_job, DISRUPTION).items()]
    return annotations | copied(of_job, COPIED_ANNOTATIONS) | dict(budgets[:1])


def copied(source: Mapping[str, str], keys: tuple[str, ...]) -> dict[str, str]:
    """Return those labels or annotations that have one of these keys."""
    return {key: source[key] for key in keys if key in source}


def usable(placement: Placement | None, pod_group_uid: str) -> bool:
    """Return True if pods can be pinned to nodes of this placement, because it belongs to this gang and is active."""
    return (
        placement is not None
        and placement.spec.pod_group_uid == pod_group_uid
        and placement.status.phase in {"Planned", "Binding"}
    )


def keeps_nodes(placement: Placement | None, group: ObjectMeta) -> bool:
    """Return True if nodes are held for members of this gang that were evicted because of a repair or a move.

    Until the evicted members are gone, the gang's placement names them as victims. Afterwards, the placement lists the
    gang itself among the gangs that have freed capacity for it.
    """
    if placement is None or not usable(placement, group.uid):
        return False
    own = any(victim.gang == group.name and not victim.namespace for victim in placement.spec.victims)
    return own or group.key in placement.status.made_room


def in_native_group(manifest: Manifest, name: str) -> Manifest:
    """Make the pod a member of this native PodGroup in place, unless it is in another one; return the pod.

    A pod with `evictionResponders` is not changed, because the API server rejects the two fields together.
    """
    spec = manifest["spec"]
    if not spec.get("evictionResponders"):
        spec.setdefault("schedulingGroup", {"podGroupName": name})
    return manifest


def pinned_or_gated(manifest: Manifest, slot: PodSlot, placement: Placement | None) -> Manifest:
    """Pin the pod in place to its node in the usable placement, or gate it; return the pod.

    Muster's own gates in the template are ignored, because the placement decides about gates.
    """
    spec = manifest["spec"]
    gates = [gate for gate in spec.pop("schedulingGates", None) or [] if gate.get("name") not in names.GATES]
    node = pin_of(placement, slot.task.name, slot.index) if placement else None
    if placement is None or node is None:
        spec["schedulingGates"] = [*gates, {"name": names.GATE}]
        return manifest
    if gates:
        spec["schedulingGates"] = gates
    spec["affinity"] = pinned_affinity(spec.get("affinity"), node)
    manifest["metadata"]["annotations"] |= {names.NODE: node, names.EPOCH: str(placement.spec.epoch)}
    return manifest
