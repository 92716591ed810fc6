"""A gang in one rack loses a node, and nothing else in the rack is free; one that holds nothing starts whole."""

import pytest
from extender_world import World, of, only, slots
from topology_world import Racks, racks_of

from extender.explain.members import pod_set_report
from extender.groupcontent import wanted_status
from extender.planner.actions import stalegangeviction
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.stalegangeviction import StaleGangEviction
from extender.planner.framework import decisions
from extender.planner.framework.config import SchedulerConfig
from extender.planner.state.state import PlannerState
from extender.planner.timing import Timing
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import Slot

GPU8 = {"nvidia.com/gpu": 8}


def dead_node() -> tuple[Racks, str]:
    """A gang of two in one rack of two nodes; one node dies, its pod is made anew. Another rack is empty."""
    world = Racks(1, 2, 2)
    world.timing = Timing(growth_delay_s=0.0)
    key = world.asks("a", 2, 8, required="rack", phase="Running")
    nodes = world.start(key, GPU8)
    assert racks_of(nodes) == ["b0r0", "b0r0"]
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index[nodes[1]]], None)
    made_again(world, key, world.pod(key, "worker", 1, GPU8, node=nodes[1], phase="Failed"), 1)
    return world, key


def test_it_is_told_what_the_rack_lacks() -> None:
    """No pod is above the minimum, and no other gang waits for which room would be kept."""
    world, _ = dead_node()
    why = only(world.plan(), decisions.Unschedulable)
    assert why.message == "1 pod must be in one domain of level rack; b0/r0, the closest of 2, has room for 0: 1 short"


def test_without_topology_it_is_told_what_all_nodes_lack() -> None:
    """The pod is one that the gang has lost."""
    world = Racks(1, 1, 2)
    key = world.asks("a", 2, 8, phase="Running")
    nodes = world.start(key, GPU8)
    world.node(nodes[1], gpus=0)
    made_again(world, key, world.pod(key, "worker", 1, GPU8, node=nodes[1], phase="Failed"), 1)
    why = only(world.plan(), decisions.Unschedulable)
    assert why.message.startswith("worker: 1 pod that the gang has lost waits for room; of 2 nodes: ")


