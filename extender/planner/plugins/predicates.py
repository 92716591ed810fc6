"""Refusals of nodes, as kube-scheduler decides them (docs/predicates.md lists what is modelled).

The session counts resources. Refusals by the node alone (cordon, taints, selectors, node affinity) and by the pod's
volumes (VolumeBinding, VolumeZone) are kept per pod class and renewed only for nodes that changed. Those by other pods
are `planner.plugins.interpodaffinity`. An unbound claim whose storage class waits for the first consumer refuses no
node: its volume is made where the pod is.
"""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from extender.planner import reasons
from extender.planner.framework.answers import Codes
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.plugins.interpodaffinity import InterPodAffinity, Mask
from extender.planner.plugins.pernode import Domains, PerNode
from extender.planner.state.neighbours import Spread
from extender.planner.state.podclass import PodClass
from extender.planner.state.podshape import ClaimUse
from extender.planner.state.tables import Volumes
from muster.api.kubernetes.constraints import NodeSelector, Toleration
from muster.api.kubernetes.core import Node, Taint
from muster.api.kubernetes.meta import LabelSelectorRequirement
from muster.api.kubernetes.storage import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
)
from muster.api.muster.node_faults import Fault
from muster.api.muster.reason import NOTHING, Reason

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_CHARS = 256
_LARGEST = 2**63 - 1
CORDON_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_SELECTED, _TOLERATED = 1, 2
_BETA = "failure-domain.beta.kubernetes.io/"
_ZONE_LABELS = {
    f"{_BETA}zone": "topology.kubernetes.io/zone",
    f"{_BETA}region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Zone and region labels of volumes and nodes → their current names."""


def matches(selector: NodeSelector, node: Node, *, labels_only: bool = False) -> bool:
    """Return True if one of the terms matches; a term without requirements matches nothing.

    `labels_only`: as kube-scheduler reads the node affinity of a volume, without the node's fields.
    """
    fields = {"metadata.name": node.metadata.name}
    return any(
        all(_holds(requirement, node.metadata.labels) for requirement in term.match_expressions)
        and (labels_only or all(_holds(requirement, fields) for requirement in term.match_fields))
        for term in selector.node_selector_terms
        if term.match_expressions or term.match_fields
    )


def _holds(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists" | "DoesNotExist":
            return (value is None) == (requirement.operator == "DoesNotExist")
        case "Gt" | "Lt":
            left, right = _integer(value), _integer(values[0] if len(values) == 1 else None)
            if left is None or right is None:
                return False
            return left > right if requirement.operator == "Gt" else left < right
        case _:
            return False


def _integer(text: str | None) -> int | None:
    """Return the 64-bit integer that is written there; None, which matches nothing, for anything else."""
    if text is None or len(text) > _MAX_CHARS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_LARGEST - 1 <= number <= _LARGEST else None


class Predicates(PlainPlugin):
    """Refusals of nodes; its caches live from cycle to cycle."""

    name = "predicates"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._by_node, self._by_volumes, self._inclusion = PerNode(), PerNode(), PerNode()
        self._domains = Domains()

    def on_session_open(self, session: Session) -> None:
        """Register the predicates, and follow trials, which change the answers of the second."""
        snapshot = session.snapshot
        interpodaffinity = InterPodAffinity(
            session, self._domains, lambda cls, spread: self._eligible(snapshot, cls, spread)
        )
        session.hooks.predicate.add(lambda cls: self._codes(session, cls))
        session.hooks.neighbour_predicate.add(interpodaffinity.codes)
        session.hooks.follow(interpodaffinity.count)

    def _codes(self, session: Session, cls: PodClass) -> Codes:
        snapshot, causes = session.snapshot, session.causes

        def by_node(cls: PodClass, node: Node | None) -> int:
            if node is None:
                return causes.code(reasons.cause.GONE)
            return causes.code(_faulty(snapshot.faults.get(node.metadata.name)) or refusal(cls, node))

        def by_volumes(cls: PodClass, node: Node | None) -> int:
            refused = (_claim_refusal(use, node, snapshot.volumes) for use in cls.claims if node)  # else it is gone
            return causes.code(next(filter(None, refused), NOTHING))

        codes = self._by_node.of(cls, snapshot, by_node, other=causes)
        if cls.gpu is not None and not cls.gpu.by_resource and snapshot.devices.divided.any():
            divided = snapshot.devices.divided[: len(codes)]
            codes = np.where((codes == 0) & divided, causes.code(reasons.cause.DIVIDED), codes).astype(np.int16)
        if not cls.claims:
            return codes
        volumes = self._by_volumes.of(cls, snapshot, by_volumes, other=(causes, snapshot.volumes.generation))
        return np.where(codes == 0, volumes, codes)

    def _eligible(self, snapshot: Snapshot, cls: PodClass, spread: Spread) -> Mask:
        """Return the mask of nodes on which the constraint counts pods by its inclusion policies."""
        bits = self._inclusion.of(cls, snapshot, _inclusion)
        wanted = _SELECTED * spread.honor_affinity | _TOLERATED * spread.honor_taints
        mask: Mask = (bits & wanted) == wanted
        return mask


def refusal(cls: PodClass, node: Node) -> Reason:
    """Return why the node does not take pods of this class, room and other pods aside; empty if it does."""
    if node.spec.unschedulable and not tolerated(CORDON_TAINT, cls.tolerations):
        return reasons.cause.CORDONED
    if unselected := _unselected(cls, node):
        return unselected
    taint = _untolerated(cls, node)
    return reasons.cause.taint(taint.key, taint.value) if taint else NOTHING


def _faulty(fault: Fault | None) -> Reason:
    """Return why a node gets nothing new, with any tolerations; empty for a healthy one."""
    if fault is None:
        return NOTHING
    suspect = fault.kind == "suspect"
    return reasons.cause.suspect(cause=fault.cause) if suspect else reasons.cause.not_ready(cause=fault.cause)


def _inclusion(cls: PodClass, node: Node | None) -> int:
    """Return bits: the pod's node selector and affinity match, its tolerations cover the taints."""
    if node is None:
        return 0
    return _SELECTED * (not _unselected(cls, node)) | _TOLERATED * (_untolerated(cls, node) is None)


def _unselected(cls: PodClass, node: Node) -> Reason:
    """Return the requirement of the pod's spec that the node does not meet; empty if it meets both."""
    labels, required = node.metadata.labels, cls.required_node_affinity
    if any(labels.get(key) != value for key, value in cls.node_selector.items()):
        return reasons.cause.NODE_SELECTOR
    return NOTHING if required is None or matches(required, node) else reasons.cause.NODE_AFFINITY


def _untolerated(cls: PodClass, node: Node) -> Taint | None:
    hard = (taint for taint in node.spec.taints if taint.effect in {"NoSchedule", "NoExecute"})
    return next((taint for taint in hard if not tolerated(taint, cls.tolerations)), None)


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """Return True if one of the tolerations covers the taint."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (not toleration.key or toleration.key == taint.key)
        and (
            toleration.operator == "Exists"
            or (bool(toleration.key) and toleration.operator in {"", "Equal"} and toleration.value == taint.value)
        )
        for toleration in tolerations
    )


def _claim_refusal(use: ClaimUse, node: Node, volumes: Volumes) -> Reason:
    """Return why a claim keeps its pod off this node; empty if it does not."""
    claim = volumes.claims.get(use.key)
    if claim is None:  # that of an ephemeral volume appears a moment after its pod
        return NOTHING if use.ephemeral else reasons.cause.claim_missing(claim=use.key)
    if claim.status.phase == "Lost":
        return reasons.cause.claim_lost(claim=use.key)
    if claim.metadata.deletion_timestamp is not None:
        return reasons.cause.claim_deleted(claim=use.key)
    return (_bound if claim.bound else _unbound)(use, claim, node, volumes)


def _bound(use: ClaimUse, claim: PersistentVolumeClaim, node: Node, volumes: Volumes) -> Reason:
    volume = volumes.volumes.get(claim.spec.volume_name)
    if volume is None:
        return reasons.cause.volume_missing(volume=claim.spec.volume_name, claim=use.key)
    affinity = volume.spec.node_affinity
    if affinity and affinity.required and not matches(affinity.required, node, labels_only=True):
        return reasons.cause.volume_elsewhere(volume=volume.metadata.name)
    same = _same_zone(volume, node.metadata.labels)
    return NOTHING if same else reasons.cause.volume_in_another_zone(volume=volume.metadata.name)


def _unbound(use: ClaimUse, claim: PersistentVolumeClaim, node: Node, volumes: Volumes) -> Reason:
    if claim.spec.volume_name:
        return reasons.cause.claim_unbound(claim=use.key)
    if not claim.storage_class:
        return reasons.cause.claim_without_class(claim=use.key)
    storage_class = volumes.classes.get(claim.storage_class)
    if storage_class is None:
        return reasons.cause.class_missing(name=claim.storage_class, claim=use.key)
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return reasons.cause.claim_unbound(claim=use.key)
    selected = claim.metadata.annotations.get(SELECTED_NODE, node.metadata.name)
    return NOTHING if selected == node.metadata.name else reasons.cause.volume_made_elsewhere(claim=use.key)


def _same_zone(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """Return True for a node in the volume's zone, or without such labels."""
    if not any(key in labels for key in _ZONE_LABELS):
        return True
    for key, today in _ZONE_LABELS.items():
        wanted = volume.metadata.labels.get(key)
        if wanted is not None and labels.get(key, labels.get(today)) not in wanted.split("__"):
            return False
    return True
