"""Recordings for tests: gangs that are played by hand-made histories, and recorded as the extender records them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explain_world import ExplainWorld

from extender.explain.clusterdump import READ
from extender.planner.cycle import Planning
from extender.planner.framework import config
from extender.planner.framework.session import Session
from extender.planner.state.feed import FEED
from extender.planner.timing import timing_of
from extender.record import lines
from extender.record.folder import RecordingFolder
from extender.record.hook import RecordingHook
from extender.record.recorder import PlannerRecorder
from extender.replay.loop import Replay
from extender.replay.replayedworld import ReplayedWorld
from extender.replay.workloads import History, ReplayedChange
from extender.simulate.members import SimulatedPod, SimulatedWorkload, members_of
from muster.api.kubernetes.core import NODES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES

GPU = "nvidia.com/gpu"
NODE, GROUP, QUEUE = NODES.full_name, POD_GROUPS.full_name, QUEUES.full_name
MIB = 1024 * 1024


def head(**more: Any) -> lines.Head:
    """The first line of a recording."""
    return lines.Head(format=lines.FORMAT, version="test", **more)


class NotingTold(ReplayedWorld):
    """Notes what the state is told, as the tap of the reflectors does."""

    def __init__(self, first: lines.Head, tap: RecordingHook) -> None:
        super().__init__(first)
        self.tap = tap

    def apply(self, kind: str, item: Any) -> None:
        """As it is, with a note."""
        known = self.objects[kind].get(item.metadata.key)
        if known is None or known.metadata.uid == item.metadata.uid:
            self.tap.changed(READ[kind], known, item)
        super().apply(kind, item)

    def forget(self, kind: str, key: str) -> None:
        """As it is, with a note."""
        self.tap.changed(READ[kind], self.objects[kind].get(key), None)
        super().forget(kind, key)


class NotingPlanning(Planning):
    """Notes its cycles."""

    def __init__(self, settings: Mapping[str, Any], tap: RecordingHook) -> None:
        super().__init__(config.parse(""), timing_of(settings)[0])
        self.tap = tap

    def run(self, *about: Any, **given: Any) -> Session:
        """As it is, with a note before and after."""
        self.tap.snapshot_taken()
        session = super().run(*about, **given)
        self.tap.decided(session)
        return session


class RecordedWorld:
    """A small cluster whose gangs come at times; `record` plays and records it."""

    def __init__(self, nodes: int = 0, **settings: Any) -> None:
        self.world = ExplainWorld().nodes(nodes)
        self.start_s = self.world.now
        self.history = History(head(settings=settings), self.start_s, self.start_s + 3600)

    def gang(self, name: str, at: float, runs_s: float, *, gpus: int = 8, pods: int = 1, queue: str = "default") -> str:
        """A gang that comes so many seconds after the start, and whose pods each run for so long."""
        self.world.now = self.start_s + at
        key = self.world.gang(name, {"worker": (pods, {GPU: gpus, "cpu": 1})}, queue=queue, phase="Pending")
        group = self.world.state.groups[key]
        came = self.start_s + at
        workload = SimulatedWorkload(key, GROUP, group, came, queue, self.world.job_of(key), minimum=pods)
        for place, member in members_of(workload).items():
            workload.members[place] = SimulatedPod(member.pod, came, "", since_s=came, ended_s=came + runs_s)
        workload.started_s = came
        self.history.workloads.append(workload)
        return key

    def changes(self) -> list[ReplayedChange]:
        """The nodes and queues."""
        told = self.world.state.told
        return [
            ReplayedChange(self.start_s, fed.resource.full_name, key, item)
            for fed in FEED
            if fed.resource not in (JOBS, POD_GROUPS)
            for key, item in told[fed.resource.full_name].items()
        ]

    def play(self) -> Replay:
        """Play it, unrecorded."""
        self.history.before = self.changes()
        return Replay(self.history, None, lambda _, item: item).run()

    @classmethod
    def capped(cls, folder: Path) -> Path:
        """Record two nodes, and a queue that may use one of them: its three gangs of 100 seconds run one by one."""
        world = cls(2)
        world.world.queue("team", capability={GPU: 8})
        for name in ("a", "b", "c"):
            world.gang(name, 0, 100, queue="team")
        world.record(folder)
        return folder

    def record(self, folder: Path, *, most_bytes: int = MIB, flush_each: bool = False) -> Replay:
        """Play it into a recording, as the extender writes one; `flush_each` begins a file with every cycle."""
        self.history.before = self.changes()
        loop = Replay(self.history, None, lambda _, item: item)
        ring = RecordingFolder(folder, most_bytes=most_bytes, most_age_s=1e9, wall_s=lambda: loop.now)
        tap = RecordingHook(PlannerRecorder(ring, head(settings=self.history.head.settings), wall_s=lambda: loop.now))
        loop.world = NotingTold(self.history.head, tap)
        loop.meter.state = loop.world.state
        loop.planning = NotingPlanning(self.history.head.settings, tap)
        if flush_each:
            tap.recorder._due = lambda: True  # type: ignore[method-assign]
        loop.run()
        tap.recorder.write()
        tap.recorder.stop()
        ring.close()
        return loop


def starts(loop: Replay, since_s: float) -> dict[str, float | None]:
    """Name of each gang → seconds after the start at which it started."""
    return {
        each.workload.key.partition("/")[2]: None if each.first_start_s is None else each.first_start_s - since_s
        for each in loop.all
    }
