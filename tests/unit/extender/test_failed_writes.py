"""What a write has taken for itself is free again when it fails, and the write is decided once more."""

from collections.abc import Callable, Iterator

import pytest
from extender_world import World, of
from guarded_api import Sent
from guarded_extender import Process
from victims_world import Cluster as VictimsWorld

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.positionwriter import CHECK_INTERVAL_S
from extender.writes import RETRY_S
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.muster.placement import NodeRun, PodSetPlacement
from muster.api.muster.reason import reason_of
from muster.api.volcano.scheduling import PodGroupCondition
from muster.kube.errors import APIError, Conflict, ServerError, TooManyRequests, Unreachable

A_TEST = reason_of("a test")
A_FAULT = reason_of("a fault")
TOO_LONG = reason_of("it took too long")

GPU8 = {"nvidia.com/gpu": 8}
FAILURES = [ServerError("broken"), Unreachable("no answer"), TooManyRequests("busy"), Conflict("it has changed")]
Make = Callable[[World], Process]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes the writers over a world; their threads end with the test."""
    made: list[Process] = []

    def over(world: World) -> Process:
        made.append(Process(world))
        return made[-1]

    yield over
    for process in made:
        process.stop()


def fails(process: Process, error: APIError, *verbs: str, only: str = "") -> None:
    """From now on writes of these verbs are answered so, those of the object with this name if there is one."""

    def meddle(sent: Sent) -> None:
        if sent.site.rpartition(" ")[2] in verbs and sent.key.endswith(only):
            raise error

    process.api.meddle = meddle


def mended(process: Process) -> None:
    """From now on nothing fails, and writes that did may be tried again."""
    process.api.meddle = lambda _: None
    process.world.now += RETRY_S


def evictions(kind: str) -> tuple[VictimsWorld, Session, tuple[decisions.Evict | decisions.EvictForFaults, ...]]:
    """A cycle that evicts pods: for another gang, or one that runs or was never bound, or for a fault of a node."""
    world = VictimsWorld(2)
    world.runs("low", 2)
    world.asks("high", 2)
    if kind == "preempted":
        return world, world.cycle(), ()
    low, high = world.view("ns/low"), world.view("ns/high")
    decided: dict[str, decisions.Evict | decisions.EvictForFaults] = {
        "started": decisions.Evict(low, low.pods[0], A_TEST, started=True),
        "unbound": decisions.Evict(high, high.pods[0], A_TEST, started=False),
        "repaired": decisions.EvictForFaults(low, "replace", (low.pods[0],), "suspect", A_FAULT),
    }
    return world, world.session(), (decided[kind],)


EVICTED = {
    "preempted": ["low-worker-0", "low-worker-1"], "started": ["low-worker-0"], "unbound": ["high-worker-0"],
    "repaired": ["low-worker-0"],
}  # fmt: skip
EVICTIONS_FAIL = [
    pytest.param(kind, error, id=f"{kind} {type(error).__name__}")
    for kind in EVICTED
    for error in FAILURES
    if kind == "unbound" or not isinstance(error, TooManyRequests)  # by which a budget refuses pods with a node
]


@pytest.mark.parametrize(("kind", "error"), EVICTIONS_FAIL)
def test_an_eviction_that_failed_is_tried_as_soon_as_writes_may_be(make: Make, kind: str, error: APIError) -> None:
    """Not after the time for which a pod that was told to go is not told again."""
    gone = EVICTED[kind]
    world, session, more = evictions(kind)
    process = make(world)
    fails(process, error, "evict")
    process.carry_out(session, *more)
    assert process.done("evict", "delete") == []
    mended(process)
    process.carry_out(session)
    assert process.done("evict", "delete") == gone


def test_who_runs_stays_while_it_is_not_known_if_another_member_was_bound(make: Make) -> None:
    """The unbound one could not be read: the gang may be whole by now."""
    world = VictimsWorld(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    world.pod(key, "worker", 1, GPU8, pin="node-1", epoch=1)
    gang = world.view(key)
    evicts = [decisions.Evict(gang, pod, A_TEST, started=bool(pod.node)) for pod in gang.pods]
    process = make(world)
    session = world.session()
    read = process.api.get

    def unreadable(*_: object, **__: object) -> None:
        raise Unreachable("no answer")

    process.api.get = unreadable  # type: ignore[method-assign]
    process.carry_out(session, *evicts)
    world.now += RETRY_S
    process.carry_out(session)
    assert process.done("evict", "delete") == []
    process.api.get = read  # type: ignore[method-assign]
    world.now += RETRY_S
    process.carry_out(session)
    assert process.done("evict") == ["a-worker-0", "a-worker-1"]


def small() -> tuple[World, Session]:
    """A gang of two is placed that fills its queue."""
    world = World().nodes(2).queue("small", capability={"nvidia.com/gpu": 16})
    world.gang("a", {"worker": (2, GPU8)}, queue="small", phase="Pending", user="ann")
    return world, world.session(world.progress, Enqueue(), Allocate())


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_placement_that_was_not_written_takes_nothing_of_its_queue(make: Make, error: APIError) -> None:
    """The queue, the user and the nodes are as before, and the next cycle places the gang."""
    world, session = small()
    process = make(world)
    fails(process, error, "create")
    process.carry_out(session)
    ledger = world.state.ledger
    assert (ledger.assumed, ledger.entries, ledger.queues.queues, ledger.queues.users) == ({}, {}, {}, {})
    assert not world.state.nodes.used.any()
    mended(process)
    process.carry_out(world.session(world.progress, Enqueue(), Allocate()))
    assert process.done("create") == ["a"]
    assert (ledger.assumed, ledger.queues.queues["small"].staying["nvidia.com/gpu"]) == ({}, 16_000)


def test_an_end_that_was_not_written_keeps_the_placement(make: Make) -> None:
    """Its nodes stay the gang's until the API server has it."""
    world, _ = small()
    world.plan()
    gang = world.view("ns/a")
    placed = world.state.placements[gang.key]
    process = make(world)
    fails(process, Conflict("it has changed"), "merge_patch")
    process.carry_out(world.session(), decisions.ClosePlacement(gang, "Abandoned", TOO_LONG))
    assert world.state.placements[gang.key] is placed
    assert world.view(gang.key).active
    assert world.state.ledger.placed[gang.key] == 2


