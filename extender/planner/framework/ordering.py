"""The order of gangs: comparisons of plugins, made sort keys.

An order is a comparison of two gangs. Sorting ten thousand gangs would ask it a quarter of a million times, each time
one plugin after the other; so a plugin that can say where a gang stands by itself says that instead, by `Keyed`, and
is asked once per gang. A plain comparison does as well: it is wrapped, and takes its place among the keys. Keys are
compared one after the other, which is the rule of these hooks: the first that differ decide.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from extender.planner.state.gangs import GangView
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.scheduling import Queue

Compare = Callable[[Any, Any], int]
Key = tuple[Any, ...]
"""Smaller comes first."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A comparison for `job_order` or `queue_order`, with the key that it amounts to.

    For `job_order` the key is a function of a gang; for `queue_order` one of the name of a queue, right below the
    common ancestor of those that are compared, and of the best gang that it has in hand. It must be true as long as
    neither that gang nor what the queue uses has changed.
    """

    compare: Compare
    key: Callable[..., Any]

    def __call__(self, left: Any, right: Any) -> int:
        """Negative if `left` comes first."""
        return self.compare(left, right)


def by_key(key: Callable[[Any], Any]) -> Keyed:
    """The order in which smaller keys come first."""

    def compare(left: Any, right: Any) -> int:
        mine, other = key(left), key(right)
        return int(mine > other) - int(mine < other)

    return Keyed(compare, key)


class Ordering:
    """The orders of one session, as its plugins have them at this moment."""

    def __init__(self, of_queues: Iterable[Compare], of_jobs: Iterable[Compare]) -> None:
        self._of_jobs = [fn.key if isinstance(fn, Keyed) else cmp_to_key(fn) for fn in of_jobs]
        self._of_queues = list(of_queues)
        self._known: dict[str, Key] = {}

    def job(self, gang: GangView) -> Key:
        """Among gangs of one queue: the keys of plugins, then age. Asked once per gang."""
        known = self._known.get(gang.key)
        if known is None:
            said = tuple(key(gang) for key in self._of_jobs)
            known = self._known[gang.key] = *said, gang.created, gang.arrival
        return known

    def queue(self, name: str, gang: GangView) -> Key:
        """Among queues of the same parent, each with the best gang in hand; then as among gangs."""
        said = [fn.key(name, gang) if isinstance(fn, Keyed) else cmp_to_key(fn)(gang) for fn in self._of_queues]
        return *said, self.job(gang)

    def compared(self, gang: GangView) -> Key:
        """The same where keys say too little, as one of the queues is above the other."""
        return *(cmp_to_key(fn)(gang) for fn in self._of_queues), self.job(gang)

    def sorted(self, gangs: Sequence[GangView]) -> list[GangView]:
        """As among gangs of one queue."""
        return sorted(gangs, key=self.job)


DEPTH = 64
"""Levels that are looked at; admission allows fewer."""
Again = Callable[[GangView], bool]


def parents_of(queues: Mapping[str, Queue]) -> dict[str, str]:
    """Queue → the queue above it; the root's is empty.

    A queue whose parent does not exist is below the root, and so is one of those whose parents go in a circle.
    """
    parents = {ROOT_QUEUE: ""}
    for name, queue in queues.items():
        if name != ROOT_QUEUE:
            parent = queue.spec.parent or ROOT_QUEUE
            parents[name] = parent if parent in queues else ROOT_QUEUE
    rooted = {ROOT_QUEUE}
    for name in list(parents):
        way: list[str] = []
        at = name
        while at not in rooted and at not in way and len(way) < DEPTH:
            way.append(at)
            at = parents[at]
        if at not in rooted:
            parents[at] = ROOT_QUEUE
            way.append(at)
        rooted.update(way)
    return parents


def upwards(queues: Mapping[str, Queue], name: str) -> Iterator[str]:
    """A queue and those above it, up to the root, below which is one that does not exist, too."""
    for _ in range(DEPTH):
        yield name
        if name == ROOT_QUEUE:
            return
        known = queues.get(name)
        name = (known.spec.parent if known else "") or ROOT_QUEUE


class _Leaf:
    """The gangs of one queue itself, in their order."""

    __slots__ = ("_again", "_gangs", "head", "queue")

    def __init__(self, queue: str, gangs: Iterator[GangView], again: Again) -> None:
        self.queue = queue
        self._gangs = gangs
        self._again = again
        self.head: GangView | None = next(gangs, None)

    def advance(self) -> None:
        """Its best gang has had its turn."""
        if self.head is None or not self._again(self.head):
            self.head = next(self._gangs, None)


class _Branch:
    """A queue with what is below it, and gangs of its own if it has some."""

    __slots__ = ("_heap", "_mixed", "_ordering", "below", "head", "queue")

    def __init__(self, queue: str, ordering: Ordering) -> None:
        self.queue = queue
        self.below: list[_Leaf | _Branch] = []
        self.head: GangView | None = None
        self._ordering = ordering
        self._mixed = False
        self._heap: list[tuple[Key, int, _Leaf | _Branch]] = []

    def settle(self) -> None:
        """Puts everything below in order; as deep as queues are."""
        self._mixed = any(turn.queue == self.queue for turn in self.below)
        for position, turn in enumerate(self.below):
            if isinstance(turn, _Branch):
                turn.settle()
            if turn.head is not None:
                self._heap.append((self._key(turn, turn.head), position, turn))
        heapq.heapify(self._heap)
        self._take_head()

    def advance(self) -> None:
        """Its best gang has had its turn: only the one below that had it is put in order again."""
        _, position, first = self._heap[0]
        first.advance()
        if first.head is None:
            heapq.heappop(self._heap)
        else:
            heapq.heapreplace(self._heap, (self._key(first, first.head), position, first))
        self._take_head()

    def _take_head(self) -> None:
        self.head = self._heap[0][2].head if self._heap else None

    def _key(self, turn: "_Leaf | _Branch", head: GangView) -> Key:
        return self._ordering.compared(head) if self._mixed else self._ordering.queue(turn.queue, head)


def turns(
    gangs: Iterable[GangView], parents: Mapping[str, str], ordering: Ordering, again: Again = lambda _: False
) -> Iterator[GangView]:
    """Gangs one by one, the best of the queue whose turn it is.

    The ordering is asked about queues while the gang before is being looked at or later; so is `again`, whether that
    gang stays the first of its queue.
    """
    by_queue: dict[str, list[GangView]] = {}
    for gang in gangs:
        by_queue.setdefault(gang.queue, []).append(gang)
    branches = {ROOT_QUEUE: _Branch(ROOT_QUEUE, ordering)}
    for queue in by_queue:
        above = parents.get(queue) or ROOT_QUEUE
        while above not in branches:
            branches[above] = _Branch(above, ordering)
            above = parents.get(above) or ROOT_QUEUE
    for queue, branch in branches.items():
        if queue != ROOT_QUEUE:
            branches[parents.get(queue) or ROOT_QUEUE].below.append(branch)
    for queue, members in by_queue.items():
        leaf = _Leaf(queue, iter(sorted(members, key=ordering.job)), again)
        branches[queue if queue in branches else parents.get(queue) or ROOT_QUEUE].below.append(leaf)
    root = branches[ROOT_QUEUE]
    root.settle()
    while root.head is not None:
        yield root.head
        root.advance()
