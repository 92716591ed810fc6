"""A pod as the planner keeps it: what decides, and no more.

A record is made from a pod whenever it changes. One thing is not in the pod and is put in afterwards: the slot of a
member that does not say which is its own (see `planner.state.views.free_slots`).
"""

from sys import intern

from msgspec import Struct

from extender.planner.state.devicetable import ClaimRef, claim_refs, extended_claim
from extender.planner.state.podclass import PodClass
from extender.planner.state.podshape import ours, pin_of
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta, readable_time
from muster.api.muster.gang import Slot, epoch_of, gang_of, gated, other_gates, slot_of
from muster.resources.gpus import chosen_devices
from muster.resources.runtime import Runtime, runtime_of
from muster.resources.topology import PodTopology, of_pods


class PodRecord(Struct, eq=False, gc=False):
    """What the planner keeps of a pod. It is in no cycle, so no garbage collection has to look at it."""

    uid: str
    namespace: str
    name: str
    cls: PodClass
    labels: dict[str, str]
    """The pod's own; not a copy."""
    node: str
    """Where it is bound (or being bound by us); empty if it is not."""
    phase: str
    scheduler_name: str
    ours: bool
    """Muster's extender is asked about it: by its scheduler's name, or by the markers that it carries."""
    system: bool
    """The cluster needs it: it is in kube-system, or of a priority class system-*-critical."""
    created: str
    resource_version: str
    since: float | None
    """When its kubelet accepted it, in seconds since the epoch; None if it has not yet."""
    bound_at: float | None
    """When it was bound, in seconds since the epoch; None if it is not, as far as its condition says."""
    gang: str | None
    """Key (`namespace/name`) of its PodGroup."""
    slot: Slot | None
    """None until the state has given one to a pod that does not say which is its own."""
    terminating: bool
    gone_by: str
    """When a pod that is being deleted should be gone, its grace period over (RFC 3339)."""
    gated: bool
    other_gates: tuple[str, ...]
    """Scheduling gates that are not Muster's."""
    epoch: int | None
    pin: str
    refused: bool
    """kube-scheduler found no node for it (PodScheduled is False, reason Unschedulable, and not in Muster's words)."""
    asks: bool
    """Muster wrote that reason while the pod waits behind its gate, so that autoscalers see it."""
    says: str
    """What Muster wrote as the message of that condition, without the word that it begins with; empty if nothing."""
    evictable: str
    """What the pod tells cluster-autoscaler about its eviction; empty if nothing."""
    evictable_by_us: bool
    """Muster wrote that, as the pod's queue says."""
    queue: str
    """The queue that it names; that of its gang counts before it."""
    preemptable: bool
    """It does not forbid that it is evicted to make room for others."""
    runtime: Runtime
    """How long it is expected to run, as far as it says so itself."""
    claims: tuple[ClaimRef, ...]
    """Its claims to devices."""
    extended_claim: str
    """The claim that kube-scheduler made for its extended resources; empty if there is none."""
    topology: PodTopology | None
    """How near it is to be to others of its gang, as far as it says so itself."""
    devices: tuple[int, ...]
    """The GPUs of its node that it shares, by number; empty if it shares none, or nobody says which."""

    waiting: bool = False
    """It exists, wants to run, and has no node."""
    pinned: bool = False
    """It waits, and only one node is good for it: its pin cannot be changed any more."""
    taken: bool = False
    """Its slot counts for the gang: bound and alive, or done."""
    alive: bool = False
    """It is on a node, has not ended, and is not being deleted."""
    uses_node: bool = False
    """It is on a node and has not ended, so that what it asks for is not free there."""

    def __post_init__(self) -> None:
        """Finds once what is asked of each pod whenever its gang is looked at: a record does not change."""
        self.waiting = not self.node and not self.terminating and self.phase in {"", "Pending"}
        self.pinned = self.waiting and bool(self.pin) and not self.gated
        self.taken = self.phase == "Succeeded" or (bool(self.node) and self.phase != "Failed" and not self.terminating)
        self.alive = self.taken and self.phase != "Succeeded"
        self.uses_node = bool(self.node) and self.phase not in {"Succeeded", "Failed"}

    @property
    def shares_claims(self) -> bool:
        """Whether it uses a claim to devices that others may use too.

        kube-scheduler refuses it for as long as another pod's binding is giving the claim its devices, and tries it
        again when they are there: such a refusal means nothing.
        """
        return any(not ref.template for ref in self.claims)


def record_of(pod: Pod, cls: PodClass, assumed: str) -> PodRecord:
    """The record of a pod; `assumed` is the node that Muster has just bound it to, before the watch tells.

    Words that many pods have are kept once.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    annotations, labels = meta.annotations, meta.labels
    gang, scheduled = gang_of(meta), status.condition("PodScheduled")
    unschedulable = scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable"
    in_our_words = scheduled is not None and scheduled.message.startswith(names.SAYS)
    return PodRecord(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        cls=cls,
        labels=labels,
        node=intern(spec.node_name or assumed),
        phase=intern(status.phase),
        scheduler_name=intern(spec.scheduler_name),
        ours=ours(spec),
        system=of_the_system(meta.namespace, spec.priority_class_name),
        created=meta.creation_timestamp or "",
        resource_version=meta.resource_version,
        since=readable_time(status.start_time),
        bound_at=readable_time(scheduled.last_transition_time) if scheduled and scheduled.status == "True" else None,
        gang=f"{meta.namespace}/{gang}" if gang else None,
        slot=slot_of(meta),
        terminating=meta.deletion_timestamp is not None,
        gone_by=meta.deletion_timestamp or "",
        gated=gated(pod),
        other_gates=other_gates(spec),
        epoch=epoch_of(meta),
        pin=pin_of(meta),
        refused=unschedulable and not in_our_words,
        asks=unschedulable and in_our_words,
        says=scheduled.message.removeprefix(names.SAYS) if scheduled and in_our_words else "",
        evictable=annotations.get(names.PODS_SAFE_TO_EVICT, ""),
        evictable_by_us=names.SAFE_TO_EVICT in annotations,
        queue=labels.get(names.QUEUE_NAME) or labels.get(names.QUEUE) or annotations.get(names.VOLCANO_QUEUE, ""),
        preemptable=preemptable(meta),
        runtime=runtime_of(annotations, spec.active_deadline_seconds),
        claims=claim_refs(spec, meta.namespace, pod),
        extended_claim=extended_claim(pod),
        topology=of_pods(annotations, labels),
        devices=chosen_devices(annotations) if cls.gpu else (),
    )


def preemptable(meta: ObjectMeta) -> bool:
    """True unless a pod or PodGroup forbids that it is evicted to make room for others."""
    return "false" not in {meta.labels.get(names.PREEMPTABLE), meta.annotations.get(names.PREEMPTABLE)}


def of_the_system(namespace: str, priority_class: str) -> bool:
    """True if the cluster needs such a pod: one in kube-system, or of a priority class of Kubernetes' own."""
    return namespace == "kube-system" or priority_class in {"system-cluster-critical", "system-node-critical"}
