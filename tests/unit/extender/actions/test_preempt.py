"""Preemption within a queue: whom, whom not, and that the room is the asker's until it starts."""

from typing import Any

import pytest
from extender_world import World, of

from extender.actions.allocate import Allocate
from extender.actions.enqueue import Enqueue
from extender.actions.preempt import Preempt
from extender.framework.decisions import Evict, MakeRoom, Place, Release, RoomIsThere, Unschedulable
from extender.framework.session import Session
from muster.api.core import PriorityClass
from muster.api.meta import ObjectMeta


class Cluster(World):
    """Nodes of 8 GPUs, and two priority classes."""

    def __init__(self, nodes: int = 2) -> None:
        super().__init__()
        self.nodes(nodes)
        self.preempt = Preempt()
        for name, value, policy in (("low", 1, ""), ("high", 10, ""), ("meek", 10, "Never")):
            meta = ObjectMeta(name=name, uid=name)
            self.state.on_priority_class(None, PriorityClass(metadata=meta, value=value, preemption_policy=policy))

    def runs(self, name: str, pods: int, gpus: int = 8, first: int = 0, **more: Any) -> str:
        """A gang that runs, as many pods per node as fit."""
        requests = {"nvidia.com/gpu": gpus}
        key = self.gang(name, {"worker": (pods, requests)}, phase="Running", **{"priority_class": "low"} | more)
        for rank in range(pods):
            node = f"node-{first + rank * gpus // 8}"
            self.pod(key, "worker", rank, requests, node=node, phase="Running")
        return key

    def asks(self, name: str, pods: int, gpus: int = 8, priority_class: str = "high", **more: Any) -> str:
        """A gang that waits, its pods gated."""
        requests = {"nvidia.com/gpu": gpus}
        key = self.gang(name, {"worker": (pods, requests)}, priority_class=priority_class, **more)
        for rank in range(pods):
            self.pod(key, "worker", rank, requests, gated=True)
        return key

    def cycle(self) -> Session:
        """One cycle with preempt; placements are written."""
        session = self.session(self.progress, Enqueue(), Allocate(), self.preempt)
        for place in of(session, Place):
            self.place(place)
        return session


def victims(session: Session) -> set[str]:
    """Names of the pods that go."""
    return {pod.name for room in of(session, MakeRoom) for _, pod in room.victims}


def test_a_gang_of_higher_priority_takes_the_place_of_a_lower_one_as_a_whole() -> None:
    """All of the victim goes, the asker has a placement, and its pods wait until the victim is gone."""
    world = Cluster()
    victim, asker = world.runs("low", 2), world.asks("high", 2)
    session = world.cycle()
    assert victims(session) == {"low-worker-0", "low-worker-1"}
    assert [place.gang.key for place in of(session, Place)] == [asker]
    assert asker not in {each.gang.key for each in of(session, Unschedulable)}
    assert {each.gang.key: each.reason for each in of(session, Unschedulable)} == {victim: "Evicted"}

    again = world.cycle()
    assert of(again, Release) == []
    assert victims(again) == {"low-worker-0", "low-worker-1"}, "nobody has told them yet"
    for rank in range(2):
        world.pod(
            victim, "worker", rank, {"nvidia.com/gpu": 8}, node=f"node-{rank}", phase="Running",
            deletion_timestamp="2027-01-15T08:00:10Z",
        )  # fmt: skip
    waiting = world.cycle()
    assert not of(waiting, MakeRoom)
    assert not of(waiting, Release)
    assert not of(waiting, RoomIsThere)
    for pod in [pod for pod in world.state.pod_objects.values() if pod.metadata.name.startswith("low")]:
        world.state.on_pod(pod, None)
    there = world.cycle()
    assert [each.gang.key for each in of(there, RoomIsThere)] == [asker]
    world.room_is_there(there)
    assert len(of(world.cycle(), Release)) == 2


@pytest.mark.parametrize(
    ("asker", "victim"),
    [
        pytest.param({"priority_class": "low"}, {}, id="not lower"),
        pytest.param({"priority_class": "meek"}, {}, id="preemptionPolicy Never"),
        pytest.param({"queue": "other"}, {}, id="another queue"),
    ],
)
def test_nobody_goes(asker: dict[str, Any], victim: dict[str, Any]) -> None:
    """Where the rules forbid it."""
    world = Cluster()
    world.queue("other")
    world.runs("low", 2, **victim)
    world.asks("high", 2, **asker)
    session = world.cycle()
    assert not of(session, MakeRoom)
    assert not of(session, Evict)
    assert not of(session, Place)


def test_pods_above_the_minimum_go_before_whole_gangs() -> None:
    """One elastic gang gives one pod; the others keep theirs."""
    world = Cluster(3)
    world.runs("rigid", 1, first=0)
    world.runs("elastic", 2, first=1, min_member=1, min_task_member={})
    world.asks("high", 1)
    assert victims(world.cycle()) == {"elastic-worker-1"}


def test_nobody_goes_for_a_gang_that_then_does_not_fit() -> None:
    """Three nodes cannot be had from two."""
    world = Cluster(3)
    world.runs("low", 2)
    world.runs("top", 1, first=2, priority_class="high")
    world.asks("high", 3)
    session = world.cycle()
    assert not of(session, MakeRoom)
    assert [each.reason for each in of(session, Unschedulable)] == ["NotEnoughResources"]


def test_what_is_not_needed_stays() -> None:
    """Of four small gangs those on one node go, not those that come first."""
    world = Cluster(2)
    for number in range(4):
        world.runs(f"small-{number}", 1, gpus=4, first=number % 2)
    world.asks("high", 1)
    session = world.cycle()
    assert len(victims(session)) == 2
    assert len({pod.node for room in of(session, MakeRoom) for _, pod in room.victims}) == 1


def test_what_is_going_already_is_waited_for() -> None:
    """A pod that is being deleted makes the room: nobody else goes."""
    world = Cluster(2)
    world.runs("low", 1)
    ending = world.runs("ending", 1, first=1)
    world.pod(
        ending, "worker", 0, {"nvidia.com/gpu": 8}, node="node-1", phase="Running",
        deletion_timestamp="2027-01-15T08:00:10Z",
    )  # fmt: skip
    world.asks("high", 1)
    assert not victims(world.cycle())
