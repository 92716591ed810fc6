"""The status of a TrainJob: its conditions, and `jobsStatus`, the number of its Jobs in each state.

Kubeflow's SDK calls a TrainJob with any condition "Created", never "Running". Therefore, `Suspended=False` (Resumed)
stays only until the pods run, `Waiting` only while its gang has no nodes, and `Blocked` only while its objects cannot
be created.

`jobsStatus` counts in the same way as JobSet's controller: the pods of a task (or of a batch/v1 Job) are one Job. A Job
that has ended counts as succeeded or failed. A Job that has not ended counts as active if it has pods, and as ready if
all its pods are ready.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from controller.job.rules.status import UNSCHEDULABLE, unschedulable
from controller.job.rules.status import obstacle as obstacle_of
from controller.trainjob.rules.children import Children, has, initializer_name
from controller.trainjob.rules.outcome import EndCondition
from muster.api import names
from muster.api.kubeflow.jobset import ReplicatedJobStatus
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.api.kubernetes.meta import Condition, parse_time
from muster.api.limits import whole_number
from muster.api.volcano.batch import FINISHED
from muster.api.volcano.scheduling import TOO_FEW_PODS, PodGroup
from muster.runtime.plan import Plan, PodSetPlan

SUSPENDED = "Suspended"
BLOCKED = "Blocked"
WAITING = "Waiting"
CREATION_FAILED = "TrainJobResourcesCreationFailed"
_MAX_MESSAGE_CHARS = 1024


def conditions(
    train_job: TrainJob,
    *,
    now: str,
    trains: bool = False,
    obstacle: str = "",
    waits: str = "",
    end: EndCondition | None = None,
) -> list[Condition]:
    """Return the current conditions of a TrainJob; `trains` is true once its training pods run.

    `obstacle` is the reason why objects cannot be created, and `waits` the reason why the gang waits for nodes; both
    may be empty. `end` is the end of the TrainJob.
    """
    held = {each.type: each for each in train_job.status.conditions}
    suspended = held.pop(SUSPENDED, None)
    blocked, waiting = held.pop(BLOCKED, None), held.pop(WAITING, None)
    result = [*held.values()]
    if train_job.spec.suspend:
        result.append(_set(suspended, SUSPENDED, "True", "Suspended", "TrainJob is suspended", now))
    elif suspended and not (trains and suspended.status == "False"):
        result.append(_set(suspended, SUSPENDED, "False", "Resumed", "TrainJob is resumed", now))
    if end:
        result.append(_set(None, end.type, "True", end.reason, end.message, now))
    elif obstacle:
        result.append(_set(blocked, BLOCKED, "True", CREATION_FAILED, obstacle, now))
    elif waits and not train_job.spec.suspend:
        result.append(_set(waiting, WAITING, "True", UNSCHEDULABLE, waits, now))
    return result


def why_waiting(children: Children) -> str:
    """Return the reason why a TrainJob's gang waits for nodes, from its Job or PodGroup; "" if it does not wait."""
    if children.job_set:
        return why_the_gang_waits(children.group)
    state = children.job.status.state if children.job else None
    waits = state is not None and (state.phase, state.reason) == ("Pending", UNSCHEDULABLE)
    return state.message if state is not None and waits else ""


def why_the_gang_waits(group: PodGroup | None) -> str:
    """Return the reason why a gang waits for nodes; "" if it runs, or while its pods are still being created."""
    if group is None or group.status.phase not in {"", "Pending", "Inqueue"} or obstacle_of(group) == TOO_FEW_PODS:
        return ""
    return unschedulable(group) or ""


def without_pods(
    train_job: TrainJob, children: Children, statuses: Sequence[ReplicatedJobStatus]
) -> Iterator[tuple[str, float]]:
    """Yield the batch/v1 Jobs that lack pods, with their age; the reason is found only in the Job's Events.

    For a JobSet, only the first waiting Job is yielded, because a JobSet may create a Job only after the previous one
    has ended.
    """
    few = children.group is not None and obstacle_of(children.group) == TOO_FEW_PODS
    waiting = [each for each in statuses if not (each.ready or each.succeeded or each.failed)]
    if children.job_set:
        waiting = waiting[:1]
    for each in () if train_job.spec.suspend else waiting:
        name = initializer_name(train_job, each.name)
        maker = children.job_set or children.initializers.get(name)
        if maker and (few or not each.active):
            yield name, parse_time(maker.metadata.creation_timestamp) or 0.0


