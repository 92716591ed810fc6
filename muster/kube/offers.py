"""Largest allocatable resources of each node: the most that recorder and controller charge for a pod on this node."""

from contextlib import suppress

from muster.api.kubernetes.core import NODES, Node, NodeStatus
from muster.api.kubernetes.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.store import ObjectStore
from muster.resources.pods import node_allocatable
from muster.resources.vector import Vector, maximum


class NodeOffers:
    """A cache of the largest allocatable resources that each node has had.

    While a device plugin restarts, its devices are missing from the node's allocatable resources, although pods still
    use the devices.
    """

    def __init__(self, client: Client) -> None:
        self.reflector = Reflector(client, NODES, store=ObjectStore[Node](), keep=_offering)
        self.reflector.add_handler(self.node_seen)
        self._most: dict[str, Vector] = {}

    def of(self, node: str) -> Vector | None:
        """Return the largest allocatable resources of a node; None if the node is unknown or cannot be parsed."""
        return self._most.get(node)

    def node_seen(self, old: Node | None, new: Node | None) -> None:
        """Record the node's allocatable resources, but ignore an earlier node with the same name."""
        name = (new or old or Node()).metadata.name
        if new is None or (old is not None and old.metadata.uid != new.metadata.uid):
            self._most.pop(name, None)
        if new is not None:
            with suppress(ValueError):
                self._most[name] = maximum(self._most.get(name, {}), node_allocatable(new))


def _offering(node: Node) -> Node:
    """Return a copy of a node with only the fields that the cache needs."""
    meta = node.metadata
    known = ObjectMeta(name=meta.name, uid=meta.uid, resource_version=meta.resource_version)
    return Node(metadata=known, status=NodeStatus(allocatable=node.status.allocatable))
