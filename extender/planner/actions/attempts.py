"""Memory of failed searches for victims, which prevents useless repetitions that would delay other gangs.

A failed search is repeated only after a change that may concern it, or when the next `RETRY_S` begin. A change concerns
it if a node that its pods may use has gained capacity or possible victims. Changes of queues and of disruption budgets
concern all.

Each queue begins with its first waiting gang. If more gangs wait than a cycle can search for, the user whose last
failed search is longest ago comes first. That user's gangs, and the queues, are chosen in the same way. The memory is
bounded by `MOST_REMEMBERED`; the oldest entry is dropped.
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
"""Queue, user, and the priority and shape of a gang."""
RETRY_S = 10.0
"""Length of the periods in each of which a search is repeated in any case: minimum run times end, and shares move."""
MOST_REMEMBERED = 4096
"""Maximum number of remembered entries of each kind: failed searches, users and queues."""


@dataclass(slots=True)
class VictimSearches:
    """Failed searches of one action, from cycle to cycle."""

    _number: int = 0
    """Number of the last cycle with a failed search; others are not counted."""
    _counted: bool = False
    """The cycle that runs has that number."""
    _crowded: bool = False
    """True if more queues wait than one cycle can search for."""
    _queues: dict[str, int] = field(default_factory=dict)
    """Queue → number of the cycle of its last failed search."""
    _users: dict[tuple[str, str], int] = field(default_factory=dict)
    """Queue and user → the same."""
    _searches: dict[Key, tuple[int, int]] = field(default_factory=dict)
    """Number of the cycle, and period, of the last failed search."""
    _changes: "_Changes | None" = None
    """None while no failed search is remembered."""

    def begin(self, session: Session, running: Sequence[GangView]) -> None:
        """Begin a cycle in which these gangs run: note what has changed since the last one."""
        self._counted = False
        newest = next(reversed(self._searches.values()), None)
        if newest is None or newest[1] != _period(session):
            self._changes = None  # all will be repeated
        if self._changes is not None:
            self._changes.note(session, running, self._number + 1)

    def in_turn(
        self, waiting: Sequence[Unschedulable], key: Callable[[GangView], Key] | None, most: int
    ) -> list[Unschedulable]:
        """Return gangs in the order of their searches, in a cycle that searches for at most `most` queues.

        Without a `key` the gangs of a queue stay in their order.
        """
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
        """Return True if the last search failed, and nothing that concerns it has changed since.

        `anywhere`: a change concerns it on any node, as it is about shares or limits of queues.
        """
        number, period = self._searches.get(key, (0, 0))
        if not number or self._changes is None or period != _period(session):
            return False
        return self._changes.last(session, None if anywhere else gang) <= number

    def failed(self, session: Session, running: Sequence[GangView], key: Key) -> None:
        """Remember a failed search of this cycle."""
        number = self._remembered_count()
        if self._changes is None:
            self._changes = _Changes(session, running, number)
        _put(self._searches, key, (number, _period(session)))
        _put(self._users, key[:2], number)
        _put(self._queues, key[0], number)

    def passed(self, queue: str) -> None:
        """Record that a queue was searched for, if other queues still wait."""
        if self._crowded:
            _put(self._queues, queue, self._remembered_count())

    def _remembered_count(self) -> int:
        self._number += not self._counted
        self._counted = True
        return self._number


class _Changes:
    """The cycle in which each node last gained something that a search may find."""

    def __init__(self, session: Session, running: Sequence[GangView], number: int) -> None:
        self._all = number
        """Cycle of the last change that concerns every search."""
        self._gained: Amounts = np.zeros(session.snapshot.free.shape[1], dtype=np.int64)
        self._of_class: dict[bytes, int] = {}
        """Pod class → last change on nodes that accept it; computed on demand in each cycle."""
        self._remember(session, running)

    def _remember(self, session: Session, running: Sequence[GangView]) -> None:
        snapshot = session.snapshot
        self._axis, self._free, self._changed = snapshot.axis, snapshot.free.copy(), snapshot.changed
        self._leaving = frozenset(leaving_pods(session))
        self._running = {gang.uid: gang for gang in running}
        self._rules = _rules_of(session)

    def note(self, session: Session, running: Sequence[GangView], number: int) -> None:
        """Note what has changed since the last cycle."""
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
        """Return the cycle of the last change on nodes that pods of a gang may use; None: on any node."""
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
    """Return what decides whether a gang may be a victim, as far as the gang itself does."""
    return gang.queue, gang.priority, gang.taken, gang.active, gang.preemptable


def _rules_of(session: Session) -> tuple[object, object]:
    """Return the settings of queues and disruption budgets without their statuses.

    A queue's status is written every few seconds and has no effect. A disruption budget's status is included, because
    it contains the allowed disruptions.
    """
    snapshot = session.snapshot
    queues = {name: (queue.spec, queue.metadata.annotations) for name, queue in snapshot.queues.items()}
    return queues, {each.metadata.uid: each.metadata.resource_version for each in snapshot.disruption_budgets}


def _period(session: Session) -> int:
    return int(session.now // RETRY_S)


def _put(memory: dict[K, V], key: K, value: V) -> None:
    """Remember a value as the newest, and forget the oldest beyond the bound."""
    memory.pop(key, None)
    memory[key] = value
    if len(memory) > MOST_REMEMBERED:
        del memory[next(iter(memory))]
