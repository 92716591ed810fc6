"""Pods without a gang stay within the capability of their queue, and of those above it."""

from verbs_world import NODES, Extender

from extender.planner.fairshare.capacity import queue_full
from extender.planner.ledger import Use
from extender.planner.reasons.verbs import Reason
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.extender import ExtenderArgs
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue, QueueSpec

QUEUES = {
    name: Queue(metadata=ObjectMeta(name=name), spec=spec)
    for name, spec in {
        "department": QueueSpec(capability={"cpu": 4}),
        "team": QueueSpec(parent="department", capability={"nvidia.com/gpu": 1}),
        "other": QueueSpec(parent="department"),
        "free": QueueSpec(),
        "broken": QueueSpec(capability={"cpu": "many"}),
    }.items()
}
USES = {"team": Use({"cpu": 1000}, {"cpu": 1000}), "other": Use({"cpu": 1000})}


def test_what_is_used_below_a_queue_counts() -> None:
    """With pods that are being deleted."""
    assert not queue_full(QUEUES, USES, "team", {"cpu": 1000})
    assert queue_full(QUEUES, USES, "team", {"cpu": 1001})


def test_only_what_is_asked_for_counts() -> None:
    """A queue that is full of something else takes the pod."""
    assert queue_full(QUEUES, USES, "team", {"nvidia.com/gpu": 2000})
    assert not queue_full(QUEUES, USES, "free", {"cpu": 10**9})
    assert not queue_full(QUEUES, USES, "broken", {"cpu": 10**9})
    assert not queue_full(QUEUES, USES, "missing", {"cpu": 10**9})


def test_a_pod_whose_label_names_a_queue_that_is_not_for_its_namespace_finds_no_node() -> None:
    """Admission has seen the pod without the label, which can be added afterwards."""
    extender = Extender()
    state = extender.world.state
    extender.world.queue("default", **{"namespace-selector": "team=vision"})
    pod = extender.pod("a")
    unseen = extender.filter(ExtenderArgs(pod=pod, node_names=NODES))
    assert Reason.NOT_SEEN in unseen.error
    state.on_namespace(None, Namespace(metadata=ObjectMeta(name="ns", labels={"team": "speech"})))
    assert extender.passed(pod, *NODES) == []
    assert extender.error(pod, "node-0")
    assert not extender.bound
    state.on_namespace(None, Namespace(metadata=ObjectMeta(name="ns", labels={"team": "vision"})))
    assert extender.passed(pod, *NODES) == NODES
