"""Demand of one gang: the ranks that need a node, how many of these ranks must start together, resources, and topology.

An `Ask` is computed from a gang's view and the resource axis, and cached until the view or the axis is replaced. An
`Ask` does not depend on free capacity: all searches for the gang in a cycle use the same `Ask`. Plugins determine the
order of ranks, so `chosen` and similar methods take the session's hooks as an argument.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from itertools import chain
from typing import Protocol

import numpy as np

from extender.planner.dynamic.needs import SharedClaim
from extender.planner.framework.hooks import Hooks
from extender.planner.state.amounts import MAX_SUM, Amounts, row_along, sum_along, times
from extender.planner.state.gangs import GangView
from extender.planner.state.minimums import min_resources
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView, SubGroup
from extender.planner.topology.parts import SlotGroup, part_of
from extender.planner.topology.requests import TopologyRequest, Units, request_of, units_of
from muster.api.limits import LimitError

Ranks = Mapping[str, Sequence[int]]
"""Maps the name of a pod set to some of its ranks."""
Columns = Mapping[str, Mapping[int, int]]
"""Maps a pod set and a rank to the column of the member's node."""
Members = Mapping[str, Mapping[PodClass, int]]
"""Maps the name of a pod set to the number of its pods by pod class."""


class Along(Protocol):
    """Resource axis of a snapshot: the order in which its arrays list resources."""

    axis: dict[str, int]
    free: Amounts

    def row_of(self, cls: PodClass, /) -> Amounts:
        """Return the requests of one pod of this class as an array in the order of the axis."""


_NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """Demand of one gang."""

    gang: GangView
    axis: Mapping[str, int]
    """Maps a resource to its row in `amounts`."""
    open: Ranks
    """Maps a pod set to its ranks that need a node, in order."""
    minimum: Mapping[str, int]
    """Maps a pod set to the number of ranks that complete the gang's minimum; 1 for independent pods."""
    topology: TopologyRequest | LimitError | None
    """The gang's topology request, or the error if the request cannot be evaluated; None for most gangs."""
    units: Units
    amounts: Amounts
    """Resources that the gang's minimum needs, without claims that pods share, int64 of shape (resources,)."""
    claims: tuple[SharedClaim, ...]
    """Distinct device claims of the gang's minimum that several pods may share."""
    shape: Hashable
    """A value that is equal for gangs that fit under the same conditions, if their named claims and avoided nodes are
    equal."""

    @property
    def least(self) -> int:
        """Number of slots in the minimum."""
        return sum(self.minimum.values())

    @property
    def any_members(self) -> bool:
        """True if any members can form the minimum, because neither framework nor topology depends on ranks."""
        sets = [each for each in self.gang.pod_sets if self.open[each.name]]
        differ = len(sets) > 1 or any(each.mixed for each in sets)
        tied = self.gang.framework or self.topology is not None or self.units.united
        return differ and not tied and sum(map(len, self.open.values())) > self.least

    @property
    def missing(self) -> dict[str, int]:
        """Maps a pod set to the number of members that it lacks for its own minimum."""
        floor = self.gang.floor.min_task_member
        return {each.name: max(0, floor.get(each.name, 0) - len(each.taken)) for each in self.gang.pod_sets}

    @property
    def nodes(self) -> Mapping[str, int]:
        """Maps a pod set to the number of ranks that need nodes now.

        For independent pods, all open ranks count; for other gangs, only the ranks of the minimum count.
        """
        return {name: len(ranks) for name, ranks in self.open.items()} if self.gang.independent else self.minimum

    @property
    def request(self) -> TopologyRequest | None:
        """The topology request; None for most gangs. Raises LimitError for a request that is too large."""
        if isinstance(self.topology, LimitError):
            raise LimitError(str(self.topology))
        return self.topology

    def part(self, slots: Ranks, there: Columns | None = None, *, least: int | None = None) -> SlotGroup:
        """Return these slots as a tree of parts; one part without a request. Raises LimitError like `request`."""
        request = self.request
        if request is None:
            return SlotGroup("", slots, {}, least=least)
        return part_of(self.gang, request, slots, there, least=least)

    # -- the choice among ranks -------------------------------------------------------------------------------------

    def chosen(self, hooks: Hooks) -> dict[str, list[int]]:
        """Return the ranks of each pod set that are placed for the minimum."""
        return {
            pod_set.name: self.first(hooks, pod_set, self.open[pod_set.name], self.minimum[pod_set.name])
            for pod_set in self.gang.pod_sets
        }

    def first(self, hooks: Hooks, pod_set: PodSetView, ranks: Sequence[int], count: int) -> list[int]:
        """Return at least `count` of these ranks: whole sub-groups or slices, or else single pods in task order."""
        if pod_set.name not in self.units.united:
            return sorted(self.in_task_order(hooks, pod_set, ranks)[: max(count, 0)])
        found: list[int] = []
        for unit in self.by_unit(hooks, pod_set, ranks):
            if len(found) >= count:
                break
            found += unit
        return sorted(found)

    def in_task_order(self, hooks: Hooks, pod_set: PodSetView, ranks: Sequence[int]) -> Sequence[int]:
        """Return ranks in the plugins' task order if all have pods and none has a unit, else in the given order."""
        if pod_set.name in self.units.united or not all(rank in pod_set.waiting for rank in ranks):
            return ranks

        def compare(left: int, right: int) -> int:
            return hooks.task_order.call(pod_set.waiting[left], pod_set.waiting[right]) or left - right

        return sorted(ranks, key=cmp_to_key(compare))

    def by_unit(self, hooks: Hooks, pod_set: PodSetView, ranks: Sequence[int]) -> Iterable[list[int]]:
        """Return a pod set's ranks grouped by unit; units are in the plugins' order or else sorted by rank."""
        units = self.units.units_of_ranks(pod_set, ranks)
        if not hooks.sub_group_set_order.functions:
            return units
        groups = [SubGroup(pod_set, tuple(unit)) for unit in units]
        groups.sort(key=cmp_to_key(hooks.sub_group_set_order.call))
        return (list(group.ranks) for group in groups)

    def members(self, hooks: Hooks, wanted: Mapping[str, int]) -> Members:
        """Return the wanted members per pod set, by pod class; the hooks choose among members of different classes."""
        found = {}
        for pod_set in self.gang.pod_sets:
            count = wanted.get(pod_set.name, 0)
            alike = not pod_set.mixed and pod_set.name not in self.units.united
            ranks = range(count) if alike else self.first(hooks, pod_set, self.open[pod_set.name], count)
            found[pod_set.name] = pod_set.classes_of(ranks)
        return found


