"""Pods without a gang stay within the capability of their queue, and of those above it."""

from collections.abc import Iterator
from typing import Any

import pytest
from builders import pod
from extender_world import NOW
from verbs_world import NODES, Extender

from extender.planner.queueuse import QueueUse
from extender.planner.reasons.verbs import VerbReason
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.extender import ExtenderArgs
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue, QueueSpec

SPECS = {
    "department": QueueSpec(capability={"cpu": 4}),
    "team": QueueSpec(parent="department", capability={"nvidia.com/gpu": 1}),
    "other": QueueSpec(parent="department"), "free": QueueSpec(), "broken": QueueSpec(capability={"cpu": "many"}),
}  # fmt: skip
QUEUES = {name: Queue(metadata=ObjectMeta(name=name), spec=spec) for name, spec in SPECS.items()}


def queue_full(queue: str, requests: dict[str, int]) -> bool:
    """Whether a pod with these requests would take a queue over a capability, with 2 and 1 CPUs in use."""
    uses = QueueUse(QUEUES)
    for name, leaving in (("team", False), ("team", True), ("other", False)):
        uses.count(None, name, {"cpu": 1000}, 1, leaving=leaving)
    return uses.limited.over_capability(queue, requests) is not None


@pytest.mark.parametrize(("queue", "asked", "full"), [
    pytest.param("team", {"cpu": 1000}, False, id="the rest"),
    pytest.param("team", {"cpu": 1001}, True, id="more, as what is used below counts, with pods that leave"),
    pytest.param("team", {"nvidia.com/gpu": 2000}, True, id="of another resource"),
    pytest.param("free", {"cpu": 10**9}, False, id="no capability"),
    pytest.param("broken", {"cpu": 10**9}, False, id="one that cannot be read"),
    pytest.param("missing", {"cpu": 10**9}, False, id="no queue"),
])  # fmt: skip
def test_what_a_queue_is_full_of(queue: str, asked: dict[str, int], *, full: bool) -> None:
    """Only what is asked for counts: a queue that is full of something else takes the pod."""
    assert queue_full(queue, asked) == full


def test_a_pod_whose_label_names_a_queue_that_is_not_for_its_namespace_finds_no_node() -> None:
    """Admission has seen the pod without the label, which can be added afterwards."""
    extender = Extender()
    state = extender.world.state
    extender.world.queue("default", **{"namespace-selector": "team=vision"})
    pod = extender.pod("a")
    assert VerbReason.NOT_SEEN in extender.filter(ExtenderArgs(pod=pod, node_names=NODES)).error
    state.on_namespace(None, Namespace(metadata=ObjectMeta(name="ns", labels={"team": "speech"})))
    assert extender.passed(pod, *NODES) == []
    assert extender.error(pod, "node-0")
    assert not extender.bound
    state.on_namespace(None, Namespace(metadata=ObjectMeta(name="ns", labels={"team": "vision"})))
    assert extender.passed(pod, *NODES) == NODES


@pytest.mark.parametrize("state", ["Closing", "Closed"])
def test_a_pod_enters_no_queue_that_takes_nothing_new(state: str) -> None:
    """No PodGroup needs to be made for it first. One that is bound already is bound again if the answer was lost."""
    extender = Extender()
    pod, known = extender.pod("a"), extender.pod("b")
    assert extender.passed(known, *NODES) == NODES
    assert not extender.error(known, "node-0")
    assert extender.passed(pod, *NODES) == NODES
    extender.world.queue("default", state)
    assert extender.error(pod, "node-0") == VerbReason.QUEUE_NOT_OPEN
    assert extender.passed(pod, *NODES) == []
    assert not extender.error(known, "node-0")
    extender.world.queue("default")
    assert extender.passed(pod, *NODES) == NODES


SAID = {"department": {"max-per-user": "cpu=3"}, "team": {"limit-windows": "Fri 08:00-09:00 UTC pods=2"}}
LIMITED = {name: Queue(metadata=ObjectMeta(name=name, annotations={
    f"muster.dev/{key}": value for key, value in SAID.get(name, {}).items()}), spec=spec)
    for name, spec in SPECS.items()}  # fmt: skip


def test_limits_per_user_and_windows_count_below_a_queue() -> None:
    """What is bound, placed or being written counts; other users, and other times, are free."""
    uses = QueueUse(LIMITED)
    uses.count(None, "team", {"cpu": 1000, "pods": 1}, 1, user="alice")
    uses.count(None, "other", {"cpu": 1000, "pods": 1}, 1, user="alice", leaving=True)
    uses.count(None, "other", {"cpu": 3000, "pods": 1}, 1, user="bob")

    def reached(queue: str, user: str, requests: dict[str, int], now: float = NOW + 3600) -> bool:
        return uses.limited.over_limit(queue, user, requests, now) is not None

    assert [reached("team", "alice", {"cpu": cpu, "pods": 1}) for cpu in (1000, 1001)] == [False, True]
    assert not reached("team", "carol", {"cpu": 3000, "pods": 1})
    assert not reached("free", "alice", {"cpu": 10**9})
    assert [reached("team", "carol", {"pods": pods}, NOW) for pods in (1, 2)] == [False, True]
    assert [bool(uses.limited.limits.above(name)) for name in ("team", "other", "free")] == [True, True, False]


def test_a_pod_whose_creator_has_his_limit_finds_no_node() -> None:
    """Neither when nodes are chosen, nor when it is bound: two that are bound at once count for each other."""
    extender = Extender()
    extender.world.queue("default", **{"max-per-user": "pods=1"})
    by = {user: {"muster.dev/created-by": user} for user in ("alice", "bob")}
    one, two = (extender.pod(name, notes=by["alice"]) for name in ("a", "b"))
    other = extender.pod("c", notes=by["bob"])
    assert extender.passed(one, *NODES) == extender.passed(two, *NODES) == NODES
    assert not extender.error(one, "node-0")
    assert extender.error(two, "node-0")
    assert extender.passed(two, *NODES) == []
    assert extender.passed(other, *NODES) == NODES


class Untouched(dict[Any, Any]):
    """A table of which single entries may be read, but not all of them."""

    def __iter__(self) -> Iterator[Any]:
        """Fail the test."""
        raise AssertionError("it goes through all of them")

    items = values = keys = __iter__  # type: ignore[assignment]  # all fail


def test_filter_asks_only_the_queues_above_and_reads_no_amounts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As kube-scheduler does nothing else meanwhile; a pod that the watch has not shown yet is read, as it must be."""
    extender = Extender()
    extender.world.queue("default", **{"max-per-user": "pods=2"}).queue("root", capability={"cpu": 100})
    one = extender.pod("a")
    assert extender.passed(one, *NODES) == NODES
    state, uses = extender.world.state, extender.world.state.ledger.queues
    state.queues, uses.queues, uses.users = Untouched(state.queues), Untouched(uses.queues), Untouched(uses.users)
    monkeypatch.setattr("extender.verbs.filter.asked_of", lambda *_: pytest.fail("the record has the amounts"))
    assert extender.passed(one, *NODES) == NODES
    assert not extender.error(one, "node-0")
    assert extender.passed(extender.pod("b"), *NODES) == NODES
    monkeypatch.undo()
    unseen = pod("c", uid="uid-c", requests={"cpu": 33})
    assert extender.passed(unseen, *NODES) == []
