"""Claims that pods name: they share its node, count once for queues, and are at most 256."""

from dataclasses import replace
from typing import Any

import pytest
from devices_world import CPU, Devices, asks, claim_use, device, exactly, ones, template_use
from extender_world import NOW, cluster_of, of, waiting, where
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender.placements import _assume, new_requests
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.progress import RETRIED_S
from extender.planner.fairshare.allocations import Accounts
from extender.planner.framework import decisions
from extender.planner.framework.statement import Statement
from extender.planner.plugins.order import Elastic
from extender.planner.plugins.proportion import Proportion
from extender.verbs.filter import Filter
from muster.api.kubernetes.core import NodeStatus
from muster.api.kubernetes.extender import ExtenderArgs
from muster.api.names import PREEMPTABLE
from muster.api.volcano.scheduling import Guarantee

GPUS = "deviceclass.resource.kubernetes.io/gpu"


def world_of(nodes: int = 2, each: int = 4, **queues: int) -> Devices:
    """Nodes with so many devices each, and queues that may use so many."""
    world = Devices()
    world.plugins += [Proportion({}), Elastic({})]
    world.gpus(nodes, each)
    world.device_class()
    for name, most in queues.items():
        world.queue(name, capability={GPUS: str(most)})
    return world


def claims(world: Devices, **sizes: int) -> None:
    """Claims without devices yet, for so many."""
    for name, count in sizes.items():
        world.claim(name, asks(exactly("gpu", count)))


def gang(world: Devices, name: str, members: int, claim: str, queue: str = "team", **more: Any) -> str:
    """A gang whose members use one claim."""
    return world.gang(name, {"worker": (members, CPU)}, spec=claim_use(claim), queue=queue, **more)


def used(world: Devices, queue: str = "team") -> tuple[int, int]:
    """Devices that a queue uses, and of them those whose pods leave."""
    world.state.refresh()
    use = world.state.ledger.queues.queues.get(queue)
    return (use.staying.get(GPUS, 0), use.leaving.get(GPUS, 0)) if use else (0, 0)


def test_pods_that_share_a_claim_go_to_one_node_and_count_once() -> None:
    """The node must hold all of them; the claim takes two devices there, however many pods use it."""
    world = Devices()
    for number, (cpu, devices) in enumerate(((2, 2), (8, 3))):
        world.node(f"node-{number}", cpu=cpu)
        world.equip(f"node-{number}", *(device(f"d{index}") for index in range(devices)))
    world.device_class()
    claim = world.claim("both", asks(exactly("gpu", 2)))
    key = gang(world, "a", 3, "both")
    assert where(world.plan()) == {"a": ["node-1"] * 3}
    assert (world.free("node-0"), world.free("node-1")) == (2, 1)
    gang(world, "b", 1, "both")
    assert where(world.plan()) == {"b": ["node-1"]}, "who comes later follows"
    for rank in range(3):
        world.member(key, rank, claim_use("both"), node="node-1", phase="Running")
    assert world.free("node-1") == 1
    world.claim("both", asks(exactly("gpu", 2)), got=(("node-1", "d0"), ("node-1", "d1")))
    assert world.free("node-1") == 1
    assert claim in world.state.devices.claims
    gang(world, "c", 1, "both")
    assert where(world.plan()) == {"c": ["node-1"]}


def test_shared_claims_of_two_gangs_take_different_devices() -> None:
    """In one cycle, where the second sees what the first has taken; one that finds no node says why."""
    world = Devices().gpus(2, 2).device_class()
    for name in "abc":
        world.claim(name, asks(exactly("gpu", 2)))
        gang(world, name, 2, name)
    assert where(world.plan()) == {"a": ["node-0"] * 2, "b": ["node-1"] * 2}
    assert "2 too few devices of class gpu" in waiting(world.plan())["c"][1]


