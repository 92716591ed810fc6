"""Small scenarios, each with one plugin of somebody else, and what was decided; for tests of hooks."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from app_world import ask
from extender_world import World, cluster_of, of, only, slots
from gpus_world import shares
from verbs_world import error_of
from victims_world import Cluster, victims

from extender.app import ExtenderVerbs, create_app
from extender.barrier import Barrier
from extender.clusterstatus import QueueStatusWriter
from extender.explain.queues import queue_reports
from extender.explain.topology import topology_reports
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.verbs.bind import Bind
from extender.writes import WriteContext
from muster.api.names import PREEMPTABLE
from muster.api.volcano.scheduling import SubGroupPolicy

HALF = {"nvidia.com/gpu": 4}
WHOLE = {"nvidia.com/gpu": 8}
Fn = Callable[..., Any]
Functions = Callable[[Session], Mapping[str, Fn]]


class Third(PlainPlugin):
    """A plugin that registers functions made anew for each session, all but the one that is left out."""

    name = "third"

    def __init__(self, functions: Functions, left_out: str = "") -> None:
        super().__init__({})
        self._functions = functions
        self._left_out = left_out

    def on_session_open(self, session: Session) -> None:
        """Registers."""
        for hook, fn in self._functions(session).items():
            if hook != self._left_out:
                session.hooks.named(hook).add(fn)


@dataclass(frozen=True)
class Scenario:
    """One hook: functions that answer it (and those that it needs), a scenario, and its outcome without and with it."""

    functions: Functions
    outcome: Callable[[Third], object]
    without: object
    answered: object


def refused(session: Session, *nodes: str) -> Any:
    """Codes that leave out these nodes."""
    return np.array([session.causes.code("third") if session.snapshot.name(c) in nodes else 0
                     for c in range(len(session.snapshot.nodes))], dtype=np.int16)  # fmt: skip


def world_with(third: Third, nodes: int = 1) -> World:
    """A world with this plugin before all others."""
    world = World().nodes(nodes)
    world.plugins.insert(0, third)
    return world


def where(world: World) -> dict[str, dict[str, list[str]]]:
    """Gang → pod set → nodes, as one cycle decides."""
    return {place.gang.group.metadata.name: slots(place) for place in of(world.plan(), decisions.Place)}


def planned(third: Third, arrange: Callable[[World], object]) -> dict[str, dict[str, list[str]]]:
    """The same of a new world."""
    world = world_with(third, 0)
    arrange(world)
    return where(world)


def two_gangs(world: World, nodes: int = 1, gpus: Mapping[str, int] = WHOLE) -> None:
    """Gangs a and b of one pod each, a the older, in queues of the same names."""
    world.nodes(nodes)
    for name in "ab":
        world.queue(name)
        world.gang(name, {"worker": (1, gpus)}, queue=name)


def shared_gpu(third: Third) -> list[str]:
    """The GPU of the only node that a pod gets which shares one."""
    world = world_with(third)
    shares(world, "a", 1, gpu_fraction="0.5")
    return [gpu for pod_set in only(world.plan(), decisions.Place).pod_sets for gpu in pod_set.gpus]


def elastic(world: World) -> None:
    """A gang of three pod sets that needs the first, on a node that has room for one more."""
    world.nodes(1)
    world.gang("a", {"x": (1, HALF), "y": (1, HALF), "z": (1, HALF)}, min_member=1, min_task_member={"x": 1})


def sub_groups(world: World) -> None:
    """A gang of two sub-groups of two, of which it needs one, on a node that has room for one."""
    world.nodes(1)
    key = world.gang("a", {"worker": (4, HALF)}, min_member=2, min_task_member={})
    policy = [SubGroupPolicy(name="worker", sub_group_size=2)]
    world.change(world.state.groups[key], spec={"sub_group_policy": policy})


def pods_of_one_set(world: World) -> None:
    """Two pods that exist, of which one is needed, and a node for one."""
    world.nodes(1)
    world.members(world.gang("a", {"worker": (2, WHOLE)}, min_member=1, min_task_member={}), 2, WHOLE, gated=True)


def half_fits(world: World) -> None:
    """A gang that does not fit as a whole, tried on both nodes; then one of one pod."""
    world.nodes(2)
    world.gang("a", {"x": (1, WHOLE), "y": (2, WHOLE)})
    world.gang("b", {"worker": (1, HALF)})


def pending(third: Third) -> list[str]:
    """Gangs, of two, that are let in."""
    world = world_with(third)
    for name in "ab":
        world.gang(name, {"worker": (1, HALF)}, phase="Pending")
    return [each.gang.group.metadata.name for each in of(world.session(Enqueue()), decisions.AdmitGang)]


def preempted(third: Third, nodes: int = 2) -> set[str]:
    """Gangs of lower priority that go for one of one pod; each has a node, and low1 started last."""
    world = Cluster(nodes)
    world.plugins.insert(0, third)
    world.actions = [Preempt()]
    for number in range(nodes):
        world.started(world.runs(f"low{number}", 1, first=number), 100.0 * (nodes - number))
    world.asks("high", 1)
    return {name.partition("-")[0] for name in victims(world.cycle())}


def reclaimed(third: Third) -> set[str]:
    """Queues (a, b) that lose a gang to a third one; a and b have a node each."""
    return {name.partition("-")[0] for name in victims(_reclaiming(third))}


def reclaimed_marked(third: Third) -> set[str]:
    """The same if both gangs are marked, so that they are never evicted."""
    return {name.partition("-")[0] for name in victims(_reclaiming(third, marked=True))}


def told_of_reclaim(third: Third) -> str:
    """What the gang is told besides for which nothing is reclaimed."""
    return str(only(_reclaiming(third), decisions.Unschedulable).message).partition("needed; ")[2]


def _reclaiming(third: Third, *, marked: bool = False) -> Session:
    world = Cluster(2)
    world.plugins.insert(0, third)
    world.actions = [Reclaim()]
    for number, name in enumerate("abc"):
        world.queue(name)
        if name == "c":
            world.asks("c", 1, queue="c", priority_class="low")
        else:
            key = world.runs(name, 1, first=number, queue=name)
            world.annotate(key, PREEMPTABLE, str(not marked).lower())
    return world.cycle()


class _WhatIf:
    """As far as the reports ask it."""

    def __init__(self, session: Session) -> None:
        self.session = lambda: session
        self.decided = lambda: (session, [])


def deserved(third: Third) -> int:
    """What the report of queues says that the default one deserves."""
    world = world_with(third)
    reports = queue_reports(_WhatIf(world.session()))  # type: ignore[arg-type]
    return next(report.deserved.get("nvidia.com/gpu", 0) for report in reports if report.queue == "default")


def statuses(third: Third) -> dict[str, object]:
    """Queue → the fair share that is written into its status."""
    world = world_with(third)
    written: dict[str, object] = {}

    class Client:
        def merge_patch(self, _kind: object, name: str, patch: Mapping[str, Any], *, subresource: str) -> None:
            written[name] = patch[subresource]["fairShare"]

    class Writes:
        def start(self, _lane: object, _what: str, _name: str, write: Callable[[], object]) -> None:
            write()

    context = WriteContext(Client(), None, Writes(), None, lambda: 0.0, lambda: 0.0)  # type: ignore[arg-type]
    QueueStatusWriter(context).write(world.session())
    return written


def waits(third: Third) -> str:
    """Why a gang of two pods waits, in a cluster that has room for it."""
    world = world_with(third, 2)
    world.gang("a", {"worker": (2, WHOLE)})
    return only(world.session(Allocate()), decisions.Unschedulable).message.partition(";")[0]


def topologies(third: Third) -> list[str]:
    """Topologies that the report has."""
    world = world_with(third)
    return [report.name for report in topology_reports(_WhatIf(world.session()))]  # type: ignore[arg-type]


def behind_a_head(world: World) -> None:
    """A gang that does not fit, and one of the same queue behind it that does."""
    world.nodes(1)
    world.gang("a", {"worker": (2, WHOLE)})
    world.gang("b", {"worker": (1, WHOLE)})


async def _at_once(*_: object) -> None:
    """Nothing to wait for."""


def bound_with(third: Third) -> str | None:
    """The third plugin's annotation in the binding of a gang of one."""
    world = world_with(third)
    key = world.gang("a", {"worker": (1, WHOLE)})
    session = world.plan()
    pod = world.pod(key, "worker", 0, WHOLE, pin="node-0", epoch=1)
    written: dict[str, str] = {}

    class Binder:
        async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
            del namespace, name, uid, node
            written.update(annotations)

    cluster = cluster_of(world)
    cluster.until = _at_once
    barrier = Barrier(timeout_s=60.0, monotonic_s=lambda: 0.0)
    bind = Bind(
        cluster, barrier, Binder(), active=lambda: True, on_release=lambda *_: None, session=lambda: session  # type: ignore[arg-type]
    )  # fmt: skip
    assert asyncio.run(error_of(bind, pod, "node-0")) == ""
    return written.get("example.com/third")


def page(third: Third) -> object:
    """What the extender answers to a GET of the third plugin's page."""
    session = world_with(third, 0).session(Allocate())
    app = create_app(ExtenderVerbs(*[lambda _: None] * 4), session.hooks.http_handler.call)  # type: ignore[arg-type]
    return msgspec.json.decode(ask(app, "GET", "/plugins/third").body).get("said")
