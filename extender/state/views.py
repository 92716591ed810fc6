"""How the planner sees pods and gangs: made anew from the objects whenever one of them changed. Pure."""

from extender.state.gangs import GangView, PodRecord, PodSetView
from extender.state.podclass import PodClass
from extender.state.templates import Templates
from muster.api.batch import Job
from muster.api.core import Pod
from muster.api.gang import DEFAULT_POD_SET, Seat, epoch_of, gang_of, gated, later_tasks, seat_of
from muster.api.names import GATES, NODE
from muster.api.placement import Placement
from muster.api.scheduling import PodGroup


def record_of(pod: Pod, cls: PodClass, assumed: str) -> PodRecord:
    """The record of a pod; `assumed` is the node that we have just bound it to, before the watch tells."""
    meta, status = pod.metadata, pod.status
    gang = gang_of(meta)
    scheduled = next((c for c in status.conditions if c.type == "PodScheduled"), None)
    return PodRecord(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        gang=f"{meta.namespace}/{gang}" if gang else None,
        seat=seat_of(meta),
        cls=cls,
        labels=meta.labels,
        node=pod.spec.node_name or assumed,
        phase=status.phase,
        terminating=meta.deletion_timestamp is not None,
        gated=gated(pod),
        other_gates=tuple(gate.name for gate in pod.spec.scheduling_gates if gate.name not in GATES),
        epoch=epoch_of(meta),
        pin=meta.annotations.get(NODE, ""),
        refused=bool(scheduled and scheduled.status == "False" and scheduled.reason == "Unschedulable"),
        scheduler_name=pod.spec.scheduler_name,
        created=meta.creation_timestamp or "",
        resource_version=meta.resource_version,
    )


def view_of(
    group: PodGroup,
    pods: list[PodRecord],
    templates: Templates,
    *,
    job: Job | None,
    placement: Placement | None,
    priority: int,
    arrival: int,
) -> GangView:
    """A gang with its seats; members that do not say which seat is theirs are given one, and keep it."""
    pod_sets = _job_sets(group, job, templates) if job else {}
    # Those that have a seat first: a member that joins later may be an older pod.
    for pod in sorted(pods, key=lambda pod: (pod.seat is None, pod.created, pod.name)):
        _seat_pod(pod_sets, pod)
    for pod_set in pod_sets.values():
        existing = next(iter(pod_set.waiting.values()), None)
        pod_set.cls = existing.cls if existing else pod_set.cls
        pod_set.mixed = any(pod.cls is not pod_set.cls for pod in pod_set.waiting.values())
    return GangView(group.metadata.key, group, priority, list(pod_sets.values()), pods, placement, arrival)


def _job_sets(group: PodGroup, job: Job, templates: Templates) -> dict[str, PodSetView]:
    sets, later = {}, later_tasks(group.metadata)
    for template in templates.of(job):
        task = template.task
        seats = 0 if task.name in later else task.replicas
        minimum = min(group.spec.min_task_member.get(task.name, 0), seats)
        sets[task.name] = PodSetView(task.name, template.cls, seats, minimum, template=True)
    for policy in group.spec.sub_group_policy:
        if policy.name in sets:
            sets[policy.name].unit = policy.sub_group_size or 1
    return sets


def _seat_pod(pod_sets: dict[str, PodSetView], pod: PodRecord) -> None:
    """Put a pod on its seat; a pod that does not say which gets the first free rank."""
    name = pod.seat.pod_set if pod.seat else DEFAULT_POD_SET
    pod_set = pod_sets.get(name)
    if pod_set is None:
        pod_set = pod_sets[name] = PodSetView(name, pod.cls, 0, 0)
    if pod.seat is None:
        rank = next(n for n in range(len(pod_set.taken) + len(pod_set.waiting) + 1) if _empty(pod_set, n))
        pod.seat = Seat(name, rank)
    rank = pod.seat.rank
    if pod.taken:
        pod_set.taken[rank] = pod.node
    elif pod.waiting:
        pod_set.waiting[rank] = pod
    if not pod_set.template:
        pod_set.replicas = max(pod_set.replicas, rank + 1)


def _empty(pod_set: PodSetView, rank: int) -> bool:
    return rank not in pod_set.taken and rank not in pod_set.waiting
