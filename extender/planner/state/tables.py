"""Objects that the planner looks up by name as they are: quotas, budgets, topologies and volumes."""

from typing import TypeVar

from extender.planner.state.nodes import NodeTable
from extender.planner.state.volumes import Volumes
from muster.api.kubernetes.quota import PodDisruptionBudget, ResourceQuota
from muster.api.kubernetes.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from muster.api.volcano.topology import HyperNode, Topology

T = TypeVar("T")


class Tables:
    """The part of the state that needs nothing but names. What changes where pods fit gives `nodes` a new version."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.volumes = Volumes()
        self.quotas: dict[str, dict[str, ResourceQuota]] = {}
        """Namespace → name → quota; namespaces without any are left out."""
        self.disruption_budgets: dict[str, PodDisruptionBudget] = {}
        self.hyper_nodes: dict[str, HyperNode] = {}
        self.hyper_nodes_version = 0
        """Grows with every HyperNode that is added or removed, and every change of a spec."""
        self.topologies: dict[str, Topology] = {}
        """Kueue's, by name; none where it is not installed."""

    def on_resource_quota(self, old: ResourceQuota | None, new: ResourceQuota | None) -> None:
        """Take a quota of a namespace."""
        meta = (new or old or ResourceQuota()).metadata
        quotas = self.quotas.setdefault(meta.namespace, {})
        put(quotas, meta.name, new)
        if not quotas:
            del self.quotas[meta.namespace]

    def on_budget(self, old: PodDisruptionBudget | None, new: PodDisruptionBudget | None) -> None:
        """Take a disruption budget."""
        put(self.disruption_budgets, (new or old or PodDisruptionBudget()).metadata.key, new)

    def on_hyper_node(self, old: HyperNode | None, new: HyperNode | None) -> bool:
        """Take a HyperNode; return True if the change matters to scheduling, which its status does not."""
        known = put(self.hyper_nodes, (new or old or HyperNode()).metadata.name, new)
        matters = (known.spec if known else None) != (new.spec if new else None)
        self.hyper_nodes_version += matters
        return self._version_changed(matters)

    def on_topology(self, old: Topology | None, new: Topology | None) -> None:
        """Take a Topology of Kueue's."""
        put(self.topologies, (new or old or Topology()).metadata.name, new)
        self.nodes.version += 1

    def on_claim(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> bool:
        """Take a volume claim; return True if the change matters to scheduling."""
        return self._version_changed(self.volumes.on_claim(old, new))

    def on_volume(self, old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
        """Take a persistent volume; return True if the change matters to scheduling."""
        return self._version_changed(self.volumes.on_volume(old, new))

    def on_storage_class(self, old: StorageClass | None, new: StorageClass | None) -> bool:
        """Take a storage class; return True if the change matters to scheduling."""
        return self._version_changed(self.volumes.on_storage_class(old, new))

    def _version_changed(self, matters: bool) -> bool:  # noqa: FBT001 - private, and the one thing it is told
        self.nodes.version += matters  # pods that did not fit may fit now
        return matters


def put(table: dict[str, T], name: str, new: T | None) -> T | None:
    """Put an object into a table, or remove it; return the one that was there."""
    known = table.get(name)
    if new is not None:
        table[name] = new
    elif known is not None:
        del table[name]
    return known