def _set(
    before: Condition | None, kind: str, status: Literal["True", "False"], reason: str, message: str, now: str
) -> Condition:
    """Return the condition with the time of the last change of its status."""
    since = before.last_transition_time if before and before.status == status else now
    short = message[:_MAX_MESSAGE_CHARS]
    return Condition(type=kind, status=status, last_transition_time=since, reason=reason, message=short)


def jobs_status(train_job: TrainJob, plan: Plan, children: Children) -> list[ReplicatedJobStatus]:
    """Return an entry for each pod set that has pods, in the order of the plan.

    An initializer that has succeeded stays succeeded, even if its Job is deleted.
    """
    members = plan.gang.pod_sets if plan.gang else ()
    done = completed(train_job)
    return [
        _gang_status(train_job, pod_set, children)
        if pod_set.name in members
        else _initializer_status(train_job, pod_set.name, children, done=pod_set.name in done)
        for pod_set in plan.pod_sets
        if pod_set.count
    ]


def completed(train_job: TrainJob) -> set[str]:
    """Return the pod sets that have succeeded earlier, according to the status."""
    return {each.name for each in train_job.status.jobs_status if each.succeeded}


def trains(statuses: Sequence[ReplicatedJobStatus], plan: Plan) -> bool:
    """Return True if all training pod sets are ready or have ended; from then on, the TrainJob counts as running."""
    roles = {pod_set.name for pod_set in plan.pod_sets if pod_set.role in {"trainer", "launcher"}}
    own = [each for each in statuses if each.name in roles]
    return bool(own) and all(each.ready or each.succeeded or each.failed for each in own)


def _gang_status(train_job: TrainJob, pod_set: PodSetPlan, children: Children) -> ReplicatedJobStatus:
    job = children.job
    size = of_one = max(1, pod_set.count // pod_set.jobs)
    over = job is not None and job.status.state.phase in FINISHED
    if job is not None and job.status.state.phase == "Completed" and names.ELASTIC in job.metadata.annotations:
        size = 1  # pods that never had a node are not needed
    ready = good = bad = active = 0
    for tally in _tallies(pod_set, children.pods, of_one):
        if tally["Succeeded"] >= size:
            good += 1
        elif over:
            bad += bool(tally["Failed"])
        else:
            active += bool(tally["Pending"] or tally["Running"])
            ready += tally["ready"] + tally["Succeeded"] >= size
    held = pod_set.jobs - good - bad if train_job.spec.suspend and not over else 0
    return ReplicatedJobStatus(
        name=pod_set.name, ready=ready, succeeded=good, failed=bad, active=active, suspended=held
    )


def _tallies(pod_set: PodSetPlan, pods: Sequence[Pod], size: int) -> list[Counter[str]]:
    """Count the pods of a pod set by phase, except terminating ones, for each Job of `size` pods."""
    tallies = [Counter[str]() for _ in range(pod_set.jobs)]
    for pod in pods:
        meta, phase = pod.metadata, pod.status.phase
        index = whole_number(meta.labels.get(names.TASK_INDEX))
        if meta.deletion_timestamp or meta.labels.get(names.REPLICATED_JOB) != pod_set.name or index is None:
            continue
        if index // size < pod_set.jobs:
            tally = tallies[index // size]
            tally[phase] += 1
            tally["ready"] += phase == "Running" and is_ready(pod)
    return tallies


def is_ready(pod: Pod) -> bool:
    """Return True if the kubelet reports the pod as ready."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def _initializer_status(train_job: TrainJob, pod_set: str, children: Children, *, done: bool) -> ReplicatedJobStatus:
    job = children.initializers.get(initializer_name(train_job, pod_set))
    status = ReplicatedJobStatus(name=pod_set, ready=0, succeeded=0, failed=0, active=0, suspended=0)
    if done or (job and has(job, "Complete")):
        status.succeeded = 1
    elif job is None:
        status.suspended = int(train_job.spec.suspend)
    elif has(job, "Failed"):
        status.failed = 1
    else:
        status.ready = int(
            _pods_in_state(job, "ready") + _pods_in_state(job, "succeeded") >= (job.spec.completions or 1)
        )
        status.active = int(_pods_in_state(job, "active") > 0)
        status.suspended = int(job.spec.suspend)
    return status


def _pods_in_state(job: IndexedJob, state: str) -> int:
    return int(job.status.get(state) or 0)
