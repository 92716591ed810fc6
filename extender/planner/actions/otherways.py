"""Alternative ways to spread pods of one class over nodes so that a gang's pods of another class fit, too.

Pods are usually placed on the best nodes, and on as few nodes as possible. Pods of two classes may share a domain, for
example a leader and its workers. The usual placement of one class may then occupy part of a node that a pod of the
other class needs entirely. The first alternatives prefer the nodes on which pods of the other class lose least
capacity. Further alternatives use few or many nodes, begin with or exclude a certain node, or limit the number of pods
per node. An alternative is skipped if it leaves too little total capacity for the other pods. A domain that cannot hold
all pods therefore costs little time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.answers import NodeSet
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass

SINGLE = 16
"""Maximum number of nodes that are tested as the first node to fill, or as an excluded node."""
SPREAD = 8
"""Number of limits on the pods per node that are tested at most."""


@dataclass(frozen=True, slots=True)
class Others:
    """Pods of another class that are not placed yet."""

    cls: PodClass
    count: int
    nodes: NodeSet


@dataclass(slots=True)
class OtherWays:
    """Alternative ways to place pods of one class on a node set."""

    session: Session
    gang: GangView
    cls: PodClass
    count: int
    nodes: NodeSet
    others: Sequence[Others]
    _codes: list[Amounts] = field(default_factory=list)
    """For each class of other pods, int64 of shape (nodes,): 1 for a node that accepts pods of this class."""
    _seen: set[bytes] = field(default_factory=set)

    def all(self, usual: Amounts, *, again: bool) -> Iterator[NodeSet]:
        """Yield alternative node sets, best first.

        `usual` lists the columns of the default node set, which is yielded only if `again` is true.
        """
        room = self._open(self.cls) * self.session.room(self.cls)
        room = np.minimum(self.nodes.limit(room, self.cls), self.count)
        usual = usual[room[usual] > 0]
        if int(room[usual].sum()) < self.count:
            return
        self._codes = [self._open(other.cls) for other in self.others]
        given = self._given(usual, room)
        if not again:
            self._seen.add(given.tobytes())
        alone = self._left(np.zeros_like(room))
        lost_full, lost_one = self._lost(alone, room), self._lost(alone, np.minimum(room, 1))
        for columns, most in self._orders(usual, room, lost_full[usual], lost_one[usual]):
            given = self._given(columns, np.minimum(room, most))
            if given.tobytes() not in self._seen:
                self._seen.add(given.tobytes())
                if int(given.sum()) == self.count and self._leaves_enough(given):
                    yield NodeSet(columns, ranked=True, along=self.nodes.along, most=given, name=self.nodes.name)

    def _orders(
        self, usual: Amounts, room: Amounts, lost_full: NDArray[np.float64], lost_one: NDArray[np.float64]
    ) -> Iterator[tuple[Amounts, int]]:
        """Yield orders in which the nodes are filled, with the maximum number of pods for each node."""
        rooms, all_ = room[usual], self.count
        yield usual, all_
        least = usual[np.lexsort([np.arange(len(usual)), lost_full / rooms])]
        yield least, all_
        sparing = usual[np.lexsort([np.arange(len(usual)), lost_one])]
        yield sparing, all_
        yield usual[np.argsort(rooms, kind="stable")], all_
        yield usual[np.argsort(-rooms, kind="stable")], all_
        for column in sparing[:SINGLE]:
            yield np.concatenate([[column], least[least != column]]), all_
        for column in sparing[::-1][:SINGLE] if self.count > 1 else ():
            yield least[least != column], all_
        fewest = -(-self.count // len(usual))
        for most in range(fewest, min(fewest + SPREAD, int(rooms.max(initial=0)))):
            yield least, most
            yield sparing, most

    def _given(self, columns: Amounts, room: Amounts) -> Amounts:
        given = np.zeros_like(room)
        before = np.cumsum(room[columns]) - room[columns]
        given[columns] = np.clip(self.count - before, 0, room[columns])
        return given

    def _open(self, cls: PodClass) -> Amounts:
        allowed: Amounts = (self.session.codes(cls, self.gang) == 0).astype(np.int64)
        return allowed

    def _left(self, given: Amounts) -> list[Amounts]:
        """Return the capacity per node that remains for each class of other pods after placing these pods."""
        session = self.session
        free = session.usable() - session.snapshot.row_of(self.cls)[:, None] * given
        rooms = [session.room(other.cls, free) * codes for other, codes in zip(self.others, self._codes, strict=True)]
        return [
            other.nodes.limit(np.minimum(each, other.count), other.cls)
            for other, each in zip(self.others, rooms, strict=True)
        ]

    def _lost(self, alone: list[Amounts], given: Amounts) -> NDArray[np.float64]:
        """Return, for each node, the fraction of the other pods' capacity that would be lost; float64."""
        lost = np.zeros(len(given), dtype=np.float64)
        for other, before, after in zip(self.others, alone, self._left(given), strict=True):
            lost += (before - after) / other.count
        return lost

    def _leaves_enough(self, given: Amounts) -> bool:
        rooms = self._left(given)
        return all(int(room.sum()) >= other.count for other, room in zip(self.others, rooms, strict=True))
