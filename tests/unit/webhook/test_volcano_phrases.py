"""Tools look for certain words in refusals of queues and pods: those of Volcano's webhook. Ours contain them."""

import pytest
from webhook_world import JSON, QueueWorld, request

from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import Queue, QueueSpec
from webhook.validate import queue
from webhook.validate.pod import review

QUEUES = QueueWorld(a=("root", ""), b=("a", ""), c=("b", ""), d=("c", ""), e=("d", ""))
MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


def refusal(spec: JSON, name: str = "q") -> str:
    """The errors of a queue with this spec."""
    obj = {"metadata": {"name": name}, "spec": {"parent": "root", **spec}}
    return "; ".join(map(str, queue.reviewer(QUEUES)(request(obj)).errors))


@pytest.mark.parametrize(
    ("spec", "phrase"),
    [
        (
            {"deserved": {"cpu": 8, "memory": 1}, "capability": {"cpu": 4}},
            "deserved[cpu]=8000m must be <= capability[cpu]=4000m",
        ),
        (
            {"deserved": {"cpu": 1}, "guarantee": {"resource": {"cpu": 2}}},
            "deserved[cpu]=1000m must be >= guarantee[cpu]=2000m",
        ),
        ({"guarantee": {"resource": {"cpu": 2}}}, "deserved[cpu] must be >= guarantee[cpu]=2000m"),
        ({"capability": {"cpu": 1}, "guarantee": {"resource": {"cpu": 2}}}, "must be >= guarantee"),
        ({"parent": "q"}, "cannot use itself as parent"),
        ({"parent": "e"}, "exceeds the maximum allowed depth of"),
    ],
)
def test_queues(spec: JSON, phrase: str) -> None:
    """Amounts within one queue, and its place in the tree; sums and ancestors are in test_queue_tree."""
    assert phrase in refusal(spec)


@pytest.mark.parametrize("name", ["root", "default"])
def test_deletion_of_the_queues_that_stay(name: str) -> None:
    """With the name in backquotes in front."""
    assert f"`{name}` queue can not be deleted" in str(next(queue.check_delete(name, QUEUES)))


def test_deletion_of_a_parent() -> None:
    """With the number of its children."""
    [error] = queue.check_delete("a", QUEUES)
    assert "has 1 child queues" in str(error)


def test_deletion_of_a_parent_whose_child_is_gone() -> None:
    """A cache that still has the child refuses nothing: the API server is asked."""

    class Behind(QueueWorld):
        """A cache that still has `b` below `a`."""

        def __init__(self, now: Queue | None) -> None:
            super().__init__(a=("root", "Open"), b=("a", "Open"))
            self._now = now

        def live(self, name: str) -> Queue | None:
            """See webhook.lookup.Queues."""
            return self._now if name == "b" else self.get(name)

    for now in (None, Queue(metadata=ObjectMeta(name="b"), spec=QueueSpec(parent="root"))):
        assert not list(queue.check_delete("a", Behind(now)))


@pytest.mark.parametrize(
    ("annotations", "phrase"),
    [
        ({MIN: "-1"}, f'invalid value <"-1"> for {MIN}, it must be a positive integer'),
        ({MAX: "0"}, f'invalid value <"0"> for {MAX}, it must be a positive integer'),
        ({MIN: "0%"}, f'invalid value <"0%"> for {MIN}, it must be a valid percentage which between 1% ~ 99%'),
        ({MAX: "100%"}, f'invalid value <"100%"> for {MAX}, it must be a valid percentage which between 1% ~ 99%'),
        ({MIN: "1", MAX: "1"}, f"not allow configure multiple annotations <[{MIN} {MAX}]> at same time"),
    ],
)
def test_disruption_budgets_of_pods(annotations: JSON, phrase: str) -> None:
    """Each refusal of a pod's annotations."""
    pod = {"metadata": {"name": "p", "annotations": annotations}}
    assert phrase in "; ".join(map(str, review(request(pod)).errors))
