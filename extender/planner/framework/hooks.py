"""The hooks for which plugins register functions, and the Protocol of each hook's functions.

Most hooks correspond to hooks of KAI-Scheduler (framework/session_plugins.go), with names in snake case; the admission
hooks correspond to hooks of Volcano. The functions in `rules` combine the answers of several plugins. Resource arrays
are int64 of shape (resources,) along `session.snapshot.axis`, in milli-CPU and base units. Nodes are columns of the
snapshot's arrays.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeVar, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework import rules
from extender.planner.framework.answers import (
    ClosestDomain,
    Codes,
    EnqueueVote,
    NodeSet,
    QueueRefusal,
    ReclaimState,
    ReservationRules,
    StatusAmounts,
)
from extender.planner.framework.operations import Eviction, Operation, Scenario
from extender.planner.framework.rules import Hook
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView, SubGroup
from extender.planner.topology.parts import SlotGroup
from extender.planner.topology.tree import Tree

T_contra = TypeVar("T_contra", contravariant=True)
Scores = NDArray[np.float64]


class Order(Protocol[T_contra]):
    """A negative number if `left` comes first; 0 if the plugin does not decide."""

    def __call__(self, left: T_contra, right: T_contra, /) -> int: ...


class PrePredicate(Protocol):
    """A short reason if no node can take the pod; empty or None otherwise."""

    def __call__(self, gang: GangView, cls: PodClass, /) -> str | None: ...


class Predicate(Protocol):
    """A code of `session.causes` for each node, int16 of shape (nodes,), 0 where the pod may run; None: everywhere."""

    def __call__(self, cls: PodClass, /) -> Codes | None: ...


class GangPredicate(Protocol):
    """A code of `session.causes` for each node, int16 of shape (nodes,), 0 where the pod may run; None: everywhere."""

    def __call__(self, gang: GangView, cls: PodClass, /) -> Codes | None: ...


class OnNodes(Protocol):
    """Notification; `columns` are the nodes that can take the pod, int64 of shape (nodes that fit,)."""

    def __call__(self, cls: PodClass, columns: Amounts, /) -> object: ...


class NodeScores(Protocol):
    """Scores per node, float64 of shape (nodes,), higher is better; or one number for all nodes."""

    def __call__(self, cls: PodClass, /) -> Scores | float: ...


class GpuScores(Protocol):
    """Scores per GPU, float64 of the shape of `used`, which contains the used thousandths of each GPU."""

    def __call__(self, cls: PodClass, column: int, used: Amounts, /) -> Scores | float: ...


class Subsets(Protocol):
    """Node sets within `nodes`, the best first. The planner tries node sets until the whole part of the gang fits."""

    def __call__(self, nodes: NodeSet, gang: GangView, part: SlotGroup, /) -> Iterable[NodeSet]: ...


class QueueLimit(Protocol):
    """The refusal if the additional requests would exceed the limit of a queue; None if no limit would be exceeded."""

    def __call__(self, gang: GangView, amounts: Amounts, /) -> QueueRefusal | None: ...


class MayReclaim(Protocol):
    """True if the gang's queue may reclaim these resources from other queues; None counts as False."""

    def __call__(self, gang: GangView, amounts: Amounts, /) -> bool | None: ...


class StandingForReclaim(Protocol):
    """State of the queues, from which the message to the gang's owner is made; None if the plugin has no opinion."""

    def __call__(self, gang: GangView, amounts: Amounts, /) -> ReclaimState | None: ...


class HoldsOverQuota(Protocol):
    """True if a gang that must not be evicted uses more than its queue deserves; None if the plugin has no opinion."""

    def __call__(self, victim: GangView, /) -> bool | None: ...


class VictimFilter(Protocol):
    """False if `victim` must not lose a pod for `gang`."""

    def __call__(self, gang: GangView, victim: GangView, /) -> bool: ...


class ScenarioValidator(Protocol):
    """False to reject the scenario."""

    def __call__(self, scenario: Scenario, /) -> bool: ...


class QueueAmounts(Protocol):
    """Amounts of a queue and its descendants, of shape (resources,); None if the amounts are unknown."""

    def __call__(self, queue: str, /) -> NDArray[np.int64] | NDArray[np.float64] | None: ...


class Vote(Protocol):
    """A vote on the admission of a gang; None if the plugin has no opinion."""

    def __call__(self, gang: GangView, /) -> EnqueueVote | None: ...


