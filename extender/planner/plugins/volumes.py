"""Where a pod's claims let it run, as kube-scheduler's VolumeBinding and VolumeZone decide it.

An unbound claim whose storage class waits for the first consumer refuses no node: its volume is made where the pod is.
"""

from collections.abc import Mapping

from extender.planner import reasons
from extender.planner.plugins.nodeselector import matches_labels
from extender.planner.state.podclass import PodClass
from extender.planner.state.podshape import ClaimUse
from extender.planner.state.volumes import Volumes
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.storage import (
    SELECTED_NODE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
)

_BETA = "failure-domain.beta.kubernetes.io/"
_ZONE_LABELS = {
    f"{_BETA}zone": "topology.kubernetes.io/zone",
    f"{_BETA}region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels that say where a volume and a node are → the name that they have today."""


def volume_refusal(cls: PodClass, node: Node, volumes: Volumes) -> str:
    """Why the pod's claims keep it off this node, in a few words; empty if they do not."""
    return next((words for use in cls.claims if (words := _claim_refusal(use, node, volumes))), "")


def _claim_refusal(use: ClaimUse, node: Node, volumes: Volumes) -> str:
    claim = volumes.claims.get(use.key)
    if claim is None:  # that of an ephemeral volume appears a moment after its pod
        return "" if use.ephemeral else reasons.cause.claim_missing(claim=use.key)
    if claim.status.phase == "Lost":
        return reasons.cause.claim_lost(claim=use.key)
    if claim.metadata.deletion_timestamp is not None:
        return reasons.cause.claim_deleted(claim=use.key)
    return (_bound if claim.bound else _unbound)(use, claim, node, volumes)


def _bound(use: ClaimUse, claim: PersistentVolumeClaim, node: Node, volumes: Volumes) -> str:
    volume = volumes.volumes.get(claim.spec.volume_name)
    if volume is None:
        return reasons.cause.volume_missing(volume=claim.spec.volume_name, claim=use.key)
    affinity = volume.spec.node_affinity
    if affinity and affinity.required and not matches_labels(affinity.required, node.metadata.labels):
        return reasons.cause.volume_elsewhere(volume=volume.metadata.name)
    same = _same_zone(volume, node.metadata.labels)
    return "" if same else reasons.cause.volume_in_another_zone(volume=volume.metadata.name)


def _unbound(use: ClaimUse, claim: PersistentVolumeClaim, node: Node, volumes: Volumes) -> str:
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
    return "" if selected == node.metadata.name else reasons.cause.volume_made_elsewhere(claim=use.key)


def _same_zone(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """A node without any such label takes every volume."""
    if not any(key in labels for key in _ZONE_LABELS):
        return True
    for key, today in _ZONE_LABELS.items():
        wanted = volume.metadata.labels.get(key)
        if wanted is not None and labels.get(key, labels.get(today)) not in wanted.split("__"):
            return False
    return True
