"""The order of gangs: comparisons of plugins, made sort keys.

An order is a comparison of two gangs. Sorting ten thousand gangs would ask it a quarter of a million times, each time
one plugin after the other; so a plugin that can say where a gang stands by itself says that instead, by `Keyed`, and
is asked once per gang. A plain comparison does as well: it is wrapped, and takes its place among the keys. Keys are
compared one after the other, which is the rule of these hooks: the first that differ decide.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from extender.planner.state.gangs import GangView

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
