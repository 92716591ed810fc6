"""What the extender answers kube-scheduler, apart from gangs that start (those are tested on the plane)."""

from typing import Any

import msgspec
import numpy as np
import pytest
from extender_world import GPU8, World, cluster_of
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, Counter

from extender.planner.reasons.verbs import CallResult, VerbReason
from extender.verbs.capacity import counted
from extender.verbs.filter import Filter
from extender.verbs.preempt import preempt
from extender.verbs.prioritize import Prioritize, collapse, fullness
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.extender import ExtenderArgs, ExtenderPreemptionArgs, MetaPod, MetaVictims
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference


def filter_of(world: World, *, active: bool = True, synced: bool = True) -> Filter:
    """The filter verb over a world."""
    return Filter(cluster_of(world, synced=synced), active=lambda: active)


def args(world: World, pod: Pod | None = None, *nodes: str) -> ExtenderArgs:
    """A call about this pod, or about a plain one that wants a GPU."""
    spec = world.pod("ns/none", "t", 0, {"nvidia.com/gpu": 1}).spec if pod is None else None
    plain = Pod(metadata=ObjectMeta(name="plain", namespace="ns", uid="plain"), spec=spec)
    return ExtenderArgs(pod=pod or plain, node_names=list(nodes))


def test_an_extender_that_does_not_lead_or_knows_nothing_answers_with_an_error_never_with_a_rejection() -> None:
    """An error is tried again."""
    world = World().nodes(1)
    call = args(world, None, "node-0")
    inactive = filter_of(world, active=False)(call)
    assert inactive.error == VerbReason.NOT_LEADING
    assert b'"Error":"this Muster extender does not lead (kube-scheduler tries again)"' in msgspec.json.encode(inactive)
    assert filter_of(world, synced=False)(call).error == VerbReason.NOT_SYNCED


def test_a_plain_pod_is_kept_off_room_that_a_starting_gang_holds() -> None:
    """The gang has not a single bound pod yet."""
    world = World().nodes(2)
    world.gang("a", {"worker": (1, GPU8)})
    world.plan()
    assert filter_of(world)(args(world, None, "node-0", "node-1")).node_names == ["node-1"]
    answer = filter_of(world)(args(world, None, "node-0"))
    held = {"node-0": VerbReason.HELD_BY_GANG}
    assert (answer.node_names, answer.failed_and_unresolvable_nodes) == ([], held)


@pytest.mark.parametrize(
    ("owner", "waits"), [("Job", True), ("ReplicaSet", True), ("PyTorchJob", True), ("DaemonSet", False), ("", False)]
)
def test_a_pod_of_a_workload_waits_until_its_gang_has_a_name(owner: str, *, waits: bool) -> None:
    """The controller names it after it was made; alone it would start without its siblings."""
    world = World().nodes(1)
    call = args(world, None, "node-0")
    if owner:
        call.pod.metadata.owner_references = [OwnerReference("v1", owner, "x", "u", controller=True)]
    answer = filter_of(world)(call)
    assert (answer.error, answer.node_names) == ((VerbReason.NOT_SEEN, []) if waits else ("", ["node-0"]))
    call.pod.spec.scheduler_name = "default-scheduler"
    assert filter_of(world)(call).node_names == ["node-0"], "of another scheduler, which shares its extender"


