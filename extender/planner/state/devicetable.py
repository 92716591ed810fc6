"""Devices and claims of the cluster, updated by watch events, and the device needs of pods.

A claim with allocated devices is counted as exactly these devices. A claim without allocated devices is counted as its
demand, on the node of the pod that uses the claim. A pod's own claim (created for the pod from a template) counts as
part of the pod once the pod has a node. Any other claim with allocated devices counts separately from pods. Each device
therefore counts exactly once, even if kube-scheduler has allocated the device for a pod that could not be bound.

Changes of devices (`inventory`) are rare, but may change the needs of all pods. Changes of claims are frequent, but
concern only a few pods.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from extender.planner import reasons
from extender.planner.dynamic.claims import DeviceDemand, demand_of, kind_of_class
from extender.planner.dynamic.inventory import Inventory
from extender.planner.dynamic.needs import NO_NEEDS, ClaimNeeds, Sums
from extender.planner.dynamic.pools import DeviceId
from extender.planner.state.amounts import discard, put_entry, put_member
from muster.api.kubernetes.constraints import NodeSelector
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.devices import MOST_PODS, ResourceClaim, ResourceClaimSpec, ResourceClaimTemplate
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.resources.vector import Vector
from muster.workloads.charges import marked

MOST_DEMANDS = 4096
_MOST_CACHED_BYTES = 16 * 1024
"""Maximum size of a claim spec whose demand is cached; a claim may have more than a megabyte."""


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """One entry of a pod's `spec.resourceClaims`."""

    key: str = ""
    """Namespace and name of the claim, as `namespace/name`; empty until the claim is created from its template."""
    template: str = ""
    """Namespace and name of the claim's template, as `namespace/name`; empty without a template."""
    grouped: bool = False
    """True if the pod is in a native PodGroup, whose pods may share the claim that is created from the template."""
    alone: bool = False
    """True if the pod is placed by Muster's own kube-scheduler, which does not support native groups."""


def claim_refs(spec: PodSpec, namespace: str, pod: Pod | None = None) -> tuple[ClaimRef, ...]:
    """Return references to the claims of a pod or template; a pod's status names the claims created for the pod."""
    if not spec.resource_claims:
        return ()
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses} if pod else {}
    refs, alone = [], not marked(spec)
    for claim in spec.resource_claims:
        if claim.resource_claim_template_name:
            name = made.get(claim.name, "")
            if name is not None:  # without a name, the entry needs no claim
                key = f"{namespace}/{name}" if name else ""
                template = f"{namespace}/{claim.resource_claim_template_name}"
                refs.append(ClaimRef(key, template, grouped=spec.scheduling_group is not None, alone=alone))
        elif claim.resource_claim_name:
            refs.append(ClaimRef(f"{namespace}/{claim.resource_claim_name}", alone=alone))
    return tuple(refs)


def extended_claim(pod: Pod) -> str:
    """Return `namespace/name` of the claim that kube-scheduler created for a pod's extended resources, or ""."""
    claim = pod.status.extended_resource_claim_status
    return f"{pod.metadata.namespace}/{claim.resource_claim_name}" if claim and claim.resource_claim_name else ""


