"""The order of queues, each with its best gang: KAI-Scheduler's eight rules (queue_order.go), as a sort key.

First come (1) queues within their fair share, then (2) queues that stay within their deserved amount. Then (3) the
higher priority decides, and (4) queues that use no resource without having a share of it come first. Then follow (5)
the smaller dominant share with the gang, (6) the smaller one without it, (7) the smaller share, (8) the older queue.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

Row = Sequence[float]
Key = tuple[bool, bool, int, bool, float, float, "Weight"]
NO_SHARE = 1000.0
"""Weight of a used unit of a resource of which the queue has no share."""


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """Sort key of the last two rules: first the smaller share, if it is not larger in any resource.

    Then the age decides, and the name if ages are equal.
    """

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
    """The amounts of one queue; each sequence follows the resources that count (`QueueTree.weighed`)."""

    allocated: Row
    fair: Row
    quota: Row
    """Deserved amounts; `inf` for resources of which no queue has a quota."""
    limit: Row
    total: Row
    priority: int = 0
    born: tuple[str, str] = ("", "")

    share: Row = field(init=False)
    """Amounts that the queue may have before other queues take precedence."""
    weight: Weight = field(init=False)

    def __post_init__(self) -> None:
        share = [
            limit if quota == inf and fair == inf else min(limit, max(quota if quota != inf else 0.0, fair))
            for limit, quota, fair in zip(self.limit, self.quota, self.fair, strict=True)
        ]
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "weight", Weight(share, self.born))


def key_of(queue: WeighedQueue, wanted: Row) -> Key:
    """Return the sort key of a queue, smallest first; `wanted` are the amounts of its best gang."""
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
    """Return the dominant share: the largest used part of a share, over all resources."""
    most = 0.0
    for has, may, whole in zip(allocated, share, total, strict=True):
        if has:
            basis = whole if may == inf else may
            most = max(most, has / basis if basis else has * NO_SHARE)
    return most


def compare(left: Key, right: Key) -> int:
    """Return -1 if `left` comes first, 0 for equal keys, else 1."""
    return 0 if left == right else -1 if left < right else 1
