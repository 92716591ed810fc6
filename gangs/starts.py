"""Expected starts of waiting gangs, from many simulations with different end times of the running gangs. Pure.

A gang with a declared run time ends after this time. For every other gang, a simulation randomly selects one of the
queue's past run times that exceed the gang's present run time. If there are no such run times, the gang never ends.
Whenever a gang ends, the waiting gangs are processed in scheduling order. If a gang fits into the free capacity, it
takes what it needs. If a gang does not fit, it reserves the free capacity that it could use. Queue shares, topology and
affinity are not simulated. If a waiting gang already fits, it waits for another reason, so its start is unknown.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gangs.runs import LEAST, OUT_OF, Interval
from muster.resources.vector import Vector

DRAWS = 200
LEAST_DRAWS = 25
_TRIALS = 200_000
"""Total number of gangs that all simulations of a forecast place. The number of simulations decreases with the number
of gangs, down to a minimum."""
TRIED = 20
"""Maximum number of waiting gangs to simulate, in scheduling order. Waiting gangs beyond this number get no expected
start."""
_SEED = 7
Amounts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Life:
    """The run time of a gang: its declared run time, or else one of the past run times in its queue."""

    queue: str
    declared_s: float | None = None


@dataclass(frozen=True, slots=True)
class Runs:
    """A running gang with its start, and with the capacity that its end frees on each node."""

    life: Life
    elapsed_s: float
    holds: Mapping[str, Vector]


@dataclass(frozen=True, slots=True)
class Waits:
    """A waiting gang: the number of pods that must start together, and their requests."""

    key: str
    life: Life
    needs: Sequence[tuple[int, Vector]]


@dataclass(slots=True)
class Scene:
    """The simulated cluster: free capacity of each node now, running gangs, and waiting gangs in scheduling order."""

    free: Mapping[str, Vector]
    running: Sequence[Runs] = ()
    waiting: Sequence[Waits] = ()
    past: Mapping[str, Sequence[float]] = field(default_factory=dict)


class _Pods(NamedTuple):
    number: int
    rows: Amounts
    """Indexes of the matrix rows of the resources that a pod requests."""
    each: Amounts


def starts(scene: Scene, *, draws: int | None = None) -> dict[str, Interval]:
    """Return a mapping from each gang to the interval, in seconds from now, with its start in 80 % of simulations.

    Gangs without a known start are left out.
    """
    if not any(_known(each.life, scene.past) for each in scene.running):
        return {}
    play, seen = _Play(scene), dict[str, list[float]]()
    each_play = max(1, len(scene.running) * min(len(scene.waiting), TRIED))
    for _ in range(draws or max(LEAST_DRAWS, min(DRAWS, _TRIALS // each_play))):
        for key, at in play.once().items():
            seen.setdefault(key, []).append(at)
    found = {key: _middle(times) for key, times in seen.items()}
    return {key: each for key, each in found.items() if 0 < each.early_s < inf}


def _known(life: Life, past: Mapping[str, Sequence[float]]) -> bool:
    return life.declared_s is not None or len(past.get(life.queue, ())) >= LEAST


def _middle(times: list[float]) -> Interval:
    ordered, beyond = sorted(times), (len(times) + 1) // OUT_OF
    return Interval(ordered[beyond - 1], ordered[-beyond])


_Waiting = tuple[Waits, list[_Pods | None]]


class _Play:
    """Simulated cluster, stored as matrices with a row per resource and a column per node."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        names = sorted({name for each in scene.free.values() for name in each})
        self._row = {name: row for row, name in enumerate(names)}
        self._column = {node: column for column, node in enumerate(scene.free)}
        self._free: Amounts = np.zeros((len(names), len(self._column)), dtype=np.int64)
        for node, amounts in scene.free.items():
            for name, amount in amounts.items():
                self._free[self._row[name], self._column[node]] = amount
        self._holds = [self._on_nodes(each.holds) for each in scene.running]
        waiting = [(each, [self._pods(*need) for need in each.needs]) for each in scene.waiting[:TRIED]]
        free = self._free.copy()
        fits = {id(each) for each, _ in _in_order(free, waiting)}
        self._waiting = [each for each in waiting if id(each[0]) not in fits]  # others wait for unknown reasons
        self._past = {queue: sorted(runs) for queue, runs in scene.past.items()}
        self._random = Random(_SEED)  # noqa: S311 - equal results for equal clusters

    def once(self) -> dict[str, float]:
        """Return the start of each gang in one simulation; infinity for a gang that does not start."""
        free, left = self._free.copy(), list(self._waiting)
        found = {each.key: inf for each, _ in left}
        ends = [(self._end(each.life, each.elapsed_s), number) for number, each in enumerate(self._scene.running)]
        heapify(ends)
        holds, now = dict(enumerate(self._holds)), 0.0
        while left and now < inf:
            started = list(_in_order(free, left))
            for waits, taken in started:
                found[waits.key] = now
                holds[len(holds)] = taken
                heappush(ends, (now + self._end(waits.life, 0.0), len(holds) - 1))
            left = [each for each in left if found[each[0].key] == inf]
            now = ends[0][0] if ends else inf
            while ends and ends[0][0] <= now < inf:
                free += holds[heappop(ends)[1]]
        return found

    def _end(self, life: Life, elapsed_s: float) -> float:
        """Return the seconds until a gang ends: its declared time, a randomly selected past run time, or infinity."""
        if life.declared_s is not None:
            return life.declared_s - elapsed_s if life.declared_s > elapsed_s else inf
        past = self._past.get(life.queue, [])
        first = bisect_right(past, elapsed_s)
        if len(past) - first < LEAST:
            return inf
        chosen = self._random.randint(first, len(past))  # the last index: longer than all runs
        return past[chosen] - elapsed_s if chosen < len(past) else inf

    def _on_nodes(self, holds: Mapping[str, Vector]) -> Amounts:
        found = np.zeros_like(self._free)
        for node, amounts in holds.items():
            if node in self._column:
                for name in amounts.keys() & self._row.keys():
                    found[self._row[name], self._column[node]] += amounts[name]
        return found

    def _pods(self, count: int, each: Vector) -> _Pods | None:
        """Return the pods with the matrix rows of their resources; None if no node has a requested resource."""
        asked = {name: amount for name, amount in each.items() if amount > 0}
        if not asked.keys() <= self._row.keys():
            return None
        rows = np.array([self._row[name] for name in asked], dtype=np.int64)
        return _Pods(count, rows, np.array([*asked.values()], dtype=np.int64))