class Ready(Protocol):
    """False if the planner must not try to place the gang now."""

    def __call__(self, gang: GangView, /) -> bool: ...


class OnGang(Protocol):
    """Notification about a gang, without an answer."""

    def __call__(self, gang: GangView, /) -> object: ...


class OnOperation(Protocol):
    """Notification of an allocation of slots, which may be rolled back later."""

    def __call__(self, operation: Operation, /) -> object: ...


class OnEviction(Protocol):
    """Notification of an eviction, which may be only tentative."""

    def __call__(self, eviction: Eviction, /) -> object: ...


class BindAnnotations(Protocol):
    """Maps the key of an annotation to its value."""

    def __call__(self, pod: PodRecord, node: str, /) -> Mapping[str, str]: ...


class Pages(Protocol):
    """Maps a page's name to a function without arguments, whose result is shown as JSON."""

    def __call__(self) -> Mapping[str, Callable[[], object]]: ...


class QueueSharesByName(Protocol):
    """Maps a queue to its fair share, deserved resources and usage."""

    def __call__(self) -> Mapping[str, StatusAmounts]: ...


class ClosestTo(Protocol):
    """The closest domain; None if domains do not prevent the start. With `ever`, the cluster is assumed to be empty."""

    def __call__(
        self, gang: GangView, slots: Mapping[str, Sequence[int]], /, *, ever: bool = False
    ) -> ClosestDomain | None: ...


class Trees(Protocol):
    """Maps a topology's name to its tree of domains."""

    def __call__(self) -> Mapping[str, Tree]: ...


class Reserving(Protocol):
    """The rules for reservations; None for the default rules."""

    def __call__(self) -> ReservationRules | None: ...


def _hook(rule: Callable[..., Any], asks: str) -> Any:
    """Return a field of `Hooks`; the text `asks` is shown in the documentation."""
    return field(default_factory=lambda: Hook(rule), metadata={"rule": rule, "asks": asks})


def _protocol(hook: Any) -> Any:
    [protocol] = get_args(hook)
    return get_origin(protocol) or protocol


