"""Topology requests of a gang, from its PodGroup, its Job's templates and its pods, and the units of the gang.

* the gang: `networkTopology` of the PodGroup, otherwise its annotations `muster.dev/topology…`;
* a pod set: annotations on its template, overridden by annotations on its pods. The ReplicatedJobs of a JobSet form a
  single pod set of the gang; this module treats their pods as several kinds of pods.
* pod sets of one `topology-group`: a leader with its workers;
* a sub-group: `subGroupPolicy` with a size (partitions of a task) or with labels; slices by annotation.

A unit is a partition of a task, or a slice. The ranks of a unit are placed together or not at all when a gang starts,
grows or is repaired. Half of a slice is useless in a domain that cannot hold the other half, because its pods would
hold capacity without making progress.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from extender.planner import reasons
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from extender.planner.state.queries import requirements
from muster.api.limits import SUB_GROUP_CHECKS, SUB_GROUPS, TOPOLOGY_CONSTRAINTS, LimitError
from muster.api.volcano.scheduling import SubGroupPolicy
from muster.resources.topology import NOTHING, Nearness, PodTopology, Slices, of_gang, of_network

SubGroup = tuple[str, Nearness, Mapping[str, frozenset[int]]]
"""Name and topology request of a sub-group, and the sub-group's ranks by pod set."""


_SILENT = PodTopology()


@dataclass(frozen=True, slots=True, eq=False)
class RequestKind:
    """A kind of pods: pods of one pod set that have the same topology request."""

    pod_set: str
    topology: PodTopology
    ranks: frozenset[int] | None
    """Ranks of the pods of this kind; None means all ranks of the pod set."""
    slices: tuple[Slices, ...]

    @property
    def places(self) -> Mapping[int, int] | None:
        """Maps a rank to its position among the pods of this kind; None if position and rank are equal."""
        return None if self.ranks is None else {rank: place for place, rank in enumerate(sorted(self.ranks))}


@dataclass(frozen=True, slots=True, eq=False)
class TopologyRequest:
    """The topology requests of a gang, each with its members."""

    near: Nearness
    """Request for the whole gang, from networkTopology of the PodGroup, otherwise from annotations."""
    also: Nearness
    """Request for the whole gang from annotations, if networkTopology contains another request."""
    kinds: tuple[RequestKind, ...]
    sub_groups: tuple[SubGroup, ...] = ()
    """Sub-groups that labels define."""
    shape: Hashable = None
    """A key that is equal for gangs with equal topology requests."""

    @property
    def required(self) -> list[Nearness]:
        """Requests that must be fulfilled before the gang can start."""
        sliced = (each.near for kind in self.kinds for each in kind.slices)
        levels = (kind.topology.near for kind in self.kinds)
        wishes = (self.near, self.also, *levels, *sliced, *(near for _, near, _ in self.sub_groups))
        return [near for near in wishes if near.required is not None]


def request_of(gang: GangView) -> TopologyRequest | None:
    """Return the gang's topology request; None for most gangs. Raises LimitError for a request that is too large."""
    spec = gang.group.spec
    by_name = {policy.name: policy for policy in spec.sub_group_policy[: SUB_GROUPS.value]}
    set_names = {pod_set.name for pod_set in gang.pod_sets}
    members: dict[str, list[PodRecord]] = {}
    for pod in gang.pods:
        if pod.slot is not None:
            members.setdefault(pod.slot.pod_set, []).append(pod)
    kinds = [
        kind
        for pod_set in gang.pod_sets
        for kind in _kinds(pod_set, members.get(pod_set.name, []), by_name.get(pod_set.name))
    ]
    policies = [
        policy
        for policy in spec.sub_group_policy[: SUB_GROUPS.value]
        if policy.network_topology and not (policy.name in set_names and policy.sub_group_size)
    ]
    sub_groups = tuple(by_labels(gang.pods, policies)) if policies else ()
    nears = [of_network(spec.network_topology), of_gang(gang.group.metadata.annotations)]
    if sub_groups:
        nears, kinds = _around_labels(nears, kinds)
    near, also = sorted(nears, key=bool, reverse=True)
    speaking = any(kind.topology != _SILENT or kind.slices for kind in kinds)
    if not (near or speaking or sub_groups):
        return None
    most = max(len(spec.sub_group_policy), len(sub_groups))
    if most > SUB_GROUPS.value:
        raise LimitError(reasons.exclusions.too_many_sub_groups(count=most, limit=SUB_GROUPS))
    shape = near, also, tuple((kind.pod_set, kind.topology, kind.ranks, kind.slices) for kind in kinds)
    return TopologyRequest(near, also, tuple(kinds), sub_groups, (shape, gang.key if sub_groups or gang.taken else ""))


