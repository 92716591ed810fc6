"""From which changes something may follow for the planner: it is woken by those, and sleeps through all others."""

from functools import partial
from typing import Any

import msgspec
import pytest
from builders import pod
from extender_world import CPU, NOW, World

from extender.planner.state.exclusions import Exclusions
from muster.api import names
from muster.api.kubernetes.core import Namespace, Pod
from muster.api.kubernetes.meta import ObjectMeta, ReportedCondition
from muster.api.muster.gang import Slot
from muster.api.volcano.scheduling import PodGroupCondition

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.fixture
def world() -> World:
    """A gang of three that starts with two, with its placement; no pods yet."""
    world = World().nodes(1)
    world.gang("a", {"worker": (3, CPU)}, min_member=2, min_task_member={})
    world.plan()
    assert "ns/a" in world.state.placements
    return world


def made(world: World, rank: int, **more: Any) -> Pod:
    """A pod of the gang as it would come; the state is not told by this."""
    member = World().pod("ns/a", "worker", rank, CPU, **more)
    meta = msgspec.structs.replace(member.metadata, resource_version=str(next(world._versions)))
    return msgspec.structs.replace(member, metadata=meta)


def test_members_that_come_as_expected_are_no_news(world: World) -> None:
    """They are pinned where the placement has them; any other pod may have to be placed, let go or deleted."""
    assert world.state.on_pod(None, made(world, 0, pin="node-0", epoch=1)) is False
    assert world.state.on_pod(None, made(world, 1, gated=True)) is True
    assert world.state.on_pod(None, made(world, 2, pin="node-0", epoch=7)) is True


def test_members_that_we_bind_are_news_when_the_gang_can_start_and_when_all_are_there(world: World) -> None:
    """Its PodGroup runs from the second on, and with the third the placement ends."""
    for rank in range(3):
        world.state.on_pod(None, made(world, rank, pin="node-0", epoch=1))
    assert [world.state.assume(f"uid-a-worker-{rank}", "node-0") for rank in range(3)] == [False, True, True]
    assert world.state.ledger.placed == {}
    world.state.on_pod(None, pod("plain", uid="uid-plain"))
    assert world.state.assume("uid-plain", "node-0") is False, "it is of no gang"
    assert world.state.assume("uid-gone", "node-0") is False


def test_the_only_member_that_is_left_can_start(world: World) -> None:
    """Of a gang of two of which one is done, a single pod is enough."""
    world.done("ns/a", Slot("worker", 1))
    world.state.on_pod(None, made(world, 0, pin="node-0", epoch=1))
    assert world.state.assume("uid-a-worker-0", "node-0")


@pytest.mark.parametrize(("change", "news"), [
    ({}, False),
    ({"bound": NOW}, False),
    ({"phase": "Running", "since": NOW}, False),
    ({"phase": "Succeeded"}, True),
    ({"phase": "Failed"}, True),
    ({"deletion_timestamp": "2030-01-01T00:00:00Z"}, True),
    ({"labels": {"team": "another"}}, False),
])  # fmt: skip
def test_pods_that_go_on_where_they_are_bound_are_no_news(world: World, change: dict[str, Any], *, news: bool) -> None:
    """Room is given back when a pod ends, or is about to."""
    world.state.on_pod(None, made(world, 0, pin="node-0", epoch=1))
    world.state.assume("uid-a-worker-0", "node-0")
    assert world.state.on_pod(None, made(world, 0, pin="node-0", epoch=1, node="node-0", **change)) is news


def test_what_we_have_written_comes_twice_and_is_news_once(world: World) -> None:
    """As the answer of the API server, and through the watch."""
    placement, group = world.state.placements["ns/a"], world.state.groups["ns/a"]
    for tell, known in ((world.state.on_placement, placement), (world.state.on_pod_group, group)):
        again = msgspec.convert(msgspec.to_builtins(known), type(known))
        assert tell(known, again) is False  # type: ignore[operator]
        meta = msgspec.structs.replace(world._newer(again.metadata), annotations={"team": "another"})
        assert tell(known, msgspec.structs.replace(again, metadata=meta)) is True  # type: ignore[operator]
    world.state.on_pod(None, written := made(world, 0, gated=True))
    assert world.state.on_pod(written, written) is False


