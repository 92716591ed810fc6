"""Suspect nodes: nothing new goes there, by the planner and by filter, until they are healthy again."""

import re
from pathlib import Path

import numpy as np
import pytest
from extender_world import GPU8, World, of, only, slots

from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from extender.planner.state.state import PlannerState
from extender.settings import ExtenderSettings
from extender.verbs.capacity import nodes_with_capacity
from muster.api.kubernetes.core import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from muster.api.muster import node_faults
from muster.api.muster.node_faults import CONDITIONS, DEFAULT_RULES, TAINTS, fault_of, rules_of, suspect

XID = {"SysLogsXIDError": "True"}


def node(*conditions: NodeCondition, taints: tuple[Taint, ...] = ()) -> Node:
    """A node that says this of itself."""
    return Node(spec=NodeSpec(taints=list(taints)), status=NodeStatus(conditions=list(conditions)))


@pytest.mark.parametrize("text", CONDITIONS)
def test_each_condition_of_the_table_makes_a_node_suspect_by_its_status_alone(text: str) -> None:
    """`GpuMemWatch=False` says that the memory is well."""
    kind, _, status = text.partition("=")
    other = "False" if status == "True" else "True"
    assert suspect(node(NodeCondition(kind, status)), DEFAULT_RULES) == f"condition {text}"
    assert suspect(node(NodeCondition(kind, other)), DEFAULT_RULES) == ""


@pytest.mark.parametrize("key", TAINTS)
def test_each_taint_of_the_table_makes_a_node_suspect_whatever_its_effect(key: str) -> None:
    """Also one that kube-scheduler would only prefer to avoid."""
    assert suspect(node(taints=(Taint(key=key, effect="PreferNoSchedule"),)), DEFAULT_RULES) == f"taint {key}"


def test_other_conditions_and_taints_say_nothing() -> None:
    """The list is the administrator's: what is not on it is none of the planner's business."""
    said = node(NodeCondition("DiskPressure", "True"), taints=(Taint(key="gpu", effect="NoSchedule"),))
    assert fault_of(said, DEFAULT_RULES) is None
    assert suspect(said, rules_of(["DiskPressure=True"], ["gpu"])) == "taint gpu"
    assert suspect(said, rules_of(["DiskPressure=True"], [])) == "condition DiskPressure=True"


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_whose_kubelet_does_not_answer_is_not_ready_since_its_condition(status: str) -> None:
    """A node that has not said anything yet has no fault."""
    fault = fault_of(node(NodeCondition("Ready", status, "2026-11-26T05:00:00Z")), DEFAULT_RULES)
    assert fault == ("not-ready", f"condition Ready={status}", 1_795_669_200.0)
    assert fault_of(node(NodeCondition("Ready", "True")), DEFAULT_RULES) is None
    assert fault_of(node(), DEFAULT_RULES) is None


def test_a_gang_is_placed_beside_a_suspect_node_and_on_it_once_it_is_healthy() -> None:
    """A node that was suspect is usable at once: nothing is remembered of it."""
    world = World().nodes(2)
    world.node("node-0", conditions=XID)
    world.gang("a", {"worker": (1, GPU8)})
    [place] = of(world.plan(), decisions.Place)
    assert slots(place) == {"worker": ["node-1"]}
    key = world.gang("b", {"worker": (1, GPU8)})
    [why] = of(world.session(Allocate()), decisions.Unschedulable)
    assert (why.gang.key, "1 suspect (condition SysLogsXIDError=True)" in why.message) == (key, True)
    world.node("node-0", conditions={"SysLogsXIDError": "False"})
    [place] = of(world.session(Allocate()), decisions.Place)
    assert slots(place) == {"worker": ["node-0"]}


def test_a_pod_that_tolerates_everything_gets_no_node_that_does_not_answer() -> None:
    """Its toleration would have kube-scheduler put it on a dead machine."""
    world = World().nodes(1, conditions={"Ready": "Unknown"})
    world.gang("a", {"worker": (1, GPU8)}, spec={"tolerations": [{"operator": "Exists"}]})
    assert "1 not ready (condition Ready=Unknown)" in only(world.session(Allocate()), decisions.Unschedulable).message


def test_a_placement_is_given_up_when_its_node_becomes_suspect_before_the_pod_is_there() -> None:
    """The pods never ran, so nothing is lost."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (1, GPU8)})
    world.plan()
    world.node("node-0", conditions=XID)
    [close] = of(world.session(world.progress), decisions.ClosePlacement)
    assert (close.gang.key, close.phase) == (key, "Abandoned")
    assert close.message == "node node-0: suspect (condition SysLogsXIDError=True)"


def test_filter_leaves_suspect_nodes_out_and_says_so_where_no_other_has_room() -> None:
    """For pods without a gang; the text is one of the constants, as kube-scheduler would queue it again else."""
    world = World().nodes(3)
    world.node("node-1", conditions=XID)
    index = world.state.nodes.index
    both = np.array([index["node-1"], index["node-2"]])
    fits, _ = nodes_with_capacity(world.state, None, {"nvidia.com/gpu": 1}, both, world.now)
    assert fits.tolist() == [False, True]
    fits, why = nodes_with_capacity(world.state, None, {"nvidia.com/gpu": 1}, both[:1], world.now)
    assert (fits.tolist(), why.name) == ([False], "SUSPECT")
    fits, why = nodes_with_capacity(world.state, None, {"cpu": 33_000}, both[:1], world.now)
    assert (fits.tolist(), why.name) == ([False], "HELD_BY_GANG")


def test_heartbeats_are_no_news_and_faults_are() -> None:
    """A node that says the same of itself wakes nobody."""
    state = PlannerState()
    well, ill = node(NodeCondition("Ready", "True", "2026-11-26T05:00:00Z")), node(NodeCondition("XfsShutdown", "True"))
    assert state.on_node(None, well)
    again = node(NodeCondition("Ready", "True", "2026-11-26T05:01:00Z"), NodeCondition("DiskPressure", "True"))
    assert not state.on_node(well, again)
    assert state.on_node(again, ill)
    assert not state.on_node(ill, ill)
    assert state.on_node(ill, well)
    assert state.nodes.faults == {}
    state.on_node(well, ill)
    state.on_node(ill, None)
    assert state.nodes.faults == {}


def test_the_settings_add_to_the_lists_take_from_them_and_refuse_what_is_no_condition() -> None:
    """A condition without its status would never match."""
    settings = ExtenderSettings(suspect_conditions=("XidError=True", "-XfsShutdown=True"), suspect_taints=("ill",))
    rules = settings.fault_rules
    assert rules.conditions == DEFAULT_RULES.conditions - {("XfsShutdown", "True")} | {("XidError", "True")}
    assert rules.taints == {*TAINTS, "ill"}
    assert [*settings.problems()] == []
    [problem] = ExtenderSettings(suspect_conditions=("XidError",)).problems()
    assert problem == "suspectConditions: 'XidError' must be a type and a status, as in KernelDeadlock=True"


def test_the_page_has_every_condition_and_taint_of_the_lists_and_no_others() -> None:
    """Whoever installs one of these programs looks there for what counts."""
    page = (Path(node_faults.__file__).parents[3] / "docs" / "faults.md").read_text()
    table = page[page.index("| source | conditions") : page.index("NVIDIA's GPU operator")]
    assert sorted(re.findall(r"`([A-Za-z0-9]+=[A-Za-z]+)`", table)) == sorted(CONDITIONS)
    assert sorted(re.findall(r"`([a-z0-9./-]+/[a-z-]+)`", table)) == sorted(TAINTS)
