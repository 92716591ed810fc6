"""What the pods of several queues, namespaces and gangs of one name ask for, counted by queue."""

from typing import Any

from builders import pod as a_pod

from controller.queues.rules import RequestsByQueue
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec

GPU = "nvidia.com/gpu"


def pod(uid: str, namespace: str, gang: str = "g", *, node: str = "node-1", phase: str = "Running", **more: Any) -> Pod:
    """A pod, by default a member of gang `g` of its namespace with a GPU and a CPU."""
    more = {"requests": {"cpu": "1", GPU: "1"}, "uid": uid, **more}
    return a_pod(uid, namespace, node=node, phase=phase, gang=gang, **more)


class World:
    """Gangs of one name in two namespaces, each in a queue of its own."""

    def __init__(self) -> None:
        self.queues = {"n/g": "q", "m/g": "r"}
        self.offers = dict[str, dict[str, int]]()
        self.usage = RequestsByQueue(self._group, self.offers.get)

    def _group(self, key: str) -> PodGroup | None:
        namespace, _, name = key.partition("/")
        found = self.queues.get(key)
        spec = PodGroupSpec(queue=found or "")
        return PodGroup(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec) if found else None

    def seen(self, *pods: Pod, gone: bool = False) -> list[str | None]:
        """The queues whose sums have changed."""
        return [self.usage.pod_seen(each, gone=gone) for each in pods]

    def of(self, queue: str) -> tuple[int, int, int]:
        """Pods, milli-CPU and milli-GPUs of a queue."""
        amounts = self.usage.requests_in(queue)
        return amounts.get("pods", 0), amounts.get("cpu", 0), amounts.get(GPU, 0)


def test_gangs_of_one_name_count_for_their_own_queues() -> None:
    """By the PodGroup of the pod's own namespace; a pod of no gang by its label; those of other schedulers for none."""
    world = World()
    pods = pod("a", "n"), pod("b", "m", requests={"cpu": "2"}), pod("c", "n", "", labels={"muster.dev/queue": "r"})
    assert world.seen(*pods, pod("d", "n", scheduler="default-scheduler"), pod("e", "n", "")) == [
        "q", "r", "r", None, "default"
    ]  # fmt: skip
    assert (world.of("q"), world.of("r"), world.of("default")) == ((1, 1000, 1000), (2, 3000, 1000), (1, 1000, 1000))


def test_the_queue_of_a_member_is_noted_where_its_podgroup_is_not_known() -> None:
    """As for a native PodGroup; else its label has it."""
    world, label = World(), {"muster.dev/queue": "labelled"}
    pods = [
        pod("a", "n", "native"),
        pod("b", "n", "native", labels=label),
        pod("c", "n", "native"),
        pod("d", "n", "g", labels=label),
    ]
    for noted in (pods[0], pods[3]):
        noted.metadata.annotations["scheduling.volcano.sh/queue-name"] = "noted"
    assert world.seen(*pods) == ["noted", "labelled", "default", "q"]


def test_a_pod_counts_from_its_binding_to_its_end() -> None:
    """For the queue of its gang, with its present amounts, once however often it is seen."""
    world = World()
    assert world.seen(pod("a", "n", node=""), pod("a", "n"), pod("a", "n")) == [None, "q", None]
    world.queues["n/g"] = "r"
    assert world.seen(pod("a", "n", requests={"cpu": "3"}), pod("b", "n")) == ["q", "r"]
    assert (world.of("q"), world.of("r")) == ((1, 3000, 0), (1, 1000, 1000))
    assert world.seen(pod("a", "n", phase="Succeeded"), pod("a", "n", phase="Succeeded")) == ["q", None]
    assert world.seen(pod("b", "n"), gone=True) == ["r"]
    assert (world.of("q"), world.of("r")) == ((0, 0, 0), (0, 0, 0))


def test_the_members_follow_their_gang_to_another_queue() -> None:
    """Also pods that were counted before their PodGroup was known; a pod without a gang stays."""
    world = World()
    world.queues.clear()
    world.seen(pod("a", "n"), pod("b", "n"), pod("c", "n", ""), pod("d", "m"))
    assert world.usage.moved("n/g", "q") == {"default", "q"}
    assert world.usage.moved("n/g", "q") == set()
    assert world.usage.moved("n/g", "r") == {"q", "r"}
    assert (world.of("q"), world.of("r"), world.of("default")) == ((0, 0, 0), (2, 2000, 2000), (2, 2000, 2000))
    assert world.seen(pod("a", "n"), gone=True) == ["r"]
    assert world.usage.moved("n/g", "q") == {"q", "r"}
    assert world.seen(pod("b", "n"), gone=True) == ["q"]
    assert not world.usage._pods.keys() - {"c", "d"}
    assert world.usage._members == {"m/g": {"d": None}}


def test_what_has_gone_unseen_counts_no_more() -> None:
    """Of each queue only those that are there."""
    world = World()
    world.seen(pod("a", "n"), pod("b", "n"), pod("c", "m"))
    world.usage.forget_others(lambda: {"b", "c"})
    assert (world.of("q"), world.of("r")) == ((1, 1000, 1000), (1, 1000, 1000))
    world.usage.forget_others(lambda: {"b"})
    assert (world.of("q"), world.of("r")) == ((1, 1000, 1000), (0, 0, 0))


def test_a_gang_that_moves_while_a_pod_is_counted_takes_it_along() -> None:
    """PodGroups come in another thread than pods."""
    world, moved = World(), list[bool]()

    def group(key: str) -> PodGroup | None:
        found = world._group(key)
        if not world.usage._lock.locked():
            moved.append(bool(world.usage.moved(key, "r")))
        return found

    world.usage = RequestsByQueue(group)
    world.seen(pod("a", "n"))
    if not moved:
        world.usage.moved("n/g", "r")
    assert (world.of("q"), world.of("r")) == ((0, 0, 0), (1, 1000, 1000))


def test_a_pod_counts_no_more_than_its_node_has_offered() -> None:
    """One that was bound by hand, or is resized; it counts again when its node is known, and when that offers more."""
    world = World()
    huge = pod("a", "n", requests={"cpu": "1000000", GPU: "100000000"})
    world.seen(huge, pod("b", "n"))
    for cpu, gpus in ((8000, 0), (8000, 4000), (10**9, 10**11)):
        world.offers["node-1"] = {"pods": 110, "cpu": cpu, GPU: gpus}
        assert world.usage.node_seen("node-1") == {"q"}
        assert world.of("q") == (2, cpu + 1000, gpus + (1000 if gpus else 0))
    assert world.usage.node_seen("node-1") == set()
    assert not world.usage._beyond
    world.offers["node-1"] = {"pods": 110, "cpu": 8000, GPU: 4000}
    assert world.seen(huge) == ["q"]
    assert world.usage.moved("n/g", "r") == {"q", "r"}
    assert world.of("r") == (2, 9000, 5000)
    assert world.seen(huge, pod("b", "n"), gone=True) == ["r", "r"]
    assert (world.of("r"), world.usage._beyond, world.usage._pods) == ((0, 0, 0), {}, {})
