"""Failed searches for nodes, remembered until a change could make them succeed.

Most failed searches are remembered while no array of the snapshot changes. A gang of one pod class, without conditions
about other pods, devices or topology, depends only on the nodes that accept its pods. If a gang depends only on certain
nodes, its failed search is remembered as long as the capacity of these nodes stays the same.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.planner.ask import Ask
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.amounts import Amounts, Mask
from extender.planner.state.gangs import GangView
from muster.api.muster.reason import Reason

_REMEMBERED = 100
"""Number of failed searches that are remembered in addition to four per gang. Gangs may be created and deleted while
the capacity is unchanged.
"""
MANY: Final = 64
"""Number of gangs per namespace that each cycle evaluates again although they are known not to fit."""


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
        if not alike or len(self._known) > _REMEMBERED + 4 * gangs:
            self._known.clear()
        now = _amounts(session) if self._known else None
        if now is not None:
            changed = _bits(((now != self._before) | (now != self._after)).any(axis=0))
            self._known = {
                shape: each
                for shape, each in self._known.items()
                if (snapshot.version == self._version if each.nodes is None else not each.nodes & changed)
            }
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
    """Rotation of gangs that are known not to fit, for namespaces with many such gangs.

    Each cycle evaluates the namespace's first gangs in scheduling order and a part of its other gangs; the next cycle
    evaluates another part. Gangs that a cycle does not evaluate keep their last result, because no change could affect
    it.
    """

    def __init__(self) -> None:
        self._cycle = 0
        self._before: dict[str, tuple[Hashable, Unschedulable]] = {}
        """Maps a gang's UID to its shape and result in the last cycle."""
        self._now: dict[str, tuple[Hashable, Unschedulable]] = {}
        self._parts: dict[str, int] = {}
        """Maps a namespace to the number of cycles that it takes to evaluate all its gangs."""
        self._seen: Counter[str] = Counter()

    def last(self, gang: GangView, failures: Failures) -> Unschedulable | None:
        """Return the gang's last result if this cycle keeps it; None if this cycle evaluates the gang."""
        known = self._before.get(gang.uid)
        if known is None or known[1].gang is not gang or failures.get(known[0]) is None:
            return None
        namespace = gang.group.metadata.namespace
        place, parts = self._seen[namespace], self._parts.get(namespace, 1)
        self._seen[namespace] += 1
        if place < MANY // 2 or place % parts == self._cycle % parts:
            return None
        self._now[gang.uid] = known
        return known[1]

    def note(self, shape: Hashable, why: Unschedulable) -> None:
        """Record the result for a gang that does not fit."""
        self._now[why.gang.uid] = shape, why

    def end(self) -> None:
        """End the cycle: the recorded results become the results of the last cycle."""
        self._before, self._now = self._now, {}
        self._parts = {
            namespace: 1 + number // (MANY // 2) for namespace, number in self._seen.items() if number > MANY
        }
        self._seen.clear()
        self._cycle += 1


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
