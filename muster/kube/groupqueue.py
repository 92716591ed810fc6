"""Who is next: keys that wait, in turns of their groups, so that whoever has many keys does not go before the others.

A group with no key in work goes before one that has some, and of equal ones the one that has waited longest. Every
step costs the same, however many keys and groups wait.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class _Keys(Generic[K]):
    """The keys of one group that wait: those that go first, then the rest, each in order of arrival."""

    def __init__(self) -> None:
        self._first: deque[K] = deque()
        self._rest: deque[K] = deque()

    def __bool__(self) -> bool:
        return bool(self._first or self._rest)

    def add(self, key: K, *, first: bool) -> None:
        """One more."""
        (self._first if first else self._rest).append(key)

    def take(self) -> K:
        """The next one."""
        return (self._first or self._rest).popleft()


class GroupQueue(Generic[K]):
    """Keys by group, `group_of` a key. Not thread safe."""

    def __init__(self, group_of: Callable[[K], Hashable]) -> None:
        self._group_of = group_of
        self._idle: OrderedDict[Hashable, _Keys[K]] = OrderedDict()
        """Keys of groups of which nothing is in work."""
        self._busy: OrderedDict[Hashable, _Keys[K]] = OrderedDict()
        """Keys of groups of which something is in work."""
        self._in_work: Counter[Hashable] = Counter()
        self._length = 0

    def __len__(self) -> int:
        """Keys that wait."""
        return self._length

    def add(self, key: K, *, first: bool = False) -> None:
        """The key waits, behind those of its group; with `first` only behind those that were added so, too."""
        group = self._group_of(key)
        groups = self._busy if group in self._in_work else self._idle
        groups.setdefault(group, _Keys()).add(key, first=first)
        self._length += 1

    def take(self) -> K:
        """The next key, which is in work from now on. Raises KeyError if none waits."""
        group, keys = (self._idle or self._busy).popitem(last=False)
        key = keys.take()
        self._length -= 1
        self._in_work[group] += 1
        if keys:
            self._busy[group] = keys
        return key

    def done(self, key: K) -> None:
        """The key is not in work any more."""
        group = self._group_of(key)
        self._in_work[group] -= 1
        if self._in_work[group] > 0:
            return
        del self._in_work[group]
        if keys := self._busy.pop(group, None):
            self._idle[group] = keys

    def others_wait(self, key: K) -> bool:
        """Whether keys wait of a group that has none in work."""
        return len(self._idle) > (self._group_of(key) in self._idle)
