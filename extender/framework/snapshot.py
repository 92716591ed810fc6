"""The copy of the cluster that one cycle plans on."""

from dataclasses import dataclass

import numpy as np

from extender.state.gangs import GangView
from extender.state.nodes import Amounts, NodeTable
from extender.state.podclass import PodClass
from extender.state.podcounts import Counts
from extender.state.queries import Mark
from extender.state.state import State
from extender.state.volumes import Volumes
from muster.api.core import Node
from muster.api.scheduling import Queue


@dataclass(slots=True)
class Snapshot:
    """Arrays are copies and may be changed; objects are shared and may not."""

    gangs: list[GangView]
    queues: dict[str, Queue]
    nodes: list[Node | None]
    order: Amounts
    """Columns of the known nodes in natural order of their names."""
    changed: Amounts
    """Generation in which each node last changed, int64 of shape (nodes,)."""
    generation: int
    version: int
    """Equal versions mean equal arrays."""
    allocatable: Amounts
    free: Amounts
    """What is neither used nor held, int64 of shape (resources, nodes)."""
    on_their_way: dict[str, int]
    """Key of a gang → seats that its active placement holds for pods that are not bound yet; gangs with none left out.
    """
    table: NodeTable
    pod_counts: dict[Mark, Counts]
    """Pods with each mark per node, int32 of shape (nodes,); a mark that no pod has is left out."""
    volumes: Volumes
    exclusive_claims: dict[str, int]
    """Claims that one pod at a time may use → pods that use them."""

    @property
    def in_flight(self) -> int:
        """Seats that active placements hold for pods that are not bound yet."""
        return sum(self.on_their_way.values())

    def one_by_one(self, cls: PodClass) -> bool:
        """Whether a pod that is placed changes where the next of this class can be, beyond its own node."""
        return cls.dynamic or any(claim.key in self.exclusive_claims for claim in cls.claims)

    def name(self, column: int) -> str:
        """The node in a column."""
        node = self.nodes[column]
        return node.metadata.name if node else ""

    def row_of(self, cls: PodClass) -> Amounts:
        """What one pod of this class takes, along the resource axis of this snapshot; int64 of shape (resources,)."""
        row = np.zeros(self.free.shape[0], dtype=np.int64)
        for resource, amount in cls.requests.items():
            position = self.table.axis.get(resource)
            if position is not None and position < len(row):
                row[position] = amount
        return row

    def unknown_resources(self, cls: PodClass) -> list[str]:
        """Requested resources that no node of this snapshot has ever offered."""
        size = self.free.shape[0]
        return [name for name, amount in cls.requests.items() if amount and self.table.axis.get(name, size) >= size]


def take(state: State) -> Snapshot:
    """Copies the state, every gang refreshed; the caller holds its lock."""
    table = state.nodes
    state.refresh()  # before the arrays are copied: what gangs ask for may be resources that are new
    return Snapshot(
        gangs=state.gangs(),
        queues=dict(state.queues),
        nodes=list(table.nodes),
        order=table.order().copy(),
        changed=table.changed.copy(),
        generation=table.generation,
        version=table.version,
        allocatable=table.allocatable.copy(),
        free=table.allocatable - table.used,
        on_their_way=state.holds.seats(),
        table=table,
        pod_counts=table.pod_counts.share(),
        volumes=state.volumes,
        exclusive_claims={claim: table.claim_users[claim] for claim in state.volumes.exclusive},
    )
