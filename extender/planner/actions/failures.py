"""Failed searches for nodes, remembered until a change could make them succeed.

Most failed searches are remembered while no array of the snapshot changes. A gang of one pod class, without conditions
about other pods, devices or topology, depends only on the nodes that accept its pods. If a gang depends only on certain
nodes, its failed search is remembered as long as the capacity of these nodes stays the same.
"""

from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from extender.planner.ask import Ask
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.amounts import Amounts, Mask
from extender.planner.state.gangs import GangView
from extender.planner.state.podset import PodSetView
from muster.api.muster.reason import Reason

_REMEMBERED = 100
"""Number of failed searches that are remembered in addition to four per gang. Gangs may be created and deleted while
the capacity is unchanged.
"""
MANY: Final = 16
"""Number of gangs per queue and namespace that each cycle evaluates again although they are known not to fit."""
ORDER_S: Final = 1.0
"""Time in seconds for which gangs that are known not to fit keep their scheduling order."""


@dataclass(frozen=True, slots=True)
class SearchFailure:
    """A search that found no nodes for a gang, with the reason."""

    lacks: Shortage
    why: Reason
    """The message about the missing resources, and about reservations that withhold suitable nodes from the gang."""
    nodes: int | None = None
    """Bit set of the node columns on which the failure depends; None if the failure also depends on other
    conditions."""


class Failures:
    """The failed searches of one action, kept from cycle to cycle and keyed by the shape of the gang."""

    def __init__(self) -> None:
        self._known: dict[Hashable, SearchFailure] = {}
        self._version = self._generation = -1
        self._plugins: tuple[object, ...] = ()
        self._offered: Amounts = np.zeros((0, 0), dtype=np.int64)
        self._before: Amounts | None = None
        """Free capacity at the first failed search of the last cycle, or at the cycle's beginning; None before the
        first failed search."""
        self._after: Amounts | None = None
        """Free capacity at the end of the last cycle. The last cycle's placements are possibly not written yet."""

        self.forgot = False
        """True if this cycle has forgotten failed searches."""

    def get(self, shape: Hashable) -> SearchFailure | None:
        """Return the remembered failed search for a shape of gangs, or None."""
        return self._known.get(shape)

    def begin(self, session: Session, gangs: int) -> None:
        """Begin a cycle with this number of waiting gangs: forget failed searches that recent changes may affect."""
        snapshot = session.snapshot
        alike = (
            self._after is not None  # the last cycle has ended
            and snapshot.generation == self._generation
            and session.plugins == self._plugins
            and np.array_equal(snapshot.allocatable, self._offered)
        )
        before = len(self._known)
        if not alike or before > _REMEMBERED + 4 * gangs:
            self._known.clear()
        now = _amounts(session) if self._known else None
        if now is not None:
            changed = _bits(((now != self._before) | (now != self._after)).any(axis=0))
            newer = snapshot.version != self._version
            affected = [
                shape for shape, each in self._known.items() if (newer if each.nodes is None else each.nodes & changed)
            ]
            for shape in affected:
                del self._known[shape]
        self.forgot = len(self._known) < before
        self._before, self._after = now, None
        self._version, self._generation, self._plugins = snapshot.version, snapshot.generation, session.plugins
        self._offered = snapshot.allocatable

    def remember(self, session: Session, shape: Hashable, failure: SearchFailure) -> None:
        """Remember a failed search of this cycle."""
        if self._before is None:
            self._before = _amounts(session)
        self._known[shape] = failure

    def end(self, session: Session) -> None:
        """End the cycle: store the free capacity for the comparison with the next cycle's."""
        self._after = _amounts(session) if self._known else None