def _around_labels(nears: list[Nearness], kinds: list[RequestKind]) -> tuple[list[Nearness], list[RequestKind]]:
    """Return the requests and the kinds of pods of a gang with sub-groups by labels.

    If a gang has one template, its topology requirement applies to the whole gang, and so to all sub-groups. Raises
    LimitError for any other required topology, because it would cut across sub-groups.
    """
    asking = [kind for kind in kinds if kind.topology.near.required is not None or kind.slices]
    if not asking:
        return nears, kinds
    (kind, *others), free = kinds, [near for near in nears if not near]
    if others or kind.slices or not free:
        raise LimitError(reasons.exclusions.crossed_labels(pod_set=asking[0].pod_set))
    around = [kind.topology.near, *(near for near in nears if near), *free[1:]]
    return around, [replace(kind, topology=replace(kind.topology, near=NOTHING))]


def _kinds(pod_set: PodSetView, members: list[PodRecord], policy: SubGroupPolicy | None) -> list[RequestKind]:
    """Return the kinds of pods in a pod set; pods with different requests are of different kinds."""
    partitions: tuple[Slices, ...] = ()
    if policy is not None and policy.network_topology and policy.sub_group_size:
        partitions = (Slices(policy.sub_group_size, of_network(policy.network_topology)),)
    otherwise = pod_set.topology or _SILENT
    own = {
        pod.slot.rank: pod.topology or _SILENT
        for pod in members
        if pod.slot is not None and (pod.topology or pod_set.topology)
    }
    requests = dict.fromkeys(own.values())
    if len(own) < pod_set.replicas:
        requests.setdefault(otherwise)
    if len(requests) <= 1:
        alone = next(iter(requests), otherwise)
        return [RequestKind(pod_set.name, alone, None, _layers(pod_set, partitions, alone.slices))]
    if len(requests) > TOPOLOGY_CONSTRAINTS.value:
        words = reasons.exclusions.too_many_wishes(
            pod_set=pod_set.name, count=len(requests), limit=TOPOLOGY_CONSTRAINTS
        )
        raise LimitError(words)
    ranks: dict[PodTopology, list[int]] = {}
    for rank in range(pod_set.replicas):
        ranks.setdefault(own.get(rank, otherwise), []).append(rank)
    return [
        RequestKind(pod_set.name, each, frozenset(own), _layers(pod_set, partitions, each.slices))
        for each, own in ranks.items()
    ]


def _layers(pod_set: PodSetView, partitions: tuple[Slices, ...], slices: tuple[Slices, ...]) -> tuple[Slices, ...]:
    """Return partitions and annotated slices as layers of slices that each require a domain, outermost first."""
    found = tuple(sorted((*partitions, *slices), key=lambda each: -each.size))
    crossed = [(outer.size, inner.size) for outer, inner in pairwise(found) if outer.size % inner.size]
    for outer, inner in crossed if partitions and slices else ():
        raise LimitError(reasons.exclusions.crossed_slices(pod_set=pod_set.name, outer=outer, inner=inner))
    return found if partitions else slices


