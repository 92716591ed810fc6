"""Statuses of Queues and HyperNodes: written where they differ, and not again because somebody else writes there."""

from types import SimpleNamespace
from typing import Any

import pytest
from extender_world import World
from hypernode_world import HyperNodeWorld, hyper_node, named, node
from msgspec import convert
from msgspec.structs import replace
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from extender.clusterstatus import (
    AGAIN_S,
    EVERY_S,
    MAX_AT_ONCE,
    MAX_LOGGED,
    MAX_RESOURCES,
    HyperNodeStatusWriter,
    first_refusals,
    hyper_node_difference,
    largest_difference,
    largest_planned_at,
    queue_difference,
)
from extender.planner.framework.answers import StatusAmounts
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.state.state import PlannerState
from extender.planner.topology.hypernodes import HyperNodeTree
from extender.planner.topology.nesting import HyperNodeProblem
from extender.writes import WriteContext, Writes
from muster.api.kubernetes.core import Node, NodeStatus
from muster.api.kubernetes.meta import Condition, ObjectMeta, format_time
from muster.api.muster.pools import labels_of
from muster.api.volcano.scheduling import Queue, QueueSpec, QueueStatus
from muster.api.volcano.topology import HyperNode, HyperNodeStatus
from muster.kube.errors import Conflict

NOW = 1_800_000_000.0
WRONG = (HyperNodeProblem("Overlap", "nodes that are elsewhere too"), HyperNodeProblem("Torn", "and more"))


class Written:
    """A client that keeps what it is to write."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, dict[str, Any]]] = []
        self.refuses = False

    def merge_patch(self, _resource: object, name: str, body: dict[str, Any], *, subresource: str) -> None:
        """As the client's."""
        assert subresource == "status"
        assert {"uid", "resourceVersion"} <= body["metadata"].keys()
        if self.refuses:
            raise Conflict("it has changed")
        self.patches.append((name, body["status"]))


class Process:
    """A writer, what it sees, and a clock."""

    def __init__(self) -> None:
        self.world, self.client, self.now = HyperNodeWorld(), Written(), 1_000_000.0
        self._tree = HyperNodeTree()
        self._writes = Writes(active=lambda: True, wake=lambda _: None, monotonic_s=lambda: self.now)
        context = WriteContext(self.client, None, self._writes, None, lambda: self.now, lambda: self.now)  # type: ignore[arg-type]
        self._writer = HyperNodeStatusWriter(context)

    def cycle(self, after_s: float = EVERY_S) -> list[tuple[str, dict[str, Any]]]:
        """What a cycle that comes so much later writes."""
        self.now += after_s
        self.client.patches = []
        self._writes.snapshot_taken()
        self._writer.write(SimpleNamespace(snapshot=self.world, hyper_nodes=self._tree.tree_of(self.world)))  # type: ignore[arg-type]
        assert self._writes.settled(10)
        return self.client.patches

    def said(self, name: str, status: dict[str, Any]) -> None:
        """The watch shows a status."""
        known = self.world.state.hyper_nodes[name]
        self.world.state.on_hyper_node(known, replace(known, status=convert(status, HyperNodeStatus)))


@pytest.fixture
def process() -> Process:
    """A cluster with one node in one HyperNode."""
    made = Process()
    made.world.tell(node("n"), hyper_node("a", 1, named("n", "m")))
    return made


def test_counts_are_written_once_and_when_they_change(process: Process) -> None:
    """Also while the watch does not show the write yet."""
    assert process.cycle() == [("a", {"nodeCount": 1})]
    assert process.cycle() == []
    process.said("a", {"nodeCount": 1})
    assert process.cycle() == []
    process.world.tell(node("m"))
    assert process.cycle(0.1) == []
    assert process.cycle() == [("a", {"nodeCount": 2})]


def test_nobody_is_contradicted_for_ever(process: Process) -> None:
    """Volcano's controller counts names that do not exist: its number stays for a while."""
    process.cycle()
    process.said("a", {"nodeCount": 2})
    assert process.cycle() == []
    assert process.cycle(AGAIN_S) == [("a", {"nodeCount": 1})]


