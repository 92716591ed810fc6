"""Rows of workloads without a gang, because it does not exist yet, or because the workload is held or has ended.

Pure.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from gangs import plainjobs
from gangs.row import GangRow, bare_row
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob, Namespace, Pod
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.states import State, without_gang
from muster.api.names import DEFAULT_QUEUE
from muster.api.unchecked import value_at
from muster.api.volcano.batch import Job
from muster.api.volcano.flow import JOB_FLOWS, JobFlow
from muster.volcano.tasks import job_minimum
from muster.workloads.kind import WorkloadKind
from muster.workloads.owners import job_workload
from muster.workloads.sample import JSON
from muster.workloads.verbs import held_pods, released_by


def job_row(job: Job, pods: Sequence[Pod]) -> GangRow:
    """Return the row of a Volcano Job without a PodGroup, which is new, suspended or finished."""
    state, spec = job.status.state, job.spec
    called = without_gang(state.phase, job.metadata)
    owner = job_workload(job)
    why = state.failure or state.message or ("its gang does not exist yet" if called == "Waiting" else "")
    if called == "Suspended":
        why = released_by(owner.name, job.metadata.namespace)
    return structs.replace(
        bare_row(owner, job.metadata, called, "" if called == "Completed" else why, pods),
        queue=spec.queue or DEFAULT_QUEUE,
        minimum=job_minimum(spec),
        wanted=sum(task.replicas for task in spec.tasks),
        priority_class=spec.priority_class_name,
    )


def train_job_row(train_job: TrainJob, pods: Sequence[Pod] = ()) -> GangRow:
    """Return the row of a TrainJob whose Job does not exist yet or was deleted."""
    meta, held = train_job.metadata, {each.type: each for each in train_job.status.conditions}
    owner = OwnerReference.to(TRAIN_JOBS, meta)
    ends: dict[str, State] = {"Complete": "Completed", "Failed": "Failed", "Blocked": "Waiting"}
    for kind, state in ends.items():
        if kind in held:
            return bare_row(owner, meta, state, "" if kind == "Complete" else held[kind].message, pods)
    if train_job.spec.suspend:
        return bare_row(owner, meta, "Suspended", released_by(meta.name, meta.namespace))
    for each in train_job.status.jobs_status:
        if each.name.endswith("initializer") and not each.succeeded:
            return bare_row(owner, meta, "Waiting", f"it waits for its {each.name}")
    return bare_row(owner, meta, "Waiting", "its Job does not exist yet")


def plain_job_rows(job: IndexedJob, namespace: Namespace | None, refusals: plainjobs.Refusals) -> Iterator[GangRow]:
    """Yield the row of a batch/v1 Job without a gang, if Muster manages the Job or the Job refers to Muster."""
    queue = plainjobs.queue_of(job, namespace)
    if queue or plainjobs.means_muster(job):
        state = plainjobs.state(job, managed=bool(queue))
        message = plainjobs.reason(job, state, refusals, managed=bool(queue))
        yield structs.replace(
            bare_row(OwnerReference.to(INDEXED_JOBS, job.metadata), job.metadata, state, message),
            queue=queue,
            wanted=plainjobs.pods_of(job),
            priority_class=str(value_at(job.spec.template, ("spec", "priorityClassName")) or ""),
        )


def held_row(kind: WorkloadKind, workload: JSON, namespaces: Mapping[str, Namespace]) -> GangRow:
    """Return the row of a held workload, with its number of pods before the hold."""
    meta = plainjobs.metadata_of(workload)
    return structs.replace(
        bare_row(OwnerReference.to(kind.resource, meta), meta, "Suspended", released_by(meta.name, meta.namespace)),
        queue=plainjobs.held_queue(kind, workload, namespaces.get(meta.namespace)),
        wanted=held_pods(kind, workload),
    )


def flow_row(flow: JobFlow) -> GangRow:
    """Return the row of a JobFlow whose next Job cannot be created."""
    return bare_row(OwnerReference.to(JOB_FLOWS, flow.metadata), flow.metadata, "Waiting", flow.status.state.message)
