"""The difference between the pods that a Job wants and those that it has."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from controller.job.rules.counts import task_of
from controller.job.rules.events import version_of
from controller.job.rules.outcome import Failure
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.limits import PODS, TASKS
from muster.api.muster.gang import later_tasks
from muster.api.volcano.batch import Job, JobSpec, TaskSpec
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.slots import PodSlot, slots
from muster.volcano.tasks import minimum, total_replicas


class Decision(NamedTuple):
    """What to create and what to delete."""

    create: list[PodSlot]
    delete: list[Pod]


def decide(job: Job, pods: Sequence[Pod], *, may_create: bool) -> Decision:
    """What to create (only if the gang may start) and what to delete.

    Pods beyond the wanted ones go, and so do those that a kill has marked but not deleted yet, or that were created for
    an earlier version of the Job by somebody who did not know better. A name whose old pod is still terminating stays
    taken until that pod is gone.
    """
    wanted = {slot.name: slot for slot in slots(job)}
    delete = [
        pod
        for pod in pods
        if not pod.metadata.deletion_timestamp
        and (
            pod.metadata.name not in wanted
            or names.OUT_OF_SYNC in pod.metadata.annotations
            or (version_of(pod) < job.status.version and not pod.finished)
        )
    ]
    for pod in pods:
        wanted.pop(pod.metadata.name, None)
    if not may_create or not wanted:
        return Decision([], delete)
    ready = {task.name: dependencies_ready(job.spec, task, pods) for task in job.spec.tasks}
    return Decision([slot for slot in wanted.values() if ready[slot.task.name]], delete)


def over_limits(job: Job) -> Failure | None:
    """Why nothing is made for a Job whose numbers are over their limits: admission was bypassed."""
    for what, value, limit in (
        ("asks for", total_replicas(job.spec), PODS),
        ("has", len(job.spec.tasks), TASKS),
    ):
        if value > limit.value:
            message = (
                f"the Job {what} {value}; at most {limit.value} {limit.unit} are allowed, so nothing is made for it"
            )
            return Failure("OverLimit", message, transient=False)
    return None


def dependencies_ready(spec: JobSpec, task: TaskSpec, pods: Iterable[Pod]) -> bool:
    """Whether the tasks that this one depends on have got as many ready pods as they need."""
    if not task.depends_on or not task.depends_on.name:
        return True
    by_name = {other.name: other for other in spec.tasks}
    present = [pod for pod in pods if not pod.metadata.deletion_timestamp]
    answers = [
        name in by_name and sum(_ready(pod) for pod in present if task_of(pod) == name) >= minimum(by_name[name])
        for name in task.depends_on.name
    ]
    return any(answers) if task.depends_on.iteration == "any" else all(answers)


def not_counted_yet(job: Job, pods: Sequence[Pod], group: PodGroup | None) -> frozenset[str]:
    """The tasks that the gang leaves out for now, as they wait for others; `group` is its PodGroup if there is one.

    A task is counted once it has started, and stays so for the rest of the gang's life: while it only waits for a
    place, the pods that run lack nothing.
    """
    waiting = {task.name: task for task in job.spec.tasks if task.depends_on and task.depends_on.name}
    if group is None:
        candidates = {name for name, task in waiting.items() if not dependencies_ready(job.spec, task, pods)}
    else:
        candidates = {name for name in later_tasks(group.metadata) if name in waiting}
    return frozenset(name for name in candidates if not _started(waiting[name], pods))


def _started(task: TaskSpec, pods: Iterable[Pod]) -> bool:
    own = [pod for pod in pods if task_of(pod) == task.name and not pod.metadata.deletion_timestamp]
    return sum(bool(pod.spec.node_name) or pod.finished for pod in own) >= max(1, minimum(task))


def _ready(pod: Pod) -> bool:
    if pod.status.phase == "Succeeded":
        return True
    return pod.status.phase == "Running" and all(status.ready for status in pod.status.container_statuses)
