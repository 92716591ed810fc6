"""Tables of objects that the planner only looks up by name: quotas, budgets, topologies and volumes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from extender.planner.state.amounts import put_entry, put_member
from extender.planner.state.nodes import NodeTable
from muster.api.kubernetes.quota import PodDisruptionBudget, ResourceQuota
from muster.api.kubernetes.storage import READ_WRITE_ONCE_POD, PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.api.volcano.topology import HyperNode, Topology

T = TypeVar("T")


@dataclass(slots=True)
class Volumes:
    """Volume claims, persistent volumes and storage classes."""

    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    exclusive: set[str] = field(default_factory=set)
    """Keys of volume claims that only one pod at a time may use (ReadWriteOncePod)."""
    generation: int = 0
    """Number that grows with every change that is relevant to scheduling."""

    def copy(self) -> "Volumes":
        """Return a copy of the tables of volumes."""
        return Volumes(dict(self.claims), dict(self.volumes), dict(self.classes), set(self.exclusive), self.generation)


class Tables:
    """Tables of objects by name. Changes that may affect the suitable nodes of pods increase a version in `nodes`."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.volumes = Volumes()
        """Volumes; copied before a change if a snapshot shares them (see `share_volumes`)."""
        self._shared = False
        self.quotas: dict[str, dict[str, ResourceQuota]] = {}
        """Maps a namespace and a name to a ResourceQuota; namespaces without ResourceQuotas are left out."""
        self.disruption_budgets: dict[str, PodDisruptionBudget] = {}
        self.hyper_nodes: dict[str, HyperNode] = {}
        self.hyper_nodes_version = 0
        """Number that grows with every added or removed HyperNode and every changed spec."""
        self.topologies: dict[str, Topology] = {}
        """Kueue's Topologies by name; empty if Kueue is not installed."""

    def on_resource_quota(self, old: ResourceQuota | None, new: ResourceQuota | None) -> None:
        """Update a ResourceQuota."""
        meta = (new or old or ResourceQuota()).metadata
        quotas = self.quotas.setdefault(meta.namespace, {})
        put_entry(quotas, meta.name, new)
        if not quotas:
            del self.quotas[meta.namespace]

    def on_budget(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        """Update a PodDisruptionBudget."""
        put_entry(self.disruption_budgets, (new or old or PodDisruptionBudget()).metadata.key, new)

    def on_hyper_node(self, old: HyperNode | None, new: HyperNode | None) -> bool:
        """Update a HyperNode; return True if the change is relevant to scheduling, unlike a change of its status."""
        known = put_entry(self.hyper_nodes, (new or old or HyperNode()).metadata.name, new)
        matters = (known.spec if known else None) != (new.spec if new else None)
        self.hyper_nodes_version += matters
        self.nodes.version += matters
        return matters

    def on_topology(self, old: Topology | None, new: Topology | None) -> None:
        """Update a Kueue Topology."""
        put_entry(self.topologies, (new or old or Topology()).metadata.name, new)
        self.nodes.version += 1

    def on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
        """Update a volume claim (access modes, volume); return True if the change is relevant to scheduling."""
        key = (new or old or PersistentVolumeClaim()).metadata.key
        exclusive, volumes = new is not None and READ_WRITE_ONCE_POD in new.spec.access_modes, self._own_volumes()
        put_member(volumes.exclusive, key, present=exclusive)
        return self._put_volume(volumes.claims, key, new, _decisive)

    def on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
        """Update a PersistentVolume, which may limit the nodes of its pods; return True if the change is relevant."""
        name = (new or old or PersistentVolume()).metadata.name
        volumes = self._own_volumes().volumes
        return self._put_volume(volumes, name, new, lambda volume: (volume.spec, volume.metadata.labels))

    def on_storage_class(self, old: StorageClass | None, new: StorageClass | None) -> bool:
        """Update a StorageClass, which may delay volumes until a pod exists; return True if the change is relevant."""
        name = (new or old or StorageClass()).metadata.name
        return self._put_volume(self._own_volumes().classes, name, new, lambda each: (each.volume_binding_mode,))

    def share_volumes(self) -> Volumes:
        """Return the current volumes, which callers must not change; later changes are made to copies."""
        self._shared = True
        return self.volumes

    def _own_volumes(self) -> Volumes:
        if self._shared:
            self.volumes, self._shared = self.volumes.copy(), False
        return self.volumes

    def _put_volume(
        self, table: dict[str, T], key: str, new: T | None, decisive: Callable[[T], tuple[object, ...]]
    ) -> bool:
        known = put_entry(table, key, new)
        matters = (decisive(known) if known else None) != (decisive(new) if new else None)
        self.volumes.generation += matters
        self.nodes.version += matters  # more pods may fit now
        return matters


def _decisive(claim: PersistentVolumeClaim) -> tuple[object, ...]:
    meta = claim.metadata
    return claim.spec, claim.status, meta.uid, meta.annotations, meta.deletion_timestamp is None
