"""Search for victims that free enough resources, in one domain if required; the victims are verified later.

For each pod class, a gang's open slots are compared with the capacity that is free without the victims, ignoring rules
between pods. The smallest sufficient number of evictable units, counted from the first, is found by doubling and
halving. Unnecessary units are then removed by halves, the most expensive units first.

For gangs that require one domain, domains are searched one at a time, the domain with the smallest shortage first (as
in Volcano's gangpreempt). The cheapest victims of the whole cluster would rarely be in the same domain.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from extender.planner.framework.answers import EVERYWHERE
from extender.planner.framework.freecapacity import FreedDevices
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts, Mask
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.victims.units import EvictableUnit

DOMAINS = 8
"""Maximum number of domains that are searched for one gang."""
MOST_CHECKED = 256
"""Maximum number of domains whose free capacity is compared."""


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """The demand for nodes of one pod class: the number of pods, and the nodes that accept such pods."""

    cls: PodClass
    pods: int
    usable: Mask
    """Nodes that accept pods of this class, apart from capacity and other pods; bool of shape (nodes,)."""


def needs_of(session: Session, gang: GangView, slots: dict[str, list[int]]) -> list[Need] | None:
    """Return the demand of these ranks, by pod class; None if the pods of a pod set are unknown."""
    pods: dict[bytes, tuple[PodClass, int]] = {}
    for pod_set in gang.pod_sets:
        for rank in slots.get(pod_set.name, ()):
            cls = pod_set.class_of(rank)
            if cls is None:
                return None
            pods[cls.key] = cls, pods.get(cls.key, (cls, 0))[1] + 1
    avoided = session.snapshot.columns_of(session.avoided.get(gang.key, ()))
    needs = []
    for cls, count in pods.values():
        usable: Mask = session.node_codes(cls) == 0
        usable &= session.room(cls, session.snapshot.allocatable) > 0
        usable[avoided] = False
        needs.append(Need(cls, count, usable))
    return needs


def helpful(units: list[EvictableUnit], needs: list[Need]) -> list[EvictableUnit]:
    """Return one gang's units that free capacity on usable nodes; if its last unit frees any, return all units."""
    useful = [any(bool(need.usable[unit.columns].any()) for need in needs) for unit in units]
    if units and units[-1].rest and useful[-1]:
        return units
    return [unit for unit, helps in zip(units, useful, strict=True) if helps and not unit.rest]


