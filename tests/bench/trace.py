"""A production trace through the planner in memory: how many of the GPUs are given away, by policy.

The folder of the traces is named by the environment variable MUSTER_TRACES (the CSV files of the openb trace, published
with "Beware of Fragmentation", USENIX ATC 2023). Tasks arrive in random order until those that came ask for 130 % of
all GPUs; nobody leaves; each is placed at once or not at all. MUSTER_TRACE_SEEDS says how many of the ten seeds to run.
"""

import csv
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from extender_world import World

from extender.planner.actions.fill import fill
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.registry import PlannerPlugin
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.framework.statement import Statement
from extender.planner.plugins.fragmentation import Fragmentation
from extender.planner.plugins.nodeorder import NodeOrder
from extender.planner.plugins.scores import GpuPack, GpuSharingOrder, GpuSpread, NodePlacement
from extender.planner.plugins.worth import PodKind, kind_of
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from muster.api.kubernetes.core import Node, NodeStatus, PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec
from tests.bench.timing import Result

SEEDS = range(42, 52)
ARRIVE = 1.3
MARKS = (0.9, 1.0, 1.2, 1.3)
GOALS = {"default": 95.4, "multigpu50": 97.2}
"""Of all GPUs, in %, when 130 % have arrived."""
MOST_MS = 1.0
"""Per task, at 1,213 nodes."""
WHOLE = 1000


class Task(NamedTuple):
    """One task of the trace: milli-CPU, MiB, GPUs, and thousandths of each."""

    cpu: int
    memory: int
    gpus: int
    portion: int

    @property
    def asked(self) -> int:
        """Thousandths of GPUs."""
        return self.gpus * self.portion


@dataclass(frozen=True, slots=True)
class Outcome:
    """GPUs allocated, in % of all, at each mark; unusable ones at the end; milliseconds per task."""

    allocated: tuple[float, ...]
    fragmented: float
    ms: float
    largest: float
    """Of the gangs of 8 and more GPUs the part that started, in %."""


POLICIES: dict[str, Callable[[], list[PlannerPlugin]]] = {
    "spread": lambda: [NodePlacement({"gpu": "spread", "cpu": "spread"}), GpuSpread({})],
    "leastrequested": lambda: [NodeOrder({})],
    "binpack": lambda: [NodePlacement({}), GpuPack({}), GpuSharingOrder({})],
    "fragmentation, fill 0": lambda: [Fragmentation({"fill": 0})],
    "fragmentation, fill 1": lambda: [Fragmentation({"fill": 1})],
    "fragmentation": lambda: [Fragmentation({})],
}


def run() -> Iterator[Result]:
    """Prints the figures per workload and policy; the results are the times per task."""
    folder = Path(os.environ.get("MUSTER_TRACES", ""))
    if not (folder / "openb_node_list_gpu_node.csv").is_file():
        print("trace: MUSTER_TRACES does not name a folder with openb_node_list_gpu_node.csv; nothing is replayed")
        return
    nodes = read_nodes(folder)
    seeds = SEEDS[: int(os.environ.get("MUSTER_TRACE_SEEDS", len(SEEDS)))]
    for file in sorted(folder.glob("openb_pod_list_*.csv")):
        workload = file.stem.removeprefix("openb_pod_list_")
        tasks = read_tasks(file)
        for what, gangs in (("single tasks", False), ("gangs", True)):
            for policy, plugins in POLICIES.items():
                outcomes = [replay(nodes, tasks, seed, plugins(), gangs=gangs) for seed in seeds]
                yield _told(workload, what, policy, outcomes)


def _told(workload: str, what: str, policy: str, outcomes: list[Outcome]) -> Result:
    means = [statistics.mean(each) for each in zip(*(outcome.allocated for outcome in outcomes), strict=True)]
    lost = statistics.mean(outcome.fragmented for outcome in outcomes)
    large = statistics.mean(outcome.largest for outcome in outcomes)
    goal = (
        f", goal {GOALS[workload]}" if workload in GOALS and policy == "fragmentation" and "gangs" not in what else ""
    )
    shares = " / ".join(f"{mean:.2f}" for mean in means)
    said = f"{shares} % allocated{goal}, {lost:.2f} % fragmented, {large:.1f} % of large gangs started"
    print(f"{workload}, {what}, {policy}: {said}")
    return Result(f"{workload}, {what}, {policy}, per task", statistics.mean(each.ms for each in outcomes), MOST_MS)


def read_nodes(folder: Path) -> list[Node]:
    """The nodes of the cluster."""
    with (folder / "openb_node_list_gpu_node.csv").open() as file:
        return [
            Node(
                metadata=ObjectMeta(name=row["sn"], uid=row["sn"]),
                status=NodeStatus(
                    allocatable={
                        "cpu": f"{row['cpu_milli']}m",
                        "memory": f"{row['memory_mib']}Mi",
                        "nvidia.com/gpu": row["gpu"],
                        "pods": 1000,
                    }
                ),
            )
            for row in csv.DictReader(file)
        ]


