"""Records of pods. A Pod object takes about 15 KiB; a record contains only the fields that are relevant to planning."""

from sys import intern

from msgspec import Struct

from extender.planner.state.devicetable import ClaimRef, claim_refs, extended_claim
from extender.planner.state.podclass import PodClass
from extender.planner.state.podshape import pin_of
from muster.api import names
from muster.api.kubernetes.core import DEFAULT_GRACE_S, Pod
from muster.api.kubernetes.meta import ObjectMeta, ReportedCondition, readable_time
from muster.api.muster import safetoevict
from muster.api.muster.checkpoint import NoticeAnswer, answer_of
from muster.api.muster.creator import counted_user
from muster.api.muster.gang import Slot, epoch_of, gated, other_gates
from muster.api.muster.pools import DEFAULT_POOL, pool_of_scheduler
from muster.api.volcano.batch import is_job
from muster.resources.gpus import chosen_devices
from muster.resources.runtime import Runtime, runtime_of
from muster.resources.topology import PodTopology, of_pods
from muster.workloads.charges import marked, named_queue
from muster.workloads.table import PART_LABELS, gang_of, slot_of, task_of

ABOUT_GANG = (names.SPARES, names.BORROWS, names.ELASTIC, *names.FAULT_KEYS)
"""Annotations about a gang that the gang's pods may have."""
_TROUBLE_CHARS = 200
"""Maximum length of a pod's stored message, in characters."""
_DISRUPTED = frozenset({"Evicted", "Preempting", "NodeShutdown", "Terminated", "NodeLost"})
"""Reasons in the status of pods that the kubelet or the node controller has ended although the pods did not fail."""


