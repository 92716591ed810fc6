"""Failed searches for nodes, remembered until a change concerns them.

Most failures are remembered while no array of the snapshot changes. A gang of one pod class, without conditions about
other pods, devices or topology, depends only on the nodes that accept its pods. Its failure is therefore remembered
while the capacity of these nodes stays equal, and a binding elsewhere causes no new search.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from extender.planner.ask import Ask
from extender.planner.framework.session import Session
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.amounts import Amounts, Mask
from muster.api.muster.reason import Reason

_REMEMBERED = 100
"""Number of remembered failures in addition to four per gang: gangs may be created and deleted while capacity is
unchanged.
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed search."""

    lacks: Shortage
    why: Reason
    """The message with the reservations in the gang's way."""
    nodes: int | None = None
    """Bit set of the only columns on which the failure depends; None if it depends on more."""


class Failures:
    """The failures of one action by the shape of the gang, from cycle to cycle."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Failure] = {}
        self._version = self._generation = -1
        self._plugins: tuple[object, ...] = ()
        self._offered: Amounts = np.zeros((0, 0), dtype=np.int64)
        self._before: Amounts | None = None
        """Amounts at the last cycle's first failure, or at its beginning; None as long as nothing has failed."""
        self._after: Amounts | None = None
        """Amounts at the end of the last cycle, whose placements may not have been carried out."""

    def __contains__(self, shape: Hashable) -> bool:
        return shape in self._known

    def __getitem__(self, shape: Hashable) -> Failure:
        return self._known[shape]

    def begin(self, session: Session, gangs: int) -> None:
        """Begin a cycle with this number of waiting gangs: forget the failures that a change concerns."""
        snapshot = session.snapshot
        alike = (
            snapshot.generation == self._generation
            and session.plugins == self._plugins
            and np.array_equal(snapshot.allocatable, self._offered)
        )
        if not alike or len(self._known) > _REMEMBERED + 4 * gangs:
            self._known.clear()
        now = _amounts(session) if self._known else None
        if now is not None and self._before is not None and self._after is not None:
            changed = _bits(((now != self._before) | (now != self._after)).any(axis=0))
            self._known = {
                shape: each
                for shape, each in self._known.items()
                if (snapshot.version == self._version if each.nodes is None else not each.nodes & changed)
            }
        self._before, self._after = now, None
        self._version, self._generation, self._plugins = snapshot.version, snapshot.generation, session.plugins
        self._offered = snapshot.allocatable

    def remember(self, session: Session, shape: Hashable, failure: Failure) -> None:
        """Remember a failed search of this cycle."""
        if self._before is None:
            self._before = _amounts(session)
        self._known[shape] = failure

    def end(self, session: Session) -> None:
        """End the cycle."""
        self._after = _amounts(session) if self._known else None


def nodes_of(session: Session, ask: Ask) -> int | None:
    """Return the bit set of the only columns that decide if the gang fits; None if its failure depends on more."""
    gang, reserved = ask.gang, session.reserved
    if ask.topology is not None or ask.any_members or session.asks_by_gang or gang.key in session.avoided:
        return None
    classes = {*gang.all_classes}
    cls = classes.pop()
    if classes or cls is None or cls.gpu or cls.needs or session.hooks.neighbour_predicate.call(cls) is not None:
        return None
    accepting = session.node_codes(cls) == 0
    if reserved is not None and accepting[reserved.columns].any():  # its message names the reservation's gang and time
        return None
    return _bits(accepting)


def _amounts(session: Session) -> Amounts:
    """Return the free capacity and unused GPUs of each node, int64 of shape (resources + 1, nodes)."""
    snapshot = session.snapshot
    return np.vstack([snapshot.free, snapshot.devices.unused(snapshot.free, snapshot.axis)])


def _bits(mask: Mask) -> int:
    return int.from_bytes(np.packbits(mask).tobytes())
