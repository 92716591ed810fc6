"""The list of gangs, and its changed rows; it has a row per gang, and per workload without a gang. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from gangs import plainjobs
from gangs.evictions import EvictionText, displacers, evictions
from gangs.row import GangRow, bare_row, gang_row
from gangs.words import brief
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob, Namespace, Pod
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import current
from muster.api.muster.pools import is_musters
from muster.api.muster.states import ENDED, STOPPED, WAITING, State, without_gang
from muster.api.names import DEFAULT_QUEUE
from muster.api.unchecked import value_at
from muster.api.volcano.batch import Job
from muster.api.volcano.flow import JOB_FLOWS, JobFlow
from muster.api.volcano.scheduling import PodGroup
from muster.volcano import podgroup
from muster.volcano.tasks import job_minimum
from muster.workloads.kind import WorkloadKind
from muster.workloads.owners import job_workload, workload_of
from muster.workloads.sample import JSON
from muster.workloads.table import gang_of, group_name
from muster.workloads.verbs import held_pods, released_by

PodsByGang = Mapping[tuple[str, str], list[Pod]]
"""Maps the namespace and the name of a PodGroup to its pods."""


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


@dataclass(slots=True)
class RowSources:
    """The objects from which rows are built; a field is None if the user is not allowed to read its kind."""

    versions: dict[Resource[Any], str] = field(default_factory=dict)
    """Maps a listed kind of PodGroups to the resource version of the list, from which a watch continues."""
    groups: list[PodGroup] = field(default_factory=list)
    pods: list[Pod] | None = field(default_factory=list)
    placements: list[Placement] | None = field(default_factory=list)
    jobs: list[Job] | None = field(default_factory=list)
    train_jobs: list[TrainJob] | None = field(default_factory=list)
    plain_jobs: list[IndexedJob] = field(default_factory=list)
    """Jobs of batch/v1, if the user is allowed to read Jobs. A Job without pods has no PodGroup, so the Job's row is
    built from the Job."""
    held: list[tuple[WorkloadKind, JSON]] = field(default_factory=list)
    """Held workloads of those kinds in `plainjobs.HELD_KINDS` that the user is allowed to read."""
    job_flows: list[JobFlow] = field(default_factory=list)
    """JobFlows, if the user is allowed to read them; a JobFlow has a row if its next Job cannot be created."""
    namespaces: list[Namespace] = field(default_factory=list)
    refusals: plainjobs.Refusals = field(default_factory=dict)
    """Maps an owner's UID to the time and reason of the latest failure to create one of its pods
    (`gangs.plainjobs.refusals`)."""


def rows(objects: RowSources) -> list[GangRow]:
    """Return one row per gang and one per workload without a gang, ordered by namespace, queue and age."""
    pods = pods_by_gang(objects.pods or ())
    namespaces = {each.metadata.name: each for each in objects.namespaces}
    listed: set[str] = set()  # UIDs of the workloads that have a row, and of their owners
    found = [
        *_of_groups(objects, pods, listed),
        *_of_jobs(objects, pods, listed),
        *(train_job_row(each) for each in objects.train_jobs or () if each.metadata.uid not in listed),
        *_of_held(objects, namespaces, listed),
        *map(flow_row, filter(plainjobs.is_blocked, objects.job_flows)),
    ]
    found += _of_plain_jobs(objects, namespaces, listed, found)
    gangs = Counter((row.namespace, row.kind, row.name) for row in found)
    found = [
        structs.replace(row, part="") if row.part and gangs[row.namespace, row.kind, row.name] == 1 else row
        for row in found
    ]
    found = [_in_namespace(row, namespaces.get(row.namespace)) for row in found]
    return sorted(found, key=lambda row: (row.namespace, row.queue, row.created, row.kind, row.name))


def difference(before: Iterable[GangRow], now: Iterable[GangRow]) -> list[tuple[GangRow | None, GangRow]]:
    """Yield the old and the new row of each changed gang; in the new row of a deleted gang, the state is `Gone`."""
    old, new = ({(row.namespace, row.kind, row.name, row.gang): row for row in each} for each in (before, now))
    changed = [(old.get(key), row) for key, row in new.items() if old.get(key) != row]
    names = {key[:3] for key in new}  # a restarted gang has a new PodGroup
    gone = [
        (row, structs.replace(row, state="Gone", running=0, reason="", message="", expected_start="", nodes=[]))
        for key, row in old.items()
        if key[:3] not in names
    ]
    return [*changed, *gone]


def gang_name(pod: Pod) -> str | None:
    """Return the name of a pod's PodGroup; None for pods of other schedulers."""
    if not is_musters(pod.spec.scheduler_name):
        return None
    return gang_of(pod) or group_name(pod.metadata)


def pods_by_gang(pods: Iterable[Pod]) -> dict[tuple[str, str], list[Pod]]:
    """Return a mapping from namespace and name of a gang's PodGroup to its pods; a gang without pods has no entry."""
    found: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        if name := gang_name(pod):
            found[pod.metadata.namespace, name].append(pod)
    return found


