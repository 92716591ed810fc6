"""The pods of a simulated gang: as they wait, as they run, and as they have ended."""

from typing import Any

import msgspec
from msgspec.structs import replace

from extender.planner.state.podshape import pin_of, without_pin
from extender.replay.workloads import Member, Workload
from muster.api import names
from muster.api.kubernetes.constraints import SchedulingGate
from muster.api.kubernetes.core import Pod, PodStatus
from muster.api.kubernetes.meta import ReportedCondition, format_time
from muster.api.muster.gang import later_tasks
from muster.volcano import pods, tasks
from muster.workloads.table import slot_of

_WRITTEN = frozenset(
    {names.NODE, names.EPOCH, names.EVICT_AT, names.EVICT_FOR, names.EVICT_READY, names.CHECKPOINT, names.SAFE_TO_EVICT}
)
"""Annotations that come while a pod lives."""


def members_of(workload: Workload) -> dict[object, Member]:
    """Return the members of a gang: those that were seen, and those that its Job would have made."""
    found = dict(workload.members)
    job = workload.job
    if job is None:
        return found
    later = later_tasks(workload.group.metadata)
    for slot in tasks.slots(job):
        made = _made(workload, pods.pod(job, slot))
        place = slot_of(made.metadata) or made.metadata.name
        if place not in found and slot.task.name not in later:
            found[place] = Member(made, workload.came_s, "")
    return found


def _made(workload: Workload, manifest: dict[str, Any]) -> Pod:
    pod = msgspec.convert(manifest, Pod)
    annotations = {**pod.metadata.annotations, names.GROUP_NAME: workload.group.metadata.name}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def waiting_pod(member: Member, uid: str, version: int, now: float) -> Pod:
    """Return the pod of a member as it waits for a placement, without what was written on it then."""
    pod = member.pod
    meta, spec = pod.metadata, pod.spec
    pin = pin_of(meta)
    return replace(
        pod,
        metadata=replace(
            meta,
            uid=uid,
            resource_version=str(version),
            creation_timestamp=format_time(now),
            deletion_timestamp=None,
            finalizers=[],
            annotations={key: text for key, text in meta.annotations.items() if key not in _WRITTEN},
        ),
        spec=replace(
            spec,
            node_name="",
            affinity=without_pin(spec.affinity, pin) if pin else spec.affinity,
            scheduling_gates=[SchedulingGate(name=names.GATE)],
        ),
        status=PodStatus(phase="Pending"),
    )


def running_pod(pod: Pod, node: str, version: int, now: float, epoch: int | None = None) -> Pod:
    """Return a pod as it runs on a node from now on."""
    since = format_time(now)
    bound = ReportedCondition(type="PodScheduled", status="True", last_transition_time=since)
    noted = {} if epoch is None else {names.EPOCH: str(epoch)}
    return replace(
        pod,
        metadata=replace(
            pod.metadata, resource_version=str(version), annotations={**pod.metadata.annotations, **noted}
        ),
        spec=replace(pod.spec, node_name=node, scheduling_gates=[]),
        status=PodStatus(phase="Running", conditions=[bound], start_time=since),
    )


def ended_pod(pod: Pod, version: int) -> Pod:
    """Return a pod that has succeeded."""
    meta = replace(pod.metadata, resource_version=str(version))
    return replace(pod, metadata=meta, status=replace(pod.status, phase="Succeeded"))


def annotated_pod(pod: Pod, version: int, annotations: dict[str, str | None]) -> Pod:
    """Return a pod with annotations added, or removed where they are None."""
    merged = {**pod.metadata.annotations, **annotations}
    kept = {key: text for key, text in merged.items() if text is not None}
    return replace(pod, metadata=replace(pod.metadata, resource_version=str(version), annotations=kept))