@dataclass(frozen=True, slots=True)
class AllocatedClaim:
    """A device claim, reduced to the fields that are relevant to planning."""

    demand: DeviceDemand
    owner: str
    """UID of the pod for which the claim was created; empty for other claims."""
    of_group: bool
    """True if the claim was created for a native PodGroup; all pods of the group may use it."""
    going: bool
    allocated: bool
    devices: tuple[DeviceId, ...]
    """Devices that are allocated exclusively to the claim."""
    nodes: NodeSelector | None
    users: frozenset[str]


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod or pod template."""

    uid: str = ""
    """UID of the pod; empty for a template."""
    refs: tuple[ClaimRef, ...] = ()
    extended: str = ""
    on_node: bool = False
    """True if the pod occupies a node; the devices of its claims then count as usage of the pod."""


class DeviceTable:
    """The inventory of devices, and all claims and claim templates."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.claims: dict[str, AllocatedClaim] = {}
        self.on_nodes: dict[str, set[str]] = {}
        """Maps a node to the keys of the claims that have devices on the node."""
        self.alike: set[str] = set()
        """Keys of claims and templates with the constraint that all devices have the same value of an attribute. Any
        changed device may affect a claim with this constraint."""
        self.reserved: set[str] = set()
        """Keys of shared claims that are reserved for at least one pod."""
        self.grouped: Counter[ClaimRef] = Counter()
        """Maps a claim or template that native PodGroups share to the number of native PodGroups that share it."""
        self._templates: dict[str, DeviceDemand] = {}
        self._demands: dict[bytes, DeviceDemand] = {}

    def on_template(self, old: ResourceClaimTemplate | None, new: ResourceClaimTemplate | None) -> str:
        """Update a claim template; return the template's key."""
        key = (new or old or ResourceClaimTemplate()).metadata.key
        demand = self._want(new.spec.spec, key) if new is not None else None
        before = put_entry(self._templates, key, demand)
        self._note_alike(key, demand)
        self._forget(before, key)
        return key

    def on_claim(self, old: ResourceClaim | None, new: ResourceClaim | None) -> str:
        """Update a claim; return the claim's key."""
        key = (new or old or ResourceClaim()).metadata.key
        known = _claim(new, self._want(new.spec, key)) if new is not None else None
        before = put_entry(self.claims, key, known)
        for node in self._nodes_of(before) if before else ():
            discard(self.on_nodes, node, key)
        for node in self._nodes_of(known) if known else ():
            self.on_nodes.setdefault(node, set()).add(key)
        self._note_alike(key, known.demand if known else None)
        put_member(self.reserved, key, present=bool(known and known.users and not known.owner))
        self._forget(before.demand if before else None, key)
        return key

    def _note_alike(self, key: str, demand: DeviceDemand | None) -> None:
        put_member(self.alike, key, present=bool(demand and demand.alike))

    def _want(self, spec: ResourceClaimSpec, key: str) -> DeviceDemand:
        """Return the demand of a claim; equal claims, such as thousands from one template, are parsed only once."""
        text = msgspec.msgpack.encode(spec)
        demand = self._demands.get(text)
        if demand is None:
            if len(self._demands) >= MOST_DEMANDS:
                self._demands.clear()
            demand = demand_of(spec)
            if len(text) <= _MOST_CACHED_BYTES:
                self._demands[text] = demand
        for kind in demand.kinds:
            self.inventory.want(kind, key.partition("/")[0], whole=kind in demand.all_of)
        return demand

    def _forget(self, demand: DeviceDemand | None, key: str) -> None:
        if demand is None:
            return
        for kind in demand.kinds:
            self.inventory.uncount(kind, key.partition("/")[0], whole=kind in demand.all_of)

    def _nodes_of(self, claim: AllocatedClaim) -> set[str]:
        """Return the names in the claim's node selector, which names one node if the devices belong to one node."""
        terms = claim.nodes.node_selector_terms if claim.nodes else ()
        fields = (each for term in terms for each in term.match_fields)
        return {value for each in fields if each.key == "metadata.name" for value in each.values}

    def allocated(self, key: str) -> tuple[str, Vector] | None:
        """Return the node and the counted devices of a claim; None if none of the claim's devices is counted."""
        claim = self.claims.get(key)
        if claim is None or not claim.devices:
            return None
        first = self.inventory.entry(claim.devices[0])
        used = self.inventory.used(claim.devices)
        return (first.node, used) if first is not None and first.node and used else None

    def needs(self, pod: PodClaims, asked: Mapping[str, int]) -> ClaimNeeds:
        """Return the needs of a pod from its claims and from the extended resources in its containers' requests."""
        if not pod.refs and not (self.inventory.classes and any(map(self.inventory.class_of, asked))):
            return NO_NEEDS  # almost every pod has no claims
        sums = Sums(self.inventory)
        for ref in pod.refs:
            self._add(sums, pod, ref)
        self._add_extended(sums, pod, asked)
        return sums.needs()

    def _add(self, sums: Sums, pod: PodClaims, ref: ClaimRef) -> None:
        claim = self.claims.get(ref.key) if ref.key else None
        of_group = claim is not None and claim.of_group
        if ref.template and not of_group:
            self._add_made(sums, pod, ref, claim)
            return
        if of_group and ref.alone:
            sums.of_group.append(ref.key)
        grouped = of_group or (ClaimRef(ref.key) in self.grouped and not ref.alone)
        if claim is None:
            sums.problems.append(reasons.devices.claim_missing(claim=ref.key))
        elif claim.going:
            sums.problems.append(reasons.devices.claim_deleted(claim=ref.key))
        elif not grouped and len(claim.users) >= MOST_PODS and pod.uid not in claim.users:
            sums.problems.append(reasons.devices.claim_full(claim=ref.key, most=MOST_PODS))
        elif claim.allocated:
            sums.share_devices(ref.key, claim.devices, claim.nodes, grouped=grouped)
        else:
            sums.share(ref.key, claim.demand, grouped=grouped)

    def _add_made(self, sums: Sums, pod: PodClaims, ref: ClaimRef, claim: AllocatedClaim | None) -> None:
        """Add the needs of a claim from a template; a claim that a PodGroup may own is missing until it exists."""
        if claim is None and pod.uid and ref.grouped and ClaimRef(template=ref.template) in self.grouped:
            sums.problems.append(reasons.devices.claim_unmade(template=ref.template))
        elif claim is not None and claim.allocated:
            sums.add_own(claim.demand, claim.devices, claim.nodes, on_node=pod.on_node)
        elif claim is not None:
            sums.add(claim.demand, f"claim {ref.key}")
        elif ref.template in self._templates:
            sums.add(self._templates[ref.template], f"claim template {ref.template}")
        elif not pod.on_node:
            sums.problems.append(reasons.devices.template_missing(template=ref.template))

    def _add_extended(self, sums: Sums, pod: PodClaims, asked: Mapping[str, int]) -> None:
        mine = {name: found for name in asked if (found := self.inventory.class_of(name)) and asked[name] > 0}
        claim = self.claims.get(pod.extended) if pod.extended else None
        if mine and claim is not None and claim.allocated:
            sums.replaced.extend(sorted(mine))
            sums.add_own(claim.demand, claim.devices, claim.nodes, on_node=pod.on_node)
            return
        for name, class_name in sorted(mine.items()):
            sums.extend(name, kind_of_class(class_name), asked[name])


def _claim(claim: ResourceClaim, demand: DeviceDemand) -> AllocatedClaim:
    allocation, owner = claim.status.allocation, claim.metadata.controller
    results = allocation.devices.results if allocation else []
    return AllocatedClaim(
        demand,
        owner.uid if owner is not None and owner.kind == "Pod" else "",
        owner is not None and owner.kind == "PodGroup" and owner.api_version.startswith(f"{NATIVE_POD_GROUPS.group}/"),
        claim.metadata.deletion_timestamp is not None,
        allocation is not None,
        tuple((each.driver, each.pool, each.device) for each in results if not each.admin_access and not each.share_id),
        allocation.node_selector if allocation else None,
        frozenset(each.uid for each in claim.status.reserved_for),
    )