def _of_groups(objects: RowSources, pods: PodsByGang, listed: set[str]) -> Iterator[GangRow]:
    """Yield the rows of gangs with a PodGroup, except gangs of Volcano Jobs that have ended."""
    placements = {each.metadata.key: each for each in objects.placements or ()}
    jobs = {job.metadata.uid: job for job in objects.jobs or ()}
    trainings = {each.metadata.uid: each for each in objects.train_jobs or ()}
    plains = {job.metadata.uid: job for job in objects.plain_jobs}
    displaced = displacers(objects.groups, objects.placements or ())
    leaving = evictions(objects.groups, objects.placements or (), pods)
    for group in objects.groups:
        meta = group.metadata
        members = pods.get((meta.namespace, meta.name), []) if objects.pods is not None else None
        above = meta.controller
        job = jobs.get(above.uid) if above else None
        if job is not None and job.status.state.phase in STOPPED:  # the workload has ended, so its PodGroup will end
            continue
        listed |= {workload_of(group).uid, above.uid if above else "", *plainjobs.owners(members or ())}
        row = gang_row(group, members, current(group, placements.get(meta.key)), job)
        row = _as_leaving(row, leaving.get(meta.key))
        row = _as_evicted(row, displaced.get(meta.key, ""))
        training = trainings.get(workload_of(group).uid)
        why = (job.status.state.refusal if job else "") or (training.blocked if training else "")
        row = _as_refused(row, why or plainjobs.refusal_of(group, members or (), objects.refusals))
        row = _with_plain_job(row, plains.get(above.uid) if above else None, members or ())
        yield _with_train_job(row, training, members or ())


def _of_jobs(objects: RowSources, pods: PodsByGang, listed: set[str]) -> Iterator[GangRow]:
    """Yield the rows of Volcano Jobs without a PodGroup."""
    trainings = {each.metadata.uid: each for each in objects.train_jobs or ()}
    for job in objects.jobs or ():
        if job.metadata.uid not in listed:
            owner = job_workload(job)
            listed.add(owner.uid)
            mine = pods.get((job.metadata.namespace, podgroup.group_name(job)), [])
            yield _with_train_job(job_row(job, mine), trainings.get(owner.uid), mine)


def _of_held(objects: RowSources, namespaces: Mapping[str, Namespace], listed: set[str]) -> Iterator[GangRow]:
    """Yield the rows of held workloads whose pods will wait in a queue."""
    for kind, workload in objects.held:
        row, uid = held_row(kind, workload, namespaces), workload["metadata"]["uid"]
        if row.queue and uid not in listed:
            listed.add(uid)
            yield row


def _of_plain_jobs(
    objects: RowSources, namespaces: Mapping[str, Namespace], listed: set[str], found: Iterable[GangRow]
) -> Iterator[GangRow]:
    """Yield the rows of batch/v1 Jobs without a gang that are not part of a workload with a row."""
    parts = {(row.namespace, row.name) for row in found if row.kind == TRAIN_JOBS.kind}
    for plain in objects.plain_jobs:
        meta, of = plain.metadata, plain.metadata.controller
        if meta.uid not in listed and not (of and (of.uid in listed or (meta.namespace, of.name) in parts)):
            yield from plain_job_rows(plain, namespaces.get(meta.namespace), objects.refusals)


def _in_namespace(row: GangRow, namespace: Namespace | None) -> GangRow:
    """Return the row of a gang; if its namespace is being deleted, with the reason that no pods can be created."""
    if row.state not in {*WAITING, "Suspended"} or not (namespace and namespace.metadata.deletion_timestamp):
        return row
    why = f"namespace {row.namespace} is being deleted"
    return structs.replace(row, reason=why, message=f"{why}, so no pods can be created in it", needs_room=False)


def _as_leaving(row: GangRow, why: EvictionText | None) -> GangRow:
    """Return the row of a gang with nodes, extended by its own eviction or by the evictions for which it waits."""
    if why is None or row.state in {*WAITING, *ENDED, "Suspended"}:
        return row
    also = "" if row.state == "Starting" or not row.message else f"; {row.message}"
    return structs.replace(row, reason=why.reason, message=why.message + also)


def _as_evicted(row: GangRow, whom: str) -> GangRow:
    """Return the row of a gang that waits after its eviction; its message names the gang that got the nodes."""
    return (
        row
        if row.state not in WAITING or not whom
        else structs.replace(row, message=f"the gang's pods were evicted for {whom}; {row.message}")
    )


def _as_refused(row: GangRow, why: str) -> GangRow:
    """Return the row of a waiting gang, with the reason why its pods cannot be created, if any."""
    return (
        structs.replace(row, message=why, reason=brief(why), needs_room=False) if why and row.state in WAITING else row
    )


def _with_plain_job(row: GangRow, job: IndexedJob | None, pods: Sequence[Pod]) -> GangRow:
    """Return the gang's row; if the gang's batch/v1 Job has ended, the row has the Job's result.

    The Job's status shows the end a little earlier than the PodGroup's status.
    """
    state = plainjobs.state(job, managed=True) if job and row.state not in ENDED else row.state
    if job is None or state == row.state or state not in ENDED:
        return row
    owner, message = OwnerReference.to(INDEXED_JOBS, job.metadata), plainjobs.reason(job, state, {}, managed=True)
    ended = _ended_as(row, bare_row(owner, job.metadata, state, message, pods))
    return structs.replace(ended, needs_room=False, nodes=[])


def _ended_as(row: GangRow, end: GangRow) -> GangRow:
    return structs.replace(row, state=end.state, reason=end.reason, message=end.message)


def _with_train_job(row: GangRow, train_job: TrainJob | None, pods: Sequence[Pod]) -> GangRow:
    """Return the row of a gang or Job; if its TrainJob has ended, the row has the TrainJob's state and reason."""
    result = train_job_row(train_job, pods) if train_job else row
    return _ended_as(row, result) if result.state in ENDED else row
