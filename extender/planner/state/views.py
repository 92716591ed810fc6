"""How the planner sees a gang: made anew from the objects whenever one of them changed. Pure."""

from operator import attrgetter

from extender.planner import reasons
from extender.planner.state.gangs import GangView
from extender.planner.state.podrecord import PodRecord
from extender.planner.state.podset import PodSetView
from extender.planner.state.templates import Templates
from muster.api.limits import EPOCH, PODS, RESOURCES, TASKS, LimitError
from muster.api.muster.gang import DEFAULT_POD_SET, Slot, later_tasks
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.tasks import total_replicas

_AGE = attrgetter("created", "name")
"""The oldest first."""


def free_slots(pods: list[PodRecord]) -> list[tuple[PodRecord, Slot]]:
    """Slots for those members that do not say which is theirs: the oldest of them gets the first free rank.

    Who has a slot keeps it: a member that joins later may be an older pod.
    """
    without = [pod for pod in pods if pod.slot is None]
    if not without:
        return []
    known = [pod.slot.rank for pod in pods if pod.slot and pod.slot.pod_set == DEFAULT_POD_SET and _sits(pod)]
    occupied, rank, found = set(known), 0, []
    for pod in sorted(without, key=_AGE):
        while rank in occupied:
            rank += 1
        found.append((pod, Slot(DEFAULT_POD_SET, rank)))
        if _sits(pod):
            occupied.add(rank)
    return found


def view_of(
    group: PodGroup,
    pods: list[PodRecord],
    templates: Templates,
    *,
    job: Job | None,
    placement: Placement | None,
    priority: int,
    arrival: int,
    preempts: bool = True,
) -> GangView:
    """A gang with its slots; every pod has been given one before."""
    _check(group, pods, job, placement)
    pod_sets = _job_sets(group, job, templates) if job else {}
    for pod in sorted(pods, key=_AGE):
        _slot_pod(pod_sets, pod)
    for pod_set in pod_sets.values():
        existing = next(iter(pod_set.waiting.values()), None)
        if existing:
            pod_set.cls, pod_set.runtime = existing.cls, existing.runtime
        pod_set.mixed = any(pod.cls is not pod_set.cls for pod in pod_set.waiting.values())
        for cls in {pod.cls for pod in pod_set.waiting.values()} if pod_set.mixed else {pod_set.cls}:
            if cls and len(cls.asked) > RESOURCES.value:
                count = len(cls.asked)
                raise LimitError(reasons.aside.asks_too_much(pod_set=pod_set.name, count=count, limit=RESOURCES))
    sets = list(pod_sets.values())
    return GangView(group.metadata.key, group, priority, sets, pods, placement, arrival, preempts=preempts)


def set_aside(group: PodGroup, reason: str, arrival: int) -> GangView:
    """A gang of which nothing is known but its PodGroup, and why."""
    return GangView(group.metadata.key, group, 0, [], [], None, arrival, set_aside=reason)


def _check(group: PodGroup, pods: list[PodRecord], job: Job | None, placement: Placement | None) -> None:
    """Raises LimitError for a gang of which some number is over its limit: admission was bypassed."""
    words = reasons.aside
    asked = [(words.MIN_MEMBER, group.spec.min_member, PODS), (words.PODS, len(pods), PODS)]
    if job:
        asked += [(words.JOB_PODS, total_replicas(job.spec), PODS), (words.JOB_TASKS, len(job.spec.tasks), TASKS)]
    epoch = max([placement.spec.epoch if placement else 0, *(pod.epoch or 0 for pod in pods)])
    asked.append((words.NEXT_EPOCH, epoch + 1, EPOCH))
    for what, value, limit in asked:
        if value > limit.value:
            raise LimitError(words.over_limit(what=what, value=value, limit=limit))


def _job_sets(group: PodGroup, job: Job, templates: Templates) -> dict[str, PodSetView]:
    sets, later = {}, later_tasks(group.metadata)
    for template in templates.of(job):
        task = template.task
        slots = 0 if task.name in later else task.replicas
        minimum = min(group.spec.min_task_member.get(task.name, 0), slots)
        sets[task.name] = PodSetView(task.name, template.cls, slots, minimum, template=True)
        sets[task.name].runtime, sets[task.name].topology = template.runtime, template.topology
        sets[task.name].born_gated = bool(template.other_gates)
    for policy in group.spec.sub_group_policy:
        if policy.name in sets:
            sets[policy.name].unit = policy.sub_group_size or 1
    return sets


def _slot_pod(pod_sets: dict[str, PodSetView], pod: PodRecord) -> None:
    """Puts a pod on its slot, into the pod set that is made for it if there is none."""
    if pod.slot is None:
        return
    name, rank = pod.slot.pod_set, pod.slot.rank
    pod_set = pod_sets.get(name)
    if pod_set is None:
        pod_set = pod_sets[name] = PodSetView(name, pod.cls, 0, 0)
    if pod.taken:
        pod_set.taken[rank] = pod.node
        pod_set.alive += pod.alive
    elif pod.phase == "Failed" and not pod.terminating:
        pod_set.failed.add(rank)
    elif pod.waiting:
        pod_set.waiting[rank] = pod
    if not pod_set.template:
        pod_set.replicas = max(pod_set.replicas, rank + 1)


def _sits(pod: PodRecord) -> bool:
    """Whether nobody else can have its slot; a pod that failed, or is going, leaves it to the next."""
    return pod.taken or pod.waiting
