"""A row of the list of gangs, and the row of a gang with a PodGroup; the functions are pure.

Cells are empty or less exact if the user is not allowed to read some kinds of objects. For example, without access to
pods, counts come from the PodGroup, and nodes from the placement.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from gangs.states import failed_text, message_of, needs_room, nodes_of, reason_of
from gangs.words import brief
from muster.api.grammar import be, many
from muster.api.kubeflow.trainer import JOB_FAILURES
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.kubernetes.pod_problems import first_failure
from muster.api.muster.creator import creator_of
from muster.api.muster.placement import Placement
from muster.api.muster.states import ENDED, WAITING, State, facts_of, state_of
from muster.api.names import QUEUE
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.workloads.owners import as_kubectl_takes, workload_of
from muster.workloads.table import row_of


class GangRow(Struct, frozen=True, rename="camel", kw_only=True):
    """A row of the list of gangs, as data."""

    namespace: str
    kind: str
    """Kind of the workload."""
    name: str
    """Name of the workload."""
    reference: str
    """The workload's name for kubectl, such as job.batch/longrun."""
    part: str = ""
    """Part of the workload to which this gang belongs: a replicated job, a Job or a group. The field is empty if the
    workload has only one gang."""
    gang: str = ""
    """Name of the gang's PodGroup; empty if there is no PodGroup."""
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
    """The reason why the gang waits or has a problem, as a full sentence."""
    needs_room: bool = False
    """True if the gang waits only because other gangs use the capacity."""
    expected_start: str = ""
    """Expected start of the gang (RFC 3339); empty if the start is unknown or the gang has started."""
    earliest_start: str = ""
    """Beginning (RFC 3339) of an interval that ends at `latest_start` and contains the actual start in 80 % of cases;
    only with --start."""
    latest_start: str = ""
    """End of the interval that begins at `earliest_start`; empty if the end is unknown."""
    start_known_by: str = ""
    """Source of the interval of the start: a reservation, declared run times, or past run times."""
    nodes: list[str] = []

    @property
    def title(self) -> str:
        """The workload's display name, such as `Job longrun`, with the gang's part if there are several."""
        return f"{self.kind} {self.name}" + (f" ({self.part})" if self.part else "")

    @property
    def size(self) -> str:
        """The numbers of running pods, of pods that start together, and of all pods, such as `0/8/10`."""
        return f"{self.running}/{self.minimum}/{self.wanted}"

    @property
    def priority_text(self) -> str:
        """The gang's PriorityClass, or else its numeric priority; `-` if neither is known."""
        return self.priority_class or ("-" if self.priority is None else str(self.priority))


def gang_row(group: PodGroup, pods: list[Pod] | None, placement: Placement | None, job: Job | None) -> GangRow:
    """Return the row of a gang from its PodGroup, pods (None if unreadable for the user), placement and Volcano Job."""
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
    """Return the gang's priority and PriorityClass; the class is empty if the pods' classes limit the priority.

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


def bare_row(owner: OwnerReference, meta: ObjectMeta, state: State, message: str, pods: Sequence[Pod] = ()) -> GangRow:
    """Return the row of a workload without numbers of pods.

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
