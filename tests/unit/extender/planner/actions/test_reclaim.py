"""Reclaim between queues, with a plugin that gives every queue the same share; and moves."""

from typing import Any

import pytest
from extender_world import of
from shares_world import cluster
from victims_world import Cluster, victims

from extender.planner.actions.consolidate import Consolidate
from extender.planner.framework.decisions import MakeRoom, Place, RoomIsThere, Unschedulable
from extender.planner.plugins.protection import MinRuntime


def test_a_queue_takes_back_what_others_have_of_its_share() -> None:
    """A whole gang goes, of the queue that has most, and the one who asked gets all it needs."""
    world = cluster(4, 8)
    world.runs("a1", 1, first=0, queue="a")
    for number in range(3):
        world.runs(f"b{number}", 1, first=1 + number, queue="b")
    asker = world.asks("c1", 1, queue="c")
    session = world.cycle()
    assert len(victims(session)) == 1
    assert next(iter(victims(session))).startswith("b")
    assert [place.gang.key for place in of(session, Place)] == [asker]


@pytest.mark.parametrize(("each", "asks", "go"), [
    pytest.param(2, {"a": 1, "c": 1}, [], id="a queue at its share asks in vain, and one for two where one is over"),
    pytest.param(3, {"c": 2}, ["a", "b"], id="two of one queue would be too many, so each gives what it may"),
])  # fmt: skip
def test_nobody_takes_more_than_its_share_nor_below_the_share_of_another(
    each: int, asks: dict[str, int], go: list[str]
) -> None:
    """What plugins mind is left out, and others are asked."""
    world = cluster(2 * each, 16)
    for number in range(each):
        world.runs(f"a{number}", 1, first=number, queue="a")
        world.runs(f"b{number}", 1, first=each + number, queue="b")
    for queue, pods in asks.items():
        world.asks(f"{queue}-asks", pods, queue=queue)
    assert sorted(name[0] for name in victims(world.cycle())) == go


@pytest.mark.parametrize("method", ["lca", "queue"])
@pytest.mark.parametrize("parent", ["", "root", "missing"])
@pytest.mark.parametrize(("age_s", "go"), [(300, 0), (700, 2)])
def test_who_has_just_started_is_left_alone(method: str, parent: str, age_s: float, go: int) -> None:
    """By the annotation of its queue, whose parent may not exist."""
    world = cluster(2, 8)
    world.plugins.append(MinRuntime({"reclaimResolveMethod": method}))
    world.queue("b", parent=parent, **{"reclaim-min-runtime": "10m"})
    world.started(world.runs("b1", 2, queue="b"), age_s)
    world.asks("c1", 1, queue="c")
    assert len(victims(world.cycle())) == go


def test_without_a_plugin_that_knows_shares_nothing_is_reclaimed() -> None:
    """Nobody may."""
    world = cluster(1, 8)
    world.plugins.pop()
    world.runs("b1", 1, queue="b")
    world.asks("c1", 1, queue="c")
    assert not victims(world.cycle())


def fragmented(**more: Any) -> tuple[Cluster, str]:
    """Two nodes, half of each used by a small gang; a gang that needs a whole one waits."""
    world = Cluster(2)
    world.actions = [Consolidate()]
    world.runs("one", 1, gpus=4, first=0, **more)
    world.runs("two", 1, gpus=4, first=1, **more)
    return world, world.asks("whole", 1, priority_class="low")


def test_a_small_gang_moves_so_that_a_large_one_fits() -> None:
    """The mover has a placement of its own on the other node before anybody is told to go."""
    world, asker = fragmented()
    session = world.cycle()
    moved, placed = of(session, Place)
    assert placed.gang.key == asker
    assert all(pod_set.held for place in (moved, placed) for pod_set in place.pod_sets), "the room is not free yet"
    assert len(victims(session)) == 1
    name = next(iter(victims(session)))
    assert name.startswith(moved.gang.group.metadata.name)
    here = next(run.node for run in placed.pod_sets[0].runs)
    assert {here, next(run.node for run in moved.pod_sets[0].runs)} == {"node-0", "node-1"}
    assert not of(session, Unschedulable)

    pod = next(pod for pod in world.state.pod_objects.values() if pod.metadata.name == name)
    world.state.on_pod(pod, None)
    after = world.cycle()
    assert {each.gang.key for each in of(after, RoomIsThere)} == {moved.gang.key, asker}
    assert not of(after, MakeRoom)


def test_nobody_moves_without_a_new_place_nor_for_a_gang_that_does_not_fit_then() -> None:
    """Three halves do not fit on one node; and protected gangs stay."""
    world, _ = fragmented()
    world.runs("third", 1, gpus=4, first=1)
    assert not victims(world.cycle())
    kept, _ = fragmented()
    for name in ("ns/one", "ns/two"):
        kept.annotate(name, "volcano.sh/preemptable", "false")
    assert not victims(kept.cycle())


def test_at_most_so_many_pods_move() -> None:
    """A gang of more pods than the limit is never moved."""
    world = Cluster(4)
    world.actions = [Consolidate()]
    world.nodes(4, gpus=32)
    for number in range(2):
        key = world.gang(f"g{number}", {"worker": (17, {"nvidia.com/gpu": 1})}, phase="Running")
        world.members(key, 17, {"nvidia.com/gpu": 1}, node=f"node-{number}", phase="Running")
    for number in range(2, 4):
        key = world.runs(f"big{number}", 4, gpus=8, priority_class="high", first=0)
        world.members(key, 4, {"nvidia.com/gpu": 8}, node=f"node-{number}", phase="Running")
    world.asks("whole", 1, gpus=30, priority_class="low")
    assert not victims(world.cycle())
