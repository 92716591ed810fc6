"""One planning cycle: plugins register hooks, and actions call the hooks and make decisions about the snapshot."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, cmp_to_key
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from extender.planner import reasons
from extender.planner.ask import Ask, Members, amounts_of_claims, amounts_of_members, named_claims
from extender.planner.framework.answers import Codes, CycleReservations, LeftFree, QueueRefusal, ReservationRules
from extender.planner.framework.decisions import AdmitGang, Decision
from extender.planner.framework.freecapacity import ClaimUsers, FreeCapacity
from extender.planner.framework.hooks import Hooks, Scores
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.nodelabels import NodeLabels
from extender.planner.framework.ordering import Again, Ordering, Surplus, scheduling_order
from extender.planner.state.access import parents_of
from extender.planner.state.amounts import Amounts
from extender.planner.state.avoided import avoided_nodes
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from extender.planner.state.reserved import ReservedRoom
from extender.planner.state.spareentries import SpareRunKey, borrowed_spares_of, lent, spare_runs_of
from extender.planner.topology.hypernodes import HyperNodes
from muster.api.muster.reason import Reason
from muster.resources.gpus import GpuShare

D = TypeVar("D", bound=Decision)
T = TypeVar("T")


class Session(FreeCapacity):
    """One planning cycle, as its plugins and actions see it."""

    def __init__(self, inputs: CycleInputs) -> None:
        super().__init__(inputs.snapshot, inputs.causes)
        self.inputs = inputs
        self.now = inputs.now
        """The current time in seconds since the epoch."""
        seen = inputs.snapshot
        self.labels = NodeLabels(inputs.labels, seen.nodes, seen.changed, seen.generation)
        """Labels and taints of all nodes, for evaluating conditions."""
        self.hooks = Hooks()
        self.actions: frozenset[str] = frozenset()
        """Names of the actions of the cycle."""
        self.plugins: tuple[object, ...] = ()
        """Plugins of the cycle; equal plugins of two cycles return equal results."""
        self.decisions: list[Decision] = []
        self.enqueued: set[str] = set()
        """Keys of gangs that this cycle has admitted."""
        self.postponed: set[str] = set()
        """Keys of waiting gangs not evaluated in this cycle; their earlier reasons remain valid."""
        self.evicted: set[str] = set()
        """Keys of gangs that this cycle evicts entirely; the cycle plans no nodes for these gangs."""
        self.avoided = avoided_nodes(inputs.snapshot.gangs, inputs.now, inputs.snapshot.remembered)
        """Maps a gang's key to the nodes that the gang avoids, because a member has failed or been rejected there."""
        for key, nodes in inputs.avoided.items():
            self.avoided.setdefault(key, set()).update(nodes)
        self.provisioning_wanted = False
        """True if any gang uses ProvisioningRequests, so that the existing requests must be read."""
        self.unsure_nodes: set[str] = set()
        """Unknown nodes that have members of gangs: each node was deleted, or is now in another node pool."""
        self.failures: dict[str, str] = {}
        """Maps the key of a gang to the error that an action raised for the gang; the error is logged."""
        self.cycle_reservations: CycleReservations | None = None
        """All reservations of the cycle; None until the action allocate has ended."""
        self.claims = ClaimUsers(inputs.snapshot)
        self._by_key = {gang.key: gang for gang in inputs.snapshot.gangs}
        inputs.asks.forget_others(self._by_key)
        avoiding = filter(None, map(self._by_key.get, self.avoided))
        self.failed_on = avoided_nodes(avoiding, inputs.now, inputs.snapshot.remembered, failures=1)
        """Maps a gang's key to its avoided nodes on which a member has failed."""
        self._node_codes: dict[tuple[bytes, int], Codes] = {}
        """Cache of refusal codes by pod class and by the number of registered predicates."""

    @cached_property
    def away(self) -> Counter[SpareRunKey]:
        """Spare slots in use: lent in a placement, or used in this cycle by other gangs or by the owner."""
        return lent(
            loan for gang in self.snapshot.gangs if gang.placement is not None for loan in borrowed_spares_of(gang)
        )

    @cached_property
    def keepers(self) -> list[GangView]:
        """Gangs that hold spare slots; in many clusters, no gang does."""
        return [gang for gang in self.snapshot.gangs if gang.placement is not None and spare_runs_of(gang)]

    @property
    def hyper_nodes(self) -> HyperNodes:
        """The tree of HyperNodes, and the errors in their specs."""
        return self.inputs.hyper_nodes.tree_of(self.snapshot)

    @property
    def reservations(self) -> ReservationRules:
        """The rules for reservations."""
        return self.hooks.reservation_rules.call() or ReservationRules()

    def reserved_from(self, gang: GangView) -> LeftFree | None:
        """Return the capacity that a gang must leave free for other gangs' reservations; None during `allocate`."""
        return self.cycle_reservations.left_by(gang) if self.cycle_reservations is not None else None

    @property
    def reserved_rooms(self) -> Sequence[ReservedRoom]:
        """The capacity of all reservations in this cycle."""
        return self.cycle_reservations.rooms if self.cycle_reservations is not None else ()

    def ask(self, gang: GangView) -> Ask:
        """Return a gang's demand, computed once per cycle."""
        return self.inputs.asks.ask_of(gang, self.snapshot, self.hooks)

    def amounts(self, ask: Ask, members: Members | None = None) -> Amounts:
        """Return the requests of these members, by default of the members that the minimum lacks; read-only.

        Devices of a shared claim count once, and do not count if the gang's queue already uses the claim.
        """
        if members is None:
            amounts, claims = ask.amounts, ask.claims
        else:
            amounts, claims = amounts_of_members(self.snapshot, ask.gang, members), named_claims(members)
        new = self.claims.new(claims, ask.gang.queue) if claims else []
        return amounts + amounts_of_claims(self.snapshot, new) if new else amounts

    def queue_refusal(self, ask: Ask, amounts: Amounts | None = None) -> QueueRefusal | None:
        """Return a queue's refusal of these additional requests, by default of the gang's minimum; None if accepted."""
        amounts = self.amounts(ask) if amounts is None else amounts
        over = self.hooks.is_job_over_queue_capacity.call(ask.gang, amounts)
        return over or self.hooks.is_non_preemptible_job_over_queue_quota.call(ask.gang, amounts)

    def called(self, gang: GangView, reader: GangView | None = None) -> Reason | str:
        """Return the text by which a message refers to a gang: its name, or a general description.

        Messages describe a gang without its name if the user is not allowed to see the name. A message about a dump of
        a cluster may contain all names. A message to the owner of the gang `reader` may contain names in the namespace
        of `reader`.
        """
        meta = gang.group.metadata
        if self.inputs.names_others:
            owner = meta.controller
            return f"{owner.kind} {meta.namespace}/{owner.name}" if owner else gang.key
        near = reader is not None and reader.group.metadata.namespace == meta.namespace
        return gang.workload if near else reasons.gangs.of_queue(queue=gang.queue)

    def forget(self) -> None:
        """Drop the plugins' functions and the reservations once a later cycle has replaced this cycle.

        The functions and reservations form a reference cycle with the session. Without `forget`, the session's copy of
        the cluster would stay in memory until the next garbage collection, which is rare.
        """
        self.hooks, self.cycle_reservations = Hooks(), None
        self._node_codes.clear()

    def decide(self, decision: Decision) -> None:
        """Add a decision."""
        self.decisions.append(decision)

    def admit(self, gang: GangView) -> None:
        """Allow the pods of a gang to be created, unless this is already allowed."""
        if gang.pending and gang.key not in self.enqueued:
            self.enqueued.add(gang.key)
            self.decide(AdmitGang(gang))

    def withdraw(self, gang: GangView, *kinds: type[Decision]) -> None:
        """Remove decisions of these kinds about a gang, which a later action replaces by a better decision."""
        self.decisions = [each for each in self.decisions if not (isinstance(each, kinds) and each.gang is gang)]

    def gang(self, key: str) -> GangView | None:
        """Return the gang with this key; None if the gang does not exist or cannot be evaluated."""
        return self._by_key.get(key)

    def decided(self, kind: type[D]) -> list[D]:
        """Return the decisions of one kind, in the order in which they were made."""
        return [decision for decision in self.decisions if isinstance(decision, kind)]

    def attempt(self, gang: GangView, do: Callable[["Session", GangView], T]) -> T | None:
        """Run an action for one gang; return None if the action fails.

        A failure must not end the cycle for other gangs. Therefore the gang is excluded with the error as reason,
        decisions of the attempt are removed, and later actions skip the gang.
        """
        decided = len(self.decisions)
        try:
            return do(self, gang)
        except Exception as error:  # noqa: BLE001 - plugins and objects may do anything
            del self.decisions[decided:]
            self.enqueued.discard(gang.key)
            self.failures[gang.key] = reasons.exclusions.error_text(error)
            snapshot = self.snapshot
            snapshot.gangs = [other for other in snapshot.gangs if other is not gang]
            snapshot.excluded.append(replace(gang, excluded=self.failures[gang.key]))
            return None

    # -- results of hooks for actions -----------------------------------------------------------------------

    def ordered_gangs(self, gangs: list[GangView]) -> list[GangView]:
        """Return gangs in the scheduling order that results if none of the gangs is placed in the meantime."""
        return list(self.in_order(gangs))

    def in_order(
        self, gangs: list[GangView], again: Again = lambda _: False, surplus: Surplus = lambda _: 0
    ) -> Iterator[GangView]:
        """Yield gangs in scheduling order: by queue order, then job order, then age.

        Queues are compared again after each gang. A gang is yielded again if `again` returns True for it. Among gangs
        that are yielded again, `surplus` is compared before the age.
        """
        return scheduling_order(gangs, parents_of(self.snapshot.queues), self._ordering(surplus), again)

    def in_job_order(self, gangs: list[GangView]) -> list[GangView]:
        """Return gangs in the order that applies within a queue."""
        return sorted(gangs, key=self._ordering().job)

    def _ordering(self, surplus: Surplus = lambda _: 0) -> Ordering:
        return Ordering(self.hooks.queue_order.functions, self.hooks.job_order.functions, surplus)

    def ordered_pod_sets(self, gang: GangView, given: Mapping[str, int] = MappingProxyType({})) -> list[PodSetView]:
        """Return a gang's pod sets in the plugins' order, or else by ascending number of slots in `given`."""
        fewest = sorted(gang.pod_sets, key=lambda pod_set: given.get(pod_set.name, 0))
        return sorted(fewest, key=cmp_to_key(self.hooks.pod_set_order.call))

    @property
    def asks_by_gang(self) -> bool:
        """True if a plugin evaluates each gang separately, so that its results for gangs of one shape may differ."""
        return bool(self.hooks.pre_predicate.functions or self.hooks.is_task_allocation_on_node_over_capacity.functions)

    def codes(self, cls: PodClass, gang: GangView | None = None) -> Codes:
        """Return the refusal code of each node for a pod of this class, without regard to free capacity."""
        codes = self.node_codes(cls)
        by_neighbours = self.hooks.neighbour_predicate.call(cls)
        if by_neighbours is not None:
            codes = np.where(codes == 0, by_neighbours, codes)
        if gang is not None:
            by_gang = self.hooks.is_task_allocation_on_node_over_capacity.call(gang, cls)
            codes = codes if by_gang is None else np.where(codes == 0, by_gang, codes)
        avoided = self.avoided.get(gang.key) if gang else None
        if avoided:
            codes = codes.copy()
            failed = self.failed_on.get(gang.key, ()) if gang else ()
            for names, cause in (avoided, reasons.cause.REFUSED_A_MEMBER), (failed, reasons.cause.FAILED_A_MEMBER):
                codes[self.snapshot.columns_of(names)] = self.causes.code(cause)
        return codes

    def counts_nodes_of(self, gang: GangView, cls: PodClass) -> bool:
        """Return True if each new pod of this class in the gang may exclude nodes for the next pod."""
        return self.hooks.is_task_allocation_on_node_over_capacity.call(gang, cls) is not None

    def node_codes(self, cls: PodClass) -> Codes:
        """Return the refusal code of each node for a pod of this class, without regard to other pods; read-only."""
        key = cls.key, len(self.hooks.predicate.functions)
        if key not in self._node_codes:
            codes = self.hooks.predicate.call(cls)
            self._node_codes[key] = np.zeros(len(self.snapshot.nodes), dtype=np.int16) if codes is None else codes
        return self._node_codes[key]

    def choose_devices(self, cls: PodClass, share: GpuShare, column: int) -> tuple[int, ...]:
        """Return a node's GPUs for one more pod, in the plugins' order. Raises RuntimeError if they lack capacity."""
        snapshot = self.snapshot
        unused = snapshot.devices.unused_at(snapshot.free, snapshot.axis, column)
        order = self.hooks.gpu_order.call
        chosen = snapshot.devices.choose(share, column, unused, lambda used: order(cls, column, used))
        if chosen is None:
            raise RuntimeError(
                f"the GPUs of {snapshot.name(column)} have no free capacity for another pod that shares them"
            )
        return chosen

    def scores(self, cls: PodClass) -> Scores | float:
        """Return the score of each node, float64 of shape (nodes,), or one number if no plugin distinguishes nodes."""
        return self.hooks.node_order.call(cls)
