"""The input of a simulation: gangs, and their pods in the states waiting, running and ended."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from extender.planner.state.podshape import pin_of, without_pin
from muster.api import names
from muster.api.kubernetes.constraints import SchedulingGate
from muster.api.kubernetes.core import Pod, PodStatus
from muster.api.kubernetes.meta import ReportedCondition, format_time
from muster.api.muster.gang import later_tasks
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.volcano import pods, tasks
from muster.workloads.table import slot_of

_WRITTEN = frozenset(
    {names.NODE, names.EPOCH, names.EVICT_AT, names.EVICT_FOR, names.EVICT_READY, names.CHECKPOINT, names.SAFE_TO_EVICT}
)
"""Annotations that a pod gets only after its creation."""


@dataclass(slots=True)
class SimulatedPod:
    """One member of a gang: the member's first pod, and data of the pods that replaced it later."""

    pod: Pod
    """The member's first pod, as first observed."""
    created_s: float
    uid: str
    """UID of the member's last pod."""
    node: str = ""
    since_s: float | None = None
    """Time when the member's last pod got its node."""
    ended_s: float | None = None
    at_start: Pod | None = None
    """The member's pod at the beginning of the simulation; None if the gang arrives later (`is_there` is false)."""
    vacant: bool = False
    """True if the member's last pod was deleted before it ended and has no successor yet."""

    @property
    def runs_s(self) -> float | None:
        """Return the running time of the last pod; None for a pod that never ran or whose end was not recorded."""
        return None if self.since_s is None or self.ended_s is None else max(self.ended_s - self.since_s, 0.0)

    @property
    def censored(self) -> bool:
        """True if the pod was still running at the end of the recording."""
        return self.since_s is not None and self.ended_s is None


@dataclass(slots=True)
class SimulatedWorkload:
    """A gang (one incarnation of a PodGroup) as it is known before the simulation."""

    key: str
    """The gang's key, `namespace/name`."""
    kind: str
    """Kind of the gang's PodGroup: Volcano's or native."""
    group: Any
    """The gang's PodGroup at its arrival."""
    came_s: float
    queue: str = ""
    job: Job | None = None
    members: dict[object, SimulatedPod] = field(default_factory=dict)
    """Maps a slot, or the name of a pod without a slot, to the member of the gang."""
    left_s: float | None = None
    """Time when the PodGroup was deleted; None for an existing PodGroup."""
    started_s: float | None = None
    """Time when the gang first had its minimum number of running members."""
    evictions: int = 0
    """Number of runs of the gang that were ended by an eviction."""
    evicted_s: float = 0.0
    """Time when an eviction last ended a run of the gang."""
    checkpoints: list[float] = field(default_factory=list)
    """Checkpoints that the gang reported in its last run, each as the running time in seconds at the report."""
    ran_before: bool = False
    """True if the gang had its minimum number of running members when the recording began."""
    is_there: bool = False
    """True if the gang exists at the beginning, with its objects; False if it arrives later and waits."""
    placement: Placement | None = None
    """The gang's placement at the beginning of the simulation."""
    minimum: int = 1

    @property
    def title(self) -> str:
        """The gang's name as shown to users: namespace and name of its owner, or, without an owner, of the gang."""
        meta = self.group.metadata
        return f"{meta.namespace}/{owner.name}" if (owner := meta.controller) else self.key

    @property
    def running(self) -> int:
        """Number of members that are running on nodes."""
        return sum(member.since_s is not None and member.ended_s is None for member in self.members.values())


def members_of(workload: SimulatedWorkload) -> dict[object, SimulatedPod]:
    """Return the members of a gang: the recorded members, and members whose pods its Job would still have created."""
    found = dict(workload.members)
    job = workload.job
    if job is None:
        return found
    later = later_tasks(workload.group.metadata)
    for slot in tasks.slots(job):
        made = _made(workload, pods.pod(job, slot))
        place = slot_of(made.metadata) or made.metadata.name
        if place not in found and slot.task.name not in later:
            found[place] = SimulatedPod(made, workload.came_s, "")
    return found


def _made(workload: SimulatedWorkload, manifest: dict[str, Any]) -> Pod:
    pod = msgspec.convert(manifest, Pod)
    annotations = {**pod.metadata.annotations, names.GROUP_NAME: workload.group.metadata.name}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


def waiting_pod(member: SimulatedPod, uid: str, version: int, now: float) -> Pod:
    """Return the pod of a member that waits for a placement, without annotations that were written later."""
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
    """Return a pod that starts to run on a node."""
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
    """Return a pod with annotations added or, if an annotation's value is None, removed."""
    merged = {**pod.metadata.annotations, **annotations}
    kept = {key: text for key, text in merged.items() if text is not None}
    return replace(pod, metadata=replace(pod.metadata, resource_version=str(version), annotations=kept))