class PodRecord(Struct, eq=False, gc=False):
    """The fields of a pod that are relevant to planning; every change of the pod creates a new record.

    Records are excluded from garbage collection, because they have no reference cycles.
    """

    uid: str
    namespace: str
    name: str
    cls: PodClass
    labels: dict[str, str]
    node: str
    """Node to which the pod is bound, or to which Muster is binding the pod; empty without a node."""
    phase: str
    scheduler_name: str
    ours: bool
    """True if kube-scheduler calls Muster for this pod, because of its schedulerName or its marker resources."""
    system: bool
    """True if the pod is in kube-system, or has a priority class `system-*-critical`."""
    priority: int | None
    """Priority that the API server has set; None in a file that the API server has not processed."""
    priority_class: str
    preempts: bool
    """False if the pod has the preemptionPolicy Never."""
    created: str
    resource_version: str
    since: float | None
    """Time when the kubelet accepted the pod, in seconds since the epoch."""
    bound_at: float | None
    """Time of the pod's binding according to its condition, in seconds since the epoch."""
    gang: str | None
    """Key (`namespace/name`) of the pod's PodGroup."""
    slot: Slot | None
    """The pod's slot; None until the state assigns a slot to a pod that names no slot."""
    controller: str
    """Kind and name of the pod's controller; empty without a controller. A later controller with the same name takes
    over the slots of the earlier controller's pods."""
    controller_uid: str
    terminating: bool
    gone_by: str
    """Time at which the pod's grace period ends (RFC 3339) if the pod is being deleted; otherwise empty."""
    grace_s: float
    """The pod's grace period in seconds: from its deletion request, otherwise from its spec."""
    gated: bool
    other_gates: tuple[str, ...]
    """Scheduling gates other than Muster's."""
    epoch: int | None
    pin: str
    refused: bool
    """True if kube-scheduler, not Muster, wrote PodScheduled False with reason Unschedulable: it found no node."""
    asks: bool
    """True if Muster wrote the reason Unschedulable into the gated pod's condition, for autoscalers."""
    says: str
    """The message that Muster wrote into the pod's condition PodScheduled, without its first word; empty without a
    message."""
    evictable: str
    """Value of the annotation that allows or forbids autoscalers to evict the pod; empty without this annotation."""
    evictable_by_us: bool
    """True if Muster wrote the annotation about eviction by autoscalers, which the queue requests."""
    queue: str
    """The queue that the pod names; the queue of its gang takes precedence."""
    preemptable: bool
    spends_retries: bool
    """True if an eviction of the pod counts towards the backoffLimit of its Kubernetes Job."""
    runtime: Runtime
    claims: tuple[ClaimRef, ...]
    extended_claim: str
    """The claim that kube-scheduler created for the pod's extended resources; empty without a claim."""
    topology: PodTopology | None
    devices: tuple[int, ...]
    """Indexes of the node's GPUs that the pod shares; empty if the indexes are unknown or the pod shares no GPU."""
    answer: NoticeAnswer | None
    """The pod's eviction notice and its answer; None without such annotations."""

    trouble: str
    """The API server's message when kube-scheduler failed to bind the pod to its node; empty without a failure."""
    task: str
    """The task of a pod that names a task but no index, so that the planner assigns its rank; empty for other pods."""
    creator: str
    """The user that the pod's annotation names as its creator; empty for pods of other controllers, whose annotations
    come from a template."""
    about_gang: dict[str, str] | None
    """The pod's annotations about its gang; None for most pods, which have no such annotations."""
    failed: bool
    """True if the pod itself failed, without eviction or deletion before its end."""
    waiting: bool = False
    """True if the pod exists, has not ended, and has no node."""
    pinned: bool = False
    """True if the pod waits and is pinned to a node; the pin cannot be changed."""
    taken: bool = False
    """True if the pod's slot is taken: the pod is bound and alive, or has succeeded."""
    alive: bool = False
    """True if the pod is on a node, has not finished, and is not being deleted."""
    uses_node: bool = False
    """True if the pod is on a node and has not ended, so that its capacity is not free."""

    def __post_init__(self) -> None:
        """Compute the flags of the pod once, because every evaluation of its gang reads them."""
        self.waiting = not self.node and not self.terminating and self.phase in {"", "Pending"}
        self.pinned = self.waiting and bool(self.pin) and not self.gated
        self.taken = self.phase == "Succeeded" or (bool(self.node) and self.phase != "Failed" and not self.terminating)
        self.alive = self.taken and self.phase != "Succeeded"
        self.uses_node = bool(self.node) and self.phase not in {"Succeeded", "Failed"}

    @property
    def key(self) -> str:
        """Namespace and name of the pod, such as `ns/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def shares_claims(self) -> bool:
        """True if the pod uses a device claim that other pods may use, too.

        kube-scheduler refuses a pod while another pod's binding allocates a shared claim, and retries the pod
        afterwards. The refusal of a pod with shared claims is therefore ignored.
        """
        return any(not ref.template or ref.grouped for ref in self.claims)


def record_of(pod: Pod, cls: PodClass, assumed: str, pool: str = DEFAULT_POOL) -> PodRecord:
    """Create the record of a pod; `assumed` is its node after Muster's bind, until the watch reports it.

    A node that has moved into this node pool from another pool may still run pods of its former pool. A pod of the
    former pool is treated like a pod of another scheduler: it uses capacity, but has no gang in this pool.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    annotations, labels = meta.annotations, meta.labels
    placed_by = pool_of_scheduler(spec.scheduler_name)
    elsewhere = placed_by is not None and placed_by != pool
    gang, scheduled = "" if elsewhere else gang_of(pod), status.condition("PodScheduled")
    unschedulable = scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"
    in_our_words = scheduled is not None and scheduled.message.startswith(names.MESSAGE_PREFIX)
    return PodRecord(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        cls=cls,
        labels=labels,
        node=intern(spec.node_name or assumed),
        phase=intern(status.phase),
        scheduler_name=intern(spec.scheduler_name),
        ours=not elsewhere and (placed_by is not None or (pool == DEFAULT_POOL and marked(spec))),
        system=of_the_system(meta.namespace, spec.priority_class_name),
        priority=spec.priority,
        priority_class=intern(spec.priority_class_name),
        preempts=spec.preemption_policy != "Never",
        created=meta.creation_timestamp or "",
        resource_version=meta.resource_version,
        since=readable_time(status.start_time),
        bound_at=readable_time(scheduled.last_transition_time) if scheduled and scheduled.status == "True" else None,
        gang=f"{meta.namespace}/{gang}" if gang else None,
        slot=(slot := slot_of(meta)),
        task="" if slot else intern(task_of(meta)),
        controller=intern(f"{owner.kind}/{owner.name}") if gang and (owner := meta.controller) else "",
        controller_uid=owner.uid if gang and (owner := meta.controller) else "",
        terminating=meta.deletion_timestamp is not None,
        gone_by=meta.deletion_timestamp or "",
        grace_s=grace_s(pod),
        gated=gated(pod),
        other_gates=other_gates(spec),
        epoch=epoch_of(meta),
        pin=pin_of(meta),
        refused=unschedulable and not in_our_words,
        asks=unschedulable and in_our_words,
        says=scheduled.message.removeprefix(names.MESSAGE_PREFIX) if scheduled and in_our_words else "",
        trouble=_trouble(scheduled),
        evictable=safetoevict.recorded_value(annotations),
        evictable_by_us=names.SAFE_TO_EVICT in annotations,
        queue=named_queue(pod),
        preemptable=preemptable(meta),
        spends_retries=spec.restart_policy == "OnFailure" and of_batch_job(meta),
        runtime=runtime_of(annotations, spec.active_deadline_seconds),
        claims=claim_refs(spec, meta.namespace, pod),
        extended_claim=extended_claim(pod),
        topology=of_pods(annotations, labels, PART_LABELS),
        devices=chosen_devices(annotations) if cls.gpu else (),
        answer=answer_of(annotations),
        creator=intern(counted_user(meta.namespace, annotations if _is_signed(meta) else {})),
        about_gang={key: annotations[key] for key in ABOUT_GANG if key in annotations} or None,
        failed=failed_by_itself(pod),
    )


