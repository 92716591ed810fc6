"""Room of placed slots whose pods are gone for a moment: nobody else gets it until the placement ends."""

from collections.abc import Sequence

import pytest
from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from repair_world import RepairWorld

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.placedslots import PlacedSlot
from muster.api.kubernetes.core import Pod
from muster.api.muster.placement import Placement

GPU8 = {"nvidia.com/gpu": 8}


def placed(world: World) -> tuple[Placement, list[Pod]]:
    """A gang of two pods that no template describes, on two nodes of eight GPUs, and the pods."""
    world.nodes(2)
    key = world.gang("a", {}, min_member=2)
    pods = [world.pod(key, "pods", rank, GPU8, gated=True) for rank in range(2)]
    world.plan()
    return world.state.placements[key], pods


def gets_room(world: World, name: str) -> bool:
    """Whether another gang that wants all GPUs of a node is placed."""
    world.gang(name, {"worker": (1, GPU8)})
    session: Session = world.plan()
    return any(each.gang.key == f"ns/{name}" for each in session.decided(decisions.Place))


@given(order=st.permutations(range(2)))
def test_who_makes_pods_anew_finds_their_room(order: Sequence[int]) -> None:
    """Pods pinned to a node that is lost go before their successors come: another gang does not come in between."""
    world = World()
    _, pods = placed(world)
    for rank in order:
        world.state.on_pod(pods[rank], None)
        assert not gets_room(world, f"b{rank}")
    assert not gets_room(world, "later")
    for rank in order:
        world.pod("ns/a", "pods", rank, GPU8, gated=True)
        assert not gets_room(world, f"c{rank}")


def test_the_room_is_free_once_the_placement_has_ended() -> None:
    """Who does not come back until the deadline loses it."""
    world = World()
    placement, pods = placed(world)
    for pod in pods:
        world.state.on_pod(pod, None)
    assert not gets_room(world, "b")
    world.now += 3600
    session = world.plan()
    assert [each.gang.key for each in session.decided(decisions.ClosePlacement)] == [placement.metadata.key]
    world.close(session)
    assert world.state.placements["ns/a"].status.phase == "Abandoned"
    assert gets_room(world, "c")


def repairs(world: RepairWorld, *, whole: bool) -> str:
    """A gang of three on node-0 to node-2, of which the last has ended, that is to restart with node-3 for node-1."""
    world.nodes(5)
    key = world.runs("a", 3, on_node_fault="restart")
    if whole:
        world.restarts_whole(key)
    world.pod(key, "worker", 2, GPU8, node="node-2", phase="Succeeded")
    world.replaced("node-1")
    return key


def happens(world: RepairWorld, key: str, rank: int, what: str) -> None:
    """Something happens to a member, or to the one that comes in its place."""
    name, planned = f"uid-a-worker-{rank}", ("node-0", "node-3", "node-2")[rank]
    old = world.state.pod_objects.get(name)
    if what == "gone" and old is not None:
        world.state.on_pod(old, None)
    elif what in {"ends", "leaves"} and old is not None:
        more = {"deletion_timestamp": "2027-01-15T08:00:30Z"} if what == "leaves" else {}
        world.pod(
            key,
            "worker",
            rank,
            GPU8,
            node=old.spec.node_name,
            phase="Succeeded" if what == "ends" else "Running",
            **more,
        )
    elif what in {"comes", "bound", "elsewhere"} and old is None:
        node = {"comes": "", "bound": planned, "elsewhere": "node-4"}[what]
        world.pod(
            key,
            "worker",
            rank,
            GPU8,
            node=node,
            gated=not node,
            phase="Running" if node else "Pending",
            uid=f"{name}-next",
        )


@pytest.mark.parametrize("whole", [False, True], ids=["by annotation", "its Job"])
@settings(max_examples=settings().max_examples * 3 // 5)
@given(events=st.lists(st.tuples(
    st.integers(0, 2),
    st.sampled_from(["ends", "leaves", "gone", "comes", "bound", "elsewhere"]),
), max_size=10))  # fmt: skip
def test_what_a_repair_keeps_is_what_its_objects_say(events: list[tuple[int, str]], *, whole: bool) -> None:
    """Whatever happens to its members, and in which order."""
    world = RepairWorld()
    key = repairs(world, whole=whole)
    assert world.state.differences() == []
    for rank, what in events:
        happens(world, key, rank, what)
        assert world.state.differences() == []


def test_a_smaller_size_frees_the_slots_of_pods_that_are_not_there() -> None:
    """A slot above the size stays placed only for a pod that waits."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (4, {"cpu": 1})}, min_member=2, min_task_member={})
    world.plan()
    world.pod(key, "worker", 3, {"cpu": 1}, gated=True)
    world.scale(key, "worker", 2)
    world.state.refresh()
    placed = [each for each in world.state.ledger.entries if isinstance(each, PlacedSlot)]
    assert sorted(each.slot.rank for each in placed) == [0, 1, 3]
