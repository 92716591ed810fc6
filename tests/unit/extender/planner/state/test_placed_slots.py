"""Room of placed slots whose pods are gone for a moment: nobody else gets it until the placement ends."""

from collections.abc import Sequence

from extender_world import World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
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
