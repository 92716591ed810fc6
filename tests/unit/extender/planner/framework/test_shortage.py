"""Why pods find no room, in numbers: causes by node, the scarcest resource, and how nearly they fit."""

from typing import Any

import numpy as np
import pytest
from devices_world import Devices, asks, claim_use, exactly
from extender_world import World

from extender.planner.framework.answers import ClosestDomain
from extender.planner.framework.session import Session
from extender.planner.framework.shortage import lost, near, shortage
from extender.planner.reasons.shortages import Level, Shortage
from extender.planner.reasons.topology import Closest
from extender.planner.state.gangs import GangView
from extender.planner.state.podset import PodSetView

GPU = "nvidia.com/gpu"


def opened(world: World, requests: dict[str, Any], pods: int = 3, **more: Any) -> tuple[Session, GangView]:
    """A cycle over a world, and a gang in it whose pods ask for this."""
    key = world.gang("a", {"worker": (pods, requests)}, **more)
    session = world.session()
    return session, session.gang(key)


def used(*used: int, **more: Any) -> World:
    """Nodes of 8 GPUs, of which others use so many."""
    world = World()
    for number, gpus in enumerate(used):
        world.node(f"node-{number}", **more)
        if gpus:
            world.pod("ns/other", "t", number, {GPU: gpus}, node=f"node-{number}", phase="Running")
    return world


def causes(found: Shortage) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """The causes in short."""
    return [(each.words, each.nodes, each.roomy, each.examples) for each in found.causes]


def test_causes_by_node_and_how_nearly_pods_fit() -> None:
    """Now, and in the empty cluster; a cordoned node counts once, for that, and the most free amounts are told."""
    world = used(5, 5, 2, 8, 0, 7)
    world.node("node-4", unschedulable=True)
    world.node("node-6")
    session, gang = opened(world, {GPU: 8, "cpu": 1})
    now = shortage(session, gang, gang.pod_sets[0], 3, 1)
    assert causes(now) == [(f"too little {GPU}", 5, 0, ("node-0", "node-1", "node-2")), ("cordoned", 1, 1, ("node-4",))]
    assert (now.nodes, now.roomy, now.wanted, now.placed, now.running) == (7, 1, 3, 1, 0)
    assert (now.miss.pods, now.miss.resource, now.miss.amount, now.miss.whole_nodes) == (2, GPU, 8000, True)
    assert now.miss.levels == (Level(6000, 1), Level(3000, 2))
    ever = shortage(session, gang, gang.pod_sets[0], 3, 1, kind="ever")
    assert (causes(ever), ever.roomy, ever.miss.levels if ever.miss else None) == ([], 7, ())


@pytest.mark.parametrize(("requests", "more", "resource", "whole"), [
    ({"cpu": 16, GPU: 1}, {"unschedulable": True}, "cpu", False),
    ({"cpu": 3, GPU: 4}, {"unschedulable": True}, GPU, False),
    ({"cpu": 17, "pods": 1}, {"unschedulable": True}, "cpu", True),
    ({"cpu": 33}, {}, "cpu", True),
    ({"cpu": 1, "example.com/none": 1}, {}, "example.com/none", True),
    ({"example.com/none": 2, "cpu": 1}, {"unschedulable": True}, "example.com/none", True),
    ({GPU: 0}, {"unschedulable": True}, "", False),
])  # fmt: skip
def test_the_scarcest_resource(requests: dict[str, Any], more: dict[str, Any], resource: str, *, whole: bool) -> None:
    """That which most nodes lack, or where none does, that of which a pod takes the most."""
    session, gang = opened(used(0, 0, **more), requests)
    miss = shortage(session, gang, gang.pod_sets[0], 3, 0).miss
    assert (miss.resource, miss.whole_nodes) == (resource, whole)


