"""One row per gang: workload, queue, state, size, nodes, and the reason for waiting. Pure.

Cells are empty or less exact if the user may not read some kinds of objects. For example, without access to pods,
counts come from the PodGroup, and nodes from the placement.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct, structs

from gangs import plainjobs
from gangs.evictions import EvictionText, displacers, evictions
from gangs.states import failed_text, message_of, needs_room, nodes_of, reason_of
from gangs.words import brief
from muster.api.base import Resource
from muster.api.grammar import be, many
from muster.api.kubeflow.trainer import JOB_FAILURES, TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import INDEXED_JOBS, IndexedJob, Namespace, Pod
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.kubernetes.pod_problems import first_failure
from muster.api.muster.creator import creator_of
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import current
from muster.api.muster.pools import is_musters
from muster.api.muster.states import ENDED, STOPPED, WAITING, State, facts_of, state_of, without_gang
from muster.api.names import DEFAULT_QUEUE, QUEUE
from muster.api.unchecked import value_at
from muster.api.volcano.batch import Job
from muster.api.volcano.flow import JOB_FLOWS, JobFlow
from muster.api.volcano.scheduling import PodGroup
from muster.volcano import podgroup
from muster.volcano.tasks import job_minimum
from muster.workloads.kind import WorkloadKind
from muster.workloads.owners import as_kubectl_takes, job_workload, workload_of
from muster.workloads.sample import JSON
from muster.workloads.table import gang_of, group_name, row_of
from muster.workloads.verbs import held_pods, released_by


@dataclass(slots=True)
class RowSources:
    """The objects from which rows are built; a field is None if the user may not read that kind."""

    versions: dict[Resource[Any], str] = field(default_factory=dict)
    """Maps a listed kind of PodGroups to the resource version of the list, from which a watch continues."""
    groups: list[PodGroup] = field(default_factory=list)
    pods: list[Pod] | None = field(default_factory=list)
    placements: list[Placement] | None = field(default_factory=list)
    jobs: list[Job] | None = field(default_factory=list)
    train_jobs: list[TrainJob] | None = field(default_factory=list)
    plain_jobs: list[IndexedJob] = field(default_factory=list)
    """Jobs of batch/v1, if the user may read them. A Job without pods has no PodGroup, so its row is built from the
    Job."""
    held: list[tuple[WorkloadKind, JSON]] = field(default_factory=list)
    """Held workloads of the kinds in `plainjobs.HELD_KINDS` that the user may read."""
    job_flows: list[JobFlow] = field(default_factory=list)
    """JobFlows that the user may read; a JobFlow has a row if its next Job cannot be created."""
    namespaces: list[Namespace] = field(default_factory=list)
    refusals: plainjobs.Refusals = field(default_factory=dict)
    """Maps an owner's UID to the time and reason of the latest failure to create one of its pods
    (`gangs.plainjobs.refusals`)."""


class GangRow(Struct, frozen=True, rename="camel", kw_only=True):
    """One gang, as data."""

    namespace: str
    kind: str
    """Kind of the workload."""
    name: str
    """Name of the workload."""
    reference: str
    """The workload's name for kubectl, such as job.batch/longrun."""
    part: str = ""
    """Part of the workload to which this gang belongs: a replicated job, a Job or a group. The part is empty if the
    workload has only one gang."""
    gang: str = ""
    """Name of the gang's PodGroup; empty without a PodGroup."""
    queue: str
    state: State
    running: int = 0
    minimum: int = 0
    """Number of pods that start together."""
    wanted: int = 0
    """Total number of pods."""
    priority: int | None = None
    """Priority of the gang, which is at most the highest priority of its pods; None if unknown."""
    priority_class: str = ""
    created: str = ""
    user: str = ""
    """Creator of the workload, if admission has recorded one."""
    reason: str = ""
    """Reason why the gang waits or has a problem, in at most ten words."""
    message: str = ""
    """The reason as a full sentence."""
    needs_room: bool = False
    """True if the gang waits only because other gangs use the capacity."""
    expected_start: str = ""
    """Expected start (RFC 3339); empty if the start is unknown or the gang has started."""
    earliest_start: str = ""
    """Beginning of an interval that ends at `latest_start` and contains the actual start in 80 % of cases (RFC 3339,
    only with --start)."""
    latest_start: str = ""
    """End of the interval that begins at `earliest_start`; empty for an unknown end."""
    start_known_by: str = ""
    """Source of the interval: a reservation, declared run times, or past run times."""
    nodes: list[str] = []

    @property
    def title(self) -> str:
        """The workload's display name, such as `Job longrun`, with the gang's part if there are several."""
        return f"{self.kind} {self.name}" + (f" ({self.part})" if self.part else "")

    @property
    def size(self) -> str:
        """Numbers of running pods, of pods that start together, and of all pods, such as `0/8/10`."""
        return f"{self.running}/{self.minimum}/{self.wanted}"

    @property
    def priority_text(self) -> str:
        """The PriorityClass, or else the numeric priority; `-` if neither is known."""
        return self.priority_class or ("-" if self.priority is None else str(self.priority))