def test_a_write_that_failed_comes_again(process: Process) -> None:
    """With the next cycle that writes."""
    process.client.refuses = True
    assert process.cycle() == []
    process.client.refuses = False
    assert process.cycle() == [("a", {"nodeCount": 1})]


def test_another_one_of_its_name_is_told_at_once(process: Process) -> None:
    """It has no status yet; what was written was the status of the earlier one."""
    process.cycle()
    known = process.world.state.hyper_nodes["a"]
    process.world.forget(known)
    process.world.tell(replace(known, metadata=replace(known.metadata, uid="another")))
    assert process.cycle() == [("a", {"nodeCount": 1})]


def test_many_are_written_over_several_cycles(process: Process) -> None:
    """So that gangs do not wait for a thousand writes."""
    process.cycle()
    process.world.tell(*(node(f"n{number}") for number in range(2 * MAX_AT_ONCE + 1)))
    process.world.tell(*(hyper_node(f"h{number}", 2, named(f"n{number}")) for number in range(2 * MAX_AT_ONCE + 1)))
    assert [len(process.cycle(0.1)) for _ in range(4)] == [0, 0, 0, 0]
    assert [len(process.cycle(each)) for each in (EVERY_S, 0.0, 0.0, 0.0)] == [MAX_AT_ONCE, MAX_AT_ONCE, 1, 0]


def of(*conditions: Condition) -> HyperNode:
    """A HyperNode with these conditions and one member."""
    return replace(hyper_node("a", 1, named("n")), status=HyperNodeStatus(node_count=1, conditions=list(conditions)))


def test_what_is_wrong_is_a_condition_beside_those_of_others() -> None:
    """All of it in one message; the time is that of the change from right to wrong."""
    foreign = Condition("Other", "True", last_transition_time="2026-01-01T00:00:00Z", reason="R", message="")
    patch = hyper_node_difference(of(foreign), 1, WRONG, 0.0)
    assert [each["type"] for each in patch["conditions"]] == ["Other", "Valid"]
    ours = convert(patch["conditions"][1], Condition)
    assert (ours.status, ours.reason) == ("False", "Overlap")
    assert ours.message == "nodes that are elsewhere too; and more"
    assert ours.last_transition_time == "1970-01-01T00:00:00Z"
    assert hyper_node_difference(of(foreign, ours), 1, WRONG, 60.0) == {}
    less = convert(hyper_node_difference(of(ours), 1, WRONG[:1], 60.0)["conditions"][0], Condition)
    assert (less.message, less.last_transition_time) == ("nodes that are elsewhere too", "1970-01-01T00:00:00Z")


def test_what_was_wrong_is_right_again() -> None:
    """The condition stays, as True; a HyperNode that was always right has none."""
    wrong = convert(hyper_node_difference(of(), 1, WRONG, 0.0)["conditions"][0], Condition)
    right = convert(hyper_node_difference(of(wrong), 1, (), 60.0)["conditions"][0], Condition)
    assert (right.status, right.reason, right.last_transition_time) == ("True", "Resolved", "1970-01-01T00:01:00Z")
    assert hyper_node_difference(of(right), 1, (), 90.0) == {}
    assert hyper_node_difference(of(), 1, (), 90.0) == {}


def test_only_what_differs_is_written() -> None:
    """What is not wanted any more is taken out; usage comes once a minute."""
    written = format_time(NOW - 30)
    status = QueueStatus(
        fair_share={"cpu": "2", "memory": "1"}, deserved={"cpu": "1"}, message="why", usage_time=written
    )
    same = StatusAmounts({"cpu": 2000, "memory": 1}, {"cpu": 1000}, {"cpu": 5})
    assert queue_difference(Queue(status=status), same, "why", 0, NOW) == {}
    usage = {"usage": {"cpu": "5m"}, "usageTime": format_time(NOW + 31)}
    assert queue_difference(Queue(status=status), same, "why", 0, NOW + 31) == usage
    other = StatusAmounts({"cpu": 3000}, {}, None)
    assert queue_difference(Queue(status=status), other, "", 2, NOW) == {
        "fairShare": {"cpu": "3", "memory": None},
        "deserved": {"cpu": None},
        "message": "",
        "waiting": 2,
    }
    kept = QueueStatus(spares={"cpu": "2"})
    assert queue_difference(Queue(status=kept), StatusAmounts({}, {}, None), "", 0, NOW, {"nvidia.com/gpu": 2000}) == {
        "spares": {"cpu": None, "nvidia.com/gpu": "2"}
    }