@pytest.mark.parametrize(("use", "refused", "abandoned"), [
    (claim_use("both"), {0: True}, []),
    (template_use("one"), {0: True}, [RETRIED_S]),
    (template_use("one"), {0: True, 5: False}, []),
    (template_use("one"), {0: True, 5: False, 6: True}, [6 + RETRIED_S]),
])  # fmt: skip
def test_kube_scheduler_retries_pods_with_claims(
    use: dict[str, Any], refused: dict[int, bool], abandoned: list[float]
) -> None:
    """Any other refusal ends the placement at once; one while a shared claim gets its devices means nothing."""
    world = ones(1, 2)
    world.claim("both", asks(exactly("gpu", 2)))
    key = world.gang("a", {"worker": (2, CPU)}, spec=use)
    assert where(world.plan()) == {"a": ["node-0"] * 2}
    found, began = [], world.now
    for passed_s in range(20):
        world.now = began + passed_s
        if passed_s in refused:
            world.member(key, 0, use, pin="node-0", refused=refused[passed_s])
        found += [passed_s] * len(of(world.session(world.progress), decisions.ClosePlacement))
    assert found[:1] == abandoned


def test_a_claim_of_a_whole_gang_counts_once_and_counts() -> None:
    """Three members use one claim of two devices; of three that the queue may use the next claim lacks one."""
    world = world_of(team=3)
    claims(world, one=2, two=2)
    gang(world, "a", 3, "one")
    gang(world, "b", 2, "two")
    session = world.plan()
    assert where(session).keys() == {"a"}
    reason, message = waiting(session)["b"]
    assert (reason, GPUS in message) == ("QueueOverCapability", True)
    assert used(world) == (2, 0)
    assert not where(world.plan()), "in the next cycle, when the first has placed slots"


def test_a_claim_counts_from_the_plan_until_its_last_pod_has_gone() -> None:
    """Placed, bound, with devices, and for limits alone while its pods are being deleted."""
    world = world_of(team=3)
    claims(world, one=2)
    key = gang(world, "a", 2, "one")
    assert used(world) == (0, 0)
    world.plan()
    assert used(world) == (2, 0)
    for rank in range(2):
        world.member(key, rank, claim_use("one"), node="node-0", phase="Running")
        assert used(world) == (2, 0)
    world.close(world.session(world.progress))
    got = (("node-0", "d0"), ("node-0", "d1"))
    world.claim("one", asks(exactly("gpu", 2)), got=got, users=("uid-a-worker-0", "uid-a-worker-1"))
    assert used(world) == (2, 0)
    for rank in range(2):
        world.change(world.state.pod_objects[f"uid-a-worker-{rank}"], deletion_timestamp="2027-01-15T08:00:00Z")
        assert used(world) == ((2, 0) if rank == 0 else (0, 2))
    for rank in range(2):
        world.state.on_pod(world.state.pod_objects[f"uid-a-worker-{rank}"], None)
    assert used(world) == (0, 0)
    assert world.state.differences() == []


def test_a_claim_that_gets_its_devices_before_its_pod_is_bound_goes_on_counting() -> None:
    """It is reserved for the pod, which is not on the node yet."""
    world = world_of(team=3)
    claims(world, one=2)
    key = gang(world, "a", 1, "one")
    world.plan()
    world.member(key, 0, claim_use("one"))
    world.claim("one", asks(exactly("gpu", 2)), got=(("node-0", "d0"), ("node-0", "d1")), users=("uid-a-worker-0",))
    assert used(world) == (2, 0)


def test_a_claim_of_two_queues_counts_in_both() -> None:
    """So that nobody's limit depends on who came first, or is passed by the claim of another queue."""
    world = world_of(a=2, b=1)
    claims(world, one=2)
    gang(world, "first", 1, "one", queue="a")
    assert where(world.plan()).keys() == {"first"}
    gang(world, "second", 2, "one", queue="b")
    assert not where(world.plan())
    world.queue("b", capability={GPUS: "2"})
    assert where(world.plan()).keys() == {"second"}
    assert (used(world, "a"), used(world, "b")) == ((2, 0), (2, 0))