def rows(objects: RowSources) -> list[GangRow]:
    """Return one row per gang, and per workload without a gang, ordered by namespace, queue and age."""
    pods = pods_by_gang(objects.pods or ())
    placements = {each.metadata.key: each for each in objects.placements or ()}
    jobs = {job.metadata.uid: job for job in objects.jobs or ()}
    trainings = {each.metadata.uid: each for each in objects.train_jobs or ()}
    plains = {job.metadata.uid: job for job in objects.plain_jobs}
    namespaces = {each.metadata.name: each for each in objects.namespaces}
    displaced = displacers(objects.groups, objects.placements or ())
    leaving = evictions(objects.groups, objects.placements or (), pods)
    found: list[GangRow] = []
    ganged: set[str] = set()
    for group in objects.groups:
        meta = group.metadata
        members = pods[meta.namespace, meta.name] if objects.pods is not None else None
        above = meta.controller
        job = jobs.get(above.uid) if above else None
        if job is not None and job.status.state.phase in STOPPED:  # the workload has ended, so its PodGroup will end
            continue
        ganged |= {workload_of(group).uid, above.uid if above else "", *plainjobs.owners(members or ())}
        row = _row(group, members, current(group, placements.get(meta.key)), job)
        row = _as_leaving(row, leaving.get(meta.key))
        row = _as_evicted(row, displaced.get(meta.key, ""))
        training = trainings.get(workload_of(group).uid)
        why = (job.status.state.refusal if job else "") or (training.blocked if training else "")
        row = _as_refused(row, why or plainjobs.refusal_of(group, members or (), objects.refusals))
        row = _with_plain_job(row, plains.get(above.uid) if above else None, members or ())
        found.append(_with_train_job(row, training, members or ()))
    for job in objects.jobs or ():
        if job.metadata.uid not in ganged:
            owner = job_workload(job)
            ganged.add(owner.uid)
            mine = pods[job.metadata.namespace, podgroup.group_name(job)]
            found.append(_with_train_job(_without_gang(job, mine), trainings.get(owner.uid), mine))
    found += [_without_job(each) for each in objects.train_jobs or () if each.metadata.uid not in ganged]
    for kind, workload in objects.held:
        held = _held(kind, workload, namespaces)
        uid = workload["metadata"]["uid"]
        if held.queue and uid not in ganged:
            ganged.add(uid)
            found.append(held)
    for flow in filter(plainjobs.is_blocked, objects.job_flows):
        owner = OwnerReference.to(JOB_FLOWS, flow.metadata)
        found.append(_bare(owner, flow.metadata, "Waiting", flow.status.state.message))
    parts = {(row.namespace, row.name) for row in found if row.kind == TRAIN_JOBS.kind}
    for plain in objects.plain_jobs:
        meta, of = plain.metadata, plain.metadata.controller
        if meta.uid not in ganged and not (of and (of.uid in ganged or (meta.namespace, of.name) in parts)):
            found += _of_plain_job(plain, namespaces.get(meta.namespace), objects.refusals)
    gangs = Counter((row.namespace, row.kind, row.name) for row in found)
    found = [
        structs.replace(row, part="") if row.part and gangs[row.namespace, row.kind, row.name] == 1 else row
        for row in found
    ]
    found = [_in_namespace(row, namespaces.get(row.namespace)) for row in found]
    return sorted(found, key=lambda row: (row.namespace, row.queue, row.created, row.kind, row.name))


def difference(before: Iterable[GangRow], now: Iterable[GangRow]) -> list[tuple[GangRow | None, GangRow]]:
    """Return the old and new row of each gang that has changed; the new state of a deleted gang is `Gone`."""
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
    """Return the pods of each gang, by namespace and name of its PodGroup; a gang without pods has no entry."""
    found: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        if name := gang_name(pod):
            found[pod.metadata.namespace, name].append(pod)
    return found


