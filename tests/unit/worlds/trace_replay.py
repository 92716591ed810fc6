"""A production trace played on a few nodes whose queue is never empty: what was known then, and what happened."""

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

from gangs.runs import LATEST
from gangs.starts import Life, Runs, Scene, Waits

TRACE = Path(__file__).parent / "trace" / "tasks.csv.gz"
"""An extract of the trace; the README beside it names its source."""
GPUS = "nvidia.com/gpu"
EACH = 8
"""GPUs of a node."""


class Task(NamedTuple):
    """One task of the trace, as a gang of one; its class of service is its queue."""

    queue: str
    gpus: int
    begin_s: float
    end_s: float

    @property
    def runs_s(self) -> float:
        """How long it ran."""
        return self.end_s - self.begin_s


def tasks() -> list[Task]:
    """Return the tasks that ran, in the order of their creation."""
    with gzip.open(TRACE, "rt", encoding="utf-8") as file:
        return [
            Task(row["qos"], int(row["num_gpu"]), float(row["scheduled_time"]), float(row["deletion_time"]))
            for row in csv.DictReader(file)
        ]


@dataclass
class Replay:
    """The nodes, with `waits` tasks that wait at any time; each starts when it fits, as none before it could use it."""

    tasks: list[Task]
    nodes: int = 8
    waits: int = 5
    now: float = 0.0
    began: dict[int, float] = field(default_factory=dict)
    """Number of a task → its start."""
    ended: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = {f"node-{number}": EACH for number in range(self.nodes)}
        self.running: list[tuple[float, int, str]] = []
        self.waiting: list[int] = []
        self._next = 0

    def step(self) -> bool:
        """Go on to the next end, and start what fits then; False when all tasks have started."""
        if self.running:
            self.now, number, node = heappop(self.running)
            self.free[node] += self.tasks[number].gpus
            self.ended.append(number)
        while True:
            kept = dict.fromkeys(self.free, 0)
            self.waiting = [number for number in self.waiting if not self._starts(number, kept)]
            if len(self.waiting) == self.waits or self._next == len(self.tasks):
                return bool(self.waiting)
            self.waiting.append(self._next)
            self._next += 1

    def _starts(self, number: int, kept: dict[str, int]) -> bool:
        gpus = self.tasks[number].gpus
        there = [node for node, free in self.free.items() if free - kept[node] >= gpus]
        if not there:
            return False
        node = min(there, key=lambda name: self.free[name])
        self.free[node] -= gpus
        self.began[number] = self.now
        heappush(self.running, (self.now + self.tasks[number].runs_s, number, node))
        return True

    def scene(self) -> Scene:
        """Return what somebody knows who looks now."""
        past: dict[str, list[float]] = defaultdict(list)
        for number in self.ended:
            past[self.tasks[number].queue].append(self.tasks[number].runs_s)
        running = [
            Runs(self._life(number), self.now - self.began[number], {node: {GPUS: self.tasks[number].gpus}})
            for _, number, node in self.running
        ]
        waiting = [
            Waits(str(number), self._life(number), [(1, {GPUS: self.tasks[number].gpus})]) for number in self.waiting
        ]
        free = {node: {GPUS: gpus} for node, gpus in self.free.items()}
        return Scene(free, running, waiting, {queue: runs[-LATEST:] for queue, runs in past.items()})

    def _life(self, number: int) -> Life:
        return Life(self.tasks[number].queue)