def test_a_claim_of_two_queues_counts_once_in_those_above_them() -> None:
    """In what they use, and for their limits, in the cycle that places the pods and afterwards."""
    world = world_of()
    for name, parent in (("top", ""), ("above", "top"), ("a", "above"), ("b", "above"), ("c", "top")):
        world.queue(name, parent=parent, capability={GPUS: "2"})
    claims(world, one=2)
    for name in "abc":
        gang(world, name, 2, "one", queue=name)
    names = ("root", "top", "above", "a", "b", "c")
    for placed in ({"a", "b", "c"}, set()):
        session = world.plan()
        assert where(session).keys() == placed
        allocated = session.hooks.get_queue_allocated_resources.call
        assert [int(allocated(name)[session.snapshot.axis[GPUS]]) for name in names] == [2] * 6
    limited = world.state.ledger.queues.limited
    assert limited.over_capability("above", {GPUS: 1}) is not None
    world.queue("above", parent="top", capability={GPUS: "3"})
    world.queue("top", capability={GPUS: "3"})
    limited = world.state.ledger.queues.limited
    assert limited.over_capability("above", {GPUS: 1}) is None
    assert limited.over_capability("above", {GPUS: 2}) is not None


def test_a_claim_follows_its_gang_to_another_queue() -> None:
    """With the last of its gangs there."""
    world = world_of(a=2, b=2)
    claims(world, one=2)
    for name in ("x", "y"):
        gang(world, name, 1, "one", queue="a")
    world.plan()
    for name, rest in (("x", 2), ("y", 0)):
        world.change(world.state.groups[f"ns/{name}"], spec={"queue": "b"})
        assert (used(world, "a"), used(world, "b")) == ((rest, 0), (2, 0))


def test_growth_needs_no_more_of_a_claim() -> None:
    """The queue is full with it, and members that use it come all the same."""
    world = world_of(team=2)
    claims(world, one=2)
    world.gang("a", {"worker": (3, CPU)}, spec=claim_use("one"), queue="team", min_member=1, min_task_member={})
    [place] = of(world.plan(), decisions.Place)
    assert place.new_slots == 3
    assert new_requests(place)[GPUS] == 2
    assert GPUS not in new_requests(place, {"ns/one": {"team"}})


def test_a_pod_without_a_gang_is_held_against_its_queue() -> None:
    """By the devices of the claim that it is the first to use."""
    world = world_of(default=1)
    claims(world, one=2)
    pod = world.member("ns/none", 0, claim_use("one"))
    call = ExtenderArgs(pod=world.change(pod, annotations={}), node_names=["node-0", "node-1"])
    assert not Filter(cluster_of(world), active=lambda: True)(call).node_names
    world.queue("default", capability={GPUS: "2"})
    assert Filter(cluster_of(world), active=lambda: True)(call).node_names == ["node-0", "node-1"]


@pytest.mark.parametrize(("users", "members", "placed"), [(254, 3, 0), (254, 2, 1), (0, 257, 0)])
def test_a_claim_has_at_most_256_users(users: int, members: int, placed: int) -> None:
    """A gang that would be more waits, and is told why."""
    world = Devices().gpus(1, 1)
    node = world.node("node-0", cpu=300)
    world.state.on_node(node, structs.replace(node, status=NodeStatus(allocatable={"cpu": 300, "pods": 300})))
    world.device_class()
    many = tuple(f"u{number}" for number in range(users))
    world.claim("one", asks(exactly()), got=(("node-0", "d0"),) if users else (), users=many)
    world.gang("a", {"worker": (members, CPU)}, spec=claim_use("one"))
    session = world.plan()
    assert len(where(session)) == placed
    if not placed and users:
        assert "resource claim ns/one is used by 254 pods, but at most 256 may use it" in waiting(session)["a"][1]