def _in_order(free: Amounts, waiting: Sequence[_Waiting]) -> Iterator[tuple[Waits, Amounts]]:
    """Yield the gangs that fit into the capacity `free`, each with the capacity that it takes.

    A gang that does not fit yet reserves the free capacity that it could use, so later gangs cannot take it.
    """
    kept = np.zeros_like(free)
    for waits, needs in waiting:
        whole, taken = _used_capacity(free - kept, needs)
        if whole:
            free -= taken
            yield waits, taken
        else:
            kept += taken


def _used_capacity(free: Amounts, needs: Sequence[_Pods | None]) -> tuple[bool, Amounts]:
    """Return whether a gang fits into the free capacity, and what its pods take on the fullest suitable nodes.

    For a gang that does not fit, return the capacity for as many of its pods as possible.
    """
    taken, whole = np.zeros_like(free), True
    for pods in needs:
        if pods is None:
            return False, np.zeros_like(free)
        left = free[pods.rows] - taken[pods.rows]
        room = (left // pods.each[:, None]).min(axis=0, initial=pods.number).clip(0, pods.number)
        whole = whole and int(room.sum()) >= pods.number
        order = np.argsort(room, kind="stable")
        before = np.cumsum(room[order]) - room[order]
        count = np.zeros_like(room)
        count[order] = np.minimum(room[order], (pods.number - before).clip(0))
        taken[pods.rows] += count * pods.each[:, None]
    return whole, taken
