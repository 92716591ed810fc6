"""The copy of the cluster's state on which one cycle plans."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.planner.limits import LimitedUse
from extender.planner.queueuse import Use
from extender.planner.state.amounts import Amounts, row_along, sum_along
from extender.planner.state.devices import Devices
from extender.planner.state.gangphase import GangPhase, once_whole
from extender.planner.state.gangs import GangView
from extender.planner.state.guards import Guards
from extender.planner.state.nodes import taken_on
from extender.planner.state.podclass import PodClass
from extender.planner.state.podcounts import Counts
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Mark
from extender.planner.state.state import PlannerState
from extender.planner.state.tables import Volumes
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.quota import PodDisruptionBudget, ResourceQuota
from muster.api.muster.node_faults import Fault
from muster.api.muster.placement import AvoidedNode
from muster.api.volcano.scheduling import Queue
from muster.api.volcano.topology import HyperNode
from muster.resources.vector import Vector
from muster.volcano.access import NamespaceObstacle


@dataclass(slots=True)
class Snapshot:
    """The copy's arrays, which a cycle may change, and shared objects, which are read-only.

    Watch events do not change a snapshot.
    """

    gangs: list[GangView]
    excluded: list[GangView]
    """Gangs that cannot be evaluated, each with the reason; actions skip these gangs."""
    pool: str
    """The node pool that this cycle plans; nodes and gangs of other pools are not in the snapshot."""
    queues: dict[str, Queue]
    barred: dict[str, NamespaceObstacle | None]
    """Maps a gang whose queue excludes its namespace to the reason; None if the namespace is being deleted. No nodes
    are planned for barred gangs."""
    quotas: dict[str, list[ResourceQuota]]
    """Maps a namespace to its ResourceQuotas; namespaces without ResourceQuotas are omitted."""
    disruption_budgets: list[PodDisruptionBudget]
    leaving: dict[str, PodRecord]
    """Pods, by UID, that are being deleted and still use a node; searches for victims add the chosen victims."""
    awaited: dict[str, PodRecord]
    """Pods on nodes, by UID, that a placement lists as victims and that are not being deleted yet."""
    reported: dict[str, PodRecord]
    """Members of gangs, by UID, that have an eviction notice and are still running."""
    nodes: list[Node | None]
    faults: dict[str, Fault]
    """Maps a node to its fault; healthy nodes are omitted."""
    failed: dict[str, dict[str, PodRecord]]
    """Maps a gang and a node to a member that has failed on the node, if the failure has not been counted yet."""
    remembered: dict[str, tuple[AvoidedNode, ...]]
    """Maps a gang to nodes on which its members have failed, possibly with an earlier PodGroup of the same name."""
    order: Amounts
    """Columns of the known nodes in natural order of their names."""
    changed: Amounts
    """Generation in which each node last changed, int64 of shape (nodes,)."""
    generation: int
    version: int
    """Version of the snapshot's arrays; equal versions mean equal arrays."""
    allocatable: Amounts
    free: Amounts
    """Capacity of each node that no ledger entry takes, int64 of shape (resources, nodes)."""
    chargeable: Amounts
    """The most that a queue is charged for one pod per node: the largest allocatable amounts offered so far."""
    axis: dict[str, int]
    """Maps a resource to its row in the arrays; resources that no node offers are omitted."""
    index: dict[str, int]
    """Maps the name of a node to its column."""
    placed: dict[str, int]
    """Maps a gang to its placed slots without a bound pod; gangs without such slots are omitted."""
    pod_counts: dict[Mark, Counts]
    """Number of pods with each mark per node, int32 of shape (nodes,); marks without pods are omitted."""
    volumes: Volumes
    exclusive_claims: dict[str, int]
    """Maps a volume claim that only one pod at a time may use to the number of pods that use the claim."""
    hyper_nodes: dict[str, HyperNode]
    hyper_nodes_version: int
    """Version of the HyperNodes; equal versions mean equal specs."""
    topologies: dict[str, tuple[str, ...]]
    """Maps the name of a Kueue Topology to the label keys of its levels, outermost first."""
    shared_claims: dict[str, dict[str, int]]
    """Maps a shared device claim without devices and a node to the number of pods on the node that use the claim."""
    claim_users: dict[str, int]
    """Maps a device claim that pods name to the number of pods that use the claim; claims without users are omitted."""
    claim_queues: dict[str, dict[str, int]]
    """Maps a claim and a queue to its number of pods that use the claim; devices count once per queue."""
    claim_nodes: dict[str, str]
    """Maps a claim that has devices to the node on which the devices are."""
    left_claims: frozenset[str]
    """Device claims that no bound pod names any more; kube-controller-manager will soon deallocate their devices."""
    claimed_resources: frozenset[str]
    """Resources that represent devices of a class; nodes need not have these resources in their status."""
    left_namespaces: frozenset[str]
    """Namespaces in which Muster no longer schedules new pods, because the namespaces have lost the queue label."""
    queue_use: dict[str, Use]
    """Maps a queue to the resources of its own pods and placed slots, without the resources of child queues."""
    queue_asked: dict[str, dict[str, int]]
    """Maps a queue to the requests of its waiting pods that belong to no gang."""
    gang_use: dict[str, Use]
    """Maps a gang to the resources of its pods and placed slots."""
    left_behind: Mapping[str, str]
    """Maps a gang to its queue, for gangs that still hold resources although their PodGroup was deleted."""
    limited: LimitedUse
    """Limits of queues, and the usage that counts against these limits; trials change a copy."""
    gpu_use: dict[tuple[str, str], int]
    """Thousandths of nvidia.com/gpu in use by queue and node, including pods that are being deleted."""
    devices: Devices
    """GPUs that pods share; a trial changes `devices` in the same way as `free`."""
    ending: tuple[PodRecord, ...]
    """Bound pods that have no gang but declare an expected runtime."""
    _rows: dict[bytes, Amounts] = field(default_factory=dict)
    _guards: Guards | None = None

    @property
    def guards(self) -> Guards:
        """The disruption budgets, keyed by the pods that they protect.

        The mapping is computed on first use, so that watch events need not wait while the snapshot is taken.
        """
        if self._guards is None:
            self._guards = Guards(self.disruption_budgets)
        return self._guards

    @property
    def placed_slots(self) -> int:
        """Number of placed slots of all gangs."""
        return sum(self.placed.values())

    def used_by(self, gang: GangView) -> Amounts:
        """Return the resources of a gang's placed slots and staying pods, int64 of shape (resources,)."""
        use = self.gang_use.get(gang.key)
        return sum_along(self.axis, self.free.shape[0], use.staying if use is not None else {})

    def charged_on(self, cls: PodClass, column: int) -> Amounts:
        """Return what a queue is charged for a pod of this class on this node (see `NodeTable.charged`)."""
        return np.minimum(self.row_on(cls, column), self.chargeable[:, column])

    def one_by_one(self, cls: PodClass) -> bool:
        """Return True if a placed pod of this class also affects which other nodes the next pod may use."""
        return cls.dynamic or bool(cls.needs.shared) or any(claim.key in self.exclusive_claims for claim in cls.claims)

    def name(self, column: int) -> str:
        """Return the name of the node with this column of the arrays; empty if the column has no node."""
        node = self.nodes[column]
        return node.metadata.name if node else ""

    def vector(self, amounts: Amounts | NDArray[np.float64] | None) -> Vector:
        """Return an array along the resource axis as amounts by resource, without zeros; empty for None."""
        return {} if amounts is None else {name: int(amounts[row]) for name, row in self.axis.items() if amounts[row]}

    def members_of(self, gang: GangView) -> dict[str, dict[int, int]]:
        """Return a mapping from pod set and rank to the member's column, for members on known nodes."""
        return {
            pod_set.name: {rank: self.index[node] for rank, node in pod_set.taken.items() if node in self.index}
            for pod_set in gang.pod_sets
        }

    def columns_of(self, names: Iterable[str]) -> list[int]:
        """Return the columns of these nodes; unknown nodes are skipped."""
        return [self.index[name] for name in names if name in self.index]

    def row_of(self, cls: PodClass) -> Amounts:
        """Return the requests of one pod of this class, int64 of shape (resources,); read-only.

        For a pod that requests GPU memory, the largest possible GPU fraction is used, because the node is not known.
        """
        row = self._rows.get(cls.key)
        if row is None:
            row = self._rows[cls.key] = self._row(self._most_taken(cls))
        return row

    def row_on(self, cls: PodClass, column: int) -> Amounts:
        """Return the requests of one pod of this class on this node, int64 of shape (resources,)."""
        by_memory = cls.gpu is not None and cls.gpu.memory
        return self._row(taken_on(cls, self.devices, column)) if by_memory else self.row_of(cls)

    def _most_taken(self, cls: PodClass) -> Vector:
        """Return a pod's requests on the node with the least GPU memory; without a GPU memory request, on any node."""
        if cls.gpu is None or not cls.gpu.memory:
            return cls.requests
        known = np.flatnonzero((self.devices.memory > 0) & ~self.devices.volcano)
        return taken_on(cls, self.devices, known[self.devices.memory[known].argmin()]) if len(known) else cls.requests

    def _row(self, asked: Vector) -> Amounts:
        row = row_along(self.axis, self.free.shape[0], asked)
        row.flags.writeable = False
        return row

    def unknown_resource(self, cls: PodClass) -> str:
        """Return the first requested resource that no node offers; empty if nodes offer all resources."""
        return next((name for name, amount in cls.requests.items() if amount > 0 and name not in self.axis), "")