def test_a_note_that_was_not_written_is_nobodys_placement(make: Make) -> None:
    """Nor is its status thought to be written."""
    world = World().nodes(1)
    key = world.gang("a", {"worker": (1, GPU8)}, phase="Pending")
    process = make(world)
    fails(process, Unreachable("no answer"), "merge_patch")
    process.carry_out(world.session(world.progress, Enqueue(), Allocate()))
    assert world.state.placement_of(key) is None
    assert not world.state.nodes.used.any()
    mended(process)
    process.carry_out(world.session(world.progress, Enqueue(), Allocate()))
    assert world.state.placement_of(key) is not None
    assert world.state.groups[key].status.phase == "Inqueue"


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_place_in_line_that_was_not_written_is_written_with_the_next_look(make: Make, error: APIError) -> None:
    """Not after the ten minutes after which the same words are written again."""
    world = World()
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Pending")
    why = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="no nodes")
    world.change(world.state.groups[key], status={"conditions": [why]})
    process = make(world)
    session = world.session()
    fails(process, error, "merge_patch")
    process.carry_out(session)
    mended(process)
    world.now += CHECK_INTERVAL_S
    process.carry_out(session)
    assert world.state.groups[key].status.place == 1


def test_a_release_that_failed_is_tried_again(make: Make) -> None:
    """The pod is gated still, as the state has it."""
    world, session, _ = evictions("started")
    gang = world.view("ns/high")
    release = decisions.Release(gang, gang.pods[0], "node-0", 1)
    process = make(world)
    fails(process, ServerError("broken"), "merge_patch", only="high-worker-0")
    process.carry_out(session, release)
    assert world.state.pods[gang.pods[0].uid].gated
    mended(process)
    process.carry_out(session)
    assert not world.state.pods[gang.pods[0].uid].gated


