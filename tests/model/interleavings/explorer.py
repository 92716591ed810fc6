"""Visits every world that can be reached from a first one, and checks each of them.

Breadth first, so that the story of a failure is a shortest one. A world that was seen before is not gone on from again.
"""

import gc
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from interleavings.world import Rules, Step, World

Check = Callable[[World, Step, World], str | None]


@dataclass
class Found:
    """What an exploration has seen."""

    worlds: int = 0
    edges: int = 0
    depth: int = 0
    ends: int = 0
    """Worlds in which nothing can happen any more."""
    kinds: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    story: list[str] = field(default_factory=list)
    complete: bool = True
    seconds: float = 0.0

    def told(self) -> str:
        """What has failed, and the steps that lead there."""
        steps = "".join(f"\n  {number}. {words}" for number, words in enumerate(self.story, 1))
        return f"{self.failure or 'nothing has failed'}, after {len(self.story)} steps:{steps}"

    def __str__(self) -> str:
        whole = "complete" if self.complete else "cut off"
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        size = f"{self.worlds} worlds, {self.edges} edges ({kinds}), depth {self.depth}, {self.ends} ends"
        return f"{size}, {whole}, {self.seconds:.0f} s"


YOUNG = 20_000
"""Objects that are made before the garbage collector looks again: most of the millions of objects stay."""


@contextmanager
def _seldom_collected() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_seldom_collected()
def explore(
    rules: Rules,
    first: World,
    *,
    check: Check,
    at_rest: Callable[[World], str | None],
    at_end: Callable[[World], str | None],
    most: int | None = None,
) -> Found:
    """Visit all worlds, at most so many; stop at the first failure of a check.

    `check` looks at each edge, `at_rest` at worlds that only time can change, `at_end` at those where nothing happens.
    """
    began, found = time.monotonic(), Found(worlds=1)
    came: dict[Any, tuple[Any, str] | None] = {first.key: None}
    waiting = deque([(first, 0)])
    while waiting:
        world, depth = waiting.popleft()
        found.depth = max(found.depth, depth)
        moved = False
        for step in rules.steps(world):
            after = step.go()
            key = after.key
            if key == world.key:
                continue
            moved = moved or step.kind != "fault"
            found.edges += 1
            found.kinds[step.kind] += 1
            why = check(world, step, after) or (at_rest(world) if step.kind == "time" else None)
            if why:
                came.setdefault(key, (world.key, step.words))
                return _failed(found, came, key, why, began)
            if key not in came:
                came[key] = (world.key, step.words)
                found.worlds += 1
                waiting.append((after, depth + 1))
        if not moved:
            found.ends += 1
            why = at_end(world)
            if why:
                return _failed(found, came, world.key, why, began)
        if most is not None and found.worlds >= most:
            found.complete = False
            break
    found.seconds = time.monotonic() - began
    return found


def _failed(found: Found, came: dict[Any, tuple[Any, str] | None], key: Any, why: str, began: float) -> Found:
    found.failure, found.complete, found.seconds = why, False, time.monotonic() - began
    step = came[key]
    while step is not None:
        found.story.append(step[1])
        step = came[step[0]]
    found.story.reverse()
    return found
