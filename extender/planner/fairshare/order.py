"""Whose turn it is: KAI-Scheduler's eight rules (queue_order.go) between two queues, each with its best gang in hand.

1 a queue within its fair share, 2 one that stays within what it deserves, 3 the higher priority, 4 one that does not
use what it has no share of, 5 the smaller dominant share with the gang, 6 without it, 7 the weaker queue, 8 the older.
They are a key that can be kept while nothing of the queue changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

Row = Sequence[float]
Key = tuple[bool, bool, int, bool, float, float, "Weight"]
NO_SHARE = 1000.0
"""What each unit counts that a queue uses without any share of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """The last two rules: what a queue may have, if one has no more of anything than the other; else its age.

    Of two queues no weights are equal: their names are part of their age.
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
class Standing:
    """One queue as it stands, each sequence by resource."""

    allocated: Row
    fair: Row
    quota: Row
    """What it deserves; `inf` for resources that no queue has a quota of."""
    limit: Row
    total: Row
    """What there is in the cluster."""
    priority: int = 0
    born: tuple[str, str] = ("", "")

    share: Row = field(init=False)
    """What it may have before others come first."""
    weight: Weight = field(init=False)

    def __post_init__(self) -> None:
        share = [
            limit if quota == inf and fair == inf else min(limit, max(quota if quota != inf else 0.0, fair))
            for limit, quota, fair in zip(self.limit, self.quota, self.fair, strict=True)
        ]
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "weight", Weight(share, self.born))


def key_of(queue: Standing, wanted: Row) -> Key:
    """Smaller comes first; `wanted` is what the gang in hand takes."""
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
    """The largest part that is used of what may be had, over all resources."""
    most = 0.0
    for has, may, whole in zip(allocated, share, total, strict=True):
        if has:
            basis = whole if may == inf else may
            most = max(most, has / basis if basis else has * NO_SHARE)
    return most


def compare(left: Key, right: Key) -> int:
    """Negative if `left` comes first."""
    if left == right:
        return 0
    return -1 if left < right else 1