def test_a_name_that_was_not_sent_is_never_returned() -> None:
    """kube-scheduler treats it as an error of the whole call."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (1, GPU8)})
    world.plan()
    pod = world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=1)
    answer = filter_of(world)(args(world, pod, "node-1"))
    refused = {"node-1": VerbReason.NOT_PLANNED_HERE}
    assert (answer.node_names, answer.failed_and_unresolvable_nodes) == ([], refused)


def test_a_member_whose_placement_is_not_seen_yet_is_an_error() -> None:
    """The watch is behind, that is all."""
    world = World().nodes(1)
    pod = world.pod(world.gang("a", {"worker": (1, GPU8)}), "worker", 0, GPU8, pin="node-0", epoch=1)
    assert filter_of(world)(args(world, pod, "node-0")).error == VerbReason.NOT_SEEN


@pytest.mark.parametrize(("told", "node", "answer"), [
    pytest.param({}, "", VerbReason.WAITS_FOR_GANG, id="no placement"),
    pytest.param({"phase": "Reserved"}, "", VerbReason.WAITS_FOR_GANG, id="reserved"),
    pytest.param({"phase": "Planned", "epoch": 2}, "", VerbReason.WAITS_FOR_GANG, id="a newer one"),
    pytest.param({"phase": "Planned", "epoch": 1}, "node-0", "", id="this one"),
    pytest.param({"phase": "Planned", "epoch": 0}, "", VerbReason.NOT_SEEN, id="an older one"),
    pytest.param({"gone": True}, "", VerbReason.NOT_SEEN, id="no gang"),
    pytest.param({"pool": "b"}, "", VerbReason.OTHER_POOL, id="another pool"),
])  # fmt: skip
def test_a_member_goes_where_its_placement_has_it(told: dict[str, Any], node: str, answer: str) -> None:
    """Its epoch is 1; before its gang has that placement it waits, and is refused for another pool's scheduler."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (1, GPU8)})
    if "phase" in told:
        world.plan()
        spec = {"epoch": told.get("epoch", 1)}
        world.change(world.state.placements[key], spec=spec, status={"phase": told["phase"]})
    waits = told.get("phase") == "Reserved" or not told
    pod = world.pod(key, "worker", 0, GPU8, **({} if waits else {"pin": "node-0", "epoch": 1}))
    if told.get("gone"):
        world.state.on_pod_group(world.state.groups[key], None)
    if told.get("pool"):
        pod.spec.scheduler_name = "muster-b"
    found = filter_of(world)(args(world, pod, "node-0", "node-1"))
    assert found.node_names == ([node] if node else [])
    assert answer in {found.error, *found.failed_and_unresolvable_nodes.values()}


def test_a_plain_pod_goes_to_no_suspect_node() -> None:
    """It says so only where nothing else is in the way."""
    world = World().nodes(1)
    world.node("node-1", conditions={"KernelDeadlock": "True"})
    call = args(world, None, "node-0", "node-1")
    assert filter_of(world)(call).node_names == ["node-0"]
    call = args(world, None, "node-1")
    assert filter_of(world)(call).failed_and_unresolvable_nodes == {"node-1": VerbReason.SUSPECT}
    world.pod("ns/x", "t", 1, GPU8, node="node-1", phase="Running")
    assert filter_of(world)(call).failed_and_unresolvable_nodes == {"node-1": VerbReason.HELD_BY_GANG}


@pytest.mark.parametrize("late", [False, True])
def test_plugins_score_the_nodes_of_the_last_cycle(*, late: bool) -> None:
    """A node that came since is not ranked by them: then fuller nodes come first."""
    world = World().nodes(2)
    world.pod("ns/x", "t", 1, {"nvidia.com/gpu": 4}, node="node-1", phase="Running")
    session, asked = world.session(), []
    session.hooks.node_pre_order.add(lambda _cls, columns: asked.append(columns.tolist()))
    session.scores = lambda _: np.array([3.0, 1.0])  # type: ignore[method-assign]
    if late:
        world.node("late")
    names = ["node-0", "node-1", "unknown", *["late"] * late]
    found = Prioritize(cluster_of(world), session=lambda: session)(args(world, None, *names))
    assert [entry.score for entry in found] == ([0, 5, 0, 0] if late else [10, 5, 0])
    assert asked == [[0, 1, *[2] * late]]


def test_without_plugins_that_score_fuller_nodes_come_first() -> None:
    """So that whole nodes are left to gangs."""
    world = World().nodes(2)
    world.pod("ns/x", "t", 1, {"nvidia.com/gpu": 4}, node="node-1", phase="Running")
    scores = {entry.host: entry.score for entry in Prioritize(cluster_of(world))(args(world, None, "node-0", "node-1"))}
    assert scores["node-1"] > scores["node-0"]