def test_a_request_for_nodes_that_failed_is_made_again_with_the_templates_that_are_there(make: Make) -> None:
    """It is not thought to be asked for, and one that could not be withdrawn is not thought to be gone."""
    world, session, _ = evictions("started")
    gang = world.view("ns/high")
    wanted = decisions.RequestNodes(gang, "r-1", 1, "best-effort", (), (("worker", 2, gang.pods[0]),))
    process = make(world)
    scaling = process.committer.scaling

    def meddle(sent: Sent) -> None:
        if sent.key == "ns/r-1":
            raise Unreachable("no answer")

    process.api.meddle = meddle
    process.carry_out(session, wanted)
    assert scaling.requests == {}
    mended(process)
    process.carry_out(session)
    asked = scaling.requests[gang.uid]
    assert asked.metadata.name == "r-1"
    process.api.meddle = meddle
    process.carry_out(world.session(), decisions.WithdrawRequest(gang, asked, "a test"))
    assert scaling.requests == {gang.uid: asked}
    mended(process)
    process.carry_out(world.session(), decisions.WithdrawRequest(gang, asked, "a test"))
    assert scaling.requests == {}


def test_the_withdrawal_of_an_earlier_request_leaves_the_later_one(make: Make) -> None:
    """It has another UID."""
    world, session, _ = evictions("started")
    gang = world.view("ns/high")
    process = make(world)
    later = ProvisioningRequest(metadata=world.meta("r-2"))
    process.committer.scaling.requests[gang.uid] = later
    earlier = ProvisioningRequest(metadata=world.meta("r-1"))
    process.carry_out(session, decisions.WithdrawRequest(gang, earlier, "a test"))
    assert process.committer.scaling.requests == {gang.uid: later}


def another_epoch(world: World, key: str) -> None:
    """The gang has another placement by now."""
    known = world.state.placements[key]
    world.change(known, spec={"epoch": known.spec.epoch + 1})


def test_nobody_makes_room_for_another_placement_of_the_gang(make: Make) -> None:
    """It has the same victims, but a later epoch: the next cycle decides."""
    world, session, _ = evictions("preempted")
    session.decisions = of(session, decisions.MakeRoom)
    assert session.decisions
    another_epoch(world, "ns/high")
    process = make(world)
    process.carry_out(session)
    assert process.done("evict", "delete") == []


def test_nobody_is_evicted_by_a_repair_whose_nodes_another_placement_keeps(make: Make) -> None:
    """The new nodes may be others."""
    world, session, _ = evictions("started")
    world.started("ns/low", 60)
    low = world.view("ns/low")
    assert low.placement is not None
    epoch = low.placement.spec.epoch
    repair = decisions.EvictForFaults(low, "replace", (low.pods[0],), "suspect", A_FAULT, epoch=epoch)
    another_epoch(world, "ns/low")
    process = make(world)
    process.carry_out(session, repair)
    assert process.done("evict", "delete") == []


def test_spares_are_not_written_into_another_placement(make: Make) -> None:
    """They were chosen beside the nodes of an earlier one."""
    world, session, _ = evictions("started")
    world.started("ns/low", 60)
    low = world.view("ns/low")
    another_epoch(world, "ns/low")
    process = make(world)
    process.carry_out(session, decisions.KeepSpares(low, [], 1))
    assert "low" not in {one.key.partition("/")[2] for one in process.api.sent if one.resource.plural == "placements"}


def test_a_reservation_that_was_not_written_is_decided_again(make: Make) -> None:
    """No event tells of it before, and it is none in the state."""
    world, session, _ = evictions("started")
    high = world.view("ns/high")
    slots = [PodSetPlacement("worker", [NodeRun("node-0", 1), NodeRun("node-1", 1)])]
    reserve = decisions.Reserve(high, slots, None, world.now, reason_of("it waits for long"))
    process = make(world)
    fails(process, ServerError("broken"), "create")
    process.carry_out(session, reserve)
    assert world.state.placement_of("ns/high") is None
    mended(process)
    process.carry_out(session)
    assert world.state.placement_of("ns/high").status.phase == "Reserved"
