"""Memory of failed searches for victims, so that useless repeated searches do not delay other gangs.

A failed search is repeated only after a relevant change, or when the next period of `RETRY_S` begins. A change is
relevant if a node that the pods may use has gained capacity or possible victims. A change to a queue or to a disruption
budget is relevant to all searches.

The search for each queue begins with its first waiting gang. If more gangs wait than one cycle can search for, the user
whose last failed search is oldest comes first. The gangs of one user, and the queues, are ordered in the same way. At
most `MOST_REMEMBERED` failed searches are remembered; the oldest failed searches are dropped.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from extender.planner.actions.makeroom import leaving_pods
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Key = tuple[str, str, Hashable]
"""Key of a search: the gang's queue and user, and its priority and shape."""
RETRY_S = 10.0
"""Seconds after which a failed search for victims is repeated: minimum runtimes end, shares change with time."""
MOST_REMEMBERED = 4096
"""Maximum number of failed searches, of users and of queues that are remembered."""


@dataclass(slots=True)
class VictimSearches:
    """Failed searches of one action, kept from cycle to cycle."""

    _number: int = 0
    """Number of the last cycle in which a search failed; cycles without a failure are not counted."""
    _counted: bool = False
    """True if a search has already failed in the current cycle, so that `_number` is the number of this cycle."""
    _crowded: bool = False
    """True if more queues have waiting gangs than one cycle can search for."""
    _queues: dict[str, int] = field(default_factory=dict)
    """Maps a queue to the number of the cycle with its last failed search."""
    _users: dict[tuple[str, str], int] = field(default_factory=dict)
    """Maps a queue and a user to the number of the cycle in which a search for this user last failed."""
    _searches: dict[Key, tuple[int, int]] = field(default_factory=dict)
    """Maps a search key to the cycle and the retry period in which its search last failed."""
    _changes: "_Changes | None" = None
    """The changes to nodes since the remembered searches failed; None while no failed search is remembered."""

    def begin(self, session: Session, running: Sequence[GangView]) -> None:
        """Begin a cycle with the given running gangs, and record the changes since the last cycle."""
        self._counted = False
        newest = next(reversed(self._searches.values()), None)
        if newest is None or newest[1] != _period(session):
            self._changes = None  # all searches will be repeated
        if self._changes is not None:
            self._changes.note(session, running, self._number + 1)

    def in_turn(
        self, waiting: Sequence[Unschedulable], key: Callable[[GangView], Key] | None, most: int
    ) -> list[Unschedulable]:
        """Return gangs in search order, in at most `most` queues; without `key`, each queue keeps its order."""
        by_queue: dict[str, list[Unschedulable]] = {}
        for why in waiting:
            by_queue.setdefault(why.gang.queue, []).append(why)
        for queue, gangs in by_queue.items():
            if key is not None and queue in self._queues:
                gangs[1:] = sorted(gangs[1:], key=lambda why: self._last(key(why.gang)))
        places = {queue: iter(gangs) for queue, gangs in by_queue.items()}
        ordered = [next(places[why.gang.queue]) for why in waiting]
        self._crowded = len(by_queue) > most
        if self._crowded:
            ordered.sort(key=lambda why: self._queues.get(why.gang.queue, 0))
        return ordered

    def _last(self, key: Key) -> tuple[int, int]:
        return self._users.get(key[:2], 0), self._searches.get(key, (0, 0))[0]

    def hopeless(self, session: Session, gang: GangView, key: Key, *, anywhere: bool) -> bool:
        """Return True if the last search with this key failed, and nothing relevant has changed since.

        With `anywhere`, a change on any node counts as relevant, because the result depends on shares or limits of
        queues.
        """
        number, period = self._searches.get(key, (0, 0))
        if not number or self._changes is None or period != _period(session):
            return False
        return self._changes.last(session, None if anywhere else gang) <= number

    def failed(self, session: Session, running: Sequence[GangView], key: Key) -> None:
        """Record that a search for victims failed in this cycle."""
        number = self._remembered_count()
        if self._changes is None:
            self._changes = _Changes(session, running, number)
        _put(self._searches, key, (number, _period(session)))
        _put(self._users, key[:2], number)
        _put(self._queues, key[0], number)

    def passed(self, queue: str) -> None:
        """Record a search for victims for a queue, so that other queues come first in the next cycle."""
        if self._crowded:
            _put(self._queues, queue, self._remembered_count())

    def _remembered_count(self) -> int:
        self._number += not self._counted
        self._counted = True
        return self._number