@pytest.mark.parametrize(
    ("gpus", "cpu", "score"), [(0, 0, 0), (1, 0, 1), (1, 31, 9), (4, 16, 5), (7, 0, 8), (8, 0, 10), (9, 0, 10)]
)
def test_the_scarcest_resource_of_a_node_ranks_it(gpus: int, cpu: int, score: int) -> None:
    """Rounded down; a node with more than it has is full, and one that nobody knows is empty."""
    world = World().nodes(1)
    if gpus or cpu:
        world.pod("ns/x", "t", 1, {"nvidia.com/gpu": gpus, "cpu": cpu}, node="node-0", phase="Running")
    call = args(world, None, "node-0", "unknown")
    assert [entry.score for entry in Prioritize(cluster_of(world))(call)] == [score, 0]
    empty = World()
    empty.node("node-0", gpus=0, cpu=0)
    columns = np.array([0, -1])
    assert fullness(empty.state.nodes, columns).tolist() == [0.0, 0.0]
    assert Prioritize(cluster_of(world))(args(world)) == []


@pytest.mark.parametrize(("kind", "pinned"), [("pinned", True), ("gang", False), ("plain", False)])
def test_calls_and_names_are_counted_by_the_kind_of_the_pod(kind: str, *, pinned: bool) -> None:
    """A call for all nodes of the cluster costs more than one for a single node."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (1, GPU8)})
    world.plan()
    pod = None if kind == "plain" else world.pod(key, "worker", 0, GPU8, pin="node-0" if pinned else "", epoch=1)

    def counted() -> list[float]:
        names = REGISTRY.get_sample_value("muster_filter_names_total", {"pod": kind}) or 0.0
        labels = {"pod": kind, "verdict": "passed", "reason": ""}
        return [names, REGISTRY.get_sample_value("muster_filter_total", labels) or 0.0]

    before = counted()
    filter_of(world)(args(world, pod, "node-0", "node-1"))
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [2, 1]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_ranks_keep_the_order_of_scores(scores: list[float]) -> None:
    """Between 0 and 10, never the wrong way round."""
    ranks = collapse(np.array(scores))
    assert 0 <= ranks.min() <= ranks.max() <= 10
    for left, left_rank in zip(scores, ranks, strict=True):
        for right, right_rank in zip(scores, ranks, strict=True):
            assert not (left < right and left_rank > right_rank)


def test_victims_that_would_break_a_running_gang_are_refused_while_there_are_others() -> None:
    """The gang needs both of its members."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (2, GPU8)})
    members = [world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running") for rank in range(2)]
    lone = world.pod("ns/none", "t", 5, GPU8, node="node-2", phase="Running")

    on = {"node-0": members[0], "node-2": lone}
    for asked, left in ((("node-0", "node-2"), {"node-2"}), (("node-0",), {"node-0"})):
        victims = {node: MetaVictims(pods=[MetaPod(uid=on[node].metadata.uid)]) for node in asked}
        call = ExtenderPreemptionArgs(pod=lone, node_name_to_meta_victims=victims)
        assert preempt(cluster_of(world), call).node_name_to_meta_victims.keys() == left


def test_every_reason_is_a_label_of_the_metrics_and_says_whether_it_is_tried_again() -> None:
    """Rejections are those that do not promise another try."""
    counter = counted(Counter("muster_a_test_total", "", ["pod", "verdict", "reason"]))
    assert counter("gang", None)._labelvalues == ("gang", "passed", "")
    assert counter("plain", VerbReason.BARRIER_TIMEOUT)._labelvalues == ("plain", "error", "barrier_timeout")
    rejections = {reason for reason in VerbReason if reason.verdict is CallResult.REJECTED}
    assert rejections == {
        VerbReason.WAITS_FOR_GANG, VerbReason.NOT_PLANNED_HERE, VerbReason.HELD_BY_GANG, VerbReason.KEPT_FOR_GANG,
        VerbReason.QUEUE_FULL, VerbReason.QUEUE_NOT_FOR_NAMESPACE, VerbReason.QUEUE_OF_OTHER_POOL, VerbReason.SUSPECT,
        VerbReason.LIMIT_REACHED, VerbReason.QUEUE_NOT_OPEN,
    }  # fmt: skip
    assert all("again" not in reason for reason in rejections)
