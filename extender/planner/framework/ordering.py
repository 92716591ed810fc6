"""The scheduling order of gangs: the plugins' comparisons as sort keys, and the alternation between queues.

A plugin that returns a sort key (`Keyed`) is called once per gang instead of once per comparison. Plain comparison
functions are wrapped as keys. The keys are compared in the order of the plugins, and the first difference decides.

The heaps that yield gangs in scheduling order form a tree like the queues. Each placed gang changes the position of its
queue and of the queues above. Only the queues whose position changes are sorted again, in O(log queues) per gang.
Queues are compared by their best gangs. The algorithm follows KAI-Scheduler's job order by queue
(actions/utils/job_order_by_queue.go).
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from extender.planner.state.gangs import GangView
from muster.api.names import ROOT_QUEUE

Compare = Callable[[Any, Any], int]
Key = tuple[Any, ...]
"""Sort key of a gang or queue; the smaller key comes first."""
Again = Callable[[GangView], bool]
Surplus = Callable[[GangView], int]
"""Number of a gang's members above its minimum, for the order in which gangs grow."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A comparison function for `job_order` or `queue_order`, with an equivalent sort key.

    For `job_order`, the key is computed from a gang. For `queue_order`, the key is computed from a queue's name and its
    best gang; the compared queues are siblings. The key of a queue must stay the same until its best gang or its usage
    changes.
    """

    compare: Compare
    key: Callable[..., Any]

    def __call__(self, left: Any, right: Any) -> int:
        """Return a negative number if `left` comes first."""
        return self.compare(left, right)


def by_key(key: Callable[[Any], Any]) -> Keyed:
    """Return a comparison function that compares by this key, the smallest key first."""

    def compare(left: Any, right: Any) -> int:
        mine, other = key(left), key(right)
        return int(mine > other) - int(mine < other)

    return Keyed(compare, key)


class Ordering:
    """The orders of gangs and queues in one session, from the functions that have been registered so far."""

    def __init__(
        self, of_queues: Iterable[Compare], of_jobs: Iterable[Compare], surplus: Surplus = lambda _: 0
    ) -> None:
        self._of_jobs = [fn.key if isinstance(fn, Keyed) else cmp_to_key(fn) for fn in of_jobs]
        self._of_queues = list(of_queues)
        self._surplus = surplus
        self._known: dict[str, Key] = {}

    def job(self, gang: GangView) -> Key:
        """Return a gang's sort key within its queue: the plugins' keys, then members above the minimum, then age."""
        known = self._known.get(gang.key)
        if known is None:
            keys = [key(gang) for key in self._of_jobs]
            known = self._known[gang.key] = *keys, self._surplus(gang), gang.created, gang.arrival
        return known

    def job_again(self, gang: GangView) -> Key:
        """Return the new sort key of a gang that has received slots since the last call."""
        self._known.pop(gang.key, None)
        return self.job(gang)

    def queue(self, name: str, gang: GangView) -> Key:
        """Return the sort key of a queue among its siblings, by the queue's best gang."""
        keys = [fn.key(name, gang) if isinstance(fn, Keyed) else cmp_to_key(fn)(gang) for fn in self._of_queues]
        return *keys, self.job(gang)

    def compared(self, gang: GangView) -> Key:
        """Return the sort key of a queue for comparisons with its own ancestors."""
        return *(cmp_to_key(fn)(gang) for fn in self._of_queues), self.job(gang)


class _Leaf:
    """The gangs of one queue in scheduling order, without the gangs of its child queues."""

    __slots__ = ("_again", "_back", "_gangs", "_next", "_ordering", "head", "queue")

    def __init__(self, queue: str, gangs: Iterable[GangView], ordering: Ordering, again: Again) -> None:
        self.queue = queue
        self._ordering = ordering
        self._gangs = sorted(gangs, key=ordering.job)
        self._next = 0
        self._back: list[tuple[Key, GangView]] = []
        """Heap of gangs that got a slot and want more; equal keys keep their order of arrival."""
        self._again = again
        self.head: GangView | None = None
        self._take_first()

    def advance(self) -> None:
        """Advance to the next gang; a gang that wants more slots is put back into the heap."""
        if self.head is not None and self._again(self.head):
            heapq.heappush(self._back, (self._ordering.job_again(self.head), self.head))
        self._take_first()

    def _take_first(self) -> None:
        fresh = self._gangs[self._next] if self._next < len(self._gangs) else None
        if self._back and (fresh is None or self._back[0][0] < self._ordering.job(fresh)):
            self.head = heapq.heappop(self._back)[1]
            return
        self.head = fresh
        self._next += 1


class _Branch:
    """A queue with its children and its own gangs."""

    __slots__ = ("_heap", "_mixed", "_ordering", "below", "head", "queue")

    def __init__(self, queue: str, ordering: Ordering) -> None:
        self.queue = queue
        self.below: list[_Leaf | _Branch] = []
        self.head: GangView | None = None
        self._ordering = ordering
        self._mixed = False
        self._heap: list[tuple[Key, int, _Leaf | _Branch]] = []

    def settle(self) -> None:
        """Sort all gangs and child queues of this queue, recursively."""
        self._mixed = any(child.queue == self.queue for child in self.below)
        for child in self.below:
            if isinstance(child, _Branch):
                child.settle()
        there = [child for child in self.below if child.head is not None]
        alone = len(there) == 1  # a single child is never compared
        self._heap = [(() if alone else self._key(child), place, child) for place, child in enumerate(there)]
        heapq.heapify(self._heap)
        self._take_first()

    def advance(self) -> None:
        """Advance to the next gang; only the branch from which the previous gang came is sorted again."""
        _, position, first = self._heap[0]
        first.advance()
        if first.head is None:
            heapq.heappop(self._heap)
        elif len(self._heap) > 1:
            heapq.heapreplace(self._heap, (self._key(first), position, first))
        self._take_first()

    def _take_first(self) -> None:
        self.head = self._heap[0][2].head if self._heap else None

    def _key(self, child: "_Leaf | _Branch") -> Key:
        if child.head is None:
            return ()
        return self._ordering.compared(child.head) if self._mixed else self._ordering.queue(child.queue, child.head)


def scheduling_order(
    gangs: Iterable[GangView], parents: Mapping[str, str], ordering: Ordering, again: Again = lambda _: False
) -> Iterator[GangView]:
    """Yield the first gang of the first queue, sort again, and repeat.

    A gang is yielded again if `again` returns True for it.
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
        leaf = _Leaf(queue, members, ordering, again)
        branches[queue if queue in branches else parents.get(queue) or ROOT_QUEUE].below.append(leaf)
    root = branches[ROOT_QUEUE]
    root.settle()
    while root.head is not None:
        yield root.head
        root.advance()