def by_labels(pods: list[PodRecord], policies: list[SubGroupPolicy]) -> Iterator[SubGroup]:
    """Yield the sub-groups of these policies; a policy is compared only with pods that have a label it requires.

    The cost is proportional to the result and not to policies times pods, because one user can choose both numbers.
    Raises LimitError if the comparison would take too long, because many policies require no label or a label that all
    pods have.
    """
    left = SUB_GROUP_CHECKS.value
    by_label: defaultdict[tuple[str, str], list[PodRecord]] = defaultdict(list)
    for pod in pods:
        for label in pod.labels.items():
            by_label[label].append(pod)
    for policy in policies:
        wanted = requirements(policy.label_selector) if policy.label_selector else ()
        demanded = [each for each in wanted if each.operator == "In" and len(each.values) == 1]
        labels = [(each.key, value) for each in demanded for value in each.values]
        candidates = min((by_label.get(label, []) for label in labels), key=len, default=pods)
        left -= len(candidates) * (len(wanted) + len(policy.match_label_keys) + 1)
        if left < 0:
            raise LimitError(reasons.exclusions.too_many_looks(limit=SUB_GROUP_CHECKS))
        found: dict[tuple[str, ...], dict[str, set[int]]] = {}
        for pod in candidates:
            if pod.slot is not None and all(requirement.holds(pod.labels) for requirement in wanted):
                values = tuple(pod.labels.get(key, "") for key in policy.match_label_keys)
                found.setdefault(values, {}).setdefault(pod.slot.pod_set, set()).add(pod.slot.rank)
        near = of_network(policy.network_topology)
        for values, sets in sorted(found.items()):
            name = "/".join((policy.name, *values))
            yield name, near, {each: frozenset(ranks) for each, ranks in sets.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The units of one gang."""

    united: frozenset[str]
    """Names of the pod sets whose pods are placed in units of several pods."""
    _sliced: Mapping[str, Sequence[RequestKind]]
    """Maps a pod set to its kinds that request slices of several pods; other pod sets are left out."""

    def units_of_ranks(self, pod_set: PodSetView, ranks: Sequence[int]) -> list[list[int]]:
        """Return these ranks, grouped by unit, in the given order."""
        kinds = self._sliced.get(pod_set.name) if pod_set.unit == 1 else None
        if not kinds:
            return list(pod_set.units(ranks))
        units: dict[tuple[int, int], list[int]] = {}
        numbers = [(kind.slices[0].size, kind.places) for kind in kinds]
        for rank in ranks:
            unit = (-1, rank)
            for number, (size, places) in enumerate(numbers):
                place = rank if places is None else places.get(rank)
                if place is not None:
                    unit = number, place // size
            units.setdefault(unit, []).append(rank)
        return list(units.values())

    def complete(self, pod_set: PodSetView, units: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """Return the complete units of open slots; in a complete unit, all other ranks have a node or have failed.

        The pods of a unit are created one after another. The first pods of an incomplete unit might be placed in a
        domain that cannot hold the unit's other pods.
        """
        there = {rank for unit in units for rank in unit} | pod_set.taken.keys() | pod_set.failed
        missing = [rank for rank in range(pod_set.replicas) if rank not in there]
        if not missing:
            return list(units)
        owners = self.units_of_ranks(pod_set, sorted({*missing, *(rank for unit in units for rank in unit)}))
        absent = set(missing)
        open_ranks = {rank for unit in owners if absent.isdisjoint(unit) for rank in unit}
        return [unit for unit in units if open_ranks.issuperset(unit)]


def units_of(pod_sets: Sequence[PodSetView], request: TopologyRequest | None) -> Units:
    """Return the units of these pod sets of a gang, including the slices of its topology request."""
    sliced: dict[str, list[RequestKind]] = {}
    for kind in request.kinds if request is not None else ():
        if kind.slices and kind.slices[0].size > 1:
            sliced.setdefault(kind.pod_set, []).append(kind)
    return Units(frozenset([*sliced, *(pod_set.name for pod_set in pod_sets if pod_set.unit > 1)]), sliced)
