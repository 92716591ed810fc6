"""The page of the nodes: racks, domains, faults, spares and reservations."""

from typing import Any

import msgspec
import numpy as np
from explain_world import ExplainWorld
from hypothesis import given
from hypothesis import strategies as st
from page_world import NOW, reserved, row

from extender.explain.topology import DomainCapacity, DomainReport, SparesThere, TopologyReport
from extender.explain.whatif import WhatIf
from gangs.nodes import NodeRow, node_rows
from history.model import EVERYTHING, Scope
from muster.api.kubernetes.core import Node
from muster.api.muster.node_faults import DEFAULT_RULES
from muster.api.volcano.scheduling import POD_GROUPS
from web.pages.topology import _of_nodes
from web.views.parts import WHOLE
from web.views.topology import TopologyView, suspects_among, topology_view


def node(name: str, rack: str = "rack-a", **more: object) -> Node:
    """A healthy node with eight GPUs."""
    conditions = [{"type": "Ready", "status": "True"}, *more.pop("conditions", [])]  # type: ignore[misc, call-overload]
    status = {"allocatable": {"cpu": "32", "nvidia.com/gpu": "8"}, "conditions": conditions}
    return msgspec.convert({"metadata": {"name": name, "labels": {"rack": rack}}, "spec": more, "status": status}, Node)


def page(nodes: list[Node], **more: object) -> TopologyView:
    """The page of these nodes, without pods."""
    rows = node_rows(nodes, [], lambda _: DEFAULT_RULES)
    suspects = suspects_among(nodes, rows, lambda _: DEFAULT_RULES, NOW)
    told = {"reports": [], "placements": [], "rows": [], "scope": EVERYTHING, **more}
    return topology_view(rows, told["reports"], suspects, told["placements"], told["rows"], told["scope"], NOW)  # type: ignore[arg-type]


def test_a_rack_says_what_is_free() -> None:
    """GPUs of nodes that get nothing new are not free."""
    view = page([node("n0"), node("n1", unschedulable=True), node("n2", "rack-b")])
    assert [(rack.rack, rack.nodes, rack.free, rack.gpus, rack.whole, rack.label) for rack in view.racks] == [
        ("rack-a", 2, "8", "16", 1, "1 Free, 1 Cordoned"),
        ("rack-b", 1, "8", "8", 1, "1 Free"),
    ]


def test_a_node_that_gets_nothing_new_says_why() -> None:
    """A fault comes before a cordon."""
    bad = node("n0", conditions=[{"type": "SysLogsXIDError", "status": "True"}], unschedulable=True)
    found = page([bad, node("n1", unschedulable=True), node("n2")]).suspects
    assert [(each.node, each.kind, each.why) for each in found] == [
        ("n0", "Suspect", "condition SysLogsXIDError=True"),
        ("n1", "Cordoned", "it is cordoned"),
    ]


def test_a_reservation_has_its_times_and_nodes() -> None:
    """And leads to its gang."""
    view = page([], placements=[reserved("ours", "train-group", "n0", "n1")], rows=[row(state="Reserved")])
    [found] = view.reservations
    assert (found.title, found.address, found.nodes) == ("Job train (ours)", "/gangs/ours/train", "n[0-1]")
    assert found.expected is not None
    assert found.expected.at == "2027-01-15T09:00:00Z"


def test_domains_come_below_each_other() -> None:
    """With what is free, and the part of it on partly used nodes."""
    room = {"nvidia.com/gpu": DomainCapacity(16000, 8000, 8000)}
    spares = SparesThere(2, 1, ["Job ours/train"], ["Job theirs/guest"])
    inner = DomainReport("r1", "rack", 2, 1, room, 0.25, {}, spares, [])
    outer = DomainReport("b1", "block", 2, 1, room, None, {}, SparesThere(), [inner])
    report = TopologyReport("default", ["block", "rack"], 2, [], [], [outer], {})
    [found] = page([], reports=[report], scope=Scope(frozenset({"ours"}))).topologies
    assert [(each.name, each.depth, each.room, each.fragmented, each.spares) for each in found.domains] == [
        ("b1", 0, ["8 of 16"], "", ""),
        ("r1", 1, ["8 of 16"], "25%", "2 seats of Job ours/train, 1 lent"),
    ]


@given(st.lists(st.sampled_from(["Free", "Mixed", "Full", "Cordoned", "Suspect", "NotReady"]), min_size=1, max_size=40))
def test_the_states_of_a_rack_fill_its_bar_in_order(states: list[str]) -> None:
    """None begins before the last one ends, or leaves the bar."""
    amounts: Any = dict.fromkeys(("gpus", "free_gpus", "free_cpu", "free_memory", "pods"), 0)
    rows = [NodeRow(name=f"n{at}", rack="", model="", state=state, **amounts) for at, state in enumerate(states)]
    [rack] = topology_view(rows, [], [], [], [], EVERYTHING, NOW).racks
    at = 0
    for each in rack.states:
        assert each.at == at
        at += each.width
    assert at <= WHOLE
    assert sum(each.nodes for each in rack.states) == len(states)


@given(st.frozensets(st.sampled_from(["ours", "theirs"])).map(Scope))
def test_nothing_outside_the_scope_is_named(scope: Scope) -> None:
    """Neither whose nodes are reserved, nor who keeps or borrows spares."""
    spaces = ("ours", "theirs")
    spares = SparesThere(
        2, 1, [f"Job {space}/keeps-{space}" for space in spaces], [f"Job {space}/x" for space in spaces]
    )
    domain = DomainReport("r1", "rack", 2, 1, {}, None, {}, spares, [])
    view = page(
        [],
        reports=[TopologyReport("default", ["rack"], 2, [], [], [domain], {})],
        placements=[reserved(space, f"of-{space}-group", f"node-of-{space}") for space in spaces],
        rows=[row(f"of-{space}", space, "Reserved", queue=f"queue-of-{space}") for space in spaces],
        scope=scope,
    )
    text = msgspec.json.encode(view).decode()
    for space in spaces:
        assert (space in text) == scope.has(space)


def test_what_uses_the_nodes_is_all_that_is_read_of_gangs() -> None:
    """As much is free as the planner itself finds: gangs that wait use nothing, and planned ones their places."""
    world = ExplainWorld().nodes(4)
    world.runs("busy", 1, {"nvidia.com/gpu": 8})
    world.gang("starts", {"worker": (2, {"nvidia.com/gpu": 8})})
    world.plan()
    world.gang("waits", {"worker": (4, {"nvidia.com/gpu": 8})})
    whole = world.dump()
    lean = _of_nodes(whole)
    free = [WhatIf(dump).session().snapshot.free for dump in (whole, lean)]
    assert np.array_equal(*free)
    assert len(lean.objects_of(POD_GROUPS)) == 1 < len(whole.objects_of(POD_GROUPS))
    gpus = WhatIf(lean).session().snapshot
    assert int(gpus.free[gpus.axis["nvidia.com/gpu"]].sum()) == 8000