def test_users_on_nodes_and_in_the_claim_are_counted_once() -> None:
    """200 members run and stand in the claim, 54 others only stand in it."""
    world = Devices().gpus(1, 1).device_class()
    key = world.gang("a", {"worker": (200, {"memory": 1})}, spec=claim_use("one"), phase="Running")
    running = [f"uid-a-worker-{rank}" for rank in range(200)]
    world.claim("one", asks(exactly()), got=(("node-0", "d0"),), users=(*running, *(f"u{rank}" for rank in range(54))))
    for rank in range(200):
        world.member(key, rank, claim_use("one"), node="node-0", phase="Running", requests={})
    assert world.state.claimants.users_of("ns/one") == 254


@settings(max_examples=settings().max_examples // 4)
@given(
    gangs=st.lists(st.tuples(st.integers(1, 3), st.sampled_from("abc"), st.sampled_from(["p", "q"])), max_size=6),
    sizes=st.tuples(*[st.integers(1, 3)] * 3),
    limits=st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 9)),
)
def test_each_claim_in_use_counts_once_in_a_queue_and_none_is_over_its_capability(
    gangs: list[tuple[int, str, str]], sizes: tuple[int, int, int], limits: tuple[int, int, int]
) -> None:
    """Whatever gangs of two queues use whatever claims, in one cycle and in the next."""
    world = world_of(3, 3, above=limits[2])
    for name, limit in zip("pq", limits, strict=False):
        world.queue(name, parent="above", capability={GPUS: str(limit)})
    claims(world, a=sizes[0], b=sizes[1], c=sizes[2])
    for number, (members, claim, queue) in enumerate(gangs):
        gang(world, f"g{number}", members, claim, queue)
    size, started = dict(zip("abc", sizes, strict=True)), set[str]()
    for _ in range(2):
        session = world.plan()
        started |= where(session).keys()
        in_use = {(claim, queue) for number, (_, claim, queue) in enumerate(gangs) if f"g{number}" in started}
        allocated = session.hooks.get_queue_allocated_resources.call("above")
        total = sum(size[claim] for claim in {claim for claim, _ in in_use})
        assert int(allocated[session.snapshot.axis[GPUS]]) == total <= limits[2]
        for name, limit in zip("pq", limits, strict=False):
            assert used(world, name)[0] == sum(size[claim] for claim, queue in in_use if queue == name) <= limit


def tree_world(**above: Any) -> Devices:
    """Queues `a` and `b` below `above`, whose pods share a claim of two devices; each is one gang of one pod."""
    world = world_of(2, 4)
    world.queue("above", **above)
    for name in "ab":
        world.queue(name, parent="above")
    claims(world, one=2)
    return world


@pytest.mark.parametrize("cycles", ["c", "abc"], ids=["in one cycle", "in later ones"])
def test_gangs_that_are_not_preemptable_share_a_claim_within_what_a_parent_deserves(cycles: str) -> None:
    """It deserves the two devices, and its queues have no more of them; a third queue gets none."""
    world = tree_world(deserved={GPUS: "2"})
    for name in "abc":
        world.queue(name, parent="above", deserved={GPUS: "2"})
    claims(world, more=2)
    started: set[str] = set()
    for name, claim in (("a", "one"), ("b", "one"), ("c", "more")):
        key = gang(world, name, 1, claim, queue=name)
        world.change(world.state.groups[key], annotations={PREEMPTABLE: "false"})
        if name in cycles:
            session = world.plan()
            started |= where(session).keys()
    assert started == {"a", "b"}
    assert waiting(session)["c"][0] == "QueueOverDeserved"