def test_the_sizes_of_nodes_are_told_at_the_root() -> None:
    """The most that one node has of each resource; nothing without nodes, or of more resources than can be listed."""
    world, root = World(), Queue()
    assert largest_difference(root, take_snapshot(world.state)) == {}
    bare = World()
    bare.node("bare", gpus=0)
    assert largest_difference(root, take_snapshot(bare.state))["largestNode"]["nvidia.com/gpu"] == "0"  # type: ignore[index]
    world.node("small", gpus=2, cpu=64)
    world.node("large", gpus=8, cpu=32)
    told = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    assert largest_difference(root, take_snapshot(world.state)) == {"largestNode": told}
    known = Queue(status=QueueStatus(largest_node={**told, "gone": "1"}))
    assert largest_difference(known, take_snapshot(world.state)) == {"largestNode": {**told, "gone": None}}
    many = NodeStatus(allocatable={f"example.com/{number}": 1 for number in range(MAX_RESOURCES)})
    world.state.on_node(None, Node(metadata=world.meta("crowded", namespace=""), status=many))
    assert largest_difference(root, take_snapshot(world.state)) == {}


def test_the_first_gang_of_a_queue_that_has_not_started_says_why_it_waits() -> None:
    """Not one that runs and lacks growth, nor the second in line; devices that are claimed have no amount."""
    world = World().nodes(1).queue("other")
    running = world.gang("runs", {"worker": (2, {"nvidia.com/gpu": 8})}, min_member=1, min_task_member={"worker": 1})
    world.pod(running, "worker", 0, {"nvidia.com/gpu": 8}, node="node-0", phase="Running")
    world.pod(running, "worker", 1, {"nvidia.com/gpu": 8}, gated=True)
    for name, gpus in (("first", 4), ("second", 9)):
        world.now += 1
        world.gang(name, {"worker": (1, {"nvidia.com/gpu": gpus})}, queue="other")
    assert first_refusals(world.plan()) == {"other": "the first gang of the queue waits: NotEnoughResources"}


def test_the_largest_node_is_told_at_the_roots_of_a_pool() -> None:
    """In the default pool at `root`, which is there even if nobody has made it."""
    for pool, roots in (("", {"root"}), ("b", {"b", "c"})):
        state = PlannerState(pool=pool)
        for name, parent in (("b", "root"), ("below", "b"), ("c", "")):
            meta = ObjectMeta(name=name, uid=name, labels=labels_of(pool))
            state.on_queue(None, Queue(metadata=meta, spec=QueueSpec(parent=parent)))
        assert largest_planned_at(take_snapshot(state)) == roots


def test_each_problem_is_logged_once_and_of_many_some(process: Process) -> None:
    """The metric counts all of them; one that comes back is logged again."""
    wrong = [hyper_node(f"h{number:03}", 2, named("missing"), named("n")) for number in range(MAX_LOGGED + 2)]
    found = SimpleNamespace(problems={each.metadata.name: (HyperNodeProblem("Torn", "it is torn"),) for each in wrong})
    writer: Any = process._writer

    def logged() -> list[str]:
        with capture_logs() as lines:
            writer._report(found)
        return [line.get("name") or str(line["more"]) for line in lines]

    names = [each.metadata.name for each in wrong]
    some, found.problems = found.problems, dict([*found.problems.items()][:MAX_LOGGED])
    assert logged() == names[:MAX_LOGGED]
    writer._logged = frozenset()
    found.problems = some
    assert logged() == [*names[:MAX_LOGGED], "2"]
    assert REGISTRY.get_sample_value("muster_hypernodes_invalid") == MAX_LOGGED + 2
    assert logged() == []
    found.problems = {}
    assert logged() == []
    found.problems = {"h000": (HyperNodeProblem("Torn", "it is torn"),)}
    assert logged() == ["h000"]
