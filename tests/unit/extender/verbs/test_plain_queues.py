"""Pods without a gang stay within the capability of their queue, and of those above it."""

from extender.planner.fairshare.capacity import queue_full
from extender.planner.ledger import Use
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
