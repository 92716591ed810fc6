"""Topology requests of a gang, from its PodGroup, its Job's templates and its pods, as a tree of parts.

Each part is given nodes within those of the part around it (the trees of sub-groups of KAI-Scheduler):

* the gang: `networkTopology` of the PodGroup, else the annotations `muster.dev/topology…` on it;
* a pod set: annotations on its template, or on its pods where these say otherwise (the ReplicatedJobs of a JobSet are
  one pod set of the gang, and parts of it here);
* pod sets of one `topology-group`: a leader with its workers;
* a sub-group: `subGroupPolicy` with a size (partitions of a task) or with labels; slices by annotation.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from extender.planner import reasons
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from extender.planner.topology.subgroups import SlotsLeft, SubGroup, by_labels
from muster.api.limits import SUB_GROUPS, TOPOLOGY_WISHES, LimitError
from muster.api.volcano.scheduling import SubGroupPolicy
from muster.resources.topology import NOTHING, Nearness, PodTopology, Slices, of_gang, of_network

Ranks = Collection[int] | None
"""Ranks of one pod set; None: all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Slots that are filled together."""

    name: str
    """For people: empty for the gang, else `worker`, or `worker 8-15`."""
    slots: Mapping[str, Sequence[int]]
    """Pod set → ranks to be placed now."""
    members: Mapping[str, Ranks]
    """Pod set → all ranks of the part."""
    near: Nearness = NOTHING
    children: tuple["Part", ...] = ()
    """Parts with slots to fill, together all slots of the part; empty above `slices` and at the bottom."""
    slices: tuple[Slices, ...] = ()
    """Consecutive ranks that belong together, outermost first; of parts with one pod set and without children."""
    places: Mapping[int, int] | None = None
    """Rank → its place in the part, by which slices count; None: ranks are places."""
    all_slots: int = 0
    """Pods of the part, whether they must start together or not."""
    least: int | None = None
    """Slots that must be filled for the rest to be of use; None: all of them."""
    unit: bool = False
    """It is a slice: one of several alike, which are placed one after the other."""
    there: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Of the whole gang: pod set → rank → column of the node that the member has."""

    @property
    def wanted(self) -> int:
        """Slots to fill."""
        return sum(map(len, self.slots.values()))

    @property
    def needed(self) -> int:
        """Slots that must be filled."""
        return self.wanted if self.least is None else self.least

    @property
    def columns(self) -> list[int]:
        """Columns of the nodes that members have, one for each member."""
        found: list[int] = []
        for pod_set, placed in self.there.items():
            ranks = self.members.get(pod_set, ())
            found += [column for rank, column in placed.items() if ranks is None or rank in ranks]
        return found

    @property
    def regular(self) -> bool:
        """True if the slots to fill are whole slices, which can be placed in one go."""
        if not self.slices or self.least is not None or len(self.slots) != 1:
            return False
        (ranks,) = self.slots.values()
        size = self.slices[0].size
        places = [self.places[rank] for rank in ranks] if self.places is not None else ranks
        if len(ranks) % size or any(size % inner.size for inner in self.slices[1:]):
            return False
        firsts = places[::size]
        return all(first % size == 0 for first in firsts) and all(
            last == first + size - 1 for first, last in zip(firsts, places[size - 1 :: size], strict=True)
        )

    def units(self) -> Iterator["Part"]:
        """Yield the slices that have slots to fill, those with placed members first."""
        (pod_set, ranks), (outer, *inner) = next(iter(self.slots.items())), self.slices
        place = self.places.__getitem__ if self.places is not None else int
        at = None if self.places is None else {each: rank for rank, each in self.places.items()}
        units = []
        for number, group in groupby(ranks, key=lambda rank: place(rank) // outer.size):
            first, last = number * outer.size, (number + 1) * outer.size
            own: Collection[int] = range(first, last)
            if at is not None:
                own = frozenset(at[each] for each in own if each in at)
            name = f"{self.name} {first}-{last - 1}"
            slots = {pod_set: list(group)}
            parted: dict[str, Ranks] = {pod_set: own}
            units.append(
                replace(
                    self, name=name, slots=slots, members=parted, near=outer.near, slices=tuple(inner),
                    all_slots=outer.size, unit=True,
                )
            )  # fmt: skip
        yield from sorted(units, key=lambda unit: len(unit.slots[pod_set]) == outer.size)


_SILENT = PodTopology()


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Pods of one pod set with the same request."""

    pod_set: str
    said: PodTopology
    ranks: frozenset[int] | None
    """None: all ranks of the pod set."""
    slices: tuple[Slices, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """The wishes of a gang, each with its members."""

    near: Nearness
    """By networkTopology, else by annotation."""
    also: Nearness
    """By annotation beside networkTopology."""
    kinds: tuple[Kind, ...]
    sub_groups: tuple[SubGroup, ...] = ()
    """By labels."""
    shape: Hashable = None
    """Equal for gangs that ask alike."""

    @property
    def required(self) -> list[Nearness]:
        """The wishes that are required."""
        sliced = (each.near for kind in self.kinds for each in kind.slices)
        said = (kind.said.near for kind in self.kinds)
        wishes = (self.near, self.also, *said, *sliced, *(near for _, near, _ in self.sub_groups))
        return [near for near in wishes if near.required is not None]


def part_of(
    gang: GangView,
    request: Request,
    slots: Mapping[str, Sequence[int]],
    there: Mapping[str, Mapping[int, int]] | None = None,
    *,
    least: int | None = None,
) -> Part:
    """Make a tree of parts of these open slots.

    `there` has the columns of its members that have a node, by pod set and rank.
    """
    members: dict[str, Ranks] = {pod_set.name: None for pod_set in gang.pod_sets}
    everyone = sum(pod_set.replicas for pod_set in gang.pod_sets)
    root = Part("", slots, members, request.near, (), all_slots=everyone, least=least, there=there or {})
    if request.also:
        return replace(root, children=(_with_children(gang, request, replace(root, near=request.also)),))
    return _with_children(gang, request, root)


def _with_children(gang: GangView, request: Request, root: Part) -> Part:
    children = _children(gang, request, root)
    if not any(child.near or child.slices or child.children for child in children):
        return root
    alone = children[0]
    if len(children) == 1 and not (root.near and alone.near):
        return replace(alone, near=alone.near or root.near)
    return replace(root, children=children)


def request_of(gang: GangView) -> Request | None:
    """Read the gang's request, None for most gangs. Raises LimitError for one that asks for too much."""
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
    speaking = any(kind.said != _SILENT or kind.slices for kind in kinds)
    if not (near or speaking or sub_groups):
        return None
    most = max(len(spec.sub_group_policy), len(sub_groups))
    if most > SUB_GROUPS.value:
        raise LimitError(reasons.aside.too_many_sub_groups(count=most, limit=SUB_GROUPS))
    shape = near, also, tuple((kind.pod_set, kind.said, kind.ranks, kind.slices) for kind in kinds)
    return Request(near, also, tuple(kinds), sub_groups, (shape, gang.key if sub_groups or gang.taken else ""))


def _around_labels(nears: list[Nearness], kinds: list[Kind]) -> tuple[list[Nearness], list[Kind]]:
    """Return wishes and kinds of a gang with sub-groups by labels, whose pods may be of several kinds.

    What its only template requires is about the gang, so around the sub-groups. Other requirements would cross them.
    """
    asking = [kind for kind in kinds if kind.said.near.required is not None or kind.slices]
    if not asking:
        return nears, kinds
    (kind, *others), free = kinds, [near for near in nears if not near]
    if others or kind.slices or not free:
        raise LimitError(reasons.aside.crossed_labels(pod_set=asking[0].pod_set))
    around = [kind.said.near, *(near for near in nears if near), *free[1:]]
    return around, [replace(kind, said=replace(kind.said, near=NOTHING))]


def _kinds(pod_set: PodSetView, members: list[PodRecord], policy: SubGroupPolicy | None) -> list[Kind]:
    """Return the pod set, in several kinds where its pods say different things; `members` have slots of it."""
    partitions: tuple[Slices, ...] = ()
    if policy is not None and policy.network_topology and policy.sub_group_size:
        partitions = (Slices(policy.sub_group_size, of_network(policy.network_topology)),)
    otherwise = pod_set.topology or _SILENT
    own = {
        pod.slot.rank: pod.topology or _SILENT
        for pod in members
        if pod.slot is not None and (pod.topology or pod_set.topology)
    }
    said = dict.fromkeys(own.values())
    if len(own) < pod_set.replicas:
        said.setdefault(otherwise)
    if len(said) <= 1:
        alone = next(iter(said), otherwise)
        return [Kind(pod_set.name, alone, None, _layers(pod_set, partitions, alone.slices))]
    if len(said) > TOPOLOGY_WISHES.value:
        words = reasons.aside.too_many_wishes(pod_set=pod_set.name, count=len(said), limit=TOPOLOGY_WISHES)
        raise LimitError(words)
    ranks: dict[PodTopology, list[int]] = {}
    for rank in range(pod_set.replicas):
        ranks.setdefault(own.get(rank, otherwise), []).append(rank)
    return [
        Kind(pod_set.name, each, frozenset(own), _layers(pod_set, partitions, each.slices))
        for each, own in ranks.items()
    ]


def _layers(pod_set: PodSetView, partitions: tuple[Slices, ...], slices: tuple[Slices, ...]) -> tuple[Slices, ...]:
    """Return partitions and slices by annotation as layers, outermost first, as both are required."""
    found = tuple(sorted((*partitions, *slices), key=lambda each: -each.size))
    crossed = [(outer.size, inner.size) for outer, inner in pairwise(found) if outer.size % inner.size]
    for outer, inner in crossed if partitions and slices else ():
        raise LimitError(reasons.aside.crossed_slices(pod_set=pod_set.name, outer=outer, inner=inner))
    return found if partitions else slices


def _children(gang: GangView, request: Request, root: Part) -> tuple[Part, ...]:
    """Return the parts of the gang: sub-groups by labels, then kinds of pods, those of one group in one part."""
    left = SlotsLeft(root.slots)
    replicas = {pod_set.name: pod_set.replicas for pod_set in gang.pod_sets}
    parts: list[Part] = []
    for name, near, members in request.sub_groups:
        own = {each: ranks for each, inside in members.items() if (ranks := left.take(each, inside))}
        if own:
            whole = sum(map(len, members.values()))
            part = replace(root, name=name, slots=own, members=members, near=near, all_slots=whole)
            inside = _kind_parts(request, part, SlotsLeft(own), replicas)
            speaking = any(each.near or each.slices or each.children for each in inside)
            parts.append(replace(part, children=inside) if speaking else part)
    return (*parts, *_kind_parts(request, root, left, replicas))


def _kind_parts(request: Request, root: Part, left: SlotsLeft, replicas: Mapping[str, int]) -> tuple[Part, ...]:
    parts: list[Part] = []
    groups: dict[str, list[Part]] = {}
    kinds: dict[str, list[Kind]] = {}
    for kind in request.kinds:
        kinds.setdefault(kind.said.group, []).append(kind)
        ranks = left.take(kind.pod_set, kind.ranks)
        if ranks:
            part = _kind_part(root, kind, ranks, replicas[kind.pod_set])
            (groups.setdefault(kind.said.group, []) if kind.said.group else parts).append(part)
    return (*parts, *(_group_part(root, name, kinds[name], own) for name, own in groups.items()))


def _kind_part(root: Part, kind: Kind, ranks: list[int], replicas: int) -> Part:
    places = None if kind.ranks is None else {rank: place for place, rank in enumerate(sorted(kind.ranks))}
    members: dict[str, Ranks] = {kind.pod_set: kind.ranks}
    return replace(
        root,
        name=kind.said.kind or kind.pod_set,
        slots={kind.pod_set: ranks},
        members=members,
        near=NOTHING if kind.said.group else kind.said.near,
        slices=tuple(each for each in kind.slices if each.size > 1),
        places=places,
        all_slots=replicas if kind.ranks is None else len(kind.ranks),
    )


def _group_part(root: Part, name: str, kinds: list[Kind], children: list[Part]) -> Part:
    """Return the part of a group; each thing that one of its kinds asks for is about all of them."""
    members: dict[str, Ranks] = {}
    for kind in kinds:
        known: Ranks = members.get(kind.pod_set, frozenset())
        members[kind.pod_set] = None if kind.ranks is None or known is None else {*known, *kind.ranks}
    slots: dict[str, list[int]] = {}
    for child in children:
        for pod_set, ranks in child.slots.items():
            slots.setdefault(pod_set, []).extend(ranks)
    everyone = sum(child.all_slots for child in children)
    nears = list(dict.fromkeys(kind.said.near for kind in kinds if kind.said.near)) or [NOTHING]
    part = replace(
        root, name=name, slots=slots, members=members, near=nears[-1], children=tuple(children), all_slots=everyone
    )
    for near in reversed(nears[:-1]):
        part = replace(part, near=near, children=(part,))
    return part
