"""A pod as the planner keeps it: what decides, and no more.

A record is made from a pod whenever it changes. One thing is not in the pod and is put in afterwards: the seat of a
member that does not say which is its own (see `planner.state.views.free_seats`).
"""

from sys import intern
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from extender.planner.state.devicetable import ClaimRef, claim_refs, extended_claim
from extender.planner.state.podclass import PodClass
from extender.planner.state.podsaid import NOTHING, said_by
from extender.planner.state.podshape import ours
from muster.api.kubernetes.core import Pod, PodCondition
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.gang import Seat, gated, other_gates
from muster.api.names import EXPECTED_RUNTIME, SAYS
from muster.resources.gpus import chosen_devices
from muster.resources.runtime import UNKNOWN, Runtime, runtime_of
from muster.resources.topology import PodTopology

SYSTEM_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
"""Priority classes of pods without which a cluster or a node does not work."""


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

    gang: str | None = None
    """Key (`namespace/name`) of its PodGroup."""
    seat: Seat | None = None
    """None until the state has given one to a pod that does not say which is its own."""
    terminating: bool = False
    gone_by: str = ""
    """When a pod that is being deleted should be gone, its grace period over (RFC 3339)."""
    gated: bool = False
    other_gates: tuple[str, ...] = ()
    """Scheduling gates that are not Muster's."""
    epoch: int | None = None
    pin: str = ""
    refused: bool = False
    """kube-scheduler found no node for it (PodScheduled is False, reason Unschedulable, and not in Muster's words)."""
    asks: bool = False
    """Muster wrote that reason while the pod waits behind its gate, so that autoscalers see it."""
    says: str = ""
    """What Muster wrote as the message of that condition, without the word that it begins with; empty if nothing."""
    evictable: str = ""
    """What the pod tells cluster-autoscaler about its eviction; empty if nothing."""
    evictable_by_us: bool = False
    """Muster wrote that, as the pod's queue says."""
    queue: str = ""
    """The queue that it names; that of its gang counts before it."""
    preemptable: bool = True
    """It does not forbid that it is evicted to make room for others."""
    runtime: Runtime = UNKNOWN
    """How long it is expected to run, as far as it says so itself."""
    claims: tuple[ClaimRef, ...] = ()
    """Its claims to devices."""
    extended_claim: str = ""
    """The claim that kube-scheduler made for its extended resources; empty if there is none."""
    topology: PodTopology | None = None
    """How near it is to be to others of its gang, as far as it says so itself."""
    devices: tuple[int, ...] = ()
    """The GPUs of its node that it shares, by number; empty if it shares none, or nobody says which."""

    waiting: bool = False
    """It exists, wants to run, and has no node."""
    pinned: bool = False
    """It waits, and only one node is good for it: its pin cannot be changed any more."""
    taken: bool = False
    """Its seat counts for the gang: bound and alive, or done."""
    alive: bool = False
    """It holds a node for the gang: bound and not ended."""
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
    """The record of a pod; `assumed` is the node that we have just bound it to, before the watch tells.

    Words that many pods have are kept once. A start makes 50,000 records: those of plain pods, as most are, are made
    without a look at each thing that a pod may have.
    """
    meta, spec, status = pod.metadata, pod.spec, pod.status
    scheduled = status.condition("PodScheduled")
    record = PodRecord(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        cls=cls,
        labels=meta.labels,
        node=intern(spec.node_name or assumed),
        phase=intern(status.phase),
        scheduler_name=intern(spec.scheduler_name),
        ours=ours(spec),
        system=meta.namespace == "kube-system" or spec.priority_class_name in SYSTEM_CLASSES,
        created=meta.creation_timestamp or "",
        resource_version=meta.resource_version,
        since=readable_time(status.start_time),
        bound_at=readable_time(scheduled.last_transition_time) if scheduled and scheduled.status == "True" else None,
    )
    return record if is_plain(pod, cls, scheduled) else replace(record, **rest_of_record(pod, cls, scheduled))


def is_plain(pod: Pod, cls: PodClass, scheduled: PodCondition | None) -> bool:
    """Whether the rest of a pod's record is what a record has by default."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    return (
        said_by(meta) is NOTHING
        and not spec.scheduling_gates
        and not spec.resource_claims
        and not status.extended_resource_claim_status
        and meta.deletion_timestamp is None
        and (scheduled is None or (scheduled.status == "True" and not scheduled.message))
        and spec.active_deadline_seconds is None
        and EXPECTED_RUNTIME not in meta.annotations
        and cls.gpu is None
    )


def rest_of_record(pod: Pod, cls: PodClass, scheduled: PodCondition | None) -> dict[str, Any]:
    """The fields of a record that have a default, as the pod has them."""
    meta, spec = pod.metadata, pod.spec
    unschedulable = bool(scheduled and scheduled.status == "False" and scheduled.reason == "Unschedulable")
    in_our_words = bool(scheduled and scheduled.message.startswith(SAYS))
    return {
        **asdict(said_by(meta)),
        "terminating": meta.deletion_timestamp is not None,
        "gone_by": meta.deletion_timestamp or "",
        "gated": gated(pod),
        "other_gates": other_gates(spec),
        "refused": unschedulable and not in_our_words,
        "asks": unschedulable and in_our_words,
        "says": scheduled.message.removeprefix(SAYS) if scheduled and in_our_words else "",
        "runtime": runtime_of(meta.annotations, spec.active_deadline_seconds),
        "claims": claim_refs(spec, meta.namespace, pod),
        "extended_claim": extended_claim(pod),
        "devices": chosen_devices(meta.annotations) if cls.gpu else (),
    }