class VictimCapacity:
    """The free capacity of one session with and without evictable units, which are in the order of their cost."""

    def __init__(self, session: Session, needs: list[Need], units: list[EvictableUnit]) -> None:
        self._session = session
        self._needs = needs
        self.units = units
        self._free = session.usable()
        ends = np.cumsum([len(unit.columns) for unit in units], dtype=np.int64)
        self._bounds = np.concatenate([np.zeros(1, dtype=np.int64), ends])
        resources = self._free.shape[0]
        self._columns = np.concatenate([np.zeros(0, np.int64), *(unit.columns for unit in units)])
        self._rows = np.concatenate([np.zeros((0, resources), np.int64), *(unit.rows for unit in units)])
        self._claims = session.claims.freed_by([unit.pods for unit in units])

    def enough(self, number: int) -> bool:
        """Return True if the gang fits without the first `number` units."""
        free = self._freed(number)
        return all(int(np.minimum(self._room(need, free, None), need.pods).sum()) >= need.pods for need in self._needs)

    def fewest(self) -> int | None:
        """Return the smallest sufficient number of units, counted from the first; None if no number is sufficient."""
        most = len(self.units)
        if not self.enough(most):
            return None
        high = 1
        while high < most and not self.enough(high):  # small numbers first, because few units usually suffice
            high = 2 * high
        return bisect_left(range(min(high, most)), 1, lo=high // 2, key=self.enough)

    def needed(self, number: int) -> list[int]:
        """Return which of the first `number` units are necessary, leaving out expensive ones first."""
        free = self._freed(number)
        rooms = [self._room(need, free, None) for need in self._needs]
        totals = [int(np.minimum(room, need.pods).sum()) for room, need in zip(rooms, self._needs, strict=True)]
        claims = [claim for claim in self._claims if claim.users[-1] < number]
        kept: list[int] = []
        rests: set[str] = set()
        blocks = [(0, number)]
        while blocks:  # from the last block to the first
            low, high = blocks.pop()
            if low == high:
                continue
            bound = bool(rests) and any(unit.gang.key in rests for unit in self.units[low:high] if not unit.rest)
            if not bound and self._without(free, totals, claims, low, high):
                continue
            if high - low == 1:
                kept.append(low)
                if self.units[low].rest:
                    rests.add(self.units[low].gang.key)
                continue
            middle = (low + high) // 2
            blocks += [(low, middle), (middle, high)]
        return kept[::-1]

    def _without(self, free: Amounts, totals: list[int], claims: list[FreedDevices], low: int, high: int) -> bool:
        """Keep these units on their nodes if the gang still fits; if so, update the first three arguments."""
        first, last = self._bounds[low], self._bounds[high]
        used = [claim for claim in claims if any(low <= user < high for user in claim.users)]
        there = np.concatenate([self._columns[first:last], np.array([claim.column for claim in used], np.int64)])
        columns, positions = np.unique(there, return_inverse=True)
        less = np.zeros((len(columns), free.shape[0]), dtype=np.int64)
        np.add.at(less, positions, np.concatenate([self._rows[first:last], *(claim.row[None, :] for claim in used)]))
        before = free[:, columns]
        after = before - less.T
        left = []
        for need, total in zip(self._needs, totals, strict=True):
            lost = np.minimum(self._room(need, before, columns), need.pods).sum()
            kept = np.minimum(self._room(need, after, columns), need.pods).sum()
            left.append(total - int(lost) + int(kept))
        if any(total < need.pods for total, need in zip(left, self._needs, strict=True)):
            return False
        free[:, columns] = after
        totals[:] = left
        claims[:] = [claim for claim in claims if claim not in used]
        return True

    def _freed(self, number: int) -> Amounts:
        """Return a copy of the free capacity without the first `number` units, int64 of shape (resources, nodes)."""
        free = self._free.copy()
        last = self._bounds[number]
        np.add.at(free.T, self._columns[:last], self._rows[:last])
        for claim in self._claims:
            if claim.users[-1] < number:
                free[:, claim.column] += claim.row
        return free

    def _room(self, need: Need, free: Amounts, columns: Amounts | None) -> Amounts:
        usable = need.usable if columns is None else need.usable[columns]
        return np.where(usable, self._session.room(need.cls, free, columns=columns), 0)


def domains_of(
    session: Session, gang: GangView, needs: list[Need], units: list[EvictableUnit]
) -> Iterator[Mask | None]:
    """Yield the mask of each domain to search, bool of shape (nodes,); a single None means all nodes."""
    request = session.ask(gang).request
    if request is None or not request.required:
        yield None
        return
    room = [np.where(need.usable, session.room(need.cls), 0) for need in needs]
    found: list[tuple[int, Mask]] = []
    for inside in _emptied(session, gang, units):
        if inside is None:
            yield None
            return
        short = sum(max(0, need.pods - int(own[inside].sum())) for need, own in zip(needs, room, strict=True))
        found.append((short, inside))
    for _, inside in sorted(found, key=lambda each: each[0])[:DOMAINS]:
        yield inside


def _emptied(session: Session, gang: GangView, units: list[EvictableUnit]) -> list[Mask | None]:
    """Return the masks of the domains that plugins would propose if all units were evicted; None means all nodes."""
    snapshot = session.snapshot
    ask = session.ask(gang)
    part = ask.part({name: ask.open[name][:count] for name, count in ask.minimum.items()})
    before, snapshot.free = snapshot.free, snapshot.free.copy()
    devices, snapshot.devices = snapshot.devices, snapshot.devices.copy()
    for unit in units:
        np.add.at(snapshot.free.T, unit.columns, unit.rows)
        for pod in unit.pods:
            if pod.cls.gpu is not None and pod.node in snapshot.index:
                snapshot.devices.add_share(pod.cls.gpu, snapshot.index[pod.node], pod.devices, -1)
    for claim in session.claims.freed_by([unit.pods for unit in units]):
        snapshot.free[:, claim.column] += claim.row
    try:
        found: list[Mask | None] = []
        for nodes in islice(session.hooks.subset_nodes.call(EVERYWHERE, gang, part), MOST_CHECKED):
            if nodes.columns is None:
                return [None]
            inside = np.zeros(snapshot.free.shape[1], dtype=np.bool_)
            inside[nodes.columns] = True
            found.append(inside)
        return found
    finally:
        snapshot.free, snapshot.devices = before, devices
