"""What the planner writes into the status of queues: its own fields, where they differ."""

from extender.clusterstatus import queue_difference
from extender.planner.framework.answers import QueueStanding
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