@dataclass(slots=True)
class Hooks:
    """All hooks of a session, with the functions that plugins have registered."""

    # fmt: off
    queue_order: Hook[Order[GangView]] = _hook(
        rules.first_non_zero, "which of two gangs of different queues comes first; called before `job_order`")
    job_order: Hook[Order[GangView]] = _hook(rules.first_non_zero, "which of two gangs comes first")
    pod_set_order: Hook[Order[PodSetView]] = _hook(
        rules.first_non_zero, "which of two pod sets of a gang is filled first")
    sub_group_set_order: Hook[Order[SubGroup]] = _hook(
        rules.first_non_zero, "which of two sub-groups of a pod set is filled first; default: the one with lower ranks")
    task_order: Hook[Order[PodRecord]] = _hook(rules.first_non_zero, "which of two pods of a pod set gets a node first")

    pre_predicate: Hook[PrePredicate] = _hook(
        rules.first_refusal, "whether a gang's pods of a class can be placed at all; called before `predicate`")
    predicate: Hook[Predicate] = _hook(
        rules.first_refusal, "which nodes can take a pod of a class, by properties of the nodes alone")
    neighbour_predicate: Hook[Predicate] = _hook(
        rules.first_refusal, "which nodes can take a pod of a class, given the pods that run there now")
    is_task_allocation_on_node_over_capacity: Hook[GangPredicate] = _hook(
        rules.first_registered, "on which nodes the limits of the gang's queue allow a pod of a class")
    node_pre_order: Hook[OnNodes] = _hook(rules.call_all, "notification: these nodes are about to be scored")
    node_order: Hook[NodeScores] = _hook(
        rules.total, "how well nodes suit a pod of a class; `extender/planner/plugins/scores.py` has the magnitudes")
    subset_nodes: Hook[Subsets] = _hook(
        rules.refine, "which nodes a part of a gang may use (`framework/answers.py`, `topology/parts.py`)")
    gpu_order: Hook[GpuScores] = _hook(
        rules.total, "how well the GPUs of a node suit a pod that shares GPUs (dynamic-resources.md)")

    is_job_over_queue_capacity: Hook[QueueLimit] = _hook(
        rules.first_registered, "whether these additional requests exceed a limit of the queue or an ancestor")
    is_non_preemptible_job_over_queue_quota: Hook[QueueLimit] = _hook(
        rules.first_registered, "whether requests of a gang that must not be evicted exceed a queue's quota")
    can_reclaim_resources: Hook[MayReclaim] = _hook(
        rules.first_registered, "whether a gang's queue may reclaim these resources from other queues")
    reclaim_standing: Hook[StandingForReclaim] = _hook(
        rules.first_registered, "which queues use more than their share, if reclaim failed for a gang")
    holds_over_quota: Hook[HoldsOverQuota] = _hook(
        rules.first_registered, "whether a gang that must not be evicted has more than its queue deserves")
    on_job_solution_start: Hook[OnGang] = _hook(
        rules.call_all, "notification: the search for victims in other queues begins for a gang")
    reclaim_victim_filter: Hook[VictimFilter] = _hook(
        rules.all_agree, "whether a gang of another queue may be a victim")
    reclaim_scenario_validator: Hook[ScenarioValidator] = _hook(
        rules.all_agree, "whether these victims may be evicted for a gang of another queue")
    preempt_victim_filter: Hook[VictimFilter] = _hook(
        rules.all_agree, "whether a gang of lower priority may be a victim")
    preempt_scenario_validator: Hook[ScenarioValidator] = _hook(
        rules.all_agree, "whether these victims may be evicted for a gang of higher priority")
    get_queue_allocated_resources: Hook[QueueAmounts] = _hook(rules.first_registered, "the usage of a queue")
    get_queue_deserved_resources: Hook[QueueAmounts] = _hook(rules.first_registered, "what a queue deserves")
    get_queue_fair_share: Hook[QueueAmounts] = _hook(rules.first_registered, "the fair share of a queue")
    queue_standings: Hook[QueueSharesByName] = _hook(rules.merge, "the resources in the status of queues")

    job_enqueueable: Hook[Vote] = _hook(rules.first_opinion, "whether a gang is admitted")
    job_enqueued: Hook[OnGang] = _hook(rules.call_all, "notification: the gang was admitted")
    job_ready: Hook[Ready] = _hook(rules.all_agree, "whether a gang can start")
    pre_job_allocation: Hook[OnGang] = _hook(rules.call_all, "notification: the planner is about to place the gang")
    allocated: Hook[OnOperation] = _hook(rules.call_all, "notification: members get slots")
    deallocated: Hook[OnOperation] = _hook(rules.call_all, "notification: slots are taken back from members")
    evicted: Hook[OnEviction] = _hook(rules.call_all, "notification: pods are evicted, possibly as a trial")
    unevicted: Hook[OnEviction] = _hook(rules.call_all, "notification: an eviction is rolled back")

    closest_domain: Hook[ClosestTo] = _hook(
        rules.first_registered, "the domain that comes closest to fitting these slots (ranks by pod set) of a gang")
    topologies: Hook[Trees] = _hook(rules.merge, "the topologies of the cluster")
    reservation_rules: Hook[Reserving] = _hook(
        rules.first_registered, "rules for reservations for the first waiting gang of a queue")
    bind_request_mutate: Hook[BindAnnotations] = _hook(rules.merge, "annotations for the binding of a pod to a node")
    http_handler: Hook[Pages] = _hook(rules.merge, "pages at `/plugins/NAME` of the extender")
    # fmt: on

    def follow(self, count: Callable[[Operation | Eviction, int], object]) -> None:
        """Register `count(entry, sign)` for each step of a trial; sign 1 adds the entry's pods, -1 subtracts them."""
        self.allocated.add(lambda operation: count(operation, 1))
        self.deallocated.add(lambda operation: count(operation, -1))
        self.evicted.add(lambda eviction: count(eviction, -1))
        self.unevicted.add(lambda eviction: count(eviction, 1))

    def named(self, name: str) -> Hook[Any]:
        """Return the hook with this name. Raises KeyError, which lists the valid names."""
        if name not in HOOKS:
            raise KeyError(f"hook {name!r} does not exist; a function can be registered for {', '.join(sorted(HOOKS))}")
        hook: Hook[Any] = getattr(self, name)
        return hook


HOOKS: Mapping[str, Any] = {each.name: _protocol(each.type) for each in fields(Hooks)}
"""Maps the name of a hook to the Protocol of its functions."""