def _row(group: PodGroup, pods: list[Pod] | None, placement: Placement | None, job: Job | None) -> GangRow:
    owner = workload_of(group)
    alive = [pod for pod in pods or () if not pod.metadata.deletion_timestamp]
    living = [pod for pod in alive if not pod.finished]
    status, spec = group.status, group.spec
    running = status.running if pods is None else sum(pod.status.phase == "Running" for pod in living)
    tasks = sum(task.replicas for task in job.spec.tasks) if job else 0
    state = state_of(facts_of(group, placement, pods))
    if state in {"Starting", "Running"} and status.phase in {"", "Pending", "Inqueue"}:  # the gang waited until now
        group = structs.replace(group, status=structs.replace(status, conditions=[]))
    message = message_of(group, state, placement, living, pods or ())
    leaving = [pod for pod in pods or () if pod.metadata.deletion_timestamp and not pod.finished]
    if leaving and not living and state not in ENDED:
        message = f"all of its {many(len(leaving), 'pod')} {be(len(leaving))} being deleted"
    priority, called = _priority(spec.priority_class_name, alive)
    return GangRow(
        namespace=group.metadata.namespace,
        kind=owner.kind,
        name=owner.name,
        reference=as_kubectl_takes(owner),
        part=_part(group, owner),
        gang=group.metadata.name,
        queue=spec.queue,
        state=state,
        running=running,
        minimum=spec.min_member,
        wanted=max(tasks or sum(pod.status.phase != "Failed" for pod in alive), spec.min_member),
        priority=priority,
        priority_class=called,
        created=(job.metadata if job else group.metadata).creation_timestamp or "",
        user=creator_of(group.metadata.annotations),
        reason=brief(message)
        if leaving and not living
        else reason_of(group, state, message, placement, living, pods or ()),
        message=message,
        needs_room=state in WAITING and needs_room(group),
        expected_start=_expected(group, placement) if state == "Reserved" else "",
        nodes=[] if state in ENDED else nodes_of(pods, living, placement, state),
    )


def _priority(called: str, pods: Sequence[Pod]) -> tuple[int | None, str]:
    """Return the gang's priority and its class; the class is empty if the pods limit the priority.

    A PodGroup without a class has priority 0, even if its pods have classes.
    """
    if not pods:
        return None, called
    most = max(pod.spec.priority or 0 for pod in pods)
    if not called:
        return min(0, most), ""
    own = [pod.spec.priority or 0 for pod in pods if pod.spec.priority_class_name == called]
    return (own[0], called) if own else (most, "")


def _part(group: PodGroup, owner: OwnerReference) -> str:
    """Return the part of a workload to which a gang belongs: its Job's name, or the end of the gang's own name."""
    maker = group.metadata.controller
    if maker is not None and maker.name != owner.name:
        return maker.name.removeprefix(f"{owner.name}-")
    kind = row_of(maker)
    return group.metadata.name.rpartition(".")[2] if kind and kind.world else ""


def _expected(group: PodGroup, placement: Placement | None) -> str:
    return (placement.status.expected_at if placement else "") or group.status.expected_start or ""


def _without_gang(job: Job, pods: Sequence[Pod]) -> GangRow:
    """Return the row of a Volcano Job without a PodGroup, which is new, suspended or finished."""
    state, spec = job.status.state, job.spec
    called = without_gang(state.phase, job.metadata)
    owner = job_workload(job)
    why = state.failure or state.message or ("its gang does not exist yet" if called == "Waiting" else "")
    if called == "Suspended":
        why = released_by(owner.name, job.metadata.namespace)
    return structs.replace(
        _bare(owner, job.metadata, called, "" if called == "Completed" else why, pods),
        queue=spec.queue or DEFAULT_QUEUE,
        minimum=job_minimum(spec),
        wanted=sum(task.replicas for task in spec.tasks),
        priority_class=spec.priority_class_name,
    )


def _of_plain_job(job: IndexedJob, namespace: Namespace | None, refusals: plainjobs.Refusals) -> Iterator[GangRow]:
    """Yield the row of a batch/v1 Job without a gang, if Muster manages the Job or the user expects so."""
    queue = plainjobs.queue_of(job, namespace)
    if queue or plainjobs.means_muster(job):
        state = plainjobs.state(job, managed=bool(queue))
        message = plainjobs.reason(job, state, refusals, managed=bool(queue))
        yield structs.replace(
            _bare(OwnerReference.to(INDEXED_JOBS, job.metadata), job.metadata, state, message),
            queue=queue,
            wanted=plainjobs.pods_of(job),
            priority_class=str(value_at(job.spec.template, ("spec", "priorityClassName")) or ""),
        )


def _held(kind: WorkloadKind, workload: JSON, namespaces: Mapping[str, Namespace]) -> GangRow:
    """Return the row of a held workload, with its number of pods before the hold."""
    meta = plainjobs.metadata_of(workload)
    return structs.replace(
        _bare(OwnerReference.to(kind.resource, meta), meta, "Suspended", released_by(meta.name, meta.namespace)),
        queue=plainjobs.held_queue(kind, workload, namespaces.get(meta.namespace)),
        wanted=held_pods(kind, workload),
    )


