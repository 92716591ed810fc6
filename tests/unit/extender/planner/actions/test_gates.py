"""Pods that wait for somebody else's scheduling gate hold nothing; pods that lost ours find their node all the same."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from extender_world import GPU8, World, cluster_of, of
from verbs_world import error_of

from extender.barrier import Barrier
from extender.planner.framework import decisions
from extender.verbs.bind import Bind
from extender.verbs.filter import Filter
from muster.api.kubernetes.extender import ExtenderArgs

OTHER = "example.com/approval"


def test_a_gang_is_not_placed_before_all_gates_of_others_are_gone() -> None:
    """The condition names the gate and the pods, and the next gang gets the room."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.pod(key, "worker", 0, GPU8, gated=True)
    world.pod(key, "worker", 1, GPU8, gated=True, other_gates=(OTHER,))
    world.now += 1
    world.gang("b", {"worker": (2, GPU8)})
    session = world.plan()
    assert [place.gang.key for place in of(session, decisions.Place)] == ["ns/b"]
    [waits] = of(session, decisions.Unschedulable)
    assert (waits.gang.key, waits.reason) == (key, "SchedulingGated")
    assert waits.message == f"a-worker-1 waits for the scheduling gate {OTHER}, not Muster's"


def test_it_is_placed_when_they_are_gone() -> None:
    """Ours may be gone too."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.members(key, 2, GPU8, gated=True, other_gates=(OTHER,))
    assert not of(world.plan(), decisions.Place)
    world.members(key, 2, GPU8, gated=True)
    assert of(world.plan(), decisions.Place)


def test_a_template_with_a_gate_of_others_is_not_placed_before_its_pods_exist() -> None:
    """They would be born on their nodes, and hold them."""
    world = World().nodes(1)
    key = world.gang("a", {"worker": (1, GPU8)}, spec={"schedulingGates": [{"name": OTHER}]})
    assert not of(world.plan(), decisions.Place)
    world.pod(key, "worker", 0, GPU8, gated=True)
    assert of(world.plan(), decisions.Place)


def test_a_placement_of_pods_that_turn_out_to_have_a_gate_of_others_is_given_up_and_not_made_at_once_again() -> None:
    """Another webhook added it; meanwhile the pods come again, gated."""
    world = World().nodes(1)
    key = world.gang("a", {"worker": (1, GPU8)})
    world.plan()
    pod = world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=1, other_gates=(OTHER,))
    session = world.plan()
    [close] = of(session, decisions.ClosePlacement)
    said = f"a-worker-0 waits for the scheduling gate {OTHER}, which is not Muster's"
    assert (close.phase, close.message) == ("Abandoned", said)
    assert [evict.pod.name for evict in of(session, decisions.Evict)] == ["a-worker-0"]
    world.close(session)
    world.state.on_pod(pod, None)
    assert not of(world.plan(), decisions.Place)


def test_a_member_whose_gate_was_taken_away_is_told_its_node_and_goes_there() -> None:
    """Before there was a placement: kube-scheduler refused it then, and the annotation wakes it."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (1, GPU8)}, phase="Inqueue")
    world.node("node-0", unschedulable=True)
    pod = world.pod(key, "worker", 0, GPU8, refused=True)
    world.plan()
    [release] = of(world.plan(), decisions.Release)
    assert (release.pod.gated, release.node) == (False, "node-1")
    cluster = cluster_of(world)
    answer = Filter(cluster, active=lambda: True)(ExtenderArgs(pod=pod, node_names=["node-0", "node-1", "node-2"]))
    assert answer.node_names == ["node-1"]
    bound: list[str] = []

    async def post(*args: str) -> None:
        bound.append(args[3])

    binder: Any = SimpleNamespace(bind=post)
    barrier = Barrier(timeout_s=1, monotonic_s=lambda: 0.0)
    bind = Bind(cluster, barrier, cast("Any", binder), active=lambda: True, on_release=lambda *_: None)
    assert (asyncio.run(error_of(bind, pod, "node-1")), bound) == ("", ["node-1"])