def _awaited(state: PlannerState, gangs: Iterable[GangView]) -> dict[str, PodRecord]:
    """Return the victims of active placements that still use their nodes and are not being deleted."""
    named = (
        state.pods.get(victim.uid)
        for gang in gangs
        if gang.active and gang.placement is not None
        for victim in gang.placement.spec.victims
    )
    return {pod.uid: pod for pod in named if pod is not None and pod.uses_node and not pod.terminating}


def take_snapshot(state: PlannerState) -> Snapshot:
    """Refresh all gangs and return a copy of the state; call this on the thread that changes the state."""
    table, ledger = state.nodes, state.ledger
    state.refresh()  # before copying the arrays, because the refresh opens and closes entries of placed slots
    gangs = state.gangs()
    axis, index = table.share()
    return Snapshot(
        gangs=[gang for gang in gangs if not gang.excluded],
        excluded=[gang for gang in gangs if gang.excluded],
        pool=state.pool,
        queues=dict(state.queues),
        barred=barred_gangs(state, gangs),
        quotas={namespace: list(quotas.values()) for namespace, quotas in state.quotas.items()},
        disruption_budgets=list(state.disruption_budgets.values()),
        leaving=dict(state.pod_table.leaving),
        awaited=_awaited(state, gangs),
        reported=dict(state.pod_table.reported),
        nodes=list(table.nodes),
        faults=dict(table.faults),
        failed=state.failures.copy(),
        remembered=dict(state.failures.remembered),
        order=table.order().copy(),
        changed=table.changed.copy(),
        generation=table.generation,
        version=table.version,
        allocatable=table.allocatable.copy(),
        free=table.allocatable - table.used,
        chargeable=table.chargeable(),
        axis=axis,
        index=index,
        placed=dict(ledger.placed),
        pod_counts=table.pod_counts.share(),
        volumes=state.share_volumes(),
        exclusive_claims={claim: ledger.claim_users[claim] for claim in state.volumes.exclusive},
        hyper_nodes=dict(state.hyper_nodes),
        hyper_nodes_version=state.hyper_nodes_version,
        topologies={name: topology.levels for name, topology in state.topologies.items()},
        shared_claims={key: dict(users) for key, users in ledger.shared_users.items()},
        claim_users={key: state.claimants.users_of(key) for key in ledger.device_users.keys() | state.devices.reserved},
        claim_queues={key: ledger.users_of_claim(key) for key in ledger.device_users},
        claim_nodes=state.claimants.claim_nodes(),
        left_claims=frozenset(state.claimants.left),
        claimed_resources=frozenset(state.devices.inventory.extended),
        left_namespaces=frozenset(state.access.left),
        queue_use={name: use.copy() for name, use in ledger.queues.queues.items()},
        queue_asked={name: dict(amounts) for name, amounts in state.pod_table.asked.items()},
        gang_use={key: use.copy() for key, use in ledger.queues.gangs.items()},
        gpu_use=dict(ledger.queues.gpus),
        left_behind={key: ledger.queues.queue_of[key] for key in ledger.left_behind if key in ledger.queues.queue_of},
        limited=ledger.queues.limited.copy(),
        devices=table.devices.copy(),
        ending=tuple(state.ending()),
    )


def barred_gangs(state: PlannerState, gangs: Iterable[GangView]) -> dict[str, NamespaceObstacle | None]:
    """Return the waiting gangs whose queue excludes their namespace, each with the reason.

    The reason is None if the namespace is being deleted, because the API server then accepts no placement there.
    """
    ending = state.access.ending
    if not state.access.restricted and not ending:
        return {}
    known: dict[tuple[str, str], NamespaceObstacle | None] = {}
    barred: dict[str, NamespaceObstacle | None] = {}
    for gang in gangs:
        if gang.group.metadata.namespace in ending:
            barred[gang.key] = None
            continue
        if _admitted_before(gang) or (gang.started and not any(gang.open_slots.values())):
            continue
        pair = gang.queue, gang.group.metadata.namespace
        if pair not in known:
            known[pair] = state.access.barrier(*pair)
        if found := known[pair]:
            barred[gang.key] = found
    return barred


def _admitted_before(gang: GangView) -> bool:
    """Return True for a gang that Muster has already placed with this PodGroup, and that may keep its pods and grow.

    Bound members do not prove an earlier placement, because the creator of a pod can set the pod's node name.
    """
    return gang.active or (gang.phase is not GangPhase.WAITING and once_whole(gang.placement))