def _in_namespace(row: GangRow, namespace: Namespace | None) -> GangRow:
    """Return the row of a gang, or the row with the reason that the deletion of the namespace prevents new pods."""
    if row.state not in {*WAITING, "Suspended"} or not (namespace and namespace.metadata.deletion_timestamp):
        return row
    why = f"namespace {row.namespace} is being deleted"
    return structs.replace(row, reason=why, message=f"{why}, so no pods can be created in it", needs_room=False)


def _as_leaving(row: GangRow, why: EvictionText | None) -> GangRow:
    """Return the row of a gang with nodes, with the eviction of the gang, or the evictions for which it waits."""
    if why is None or row.state in {*WAITING, *ENDED, "Suspended"}:
        return row
    also = "" if row.state == "Starting" or not row.message else f"; {row.message}"
    return structs.replace(row, reason=why.reason, message=why.message + also)


def _as_evicted(row: GangRow, whom: str) -> GangRow:
    """Return the row of a gang that waits after its eviction, with a message that names the gang on its nodes."""
    return (
        row
        if row.state not in WAITING or not whom
        else structs.replace(row, message=f"its pods were evicted for {whom}; {row.message}")
    )


def _as_refused(row: GangRow, why: str) -> GangRow:
    """Return the row of a waiting gang, with the reason why its pods cannot be created, if any."""
    return (
        structs.replace(row, message=why, reason=brief(why), needs_room=False) if why and row.state in WAITING else row
    )


def _with_plain_job(row: GangRow, job: IndexedJob | None, pods: Sequence[Pod]) -> GangRow:
    """Return the gang's row; if its batch/v1 Job has ended, with the Job's result.

    The Job's status shows the end a little earlier than the PodGroup's status.
    """
    state = plainjobs.state(job, managed=True) if job and row.state not in ENDED else row.state
    if job is None or state == row.state or state not in ENDED:
        return row
    owner, message = OwnerReference.to(INDEXED_JOBS, job.metadata), plainjobs.reason(job, state, {}, managed=True)
    ended = _ended_as(row, _bare(owner, job.metadata, state, message, pods))
    return structs.replace(ended, needs_room=False, nodes=[])


def _ended_as(row: GangRow, end: GangRow) -> GangRow:
    return structs.replace(row, state=end.state, reason=end.reason, message=end.message)


def _with_train_job(row: GangRow, train_job: TrainJob | None, pods: Sequence[Pod]) -> GangRow:
    """Return the row of a gang or Job; if its TrainJob has ended, the row has the TrainJob's state and reason."""
    result = _without_job(train_job, pods) if train_job else row
    return _ended_as(row, result) if result.state in ENDED else row


def _without_job(train_job: TrainJob, pods: Sequence[Pod] = ()) -> GangRow:
    """Return the row of a TrainJob whose Job does not exist yet, or was deleted."""
    meta, held = train_job.metadata, {each.type: each for each in train_job.status.conditions}
    owner = OwnerReference.to(TRAIN_JOBS, meta)
    ends: dict[str, State] = {"Complete": "Completed", "Failed": "Failed", "Blocked": "Waiting"}
    for kind, state in ends.items():
        if kind in held:
            return _bare(owner, meta, state, "" if kind == "Complete" else held[kind].message, pods)
    if train_job.spec.suspend:
        return _bare(owner, meta, "Suspended", released_by(meta.name, meta.namespace))
    for each in train_job.status.jobs_status:
        if each.name.endswith("initializer") and not each.succeeded:
            return _bare(owner, meta, "Waiting", f"it waits for its {each.name}")
    return _bare(owner, meta, "Waiting", "its Job does not exist yet")


def _bare(owner: OwnerReference, meta: ObjectMeta, state: State, message: str, pods: Sequence[Pod] = ()) -> GangRow:
    """Return a row without numbers of pods.

    If the workload failed or was terminated, the row has the reason of the first failed pod in `pods`.
    """
    first = first_failure(pods) if state in {"Failed", "Terminated"} else None
    return GangRow(
        namespace=meta.namespace,
        kind=owner.kind,
        name=owner.name,
        reference=as_kubectl_takes(owner),
        queue=meta.labels.get(QUEUE, ""),
        state=state,
        created=meta.creation_timestamp or "",
        user=creator_of(meta.annotations),
        reason=brief(first[1] if first else message.removeprefix(JOB_FAILURES)),
        message=failed_text(pods, message) if first else message,
    )
