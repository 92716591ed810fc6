"""What `muster explain`, `muster simulate` and the page say is what the planner decides, whatever the timing is."""

from typing import Any, Final

from explain_world import ExplainWorld
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.explain.clusterdump import ClusterDump, load, save
from extender.explain.gang import GangExplainer
from extender.explain.report import GangReport
from extender.explain.whatif import WhatIf
from extender.planner.actions import repair
from extender.planner.cycle import parts_of, run_cycle
from extender.planner.framework import config, decisions
from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.state.feed import FEED
from extender.planner.timing import Timing
from extender.record.decisiontexts import decision_lines
from extender.simulate.placing import simulate
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import ObjectMeta, format_time
from muster.api.muster.placement import NodeRun, Placement, PlacementSpec, PlacementStatus, PodSetPlacement
from muster.api.names import EVICT_NOTICE
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from web.caches import PageCaches
from web.explainer import Explainer
from web.view import Caller

GPU8: Final = {"cpu": 4, "nvidia.com/gpu": 8}
NODES: Final = ("ready", "ready", "cordoned", "silent", "suspect", "gone")
GANGS: Final = ("waits", "urgent", "half placed", "runs", "grows", "lost one")
AGE_S: Final = 40.0
"""Seconds for which gangs have run, nodes are silent, and members are bound."""
TIMING: Final = st.builds(
    Timing, recovery_s=st.sampled_from([0.0, 30.0, 600.0]), staleness_grace_s=st.sampled_from([-1.0, 0.0, 60.0]),
    growth_delay_s=st.sampled_from([0.0, 1.0, 600.0]), longest_notice_s=st.sampled_from([0.0, 10.0, 600.0]),
    node_fault_grace_s=st.sampled_from([0.0, 30.0, 300.0]), fault_stop=st.sampled_from([0.1, 0.55, 1.0]),
)  # fmt: skip


def started(world: ExplainWorld, key: str, nodes: list[str]) -> None:
    """The placement of a gang that has started with members on these nodes."""
    pod_set = PodSetPlacement("worker", [NodeRun(node, 1) for node in nodes])
    spec = PlacementSpec(pod_group_uid=world.state.groups[key].metadata.uid, pod_sets=[pod_set])
    at = format_time(world.now)
    status = PlacementStatus(phase="Bound", bound=len(nodes), started=True, started_at=at)
    world.state.on_placement(None, Placement(metadata=world.meta(key.rpartition("/")[2]), spec=spec, status=status))


def add(world: ExplainWorld, name: str, kind: str, pods: int, nodes: list[str]) -> None:
    """A gang of this kind; the nodes are those that its members have, if it has any."""
    least = 1 if kind == "grows" else pods
    urgency = "high" if kind == "urgent" else "low"
    requests: dict[str, Any] = {"min_member": least, "min_task_member": {"worker": least}, "priority_class": urgency}
    key = world.gang(name, {"worker": (pods, GPU8)}, **requests)
    world.change(world.state.groups[key], annotations={EVICT_NOTICE: "300s"})
    here = {"waits": 0, "urgent": 0, "runs": pods}.get(kind, 1)
    world.members(key, here, GPU8, node=nodes, phase="Running", bound=world.now, since=world.now)
    if kind not in {"waits", "urgent", "half placed"}:
        started(world, key, nodes[: pods if kind == "lost one" else here])
    if kind != "lost one":
        world.members(key, range(here, pods), GPU8, gated=True, node=[""] * pods)


def made(timing: Timing, nodes: list[str], gangs: list[tuple[str, int]], refused: int) -> ExplainWorld:
    """A world of such nodes and gangs; the first gang was refused by one of the nodes."""
    world = ExplainWorld()
    world.timing = timing
    for name, value in (("low", 1), ("high", 10)):
        world.state.on_priority_class(None, PriorityClass(metadata=ObjectMeta(name=name, uid=name), value=value))
    for index, kind in enumerate(nodes):
        silent, suspect = {"Ready": "False"}, {"SysLogsXIDError": "True"}
        conditions = {"silent": silent, "suspect": suspect}.get(kind)
        world.node(f"node-{index}", conditions=conditions, since=world.now, unschedulable=kind == "cordoned")
    free = [f"node-{index}" for index in range(len(nodes))]
    for index, (kind, pods) in enumerate(gangs):
        if len(free) >= pods or kind in {"waits", "urgent"}:
            add(world, f"g{index}", kind, pods, free)
            free = free if kind in {"waits", "urgent"} else free[pods:]
    for index, kind in enumerate(nodes):
        if kind == "gone":
            world.state.on_node(world.state.nodes.nodes[world.state.nodes.index[f"node-{index}"]], None)
            world.gone_nodes |= {f"node-{index}"}
    world.now += AGE_S
    world.refusals = {"ns/g0": {f"node-{refused}": world.now + 5}}
    return world