class Rotation:
    """Rotation of gangs that are known not to fit, for queues and namespaces with many such gangs.

    Each cycle evaluates the first of these gangs in scheduling order and a part of the others; the next cycle evaluates
    another part. The gangs that a cycle does not evaluate rest: they keep their last result, because no change could
    affect it, and the cycle does not sort them. Their order is renewed every `ORDER_S`, because a plugin may order
    gangs by time. A gang rests only once it has a place in this order.
    """

    def __init__(self) -> None:
        self._cycle = 0
        self._known: dict[str, tuple[Hashable, Unschedulable]] = {}
        """Maps a gang's UID to its shape and last result."""
        self._order: dict[str, int] = {}
        """Maps a gang's UID to its place in the scheduling order, as of `_ordered_at`."""
        self._ordered_at = -inf
        self._groups: dict[tuple[str, str], list[tuple[int, str]]] = {}
        """Maps a queue and a namespace to the places and UIDs of the gangs that are known not to fit, in order."""
        self._views: frozenset[int] | None = None
        """Ids of the views of the gangs in `_groups`; None if a group has changed."""
        self._awake: list[GangView] = []
        self._noted: set[str] = set()
        """UIDs of the gangs that this cycle has evaluated with the result that they do not fit."""
        self._resting: dict[str, list[tuple[int, str]]] = {}
        """Maps a queue to the places and UIDs of its gangs that rest in this cycle and have no decision yet."""

    def awake(self, session: Session, gangs: list[GangView], failures: Failures) -> list[GangView]:
        """Return the gangs that this cycle evaluates; all others rest."""
        self._cycle += 1
        self._noted, self._resting, self._awake = set(), {}, gangs
        if len(self._known) <= MANY:
            self._views = None
            return gangs
        late = not 0 <= session.now - self._ordered_at < ORDER_S
        if late:
            self._order = {gang.uid: place for place, gang in enumerate(session.ordered_gangs(gangs))}
            self._ordered_at = session.now
        if late or failures.forgot or self._views is None or not self._views <= set(map(id, gangs)):
            self._group(gangs, failures)
        resting = set[str]()
        for (queue, _), group in self._groups.items():
            parts, skip = 1 + len(group) // (MANY // 2), self._cycle
            rest = [each for place, each in enumerate(group) if place >= MANY // 2 and (place - skip) % parts]
            if len(group) > MANY:
                self._resting[queue] = sorted(self._resting.get(queue, []) + rest)
                resting.update(uid for _, uid in rest)
        self._awake = [gang for gang in gangs if gang.uid not in resting]
        return self._awake

    def _group(self, gangs: list[GangView], failures: Failures) -> None:
        """Group the gangs that are still known not to fit, and forget all others."""
        before, self._known, self._groups, views = self._known, {}, {}, set()
        for gang in gangs:
            known = before.get(gang.uid)
            if known is None or known[1].gang is not gang or failures.get(known[0]) is None:
                continue
            self._known[gang.uid] = known
            if gang.uid in self._order:
                group = self._groups.setdefault((gang.queue, gang.group.metadata.namespace), [])
                group.append((self._order[gang.uid], gang.uid))
                views.add(id(gang))
        for group in self._groups.values():
            group.sort()
        self._views = frozenset(views)

    def ahead_of(self, gang: GangView) -> list[Unschedulable]:
        """Return, once per cycle, the results of the resting gangs that come before this gang in its queue."""
        resting = self._resting.get(gang.queue)
        if not resting:
            return []
        number = bisect_left(resting, (self._order.get(gang.uid, -1), ""))
        found, self._resting[gang.queue] = resting[:number], resting[number:]
        return [self._known[uid][1] for _, uid in found]

    def left(self) -> list[Unschedulable]:
        """Return the results of the resting gangs that come after all other gangs of their queue."""
        return [self._known[uid][1] for resting in self._resting.values() for _, uid in resting]

    def note(self, shape: Hashable, why: Unschedulable) -> None:
        """Record the result for a gang that does not fit."""
        self._known[why.gang.uid] = shape, why
        self._noted.add(why.gang.uid)

    def end(self) -> None:
        """End the cycle: forget the evaluated gangs that got nodes or another result."""
        for gang in self._awake:
            if gang.uid not in self._noted and self._known.pop(gang.uid, None) is not None:
                self._views = None


def shape_of(session: Session, ask: Ask) -> Hashable:
    """Return a value that is equal for gangs that fit, or fail to fit, under the same conditions.

    Raises LimitError like `Ask.request`.
    """
    gang, avoided = ask.gang, session.avoided.get(ask.gang.key)
    if session.asks_by_gang:
        return gang.key
    if ask.request is None and not ask.claims and not avoided:
        return ask.shape
    claims = tuple(_most(session, each, ask.minimum[each.name]) for each in gang.pod_sets)
    return ask.shape, claims, frozenset(avoided or ())


def _most(session: Session, pod_set: PodSetView, wanted: int) -> int:
    """Return how many of the wanted pods may use the ResourceClaims that the pod set names."""
    cls = pod_set.cls
    return min(session.claims.hold(cls), wanted) if cls is not None and cls.needs.named else wanted


def nodes_of(session: Session, ask: Ask) -> int | None:
    """Return the bit set of the nodes that determine whether the gang fits; None if other conditions matter, too."""
    gang, reserved = ask.gang, session.reserved
    if ask.topology is not None or ask.any_members or session.asks_by_gang or gang.key in session.avoided:
        return None
    classes = {*gang.all_classes}
    cls = classes.pop()
    if classes or cls is None or cls.gpu or cls.needs or session.hooks.neighbour_predicate.call(cls) is not None:
        return None
    accepting = session.node_codes(cls) == 0
    if reserved is not None and accepting[reserved.columns].any():  # message names the reservation
        return None
    return _bits(accepting)


def _amounts(session: Session) -> Amounts:
    """Return each node's free capacity and its number of unused GPUs, int64 of shape (resources + 1, nodes)."""
    snapshot = session.snapshot
    return np.vstack([snapshot.free, snapshot.devices.unused(snapshot.free, snapshot.axis)])


def _bits(mask: Mask) -> int:
    return int.from_bytes(np.packbits(mask).tobytes())