class _Changes:
    """For each node, the last cycle in which the node gained capacity or possible victims."""

    def __init__(self, session: Session, running: Sequence[GangView], number: int) -> None:
        self._all = number
        """Cycle of the last change that is relevant to every search."""
        self._gained: Amounts = np.zeros(session.snapshot.free.shape[1], dtype=np.int64)
        self._of_class: dict[bytes, int] = {}
        """Maps a pod class to the last cycle with a change on nodes that accept it, computed on demand."""
        self._remember(session, running)

    def _remember(self, session: Session, running: Sequence[GangView]) -> None:
        snapshot = session.snapshot
        self._axis, self._free, self._changed = snapshot.axis, snapshot.free.copy(), snapshot.changed
        self._leaving = frozenset(leaving_pods(session))
        self._running = {gang.uid: gang for gang in running}
        self._rules = _rules_of(session)

    def note(self, session: Session, running: Sequence[GangView], number: int) -> None:
        """Record the changes since the last cycle."""
        snapshot = session.snapshot
        self._of_class.clear()
        alike = snapshot.axis == self._axis and snapshot.free.shape == self._free.shape
        if not alike or _rules_of(session) != self._rules:
            self._all = number
            self._gained = np.zeros(snapshot.free.shape[1], dtype=np.int64)
        else:
            gained = (snapshot.free > self._free).any(axis=0) | (snapshot.changed != self._changed)
            new = [pod for uid, pod in leaving_pods(session).items() if uid not in self._leaving]
            for gang in running:
                before = self._running.get(gang.uid)
                if before is not gang and (before is None or _victim(before) != _victim(gang)):
                    new += gang.pods
            gained[snapshot.columns_of(pod.node for pod in new)] = True
            self._gained[gained] = number
        self._remember(session, running)

    def last(self, session: Session, gang: GangView | None) -> int:
        """Return the cycle of the last change on nodes that the gang's pods may use; if `gang` is None, on any node."""
        if gang is None:
            return max(self._all, int(self._gained.max(initial=0)))
        found = self._all
        for cls in gang.all_classes:
            if cls is not None:
                if cls.key not in self._of_class:
                    usable = session.node_codes(cls) == 0
                    self._of_class[cls.key] = int(self._gained[usable].max(initial=0))
                found = max(found, self._of_class[cls.key])
        return found


def _victim(gang: GangView) -> tuple[Hashable, ...]:
    """Return the properties of a gang that determine whether it may be a victim."""
    return gang.queue, gang.priority, gang.taken, gang.active, gang.preemptable


def _rules_of(session: Session) -> tuple[object, object]:
    """Return the settings of queues and disruption budgets that affect searches for victims.

    The status of a queue is left out, because it is written every few seconds and has no effect on searches. A
    disruption budget's status is included, because it contains the allowed disruptions.
    """
    snapshot = session.snapshot
    queues = {name: (queue.spec, queue.metadata.annotations) for name, queue in snapshot.queues.items()}
    return queues, {each.metadata.uid: each.metadata.resource_version for each in snapshot.disruption_budgets}


def _period(session: Session) -> int:
    return int(session.now // RETRY_S)


def _put(memory: dict[K, V], key: K, value: V) -> None:
    """Add a value as the newest entry, and drop the oldest entry if there are more than `MOST_REMEMBERED`."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > MOST_REMEMBERED:
        del memory[next(iter(memory))]
