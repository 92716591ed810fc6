"""The entries of the ledger, and their sums, depend on what there is and not on the order in which it was seen."""

from itertools import permutations

import pytest
from extender_world import World
from state_oracle import recomputed_use

from extender.planner.dynamic.needs import ClaimNeeds, SharedClaim
from extender.planner.ledger import Ledger
from extender.planner.ledgerentry import EntryKind, LedgerEntry
from extender.planner.queueuse import Use
from extender.planner.state.podclass import ClassTable
from muster.api.kubernetes.core import PodSpec


def test_pods_of_a_gang_count_for_its_queue_once_that_is_known() -> None:
    """Until then each for the queue that it names; a deleted PodGroup frees its queue with its last pod."""
    classes = ClassTable()
    cls = classes.of_spec(PodSpec())
    one, two = Use({"pods": 1}), Use({"pods": 2})
    steps = (
        lambda ledger: ledger.open("p", LedgerEntry(EntryKind.BOUND, "n", cls, "ns/g", "a")),
        lambda ledger: ledger.open("q", LedgerEntry(EntryKind.BOUND, "n", cls, "ns/g", "b")),
        lambda ledger: ledger.moved("ns/g", "c"),
    )
    for order in permutations(steps):
        ledger = Ledger(classes)
        for step in order:
            step(ledger)
        assert (ledger.queues.queues, ledger.queues.gangs) == ({"c": two}, {"ns/g": two})
        ledger.moved("ns/g", None)
        assert ledger.queues.queues == {"c": two}
        ledger.close("p")
        assert ledger.queues.queues == {"c": one}
        ledger.open("r", LedgerEntry(EntryKind.BOUND, "n", cls, "ns/g", "a"))
        assert ledger.queues.queues == {"c": two}
        ledger.close("r")
        ledger.close("q")
        assert is_empty(ledger)


def test_a_copy_of_a_usage_stays_as_it_was() -> None:
    """A copy is made again only after a change, because few gangs change between two cycles."""
    use = Use({"pods": 1})
    copy = use.copy()
    assert copy is use.copy()
    use.add({"pods": 1}, 1, leaving=False)
    assert (copy, use.copy()) == (Use({"pods": 1}), Use({"pods": 2}))


def is_empty(ledger: Ledger) -> bool:
    """Nothing is counted, and nothing is known of any gang that has a PodGroup no more."""
    queues = ledger.queues
    sums = (queues.queues, queues.gangs, queues.users, queues.claims.uses, ledger.device_users, ledger.entries)
    return not any((*sums, queues.queue_of, queues.user_of, ledger.left_behind))


@pytest.mark.parametrize("order", [*permutations(("pa", "pb", "p0"))])
def test_claims_of_deleted_gangs_leave_nothing(order: tuple[str, ...]) -> None:
    """The entry of a claim passes from gang to gang: so may the last thing that a gang holds."""
    classes = ClassTable()
    base = classes.of_spec(PodSpec())
    ledger = Ledger(classes)
    for pod, gang, claims in (("pa", "ns/a", "12"), ("pb", "ns/b", "1"), ("p0", "ns/0", "2")):
        named = tuple(SharedClaim(f"ns/c{claim}", (("gpu.dev", 1000),)) for claim in claims)
        ledger.moved(gang, "team")
        ledger.open(pod, LedgerEntry(EntryKind.BOUND, "n", classes.equipped(base, ClaimNeeds(named=named)), gang, "a"))
    for gang in ("ns/a", "ns/b", "ns/0"):
        ledger.moved(gang, None)
    for pod in order:
        ledger.close(pod)
    assert is_empty(ledger)


def test_an_assumed_pod_is_bound_or_gives_its_room_back() -> None:
    """Its binding is under way: what is seen of the pod meanwhile says nothing of its node, and does not matter."""
    world = World().nodes(1)
    world.pod("ns/g", "worker", 0, {"cpu": 2})
    ledger, [pod] = world.state.ledger, list(world.state.pods.values())
    for failed in (True, False):
        ledger.assume(pod.uid, "default", pod.cls, node="node-0")
        world.pod("ns/g", "worker", 0, {"cpu": 2}, refused=True)
        assert ledger.entries[pod.uid].kind is EntryKind.ASSUMED
        if failed:
            assert (ledger.answered(pod.uid), ledger.nodes.used.any()) == (True, False)
    world.pod("ns/g", "worker", 0, {"cpu": 2}, node="node-0", phase="Succeeded")
    assert pod.uid not in ledger.entries, "it has ended before the answer came"
    world.pod("ns/g", "worker", 0, {"cpu": 2})
    assert world.state.assume(pod.uid, "node-0") is not None
    assert (ledger.answered(pod.uid), ledger.entries[pod.uid].kind) == (False, EntryKind.BOUND)
    assert world.state.differences() == []


@pytest.mark.parametrize("gone", [False, True])
def test_what_is_on_a_node_is_counted_as_the_node_is_now(gone: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A node that is not known, that comes back, or that offers other resources."""
    world = World()
    world.pod("ns/g", "worker", 0, {"cpu": 2, "example.com/card": 1}, node="node-0", phase="Running")
    ledger = world.state.ledger
    assert not ledger.nodes.used.any()
    node = world.node("node-0")
    if gone:
        world.state.on_node(node, None)
        assert not ledger.nodes.used.any()
        world.node("node-1")
    node.status.allocatable["example.com/card"] = 4
    world.node("node-0", labels={"changed": "yes"})
    assert ledger.nodes.used[ledger.nodes.axis["cpu"], ledger.nodes.index["node-0"]] == 2000
    assert (recomputed_use(ledger) == ledger.nodes.used).all()
    assert world.state.differences() == []