@pytest.mark.parametrize(("reason", "message", "news"), [
    ("Unschedulable", f"{names.MESSAGE_PREFIX}no room", False), ("SchedulingGated", "its turn comes", False),
    ("Unschedulable", "0/3 nodes are available", True),
])  # fmt: skip
def test_messages_to_a_waiting_pod_are_no_news(world: World, reason: str, message: str, *, news: bool) -> None:
    """The planner writes them itself; a refusal by kube-scheduler is news."""
    waiting = made(world, 0, gated=True)
    assert world.state.on_pod(None, waiting) is True
    condition = ReportedCondition(type="PodScheduled", status="False", reason=reason, message=message)
    status = msgspec.structs.replace(waiting.status, conditions=[condition])
    newer = msgspec.structs.replace(waiting, metadata=world._newer(waiting.metadata), status=status)
    assert world.state.on_pod(waiting, newer) is news
    assert world.state.pods[newer.metadata.uid].resource_version == newer.metadata.resource_version


def test_what_we_have_written_of_an_object_that_is_gone_is_nothing(world: World) -> None:
    """The watch has shown its end, or another object of its name."""
    group, state = world.state.groups["ns/a"], world.state
    newer = msgspec.structs.replace(group, metadata=world._newer(group.metadata))
    other = msgspec.structs.replace(newer, metadata=msgspec.structs.replace(newer.metadata, uid="another"))
    assert state.on_pod_group_written(other) is False
    state.on_pod_group_written(newer)
    assert state.groups["ns/a"] is newer
    state.on_pod_group(newer, None)
    assert state.on_pod_group_written(newer) is False
    state.on_pod_written(pod("never-seen", uid="never-seen"))
    assert "never-seen" not in state.pods
    state.on_pod(None, pod("seen", uid="seen"))
    state.on_pod_written(pod("seen", uid="seen", node="node-0"))
    assert state.pods["seen"].node == "node-0"


@pytest.mark.parametrize(("status", "news"), [
    ({"conditions": [PodGroupCondition(type="Unschedulable", status="True", message="no room")]}, False),
    ({"running": 1}, False),
    ({"place": 3}, False),
    ({"phase": "Running"}, True),
])  # fmt: skip
def test_words_and_counts_in_the_status_of_a_gang_are_no_news(
    world: World, status: dict[str, Any], *, news: bool
) -> None:
    """Nobody who writes many of them keeps the planner busy."""
    group = world.state.groups["ns/a"]
    meta = msgspec.structs.replace(world._newer(group.metadata), generation=7)  # kinds without a status subresource
    newer = msgspec.structs.replace(group, metadata=meta, status=msgspec.structs.replace(group.status, **status))
    assert world.state.on_pod_group(group, newer) is news
    assert world.view("ns/a").group is newer


@pytest.mark.parametrize(("change", "news"), [
    ({"status": {"waiting": 3}}, False), ({"status": {"state": "Closed"}}, True), ({"spec": {"weight": 7}}, True),
])  # fmt: skip
def test_counts_in_the_status_of_a_queue_are_no_news(world: World, change: dict[str, Any], *, news: bool) -> None:
    """They follow from what the planner has decided."""
    queue = world.state.queues["default"]
    newer = msgspec.structs.replace(queue, metadata=world._newer(queue.metadata))
    for field, values in change.items():
        newer = msgspec.structs.replace(newer, **{field: msgspec.structs.replace(getattr(queue, field), **values)})
    assert world.state.on_queue(queue, newer) is news
    assert world.state.queues["default"] is newer