def test_a_claim_of_two_queues_counts_once_beyond_a_quota() -> None:
    """Three devices are deserved: the third gang is beyond them, with another claim."""
    world = tree_world(deserved={GPUS: "3"})
    claims(world, more=2)
    for name, claim in (("a", "one"), ("b", "one"), ("c", "more")):
        world.queue(name, parent="above", deserved={GPUS: "2"})
        gang(world, name, 1, claim, queue=name)
    world.plan()
    for name in "abc":
        world.change(world.state.groups[f"ns/{name}"], annotations={PREEMPTABLE: "false"})
    session = world.session()
    over = session.hooks.holds_over_quota
    assert [name for name in "abc" if over.call(world.view(f"ns/{name}"))] == ["c"]


def test_a_claim_that_a_sibling_uses_takes_no_guarantee_of_others() -> None:
    """Four devices, of which two are guaranteed to another queue: the claim's are in use below the parent."""
    world = tree_world()
    world.queue("idle", guarantee=Guarantee(resource={GPUS: "6"}))
    for name in "ab":
        gang(world, name, 1, "one", queue=name)
        assert where(world.plan()).keys() == {name}


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize(("evicted", "left"), [("a", 2), ("ab", 0)])
def test_a_claim_is_given_up_by_a_parent_with_its_last_queue(evicted: str, members: int, left: int) -> None:
    """Its users are to be evicted, second ones are being deleted, and all are still there."""
    world = tree_world()
    for name in "ab":
        gang(world, name, 1, "one", queue=name)
    world.plan()
    for name in "ab":
        for rank in range(members):
            world.member(f"ns/{name}", rank, claim_use("one"), node="node-0", phase="Running")
    world.close(world.session(world.progress))
    snapshot = world.session().snapshot
    pods = [pod for pod in world.state.pods.values() if pod.gang and pod.gang[-1] in evicted]
    awaited, leaving = ({pod.uid: pod for pod in pods if pod.slot and pod.slot.rank == rank} for rank in (0, 1))
    has = Accounts().allocations(replace(snapshot, awaited=awaited, leaving=leaving))
    devices = has.allocated[:, snapshot.axis[GPUS]]
    assert [int(devices[has.tree.row(name)]) for name in ("root", "above", "a", "b")] == [left, left, 0, left]


@pytest.mark.parametrize(("limit", "starts"), [(3, False), (4, True)])
def test_devices_of_a_claim_are_charged_beside_min_resources(limit: int, *, starts: bool) -> None:
    """Before the start as after it: in the plan, by its writer, and in the queue."""
    world = world_of(team=9)
    claims(world, one=2)
    key = world.pod_group("a", 1, queue="team")
    world.change(world.state.groups[key], spec={"min_resources": {GPUS: "2"}})
    world.member(key, 0, claim_use("one"))
    [place] = of(world.session(Allocate()), decisions.Place)
    world.queue("team", capability={GPUS: str(limit)})
    assert _assume(world.state, place, new_requests(place), NOW) is starts
    world.state.ledger.answered(key)
    assert bool(of(world.session(Allocate()), decisions.Place)) is starts


def test_an_evicted_gang_keeps_nothing_of_its_min_resources_for_a_claim() -> None:
    """Another gang uses the claim, too; what was reserved for the first is free for its evictor in the trial."""
    world = world_of()
    world.queue("team", capability={"cpu": "3"})
    claims(world, one=2)
    for name, least in (("a", {"cpu": "2"}), ("b", None)):
        key = world.pod_group(name, 1, queue="team")
        world.change(world.state.groups[key], spec={"min_resources": least})
        world.member(key, 0, claim_use("one"), node="node-0", phase="Running", requests={"cpu": 1})
    key = world.gang("next", {"worker": (2, {"cpu": 1})}, queue="team")
    session = world.session(world.progress)
    gang, evicted = session.gang(key), session.gang("ns/a")
    assert gang
    assert evicted
    full = session.hooks.is_job_over_queue_capacity
    assert full.call(gang, session.amounts(session.ask(gang))) is not None
    Statement(session).evict(evicted, evicted.pods)
    assert full.call(gang, session.amounts(session.ask(gang))) is None