def _is_signed(meta: ObjectMeta) -> bool:
    """Return True if the webhook has set the pod's creator; otherwise the creator is a copy from a pod template."""
    return meta.controller is None or is_job(meta.controller)


def _trouble(scheduled: ReportedCondition | None) -> str:
    failed = scheduled is not None and scheduled.status == "False" and scheduled.reason == "SchedulerError"
    return scheduled.message[:_TROUBLE_CHARS] if failed and scheduled is not None else ""


def preemptable(meta: ObjectMeta) -> bool:
    """Return False if a pod or PodGroup forbids its eviction for other gangs, otherwise True."""
    return "false" not in {meta.labels.get(names.PREEMPTABLE), meta.annotations.get(names.PREEMPTABLE)}


def of_the_system(namespace: str, priority_class: str) -> bool:
    """Return True for a pod in kube-system, or with one of Kubernetes' own priority classes."""
    return namespace == "kube-system" or priority_class in {"system-cluster-critical", "system-node-critical"}


def grace_s(pod: Pod) -> float:
    """Return the pod's grace period in seconds: from the deletion request, otherwise from the spec."""
    meta, of_spec = pod.metadata, pod.spec.termination_grace_period_seconds
    asked = meta.deletion_grace_period_seconds if meta.deletion_timestamp else None
    return float(next((each for each in (asked, of_spec) if each is not None), DEFAULT_GRACE_S))


def failed_by_itself(pod: Pod) -> bool:
    """Return True for a pod that has failed for a reason other than a disruption."""
    status = pod.status
    if status.phase != "Failed" or pod.metadata.deletion_timestamp is not None or status.reason in _DISRUPTED:
        return False
    target = status.condition("DisruptionTarget")
    return target is None or target.status != "True"


def of_batch_job(meta: ObjectMeta) -> bool:
    """Return True for a pod of a Job of Kubernetes (batch/v1)."""
    owner = meta.controller
    return owner is not None and owner.kind == "Job" and owner.api_version.startswith("batch/")
