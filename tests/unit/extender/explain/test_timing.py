"""Who plans elsewhere plans with the timing that the extender has published, and what that remembers."""

from collections.abc import Callable
from typing import Any

import pytest
from explain_world import ExplainWorld
from extender_world import GPU8, of

from extender.explain.clusterdump import load, save
from extender.explain.gang import GangExplainer
from extender.explain.report import GangReport
from extender.explain.whatif import WhatIf
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.timing import Timing
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import Slot
from muster.api.muster.placement import AvoidedNode
from muster.api.names import EVICT_NOTICE

DOWN = {"Ready": "False"}


def elastic(nodes: int) -> ExplainWorld:
    """A gang of one or two pods has run with one for a minute."""
    world = ExplainWorld().nodes(nodes)
    world.timing = Timing(growth_delay_s=600.0)
    key = world.gang("a", {"worker": (2, GPU8)}, min_member=1, min_task_member={"worker": 1})
    world.plan()
    world.pod(key, "worker", 1, GPU8, gated=True)
    world.pod(key, "worker", 0, GPU8, node="node-0", pin="node-0", epoch=1, phase="Running")
    world.close(world.plan())
    world.now += 60
    return world


def stale() -> ExplainWorld:
    """A gang of two has lost one, and there is no room for another."""
    world = ExplainWorld().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.start(key, GPU8)
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    world.node("node-1", unschedulable=True)
    world.timing = Timing(staleness_grace_s=0.0)
    return world


def half_placed() -> ExplainWorld:
    """A gang of two has had one pod on a node for ten seconds."""
    world = ExplainWorld().nodes(1)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running", bound=world.now)
    world.now += 10
    world.timing = Timing(recovery_s=5.0)
    return world


def preempting() -> ExplainWorld:
    """A gang of high priority takes the node of one that has asked for five minutes."""
    world = ExplainWorld().nodes(1)
    for name, value in (("low", 1), ("high", 10)):
        world.state.on_priority_class(None, PriorityClass(metadata=ObjectMeta(name=name), value=value))
    key = world.gang("b", {"worker": (1, GPU8)}, phase="Running", priority_class="low")
    world.change(world.state.groups[key], annotations={EVICT_NOTICE: "300s"})
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    world.now += 600
    world.gang("a", {"worker": (1, GPU8)}, priority_class="high")
    world.timing = Timing(longest_notice_s=10.0)
    return world


def silent(number: int) -> ExplainWorld:
    """A gang runs, and some of eight nodes have not answered for 40 seconds."""
    world = ExplainWorld().nodes(8)
    world.runs("a", 2, GPU8)
    for index in range(number):
        world.node(f"node-{index}", conditions=DOWN, since=world.now - 40)
    return world


def waits_longer() -> ExplainWorld:
    """One node does not answer, and is waited for."""
    world = silent(1)
    world.timing = Timing(node_fault_grace_s=300.0)
    return world


def stops_early() -> ExplainWorld:
    """Three of eight do not answer."""
    world = silent(3)
    world.timing = Timing(fault_stop=0.25)
    return world


def kinds(session: Session) -> set[str]:
    """The kinds of decisions about gang `a`."""
    return {type(each).__name__ for each in session.decisions if each.gang.key == "ns/a"}


def notice_s(session: Session) -> list[float]:
    """How long victims are told before."""
    return [place.waits_until - session.now for place in of(session, decisions.Place)]


def messages(session: Session) -> list[str]:
    """What gangs are told that wait."""
    return [each.reason for each in of(session, decisions.Unschedulable)]


@pytest.mark.parametrize(("made", "seen", "published", "by_default"), [
    pytest.param(lambda: elastic(2), kinds, set(), {"Place"}, id="growth"),
    pytest.param(lambda: elastic(1), messages, [], ["NotEnoughResources"], id="growth-without-room"),
    pytest.param(stale, kinds, {"Evict"}, set(), id="staleness"),
    pytest.param(half_placed, kinds, {"Unschedulable", "Evict"}, {"Unschedulable"}, id="recovery"),
    pytest.param(preempting, notice_s, [10.0], [300.0], id="notice"),
    pytest.param(waits_longer, kinds, set(), {"Place", "EvictForFaults"}, id="fault-grace"),
    pytest.param(stops_early, kinds, {"Unschedulable"}, {"Place", "EvictForFaults"}, id="fault-stop"),
])  # fmt: skip
def test_each_timing_decides_as_it_is_published(
    made: Callable[[], ExplainWorld], seen: Callable[[Session], Any], published: Any, by_default: Any
) -> None:
    """Also from a file of `muster snapshot`; where nothing was published, as by an older extender, by the defaults."""
    dump = made().dump()
    assert seen(WhatIf(dump).cycle()) == published
    assert seen(WhatIf(load(save(dump))).cycle()) == published
    dump.inputs = {}
    assert seen(WhatIf(dump).cycle()) == by_default


def explained(world: ExplainWorld, *, by_default: bool = False) -> GangReport:
    """The report of gang `a`."""
    dump = world.dump()
    dump.inputs = {} if by_default else dump.inputs
    what_if = WhatIf(dump)
    return GangExplainer(what_if).explain(what_if.state.gang("ns/a"))


def test_a_gang_is_told_what_its_extender_would_do() -> None:
    """That it may not grow yet, how long it may stay partial, and that nothing is repaired."""
    world = elastic(1)
    assert explained(world).cause == "running"
    assert explained(world, by_default=True).cause == "running-extras-wait"
    assert "if the others get no node within 5 s" in explained(half_placed()).summary
    assert "3 of 8 nodes" in explained(stops_early()).summary


def test_what_the_planner_remembers_counts() -> None:
    """A node that refused a member, until its time is over; one where members failed; one that is gone."""
    world = ExplainWorld().nodes(1)
    world.gang("a", {"worker": (1, GPU8)})
    assert kinds(WhatIf(world.dump()).cycle()) == {"Place"}
    world.refusals = {"ns/a": {"node-0": world.now + 5}}
    assert kinds(WhatIf(load(save(world.dump()))).cycle()) == {"Unschedulable"}
    world.now += 5
    assert kinds(WhatIf(world.dump()).cycle()) == {"Place"}
    dump = world.dump()
    dump.inputs[""].failures["ns/a"] = (AvoidedNode(node="node-0", until="2030-01-01T00:00:00Z", failures=1),)
    assert kinds(WhatIf(dump).cycle()) == {"Unschedulable"}


def test_members_of_nodes_that_are_gone_are_repaired() -> None:
    """The extender has asked for the node; a dump of one pool does not have those of others."""
    world = silent(0)
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index["node-0"]], None)
    assert "by the policy" not in " ".join(explained(world).details)
    world.gone_nodes = frozenset({"node-0"})
    assert "node node-0 is gone: by the policy replace" in " ".join(explained(world).details)


def test_members_at_the_barrier_let_others_follow() -> None:
    """Which are held until then."""
    world = ExplainWorld().nodes(2)
    key = world.gang("a", {"master": (1, GPU8), "worker": (1, GPU8)})
    world.plan()
    placement = world.state.placements[key]
    for pod_set in placement.spec.pod_sets:
        pod_set.held = pod_set.name == "worker"
    world.pod(key, "master", 0, GPU8, pin="node-0", epoch=1)
    world.pod(key, "worker", 0, GPU8, gated=True)
    assert not of(WhatIf(world.dump()).cycle(), decisions.Release)
    world.arrived = {placement.spec.pod_group_uid: frozenset({Slot("master", 0)})}
    assert len(of(WhatIf(load(save(world.dump()))).cycle(), decisions.Release)) == 1
