"""Whose turn it is, weighed again after every gang: a tree of heaps along the tree of queues.

A gang that is placed changes the standing of its queue, and of those above it, and of nobody else: so only they are put
in order again, which costs O(log queues) per gang. Each queue is compared by the best gang that it has in hand. After
KAI-Scheduler's job order by queue (actions/utils/job_order_by_queue.go).
"""

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping

from extender.state.gangs import GangView
from muster.api.names import ROOT_QUEUE
from muster.api.scheduling import Queue

Compare = Callable[[GangView, GangView], int]
DEPTH = 64
"""Levels that are looked at; admission allows fewer."""


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


class _Turn:
    """A queue with its own gangs, or one with what is below it."""

    __slots__ = ("below", "compare", "gangs", "head")

    def __init__(self, compare: Compare, gangs: Iterator[GangView] | None = None) -> None:
        self.compare = compare
        self.gangs = gangs
        self.below: list[_Turn] = []
        self.head: GangView | None = next(gangs, None) if gangs is not None else None

    def __lt__(self, other: "_Turn") -> bool:
        return self.head is not None and other.head is not None and self.compare(self.head, other.head) < 0

    def advance(self) -> None:
        """Its best gang has had its turn."""
        if self.gangs is not None:
            self.head = next(self.gangs, None)
            return
        first = self.below[0]
        first.advance()
        if first.head is None:
            heapq.heappop(self.below)
        elif any(other < first for other in self.below[1:3]):
            heapq.heapreplace(self.below, first)
        self.head = self.below[0].head if self.below else None


def turns(gangs: Iterable[GangView], parents: Mapping[str, str], compare: Compare) -> Iterator[GangView]:
    """Gangs one by one, the best of the queue whose turn it is; of one queue they must come in their order.

    `compare` is asked about gangs of different queues, while the gang before is being looked at or later.
    """
    by_queue: dict[str, list[GangView]] = {}
    for gang in gangs:
        by_queue.setdefault(gang.queue, []).append(gang)
    if not by_queue:
        return
    inner: dict[str, _Turn] = {}
    for queue, members in by_queue.items():
        leaf = _Turn(compare, iter(members))
        above = queue
        while True:
            known = above in inner
            if not known:
                inner[above] = _Turn(compare)
            inner[above].below.append(leaf)
            if known or above == ROOT_QUEUE:
                break
            leaf, above = inner[above], parents.get(above) or ROOT_QUEUE
    root = inner[ROOT_QUEUE]
    _settle(root)
    while root.head is not None:
        yield root.head
        root.advance()


def _settle(turn: _Turn) -> None:
    """Puts everything below in order; as deep as queues are."""
    for below in turn.below:
        if below.gangs is None:
            _settle(below)
    heapq.heapify(turn.below)
    turn.head = turn.below[0].head if turn.below else None
