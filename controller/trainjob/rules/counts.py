"""`jobsStatus` of a TrainJob: its Jobs, counted by state as the controller of JobSets counts them.

A step is one Job of a JobSet, however many pods it has. Here the pods of a task (or those of a batch/v1 Job) are what
that Job would be. A Job that has ended counts as succeeded or failed only; one that is on its way is active while pods
of it are there, and ready when all of them are.
"""

from collections.abc import Sequence
from typing import NamedTuple

from controller.trainjob.rules.children import Children, has, initializer_name, succeeded
from muster.api import names
from muster.api.kubeflow.jobset import ReplicatedJobStatus
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.api.volcano.batch import FINISHED
from muster.runtime.plan import Plan, PodSetPlan
from muster.workloads.adapter import number


class Tally(NamedTuple):
    """Pods of one Job by state; of those that are being deleted none."""

    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0


def jobs_status(train_job: TrainJob, plan: Plan, children: Children) -> list[ReplicatedJobStatus]:
    """An entry for each pod set that has pods, in their order. An initializer that has succeeded stays so."""
    members = plan.gang.pod_sets if plan.gang else ()
    done = completed(train_job)
    return [
        _gang_status(train_job, plan, pod_set, children)
        if pod_set.name in members
        else _initializer_status(train_job, pod_set.name, children, done=pod_set.name in done)
        for pod_set in plan.pod_sets
        if pod_set.count
    ]


def completed(train_job: TrainJob) -> set[str]:
    """The steps that have succeeded before, as the status remembers."""
    return {each.name for each in train_job.status.jobs_status if each.succeeded}


def trains(statuses: Sequence[ReplicatedJobStatus], plan: Plan) -> bool:
    """Whether all that trains is ready, or has ended: from then on the TrainJob runs for everybody who looks."""
    roles = {pod_set.name for pod_set in plan.pod_sets if pod_set.role in {"trainer", "launcher"}}
    own = [each for each in statuses if each.name in roles]
    return bool(own) and all(each.ready or each.succeeded or each.failed for each in own)


def _gang_status(train_job: TrainJob, plan: Plan, pod_set: PodSetPlan, children: Children) -> ReplicatedJobStatus:
    job = children.job
    jobs = jobs_of(plan, pod_set)
    size = max(1, pod_set.count // jobs)
    over = job is not None and job.status.state.phase in FINISHED
    ready = good = bad = active = 0
    for tally in tallies(pod_set, children.pods, jobs, size):
        if tally.succeeded >= size:
            good += 1
        elif over:
            bad += bool(tally.failed)
        else:
            active += bool(tally.active)
            ready += tally.ready + tally.succeeded >= size
    waiting = jobs - good - bad
    return ReplicatedJobStatus(
        name=pod_set.name,
        ready=ready,
        succeeded=good,
        failed=bad,
        active=active,
        suspended=waiting if train_job.spec.suspend and not over else 0,
    )


def jobs_of(plan: Plan, pod_set: PodSetPlan) -> int:
    """How many Jobs a JobSet would make for a pod set: one for a step, else what the runtime says."""
    if pod_set.role != "other":
        return 1
    found = [job for job in plan.base.get("replicatedJobs") or [] if job["name"] == pod_set.name]
    return max(1, int(found[0].get("replicas") or 1)) if found else 1


def tallies(pod_set: PodSetPlan, pods: Sequence[Pod], jobs: int, size: int) -> list[Tally]:
    """The pods of a pod set by the Job that each would be in: so many Jobs, of so many pods each."""
    counts = [[0, 0, 0, 0] for _ in range(jobs)]
    for pod in pods:
        meta = pod.metadata
        index = number(meta.labels.get(names.TASK_INDEX))
        if meta.deletion_timestamp or meta.labels.get(names.REPLICATED_JOB) != pod_set.name or index is None:
            continue
        if index // size >= jobs:
            continue
        entry = counts[index // size]
        phase = pod.status.phase
        entry[0] += phase in {"Pending", "Running"}
        entry[1] += phase == "Running" and is_ready(pod)
        entry[2] += phase == "Succeeded"
        entry[3] += phase == "Failed"
    return [Tally(*entry) for entry in counts]


def is_ready(pod: Pod) -> bool:
    """Whether kubelet calls the pod ready."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def _initializer_status(train_job: TrainJob, pod_set: str, children: Children, *, done: bool) -> ReplicatedJobStatus:
    job = children.initializers.get(initializer_name(train_job, pod_set))
    if done or (job and succeeded(job)):
        return ReplicatedJobStatus(name=pod_set, ready=0, succeeded=1, failed=0, active=0, suspended=0)
    if job is None:
        suspended = int(train_job.spec.suspend)
        return ReplicatedJobStatus(name=pod_set, ready=0, succeeded=0, failed=0, active=0, suspended=suspended)
    failed = has(job, "Failed")
    return ReplicatedJobStatus(
        name=pod_set,
        ready=int(not failed and _count(job, "ready") + _count(job, "succeeded") >= (job.spec.completions or 1)),
        succeeded=0,
        failed=int(failed),
        active=int(not failed and _count(job, "active") > 0),
        suspended=int(not failed and job.spec.suspend),
    )


def _count(job: IndexedJob, what: str) -> int:
    return int(job.status.get(what) or 0)
