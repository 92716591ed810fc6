"""The difference between the wanted and the existing pods of a Job.

Members above the minimum are created in steps if the Job's queue has a capability. A ResourceQuota also counts pods
that wait for a node. Therefore, the number of waiting pods above the minimum is limited: one at first, then as many as
already have nodes. A running gang that waits for anything other than its queue gets all its pods, because autoscalers
only see existing pods.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from controller.job.rules.events import present, task_of, version_of
from controller.job.rules.status import Failure
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.limits import PODS, TASKS
from muster.api.muster.gang import Slot, gated, later_tasks
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.api.volcano.scheduling import OVER_CAPABILITY, PodGroup
from muster.volcano.tasks import PodSlot, job_minimum, minimum, slots, total_minimum, total_replicas


class SyncDecision(NamedTuple):
    """The slots whose pods must be created, and the pods that must be deleted."""

    create: list[PodSlot]
    delete: list[Pod]


def decide(job: Job, pods: Sequence[Pod], *, may_create: bool) -> SyncDecision:
    """Return the slots whose pods to create (none unless the gang may start) and the pods to delete.

    A pod is deleted if it is surplus, marked for deletion, from an earlier version of the Job, or waits with an
    outdated PriorityClass. No pod is created for a slot while the slot's terminating pod exists.
    """
    wanted = {slot.name: slot for slot in slots(job)}
    delete = [
        pod
        for pod in present(pods)
        if pod.metadata.name not in wanted
        or names.OUT_OF_SYNC in pod.metadata.annotations
        or (version_of(pod) < job.status.version and not pod.finished)
        or _of_another_class(job, wanted[pod.metadata.name], pod)
    ]
    for pod in pods:
        wanted.pop(pod.metadata.name, None)
    if not may_create or not wanted:
        return SyncDecision([], delete)
    ready = {task.name: dependencies_ready(job.spec, task, pods) for task in job.spec.tasks}
    return SyncDecision([slot for slot in wanted.values() if ready[slot.task.name]], delete)


def _of_another_class(job: Job, slot: PodSlot, pod: Pod) -> bool:
    """Return True for a gated pod whose PriorityClass should be the Job's, but differs from it."""
    own = (slot.task.template.get("spec") or {}).get("priorityClassName")
    wanted = job.spec.priority_class_name
    return bool(wanted) and not own and gated(pod) and pod.spec.priority_class_name != wanted


def half_deleted(pods: Iterable[Pod]) -> list[Pod]:
    """Return existing pods with a grace period of 0, whose deletion was interrupted between its two steps."""
    return [pod for pod in pods if pod.metadata.deletion_grace_period_seconds == 0 and not pod.metadata.finalizers]


def over_limits(job: Job) -> Failure | None:
    """Return a failure if the Job has too many pods or tasks, which is only possible if admission was bypassed."""
    for verb, value, limit in (("asks for", total_replicas(job.spec), PODS), ("has", len(job.spec.tasks), TASKS)):
        if value > limit.value:
            most = f"at most {limit.value} {limit.unit} are allowed"
            message = f"the Job {verb} {value}; {most}, so no objects are created for it"
            return Failure("OverLimit", message, transient=False)
    return None


def dependencies_ready(spec: JobSpec, task: TaskSpec, pods: Iterable[Pod]) -> bool:
    """Return True if all tasks that a task depends on have enough ready pods."""
    if not task.depends_on or not task.depends_on.name:
        return True
    by_name = {other.name: other for other in spec.tasks}
    ready = Counter(task_of(pod) for pod in present(pods) if _ready(pod))
    answers = [name in by_name and ready[name] >= minimum(by_name[name]) for name in task.depends_on.name]
    return any(answers) if task.depends_on.iteration == "any" else all(answers)


def not_counted_yet(job: Job, pods: Sequence[Pod], group: PodGroup | None) -> frozenset[str]:
    """Return the tasks that wait for other tasks; the gang's minimum excludes waiting tasks until they start."""
    waiting = {task.name: task for task in job.spec.tasks if task.depends_on and task.depends_on.name}
    if group is None:
        candidates = {name for name, task in waiting.items() if not dependencies_ready(job.spec, task, pods)}
    else:
        candidates = {name for name in later_tasks(group.metadata) if name in waiting}
    return frozenset(name for name in candidates if not _started(waiting[name], pods))


def _started(task: TaskSpec, pods: Iterable[Pod]) -> bool:
    own = [pod for pod in present(pods) if task_of(pod) == task.name]
    return sum(bool(pod.spec.node_name) or pod.finished for pod in own) >= max(1, minimum(task))


def _ready(pod: Pod) -> bool:
    if pod.status.phase == "Succeeded":
        return True
    return pod.status.phase == "Running" and all(status.ready for status in pod.status.container_statuses)


def next_members(
    job: Job, pods: Sequence[Pod], missing: Sequence[PodSlot], group: PodGroup, placed: Container[Slot]
) -> list[PodSlot]:
    """Return the missing slots whose pods are created now; `placed` are the slots with a planned node."""
    waits = group.status.true_condition("Unschedulable")
    if group.status.phase == "Running" and waits and waits.reason != OVER_CAPABILITY:
        return list(missing)
    needed = _needed(job)
    further = [pod for pod in present(pods) if pod.metadata.name not in needed]
    waiting = sum(not pod.spec.node_name and not pod.finished for pod in further)
    left = max(1, len(further) - waiting) - waiting
    result = []
    for slot in missing:
        if slot.name not in needed and Slot(slot.task.name, slot.index) not in placed:
            left -= 1
            if left < 0:
                continue
        result.append(slot)
    return result


def _needed(job: Job) -> frozenset[str]:
    """Return the names of the pods that may count towards the Job's minimum.

    All pods may count if the minimums of several tasks together exceed the Job's minimum, or if partitions of the Job
    start as a whole.
    """
    every, least = slots(job), job_minimum(job.spec)
    if any(task.partition_policy for task in job.spec.tasks):
        return frozenset(slot.name for slot in every)
    if least >= total_minimum(job.spec):
        first = [slot for slot in every if slot.index < minimum(slot.task)]
        others = [slot for slot in every if slot.index >= minimum(slot.task)]
        every = [*first, *others[: least - len(first)]]
    elif len(job.spec.tasks) == 1:
        every = every[:least]
    return frozenset(slot.name for slot in every)
