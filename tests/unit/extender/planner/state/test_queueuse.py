"""What queues use does not depend on the order in which things were seen."""

from itertools import permutations

from extender.planner.state.podclass import ClassTable
from extender.planner.state.queueuse import QueueUse, Use
from muster.api.kubernetes.core import PodSpec


def test_pods_of_a_gang_count_for_its_queue_once_that_is_known() -> None:
    """Until then, and afterwards, each for the queue that it names."""
    cls = ClassTable().of_spec(PodSpec())
    one, two = Use({"pods": 1}), Use({"pods": 2})
    steps = (
        lambda use: use.charge("p", "ns/g", "a", cls.requests),
        lambda use: use.charge("q", "ns/g", "b", cls.requests),
        lambda use: use.moved("ns/g", "c"),
    )
    for order in permutations(steps):
        use = QueueUse()
        for step in order:
            step(use)
        assert use.queues == {"c": two}
        assert use.gangs == {"ns/g": two}
        use.moved("ns/g", None)
        assert use.queues == {"a": one, "b": one}
        use.discharge("p")
        use.discharge("q")
        assert (use.queues, use.gangs) == ({}, {})