def read_tasks(file: Path) -> list[Task]:
    """The tasks of one workload."""
    with file.open() as lines:
        return [
            Task(int(row["cpu_milli"]), int(row["memory_mib"]), int(row["num_gpu"]), int(row["gpu_milli"]))
            for row in csv.DictReader(lines)
        ]


def arrivals(tasks: list[Task], total: int, seed: int) -> Iterator[Task]:
    """Tasks in random order until they ask for 130 %; beyond all of them at random again."""
    rng = random.Random(seed)  # noqa: S311 - a simulation
    order, asked, number = rng.sample(tasks, len(tasks)), 0, 0
    while asked < ARRIVE * total:
        task = order[number] if number < len(order) else rng.choice(tasks)
        number += 1
        asked += task.asked
        yield task


class Replay:
    """One session over the cluster, into which tasks come."""

    def __init__(self, nodes: list[Node], plugins: list[PlannerPlugin]) -> None:
        world = World(checked=False)
        for node in nodes:
            world.state.on_node(None, node)
        self.classes = world.state.classes
        self.session = Session(CycleInputs(snapshot=take_snapshot(world.state), now=0.0))
        self._learner = next((plugin for plugin in plugins if isinstance(plugin, Fragmentation)), None)
        for plugin in plugins:
            plugin.on_session_open(self.session)
        self._known: dict[Task, tuple[PodClass, PodKind]] = {}

    def class_of(self, task: Task) -> tuple[PodClass, PodKind]:
        """The class that pods of a task are of."""
        if task not in self._known:
            requests: dict[str, Any] = {"cpu": f"{task.cpu}m", "memory": f"{task.memory}Mi"}
            part = task.gpus == 1 and task.portion < WHOLE
            if task.gpus and not part:
                requests["nvidia.com/gpu"] = task.gpus
            spec = msgspec.convert(World.pod_spec(requests), PodSpec)
            annotations = {"gpu-fraction": f"0.{task.portion:03}"} if part else {}
            cls = self.classes.of_spec(spec, annotations=annotations)
            self._known[task] = cls, kind_of(cls, self.session.snapshot)
        return self._known[task]

    def come(self, task: Task, members: int) -> bool:
        """A gang of so many such tasks comes and is placed whole, or not at all."""
        cls, kind = self.class_of(task)
        if self._learner is not None:
            self._learner.learn({kind: members})
        pod_set = PodSetView("task", cls, members, members, template=True)
        group = PodGroup(metadata=ObjectMeta(name="task"), spec=PodGroupSpec(min_member=members))
        gang = GangView("ns/task", group, 0, [pod_set], [], None, 0)
        statement = Statement(self.session)
        if fill(self.session, statement, gang, pod_set, range(members)) < members:
            statement.discard()
            return False
        statement.commit()
        return True


def replay(
    nodes: list[Node], tasks: list[Task], seed: int, plugins: list[PlannerPlugin], *, gangs: bool = False
) -> Outcome:
    """Lets tasks come; as `gangs` each comes as 1, 2, 4 or 8 of its kind at once."""
    replayed = Replay(nodes, plugins)
    total = sum(int(node.status.allocatable["nvidia.com/gpu"]) for node in nodes) * WHOLE
    sizes = random.Random(seed)  # noqa: S311 - a simulation
    came, given, marks, count, large, started = 0, 0, list[float](), 0, 0, 0
    begun = time.thread_time()
    for task in arrivals(tasks, total, seed):
        members = sizes.choice((1, 2, 4, 8)) if gangs else 1
        placed = replayed.come(task, members)
        count += members
        came += task.asked * members
        given += task.asked * members * placed
        if task.asked * members >= 8 * WHOLE:
            large, started = large + 1, started + placed
        while len(marks) < len(MARKS) and came >= MARKS[len(marks)] * total:
            marks.append(100 * given / total)
        if len(marks) == len(MARKS):
            break
    ms = (time.thread_time() - begun) * 1000 / count
    return Outcome(tuple(marks), _fragmented(replayed, tasks, total), ms, 100 * started / max(large, 1))


def _fragmented(replayed: Replay, tasks: list[Task], total: int) -> float:
    """GPUs that the expected next task cannot use, in % of all; only the next one counts."""
    mix = Fragmentation({"fill": 0, "coverage": 1, "kinds": 10_000})
    kinds = [replayed.class_of(task)[1] for task in tasks]
    mix.learn({kind: kinds.count(kind) for kind in set(kinds)})
    worth = mix.worth(replayed.session)
    free = replayed.session.snapshot.free[replayed.session.snapshot.axis["nvidia.com/gpu"]].sum()
    return 100 * (float(free) - float(worth.sum())) / total
