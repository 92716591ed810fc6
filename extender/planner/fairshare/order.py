"""Sort key of queues, each with its best gang, by KAI-Scheduler's eight rules (queue_order.go).

Rule 1: a queue within its fair share comes first. Rule 2: a queue that stays within its deserved resources with its
best gang comes first. Rule 3: the queue with the higher priority comes first. Rule 4: a queue comes last if its best
gang requests a resource of which the queue has no share. Rules 5 to 7 compare the dominant share with the gang, the
dominant share without the gang, and the fair share; the smaller value comes first. Rule 8: the older queue comes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.tree import Shares

Row = Sequence[float]
Key = tuple[bool, bool, int, bool, float, float, "Weight"]
NO_SHARE = 1000.0
"""Weight of a used unit of a resource if the queue has no share of that resource."""


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """Sort key for the last two rules: queues without a larger share, then older queues, then by name."""

    share: Row
    born: tuple[str, str]

    def __lt__(self, other: "Weight") -> bool:
        if self.share != other.share:
            if all(mine <= its for mine, its in zip(self.share, other.share, strict=True)):
                return True
            if all(mine >= its for mine, its in zip(self.share, other.share, strict=True)):
                return False
        return self.born < other.born


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedQueue:
    """The shares and usage of one queue; sequences have one value per compared resource (`QueueTree.weighed`)."""

    allocated: Row
    fair: Row
    quota: Row
    """Amounts that the queue deserves; `inf` for a resource of which no queue deserves an amount."""
    limit: Row
    total: Row
    priority: int = 0
    born: tuple[str, str] = ("", "")

    share: Row = field(init=False)
    """Amounts that the queue may use before other queues take precedence."""
    weight: Weight = field(init=False)

    def __post_init__(self) -> None:
        share = [
            limit if quota == inf and fair == inf else min(limit, max(quota if quota != inf else 0.0, fair))
            for limit, quota, fair in zip(self.limit, self.quota, self.fair, strict=True)
        ]
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "weight", Weight(share, self.born))


def key_of(queue: WeighedQueue, wanted: Row) -> Key:
    """Return a queue's sort key, smallest first; `wanted` contains the requests of the queue's best gang."""
    share = queue.share
    matters = [bool(has or due) for has, due in zip(queue.allocated, queue.fair, strict=True)]
    over = any(matters) and all(
        due < has for has, due, counts in zip(queue.allocated, queue.fair, matters, strict=True) if counts
    )
    then = [has + more for has, more in zip(queue.allocated, wanted, strict=True)]
    starved = all(amount <= quota for amount, quota in zip(then, queue.quota, strict=True))
    shareless = any(more > 0 and not has for more, has in zip(wanted, share, strict=True))
    return (
        over,
        not starved,
        -queue.priority,
        shareless,
        dominant(then, share, queue.total),
        dominant(queue.allocated, share, queue.total),
        queue.weight,
    )


def dominant(allocated: Row, share: Row, total: Row) -> float:
    """Return a queue's dominant share: the largest fraction of its share of a resource that the queue uses."""
    most = 0.0
    for has, may, whole in zip(allocated, share, total, strict=True):
        if has:
            basis = whole if may == inf else may
            most = max(most, has / basis if basis else has * NO_SHARE)
    return most


def compare(left: Key, right: Key) -> int:
    """Return -1 if the key `left` comes first, 0 if both keys are equal, else 1."""
    return 0 if left == right else -1 if left < right else 1


class QueueOrder:
    """Sort keys of a session's queues; a key is computed again only if the allocations of its queue have changed."""

    def __init__(self, allocations: Allocations) -> None:
        self._allocations, self._tree = allocations, allocations.tree
        self.weighed = list(self._tree.weighed)
        """Columns of the resources that are compared."""
        self._quota = self._tree.quota
        self._known: list[tuple[int, WeighedQueue] | None] = [None] * len(self._tree.names)
        self._keys: dict[tuple[int, Row], tuple[int, Key]] = {}

    def key(self, row: int, wanted: Row, fair: Shares) -> Key:
        """Return the key of the queue in `row`, whose best gang requests `wanted`, one amount per compared resource.

        `fair` contains the fair shares of all queues, which are the same in a whole cycle.
        """
        known, version = self._keys.get((row, wanted)), self._allocations.versions[row]
        if known is not None and known[0] == version:
            return known[1]
        key = key_of(self._queue(row, fair), wanted)
        self._keys[row, wanted] = version, key
        return key

    def _queue(self, row: int, fair: Shares) -> WeighedQueue:
        known, version = self._known[row], self._allocations.versions[row]
        if known is not None and known[0] == version:
            return known[1]
        columns = self.weighed
        queue = WeighedQueue(
            allocated=self._allocations.allocated[row, columns].tolist(),
            fair=fair[row, columns].tolist(),
            quota=self._quota[row, columns].tolist(),
            limit=self._tree.limit[row, columns].tolist(),
            total=self._allocations.total[columns].tolist(),
            priority=self._tree.priority[row],
            born=self._tree.born[row],
        )
        self._known[row] = version, queue
        return queue
