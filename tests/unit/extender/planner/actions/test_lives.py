"""A gang that holds nothing starts whole: the first time, and every later time."""

import pytest
from extender_world import World, of, slots

from extender.planner.framework import decisions
from extender.planner.state.state import State
from muster.api.kubernetes.core import Pod

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}


def running(world: World, members: int = 4) -> tuple[str, list[Pod]]:
    """A gang of whole-node members that runs."""
    world.nodes(members)
    key = world.gang("a", {"worker": (members, GPU8)}, phase="Running")
    world.plan()
    pods = [
        world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", pin=f"node-{rank}", epoch=1, phase="Running")
        for rank in range(members)
    ]
    world.close(world.plan())
    assert world.state.placements[key].status.started
    assert world.view(key).started
    return key, pods


def made_again(world: World, key: str, pod: Pod, rank: int) -> None:
    """The pod is gone, and its owner makes another one."""
    world.state.on_pod(pod, None)
    world.pod(key, "worker", rank, GPU8, gated=True)


def test_a_gang_that_lost_all_its_members_waits_until_it_fits_as_a_whole() -> None:
    """A node is lost, the rest was evicted: three nodes are not enough for four."""
    world = World()
    key, pods = running(world)
    world.node("node-3", unschedulable=True)
    for rank, pod in enumerate(pods):
        made_again(world, key, pod, rank)
    session = world.plan()
    assert not of(session, decisions.Place)
    [waits] = of(session, decisions.Unschedulable)
    assert "room is missing for 4 pods of 8 nvidia.com/gpu each: 3 fit now" in waits.message
    world.node("node-4")
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"worker": ["node-0", "node-1", "node-2", "node-4"]}
    assert not world.state.placements[key].status.started
    assert not world.state.started(key), "its members must wait for each other at the barrier"


def test_a_gang_starts_again_once_all_its_pods_exist_again() -> None:
    """They come one after the other, and those that failed are still there."""
    world = World()
    key, pods = running(world, 2)
    world.members(key, 2, GPU8, node="node-{}", pinned=True, epoch=1, phase="Failed")
    assert not of(world.plan(), decisions.Place), "its owner decides whether they come again"
    made_again(world, key, pods[0], 0)
    assert not of(world.plan(), decisions.Place)
    made_again(world, key, pods[1], 1)
    [place] = of(world.plan(), decisions.Place)
    assert (slots(place), place.epoch) == ({"worker": ["node-0", "node-1"]}, 2)


def test_members_that_succeeded_count_when_the_others_start_again_together() -> None:
    """Two of four are done, the others failed and come again: those two start together or not at all."""
    world = World()
    key, pods = running(world)
    world.members(key, 2, GPU8, node="node-{}", pinned=True, epoch=1, phase="Succeeded")
    for name in ("node-0", "node-1", "node-2"):
        world.node(name, unschedulable=True)
    made_again(world, key, pods[2], 2)
    made_again(world, key, pods[3], 3)
    assert not world.view(key).started
    assert not of(world.plan(), decisions.Place)
    world.node("node-2")
    [place] = of(world.plan(), decisions.Place)
    assert slots(place)["worker"][2:] == ["node-2", "node-3"]


def test_one_member_of_a_running_gang_comes_back_alone_while_another_one_holds_a_node() -> None:
    """The life of the gang goes on."""
    world = World()
    key, pods = running(world, 2)
    made_again(world, key, pods[1], 1)
    assert of(world.plan(), decisions.Place)
    assert world.state.placements[key].status.started
    assert world.state.started(key)


@pytest.mark.parametrize("alive", [0, 1, 2])
def test_the_barrier_and_the_planner_agree_on_whether_a_gang_has_started(alive: int) -> None:
    """`State.started` answers bind calls without a view where it can."""
    world = World()
    key, pods = running(world, 2)
    for pod in pods[alive:]:
        world.state.on_pod(pod, None)
    state: State = world.state
    assert state.started(key) == world.view(key).started == bool(alive)