def test_parts_of_gpus_that_no_gpu_has_left_are_gpus() -> None:
    """Also where there is enough of all GPUs together."""
    world = used(4, 4)
    for rank in range(8):
        told = {"gpu-fraction": "0.6", "muster.dev/gpu-devices": str(rank // 2), "scheduling.k8s.io/group-name": "o"}
        world.pod("ns/o", "t", rank, {"cpu": 1}, node=f"node-{rank % 2}", phase="Running", annotations=told)
    session, gang = opened(world, {"cpu": 1}, notes={"gpu-fraction": "0.5"})
    found = shortage(session, gang, gang.pod_sets[0], 3, 0)
    assert [(nodes, roomy) for _, nodes, roomy, _ in causes(found)] == [(2, 0)]
    assert (found.miss.resource, found.miss.amount) == (GPU, 500)


def test_a_claim_that_too_many_pods_would_use_keeps_them_off_every_node() -> None:
    """Whatever room there is."""
    world = Devices().gpus(2, 1).device_class()
    world.claim("c", asks(exactly()))
    session, gang = opened(world, {"cpu": 1}, pods=257, spec=claim_use("c"))
    found = shortage(session, gang, gang.pod_sets[0], 257, 0)
    assert causes(found)[0][:2] == ("resource claim ns/c is used by 0 pods, but at most 256 may use it", 2)
    assert found.roomy == 0
    assert shortage(session, gang, gang.pod_sets[0], 256, 0).roomy == 2


def test_a_pod_set_without_pods_or_a_template_says_how_many_nodes_there_are() -> None:
    """Nobody knows what its pods ask for."""
    session, gang = opened(used(0, 0), {"cpu": 1})
    found = shortage(session, gang, PodSetView("later", None, 2, 2), 2, 0)
    assert (found.pod_set, found.nodes, found.roomy, found.causes, found.miss) == ("later", 2, 0, (), None)


@pytest.mark.parametrize(("held", "wanted", "why", "in_domain"), [
    (1, 2, "", True), (2, 2, "", False), (3, 2, "", False), (2, 2, "others are there", True),
])  # fmt: skip
def test_lost_members_lack_room_in_the_domain_of_others(held: int, wanted: int, why: str, *, in_domain: bool) -> None:
    """Unless that has room for them, or no node has."""
    session, gang = opened(used(0, 0), {GPU: 8})
    said = Closest("worker", "racks", "rack", "r0", held=held, wanted=wanted, domains=2, why=why)
    slots = {"worker": [1, 2]}
    assert lost(session, gang, gang.pod_sets[0], slots).closest is None
    session.hooks.closest_domain.add(lambda *_, ever=False: ClosestDomain(said, np.ones(2, dtype=np.bool_)))  # noqa: ARG005
    found = lost(session, gang, gang.pod_sets[0], slots)
    assert (found.closest == said, found.kind, found.wanted) == (in_domain, "lost", 2)
    full, other = opened(used(8, 8), {GPU: 8})
    full.hooks.closest_domain.add(lambda *_, ever=False: ClosestDomain(said, np.ones(2, dtype=np.bool_)))  # noqa: ARG005
    assert lost(full, other, other.pod_sets[0], slots).closest is None


@pytest.mark.parametrize(("part", "pod_set"), [("b", "b"), ("b-0", "b"), ("elsewhere", "a")])
def test_a_gang_that_no_domain_holds_lacks_room_for_the_part_that_comes_closest(part: str, pod_set: str) -> None:
    """By the name of the part; else for its first one."""
    world = used(0, 0)
    key = world.gang("g", {"none": (1, {"cpu": 1}), "a": (2, {GPU: 8}), "b": (3, {GPU: 4})})
    session = world.session()
    gang = session.gang(key)
    said = Closest(part, "racks", "rack", "r0", held=9, wanted=5, domains=2)
    found = near(session, gang, {"a": [0, 1], "b": [0, 1, 2]}, said)
    assert (found.pod_set, found.wanted, found.placed, found.closest, found.kind) == (pod_set, 5, 5, said, "together")
    assert near(session, gang, {"a": [0, 1], "b": [0, 1, 2]}, said, ever=True).kind == "ever"