def test_pods_that_another_scheduler_binds_are_no_news_until_they_end(world: World) -> None:
    """No gang can start because of them, unless it demands such pods."""
    other = partial(pod, "other", uid="other", scheduler="default-scheduler")
    assert world.state.on_pod(None, other()) is False
    assert world.state.on_pod(None, other(node="node-0")) is False
    assert world.state.on_pod(None, other(node="node-0", phase="Succeeded")) is True
    assert world.state.on_pod(None, pod("ours", uid="ours")) is True
    near = {"podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}}]}}
    world.view(world.gang("asks", {"worker": (1, CPU)}, spec={"affinity": near}))
    wanted = partial(other, uid="wanted", labels={"app": "db"})
    assert [world.state.on_pod(None, wanted(node=node)) for node in ("", "node-0")] == [True, True]


def test_a_gang_is_excluded_until_all_its_pods_can_be_read() -> None:
    """Its other pods stay excluded when one of them is gone."""
    excluded = Exclusions()
    assert {excluded.add_pod(pod(name, uid=name, gang="g"), f"{name} is odd") for name in ("a", "b")} == {"ns/g"}
    assert "a is odd" in excluded.of_gang("ns/g")
    assert excluded.forget_pod("a") == "ns/g"
    assert "b is odd" in excluded.of_gang("ns/g")
    excluded.forget_pod("b")
    assert (excluded.of_gang("ns/g"), excluded._of_gang) == ("", {})


def test_a_node_that_cannot_be_read_is_gone_until_it_can(world: World) -> None:
    """It is set aside with the reason; what is there of it counts no more."""
    node = world.state.nodes.nodes[0]
    odd = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable={"cpu": "much"}))
    assert world.state.on_node(node, odd) is True
    assert (world.state.nodes.index, [*world.state.exclusions.nodes]) == ({}, ["node-0"])
    assert "much" in world.state.exclusions.nodes["node-0"]
    assert world.state.on_node(odd, node) is True
    assert ([*world.state.nodes.index], world.state.exclusions.nodes) == (["node-0"], {})
    world.state.on_node(node, odd)
    assert world.state.on_node(odd, None) is True
    assert world.state.exclusions.nodes == {}


@pytest.mark.parametrize(("change", "again"), [
    ({}, False), ({"weight": 7}, False), ({"capability": {"cpu": 9}}, True), ({"parent": "root"}, True),
    ({"max-per-user": "cpu=9"}, True), ({"colour": "red"}, False),
])  # fmt: skip
def test_limits_are_added_up_again_if_a_queue_says_others(world: World, change: dict[str, Any], *, again: bool) -> None:
    """Its own, and whom it is below; and where it comes or goes."""
    world.queue("q")
    before = world.state.ledger.queues.limited
    world.queue("q", **change)
    assert (world.state.ledger.queues.limited is not before) is again
    world.state.on_queue(world.state.queues["q"], None)
    assert world.state.ledger.queues.limited is not before


def test_labels_of_a_namespace_are_news_where_something_goes_by_them(world: World) -> None:
    """Terms that choose namespaces, queues that do, and a queue that it gives its pods."""

    def told(team: str) -> bool:
        old = world.state.classes.queries.namespaces.get("ns", {})
        before, after = (Namespace(metadata=ObjectMeta(name="ns", labels=dict(each))) for each in (old, {"team": team}))
        return world.state.on_namespace(before, after)

    assert told("red") is False
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {"matchLabels": {"team": "red"}}}
    far = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    world.view(world.gang("asks", {"worker": (1, CPU)}, spec={"affinity": far}))
    assert [told("red"), told("blue"), told("red")] == [False, True, True]
    world = World()
    assert [told("red"), told("blue")] == [False, False]
    world.queue("red", **{"namespace-selector": "team=red"})
    assert [told("blue"), told("red")] == [False, True]


def test_pods_whose_end_is_known_are_those_on_a_node_that_declare_it(world: World) -> None:
    """Of no gang; also one that is just being bound."""
    declared = {names.EXPECTED_RUNTIME: "5m"}
    for name, node in (("runs", "node-0"), ("waits", ""), ("for-ever", "node-0"), ("binds", "")):
        notes = {} if name == "for-ever" else declared
        world.state.on_pod(None, pod(name, uid=name, node=node, annotations=notes))
    world.pod("ns/a", "worker", 0, CPU, node="node-0", phase="Running")
    for name in ("binds", "for-ever"):
        world.state.ledger.assume(name, "default", world.state.pods[name].cls, node="node-0")
    assert [(each.name, each.node) for each in world.state.ending()] == [("runs", "node-0"), ("binds", "node-0")]
