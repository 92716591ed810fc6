"""A cluster in memory whose gangs start as soon as they are placed, and end: for tests of who waits how long."""

from dataclasses import dataclass, field
from typing import Any

from extender_world import World, of, slots

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.order import GangPlugin, Priority
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from muster.api.kubernetes.core import Pod


def shared_world(nodes: int) -> World:
    """Nodes of 8 GPUs, and the plugin that shares them among queues."""
    world = World().nodes(nodes)
    world.plugins = [GangPlugin({}), Proportion({}), Predicates({}), Priority({})]
    return world


@dataclass
class Run:
    """A gang that was submitted."""

    key: str
    requests: dict[str, Any]
    lasts_s: float
    submitted: float
    started: float | None = None
    pods: list[Pod] = field(default_factory=list)


class QueueWorld(World):
    """Time goes in steps; each has one cycle. Gangs of one task `worker` whose pods take whole GPUs."""

    may_fail = False

    def __init__(self, *, nodes: int, gpus: int = 1) -> None:
        super().__init__(checked=False)
        self.nodes(nodes, gpus=gpus)
        self.runs: dict[str, Run] = {}

    def submit(self, name: str, members: int, *, lasts_s: float, declared_s: float | None = None, **more: Any) -> str:
        """A gang of one-GPU pods that runs for so long, and may say another time."""
        requests = {"nvidia.com/gpu": 1}
        runtime = "" if declared_s is None else f"{declared_s:g}s"
        key = self.gang(name, {"worker": (members, requests)}, runtime=runtime, **more)
        self.runs[key] = Run(key, requests, lasts_s, self.now)
        return key

    def joins(self, name: str, members: int, **more: Any) -> Session:
        """A gang is submitted, and the step after that."""
        self.submit(name, members, **more)
        return self.step()

    def step(self, seconds: float = 1.0) -> Session:
        """So much later: gangs whose time is over end, and one cycle places others, which start at once."""
        self.now += seconds
        for run in self.runs.values():
            if run.started is not None and run.pods and self.now >= run.started + run.lasts_s:
                self._end(run)
        session = self.plan()
        places = of(session, decisions.Place)
        for place in places:
            self._start(self.runs[place.gang.key], place)
        if places:
            self.close(self.session(self.progress))
        return session

    @property
    def started(self) -> set[str]:
        """Names of the gangs that have started."""
        return {key.removeprefix("ns/") for key, run in self.runs.items() if run.started is not None}

    def message(self, name: str) -> str:
        """Why a gang waits after the next step."""
        [waits] = [each for each in of(self.step(), decisions.Unschedulable) if each.gang.key == f"ns/{name}"]
        return str(waits.message)

    def until_started(self, key: str, most_s: int, step_s: int = 1) -> float:
        """When the gang started, after stepping for so long at most."""
        for _ in range(0, most_s, step_s):
            if self.runs[key].started is not None:
                break
            self.step(step_s)
        started = self.runs[key].started
        assert started is not None, f"{key} has not started"
        return started

    def _start(self, run: Run, place: decisions.Place) -> None:
        run.started = self.now
        for rank, node in enumerate(slots(place)["worker"]):
            pod = self.pod(
                run.key, "worker", rank, run.requests, node=node, pin=node, epoch=place.epoch, phase="Running",
                since=self.now,
            )  # fmt: skip
            run.pods.append(pod)

    def _end(self, run: Run) -> None:
        for pod in run.pods:
            self.state.on_pod(pod, None)
        run.pods.clear()
        group = self.state.groups[run.key]
        placement = self.state.placements.get(run.key)
        if placement is not None:
            self.state.on_placement(placement, None)
        self.state.on_pod_group(group, None)