def test_a_gang_is_looked_at_again_only_when_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most gangs have not: then a cycle need not count the members of all of them."""
    world, key = World(), ""
    world.nodes(2, gpus=8)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Running")
    for rank in range(2):
        world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running")
    looks: list[str] = []
    is_stale = stalegangeviction._is_stale
    monkeypatch.setattr(stalegangeviction, "_is_stale", lambda *of_gang: looks.append(key) or is_stale(*of_gang))
    stale = StaleGangEviction()
    for _ in range(3):
        world.session(stale)
    assert looks == [key]
    world.pod(key, "worker", 1, GPU8, node="node-1", phase="Failed")
    world.session(stale)
    assert looks == [key, key]


def test_it_moves_to_another_rack_after_the_grace_period() -> None:
    """By the actions that run unless others are configured: the rest is evicted, and all are placed together."""
    assert "stalegangeviction" in SchedulerConfig().actions.split(", ")
    world, key = dead_node()
    actions = Enqueue(), Allocate(), StaleGangEviction()
    assert not of(world.session(*actions), decisions.Evict)
    world.now += 61
    (evict,) = of(world.session(*actions), decisions.Evict)
    assert evict.pod.name == "a-worker-0"
    made_again(world, key, world.pod(key, "worker", 0, GPU8, node=evict.pod.node, phase="Failed"), 0)
    world.plan()
    assert racks_of(world.placed(key)["worker"]) == ["b0r1", "b0r1"]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("free", "given", "evicted"), [(2, 2, 0), (1, 0, 1), (0, 0, 1)])
def test_a_gang_is_not_placed_and_evicted_in_one_cycle(first: bool, free: int, given: int, evicted: int) -> None:  # noqa: FBT001
    """One of three is left as its time is over: room for both others completes it, room for one comes too late."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (3, GPU8)}, phase="Running")
    world.start(key, GPU8)
    stale = StaleGangEviction()
    for rank in (1, 2):
        made_again(world, key, world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Failed"), rank)
        if rank > free:
            world.pod("ns/other", "worker", rank, GPU8, node=f"node-{rank}", phase="Running")
    world.session(stale)
    world.now += 61
    actions = (stale, Allocate()) if first else (Allocate(), stale)
    session = world.session(*actions)
    if first and given:  # it cannot know what comes after it
        given, evicted = 0, 1
    assert sum(place.new_slots for place in of(session, decisions.Place)) == given
    assert len(of(session, decisions.Evict)) == evicted


def test_a_gang_whose_missing_members_are_on_their_way_is_not_evicted() -> None:
    """They have placed slots, and come to their nodes a moment later."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Running")
    world.start(key, GPU8)
    world.state.on_pod(world.pod(key, "worker", 1, GPU8, node="node-1", phase="Failed"), None)
    stale = StaleGangEviction()
    world.session(stale)
    world.now += 61
    world.pod(key, "worker", 1, GPU8, gated=True)
    assert len(of(world.plan(), decisions.Place)) == 1
    assert not of(world.session(stale), decisions.Evict)


def test_members_that_are_done_and_gone_are_not_missed() -> None:
    """As if their pods existed: the rest stays if one more is lost, and a new start needs no capacity for them."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (3, GPU8)}, phase="Running")
    nodes = world.start(key, GPU8)
    world.state.on_pod(world.pod(key, "worker", 2, GPU8, node=nodes[2], phase="Succeeded"), None)
    assert world.view(key).taken == 2
    world.done(key, Slot("worker", 2))
    status = wanted_status(world.view(key), enqueued=False, placed=False, waits=None, now=world.now)
    assert (status.phase, status.succeeded) == ("Running", 1)
    assert pod_set_report(world.view(key), world.view(key).pod_sets[0]).done == 1
    world.node(nodes[2], gpus=0)
    world.state.on_pod(world.pod(key, "worker", 1, GPU8, node=nodes[1]), None)
    stale = StaleGangEviction()
    for _ in range(2):
        assert not of(world.session(stale), decisions.Evict)
        world.now += 61
    for rank in range(2):
        made_again(world, key, world.pod(key, "worker", rank, GPU8, node=nodes[rank], phase="Failed"), rank)
    assert slots(only(world.plan(), decisions.Place)) == {"worker": nodes[:2]}


def test_a_gang_that_waits_for_the_node_of_its_failed_member_is_not_evicted() -> None:
    """It fits nowhere else, and the node is left out for as long as the grace period lasts."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Running")
    world.start(key, GPU8)
    made_again(world, key, world.pod(key, "worker", 1, GPU8, node="node-1", phase="Failed"), 1)
    stale = StaleGangEviction()
    for seconds in (0, 30, 59):
        world.now += seconds
        session = world.session(world.progress, Enqueue(), Allocate(), stale)
        world.avoid(session)
        assert not of(session, decisions.Place) + of(session, decisions.Evict)
        world.now -= seconds
    world.now += 62
    session = world.session(world.progress, Enqueue(), Allocate(), stale)
    assert not of(session, decisions.Evict)
    assert len(of(session, decisions.Place)) == 1


def running(world: World, members: int = 4) -> tuple[str, list[Pod]]:
    """A gang of whole-node members that runs."""
    world.nodes(members)
    key = world.gang("a", {"worker": (members, GPU8)}, phase="Running")
    world.plan()
    world.members(key, members, GPU8, node="node-{}", pinned=True, epoch=1, phase="Running")
    pods = [world.state.pod_objects[f"uid-a-worker-{rank}"] for rank in range(members)]
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
    assert slots(only(world.plan(), decisions.Place)) == {"worker": ["node-0", "node-1", "node-2", "node-4"]}
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
    assert slots(only(world.plan(), decisions.Place))["worker"][2:] == ["node-2", "node-3"]


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
    """`PlannerState.started` answers bind calls without a view where it can."""
    world = World()
    key, pods = running(world, 2)
    for pod in pods[alive:]:
        world.state.on_pod(pod, None)
    state: PlannerState = world.state
    assert state.started(key) == world.view(key).started == bool(alive)
