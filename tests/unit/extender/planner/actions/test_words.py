"""What gangs are told about each other: names within a namespace, and the queue to others; who evicted them."""

import re
from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import GPU8, World, of
from victims_world import Cluster

from extender.explain.text import _about, _span
from extender.planner.framework.decisions import Unschedulable
from extender.planner.reasons import devices, gangs, placements, pods, relief
from extender.planner.reasons.cause import NODE_AFFINITY, scarce
from extender.planner.reasons.relief import nothing
from extender.planner.reasons.shortages import Cause, NearestMiss, Shortage
from muster.api.volcano.scheduling import PodGroupCondition


def test_a_gang_that_does_not_grow_is_told_what_runs_and_what_is_missing() -> None:
    """One of four runs, on the only node."""
    world = World().nodes(1)
    key = world.gang("small", {"worker": (4, GPU8)}, min_member=1, min_task_member={"worker": 1}, phase="Running")
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    world.members(key, range(1, 4), GPU8, gated=True)
    [told] = of(world.plan(), Unschedulable)
    assert told.message.startswith("worker: 1 of 4 pods has a node; 3 more wait for room; of 1 node: 1 ")


def test_room_is_named_only_where_a_node_lacks_it() -> None:
    """Behind an affinity alone it would send its user to the wrong place."""
    miss = NearestMiss(1, "cpu", 1000, whole_nodes=False, levels=())
    mismatch = Cause("does not match the node affinity", NODE_AFFINITY, 1, 1, ("a",))
    full = Cause("too little cpu", scarce("cpu"), 1, 0, ("b",))

    def nearest(*causes: Cause) -> str:
        return Shortage("pods", "extra", 1, 0, {"cpu": 1000}, len(causes), 0, causes, miss).nearest

    assert nearest(mismatch) == ""
    assert nearest(mismatch, full) == nearest(full) == "room for 1 more pod of 1 cpu is needed"


@pytest.mark.parametrize("text", [
    placements.bound(1),
    placements.not_arrived(1),
    placements.not_bound(1, "a", ""),
    placements.not_evicted(1),
    placements.waits_for_victims(1, ""),
    pods.too_few(0, 1),
    gangs.slot_limit(1),
    gangs.awaits_room(1, 1, 1, ""),
    gangs.can_start(["a"], 1, placements.STRAY),
    relief.tolerated("a", 1),
    relief.created(1),
    relief.added(1, "a", {}),
    devices.claim_full("a", 1),
    devices.claim_too_full("a", 1, 1),
])  # fmt: skip
def test_one_thing_is_counted_in_the_singular(text: object) -> None:
    """Never `1 pods`, `1 more node join` or `1 pod have gone`."""
    assert not re.search(r"\b1 (more )?\w+s\b(?<!has)|\b1 (\w+ ){1,3}(are|were|have|join)\b", str(text))


def test_who_is_of_another_namespace_reads_the_queue_only() -> None:
    """Its gangs are not for all to know."""
    world = World().nodes(1)
    gang = world.view(world.gang("a", {"worker": (1, GPU8)}))
    session = world.session()
    other = cast("Any", SimpleNamespace(group=SimpleNamespace(metadata=SimpleNamespace(namespace="other"))))
    assert str(session.called(gang)) == str(session.called(gang, other)) == "a gang of queue default"
    assert session.called(gang, gang) == "Job a"


@pytest.mark.parametrize(("whole_nodes", "words"), [
    (True, "nothing here: the gang needs 9 nodes with 8 nvidia.com/gpu, and there are 8"),
    (False, "nothing here: the gang needs room for 9 pods of 8 nvidia.com/gpu each, and there is room for 8"),
])  # fmt: skip
def test_a_gang_that_can_never_start_is_told_so(words: str, *, whole_nodes: bool) -> None:
    """That others start first would not help it."""
    miss = NearestMiss(1, "nvidia.com/gpu", 8000, whole_nodes, ())
    assert nothing(Shortage("pods", "ever", 9, 8, {}, 8, 8, (), miss)) == words


@pytest.mark.parametrize(
    ("left_s", "words"), [(0.4, "0 s"), (99, "99 s"), (1790, "29 min"), (7200, "2 h"), (3 * 86400, "3 d")]
)
def test_times_are_as_long_as_people_say_them(left_s: float, words: str) -> None:
    """Not 1790 s."""
    assert _span(left_s) == words
    about = f"in {words}" if left_s > 86400 else f"about 03:34 UTC (in {words})"
    assert _about("2026-11-25T03:34:10Z", left_s) == about


EVICTED = (
    "its 2 pods were evicted: preempted by Job high of priority 10 in queue default; "
    "the gang waits until the Job creates"
)


def test_the_whole_gang_is_told_who_took_its_room() -> None:
    """In its own namespace by name."""
    world = Cluster(2)
    world.runs("low", 2)
    world.asks("high", 2)
    [why] = [each for each in of(world.cycle(), Unschedulable) if each.gang.key == "ns/low"]
    assert (why.reason, why.message) == ("Evicted", f"{EVICTED} new pods")


def test_that_stays_the_reason_while_no_pod_is_there() -> None:
    """That 0 of 2 pods exist would not say what has happened; that 1 of 2 does is news."""
    world = World().nodes(1)
    key = world.pod_group("a", 2)
    said = PodGroupCondition(type="Unschedulable", status="True", reason="Evicted", message=EVICTED)
    world.change(world.state.groups[key], status={"conditions": [said]})
    [why] = of(world.plan(), Unschedulable)
    assert (why.reason, why.message) == ("Evicted", EVICTED)
    world.pod(key, "pods", 0, {"cpu": 1}, gated=True)
    [why] = of(world.plan(), Unschedulable)
    assert why.reason == "NotEnoughPods"
    world.pod_group("b", 2)
    assert {each.reason for each in of(world.plan(), Unschedulable)} == {"NotEnoughPods"}
