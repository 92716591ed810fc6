"""What the planner writes into the status of queues: its own fields, where they differ."""

from extender_world import World

from extender.clusterstatus import MAX_RESOURCES, largest_difference, queue_difference
from extender.planner.framework.answers import QueueStanding
from extender.planner.framework.snapshot import take
from muster.api.kubernetes.core import Node, NodeStatus
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.scheduling import Queue, QueueStatus

NOW = 1_800_000_000.0


def test_only_what_differs_is_written() -> None:
    """What is not wanted any more is taken out; usage comes once a minute."""
    written = format_time(NOW - 30)
    status = QueueStatus(
        fair_share={"cpu": "2", "memory": "1"}, deserved={"cpu": "1"}, message="why", usage_time=written
    )
    same = QueueStanding({"cpu": 2000, "memory": 1}, {"cpu": 1000}, {"cpu": 5})
    assert queue_difference(Queue(status=status), same, "why", 0, NOW) == {}
    assert queue_difference(Queue(status=status), same, "why", 0, NOW + 31) == {
        "usage": {"cpu": "5m"},
        "usageTime": format_time(NOW + 31),
    }
    other = QueueStanding({"cpu": 3000}, {}, None)
    assert queue_difference(Queue(status=status), other, "", 2, NOW) == {
        "fairShare": {"cpu": "3", "memory": None},
        "deserved": {"cpu": None},
        "message": "",
        "waiting": 2,
    }


def test_the_sizes_of_nodes_are_told_at_the_root() -> None:
    """The most that one node has of each resource; nothing without nodes, or of more resources than can be listed."""
    world, root = World(), Queue()
    assert largest_difference(root, take(world.state)) == {}
    world.node("small", gpus=2, cpu=64)
    world.node("large", gpus=8, cpu=32)
    told = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    assert largest_difference(root, take(world.state)) == {"largestNode": told}
    known = Queue(status=QueueStatus(largest_node={**told, "gone": "1"}))
    assert largest_difference(known, take(world.state)) == {"largestNode": {**told, "gone": None}}
    many = NodeStatus(allocatable={f"example.com/{number}": 1 for number in range(MAX_RESOURCES)})
    world.state.on_node(None, Node(metadata=world.meta("crowded", namespace=""), status=many))
    assert largest_difference(root, take(world.state)) == {}