def planned(world: ExplainWorld) -> Session:
    """The cycle of the world's own planner."""
    inputs = CycleInputs(
        snapshot=take_snapshot(world.state), now=world.now, arrived=world.arrived, avoided=world.refusals,
        gone=world.gone_nodes, timing=world.timing,
    )  # fmt: skip
    return run_cycle(inputs, *parts_of(config.parse("")))


def decided(session: Session) -> list[tuple[Any, ...]]:
    """What changes the cluster, and until when victims are told to go."""
    told = ((each.gang.key, each.waits_until) for each in session.decisions if isinstance(each, decisions.Place))
    return [*decision_lines(session), *told]


def told(session: Session) -> dict[str, tuple[str, str]]:
    """Why each gang waits in whole or in part, and what becomes of its members on faulty nodes."""
    waits = [each for each in session.decisions if isinstance(each, decisions.Unschedulable)]
    reasons = {each.gang.key: each.reason for each in reversed(waits)}
    return {
        each.key: (reasons.get(each.key, ""), repair.fault_report(session, each)) for each in session.snapshot.gangs
    }


def explained(dump: ClusterDump) -> dict[str, tuple[str, str]]:
    """The same as its owner reads it."""
    what_if = WhatIf(dump, names_others=False)
    explainer = GangExplainer(what_if)
    views = (what_if.state.gang(key) for key in what_if.state.groups)
    reports = (explainer.explain(view, relief=False) for view in views if view is not None)
    return {each.gang: said_in(each) for each in reports}


def said_in(report: GangReport) -> tuple[str, str]:
    """The reason of a report, and what it says of members on faulty nodes."""
    policy = "by the policy"
    return report.reason, next((text for text in report.details if policy in text), "")


def on_the_page(dump: ClusterDump) -> dict[str, tuple[str, str]]:
    """The same as the page answers it from its caches, which keep less of each object, to who may see everything."""
    caches = PageCaches(Client(ClientConfig("http://127.0.0.1:1")))
    for fed in FEED:
        for each in dump.objects_of(fed.resource):
            caches.mirror(fed.resource).add_object(each)

    def prepare(read: ClusterDump) -> None:
        read.taken_at, read.inputs = dump.taken_at, dump.inputs
        read.scheduler_config, read.suspects = dump.scheduler_config, dump.suspects

    explainer = Explainer(caches, prepare)
    groups = (each.metadata for each in dump.objects_of(POD_GROUPS))
    answers = [explainer.explain(Caller(), "gang", each.namespace, each.name).report for each in groups]
    return {each.gang: said_in(each) for each in answers if isinstance(each, GangReport)}


@settings(max_examples=settings().max_examples // 2)
@given(
    TIMING, st.lists(st.sampled_from(NODES), min_size=1, max_size=5),
    st.lists(st.tuples(st.sampled_from(GANGS), st.integers(1, 3)), min_size=1, max_size=4), st.integers(0, 4),
)  # fmt: skip
@example(Timing(recovery_s=600.0), ["ready", "ready"], [("half placed", 2)], 4)
@example(Timing(staleness_grace_s=0.0), ["ready", "cordoned"], [("lost one", 2)], 4)
@example(Timing(growth_delay_s=600.0), ["ready", "ready"], [("grows", 2)], 4)
@example(Timing(longest_notice_s=10.0), ["ready"], [("runs", 1), ("urgent", 1)], 4)
@example(Timing(node_fault_grace_s=300.0), ["silent", "ready"], [("runs", 1)], 4)
@example(Timing(fault_stop=0.1), ["silent"] * 3 + ["ready"] * 3, [("runs", 1)], 4)
@example(Timing(), ["gone", "ready"], [("runs", 1)], 4)
@example(Timing(), ["ready", "ready"], [("waits", 1)], 0)
def test_who_plans_elsewhere_decides_the_same(
    timing: Timing, nodes: list[str], gangs: list[tuple[str, int]], refused: int
) -> None:
    """Every decision of a cycle, the reasons that owners read, and where a simulation places first."""
    world = made(timing, nodes, gangs, refused)
    session, dump = planned(world), load(save(world.dump()))
    assert decided(WhatIf(dump).cycle()) == decided(session)
    assert explained(dump) == told(session)
    assert on_the_page(dump) == told(session)
    places = [each for each in session.decisions if isinstance(each, decisions.Place) and not each.gang.begun]
    found = simulate(WhatIf(dump), [])[: len(places)]
    assert [(each.gang, each.pod_sets) for each in found] == [(each.gang.key, each.pod_sets) for each in places]
