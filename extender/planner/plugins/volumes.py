"""Where a pod's claims let it run, as kube-scheduler's VolumeBinding and VolumeZone decide it.

An unbound claim whose storage class waits for the first consumer refuses no node: its volume is made where the pod is.
"""

from collections.abc import Mapping

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
        return "" if use.ephemeral else f"claim {use.key} does not exist"
    if claim.status.phase == "Lost":
        return f"claim {use.key} has lost its volume"
    if claim.metadata.deletion_timestamp is not None:
        return f"claim {use.key} is being deleted"
    return (_bound if claim.bound else _unbound)(use, claim, node, volumes)


def _bound(use: ClaimUse, claim: PersistentVolumeClaim, node: Node, volumes: Volumes) -> str:
    volume = volumes.volumes.get(claim.spec.volume_name)
    if volume is None:
        return f"volume {claim.spec.volume_name} of claim {use.key} does not exist"
    affinity = volume.spec.node_affinity
    if affinity and affinity.required and not matches_labels(affinity.required, node.metadata.labels):
        return f"volume {volume.metadata.name} is elsewhere"
    return "" if _same_zone(volume, node.metadata.labels) else f"volume {volume.metadata.name} is in another zone"


def _unbound(use: ClaimUse, claim: PersistentVolumeClaim, node: Node, volumes: Volumes) -> str:
    if claim.spec.volume_name:
        return f"claim {use.key} is not bound yet"
    if not claim.storage_class:
        return f"claim {use.key} has neither a volume nor a storage class"
    storage_class = volumes.classes.get(claim.storage_class)
    if storage_class is None:
        return f"storage class {claim.storage_class} of claim {use.key} does not exist"
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        return f"claim {use.key} is not bound yet"
    selected = claim.metadata.annotations.get(SELECTED_NODE, node.metadata.name)
    return "" if selected == node.metadata.name else f"the volume of claim {use.key} is being made elsewhere"


def _same_zone(volume: PersistentVolume, labels: Mapping[str, str]) -> bool:
    """A node without any such label takes every volume."""
    if not any(key in labels for key in _ZONE_LABELS):
        return True
    for key, today in _ZONE_LABELS.items():
        wanted = volume.metadata.labels.get(key)
        if wanted is not None and labels.get(key, labels.get(today)) not in wanted.split("__"):
            return False
    return True