class Asks:
    """Cache of the demands of gangs, shared by consecutive cycles."""

    def __init__(self) -> None:
        self._known: dict[str, Ask] = {}

    def ask_of(self, gang: GangView, snapshot: Along, hooks: Hooks) -> Ask:
        """Return a gang's cached demand; compute it again if the gang's view or the resource axis has changed."""
        known = self._known.get(gang.key)
        if known is None or known.gang is not gang or known.axis is not snapshot.axis:
            known = self._known[gang.key] = _ask_of(gang, snapshot, hooks)
        return known

    def forget_others(self, gangs: Mapping[str, GangView]) -> None:
        """Drop the demands of gangs that are gone or have a new view, because demands keep views in memory."""
        self._known = {key: known for key, known in self._known.items() if gangs.get(key) is known.gang}


def _ask_of(gang: GangView, snapshot: Along, hooks: Hooks) -> Ask:
    topology: TopologyRequest | LimitError | None
    try:
        topology = request_of(gang)
    except LimitError as error:
        topology = LimitError(str(error))  # the exception must not keep this call's frames
    units = units_of(gang.pod_sets, topology if isinstance(topology, TopologyRequest) else None)
    ask = Ask(gang, snapshot.axis, gang.open_slots, _minimum_of(gang), topology, units, _NOTHING, (), gang.key)
    members = ask.members(hooks, ask.minimum)
    amounts = amounts_of_members(snapshot, gang, members)
    amounts.flags.writeable = False
    return replace(ask, amounts=amounts, claims=named_claims(members), shape=_shape_of(ask))


def _shape_of(ask: Ask) -> Hashable:
    pod_sets = ask.gang.pod_sets
    if any(each.mixed for each in pod_sets) or isinstance(ask.topology, LimitError):
        return ask.gang.key
    sets = tuple((each.name, each.cls.key if each.cls else b"", ask.minimum[each.name]) for each in pod_sets)
    most = tuple(map(len, ask.open.values())) if ask.any_members else ()
    return sets, most, ask.topology and ask.topology.shape


def _minimum_of(gang: GangView) -> dict[str, int]:
    wanted = {pod_set.name: 0 for pod_set in gang.pod_sets}
    slots, floor = gang.open_slots, gang.floor
    left = 1 if gang.independent else floor.min_member - gang.taken
    for pod_set in gang.pod_sets:
        missing = max(0, floor.min_task_member.get(pod_set.name, 0) - len(pod_set.taken))
        wanted[pod_set.name] = min(missing, len(slots[pod_set.name]))
        left -= wanted[pod_set.name]
    for pod_set in gang.pod_sets:
        more = max(0, min(left, len(slots[pod_set.name]) - wanted[pod_set.name]))
        wanted[pod_set.name] += more
        left -= more
    return wanted


def named_claims(members: Members) -> tuple[SharedClaim, ...]:
    """Return the distinct device claims that these members name."""
    named = (cls.needs.named for classes in members.values() for cls, count in classes.items() if count)
    return tuple(dict.fromkeys(chain.from_iterable(named)))


def amounts_of_claims(snapshot: Along, claims: Iterable[SharedClaim]) -> Amounts:
    """Return the resources that these device claims take, int64 of shape (resources,)."""
    total = np.zeros(snapshot.free.shape[0], dtype=np.int64)
    for claim in claims:
        total += row_along(snapshot.axis, len(total), dict(claim.rows))
    return total


def amounts_of_members(snapshot: Along, gang: GangView, members: Members) -> Amounts:
    """Return the members' requests without shared claims; if their pods are unknown, the PodGroup's minResources."""
    total = np.zeros(snapshot.free.shape[0], dtype=np.int64)
    for classes in members.values():
        for cls, count in classes.items():
            total = np.minimum(total + times(snapshot.row_of(cls), count), MAX_SUM)
    if any(pod_set.cls is not None for pod_set in gang.pod_sets):
        return total
    return total + sum_along(snapshot.axis, len(total), min_resources(gang))
