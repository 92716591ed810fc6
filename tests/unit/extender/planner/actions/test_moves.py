"""Consolidation: as few gangs as possible move, whatever their age, and also between the GPUs of one node."""

from itertools import permutations, product
from typing import Any

import pytest
from extender_world import of
from gpus_world import shares
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_gpus import bound, taken_by
from victims_world import Cluster, victims

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.consolidate import Consolidate
from extender.planner.framework.decisions import MakeRoom, Place, RoomIsThere
from extender.planner.ledgerentry import EntryKind
from extender.planner.plugins.protection import Conformance, MinRuntime
from muster.api import names
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference

GPU = "nvidia.com/gpu"


def cluster(nodes: int, gpus: int) -> Cluster:
    """Nodes with so many GPUs, and consolidation."""
    world = Cluster(0, checked=False).nodes(nodes, gpus=gpus)
    world.actions = [Consolidate()]
    return world


def run(world: Cluster, name: str, amount: int, node: int, age_s: float = 0.0, of_: str = "nvidia.com/gpu") -> None:
    """A gang of one pod on a node, which started so long ago."""
    key = world.gang(name, {"worker": (1, {of_: amount})}, phase="Running", priority_class="low")
    world.pod(key, "worker", 0, {of_: amount}, node=f"node-{node}", phase="Running")
    world.started(key, age_s)


@pytest.mark.parametrize("ages", list(permutations((10.0, 20.0, 30.0))))
def test_one_moves_where_one_is_enough(ages: tuple[float, ...]) -> None:
    """3 of 4 GPUs are used on each of two nodes, by 3 and by 1 + 2, and 2 are asked: the 1 moves."""
    world = cluster(2, 4)
    for (name, gpus, node), age_s in zip((("three", 3, 0), ("one", 1, 1), ("two", 2, 1)), ages, strict=True):
        run(world, name, gpus, node, age_s)
    asker = world.asks("asker", 1, gpus=2, priority_class="low")
    session = world.cycle()
    assert {place.gang.key for place in of(session, Place)} == {"ns/one", asker}
    assert victims(session) == {"one-worker-0"}


def fragmented(**of_one: Any) -> Cluster:
    """3 of 4 GPUs are used on each of two nodes: `ns/one`, of these arguments, has to move for a gang of 2."""
    world = cluster(2, 4).queue("firm", reclaimable=False).queue("other")
    world.plugins += [Conformance({})]
    for name, gpus, node in (("three", 3, 0), ("two", 2, 1)):
        run(world, name, gpus, node)
    key = world.gang("one", {"worker": (1, {GPU: 1})}, **{"phase": "Running", "priority_class": "low"} | of_one)
    world.pod(key, "worker", 0, {GPU: 1}, node="node-1", phase="Running")
    world.started(key, 100)
    return world


def one_moves(world: Cluster, **asker: Any) -> bool:
    """Whether `ns/one` moves for a gang of 2 GPUs; without it the two others would have to."""
    world.asks("asker", 1, gpus=2, **{"priority_class": "low"} | asker)
    return "one-worker-0" in victims(world.cycle())


SYSTEM = {"priority_class": "system-node-critical"}


@pytest.mark.parametrize(("of_one", "asker", "moves"), [
    pytest.param({}, {}, True, id="nothing protects it"),
    pytest.param({"priority_class": "high"}, {}, False, id="its higher priority"),
    pytest.param({"priority_class": "high"}, {"priority_class": "high"}, True, id="no higher priority"),
    pytest.param({"priority_class": "system-node-critical"}, SYSTEM, False, id="the cluster needs it"),
    pytest.param({"queue": "other"}, {}, True, id="another queue"),
    pytest.param({"queue": "firm"}, {}, False, id="another queue that is not reclaimable"),
    pytest.param({"queue": "firm"}, {"queue": "firm"}, True, id="its own queue"),
])  # fmt: skip
def test_who_moves_for_whom(of_one: dict[str, Any], asker: dict[str, Any], *, moves: bool) -> None:
    """The same rules protect gangs from moves as from evictions, and their priority does."""
    world = fragmented(**{"queue": "default"} | of_one)
    meta = ObjectMeta(name="system-node-critical", uid="critical")
    world.state.on_priority_class(None, PriorityClass(metadata=meta, value=2_000_001_000))
    assert one_moves(world, **asker) is moves


@pytest.mark.parametrize(("queue", "time"), [("default", "preempt-min-runtime"), ("other", "reclaim-min-runtime")])
@pytest.mark.parametrize(("least", "moves"), [("101s", False), ("100s", True)])
def test_no_gang_moves_in_its_minimum_runtime(queue: str, time: str, least: str, *, moves: bool) -> None:
    """Of preemption in its queue, and of reclaim between queues."""
    world = fragmented(queue=queue)
    world.plugins.append(MinRuntime({}))
    world.queue(queue, **{time: least})
    assert one_moves(world) is moves


@pytest.mark.parametrize(("budget", "retries", "moves"), [("", 0, False), ("", 1000, True), ("5 in 1h", 0, True)])
def test_no_move_uses_up_a_restart(budget: str, retries: int, *, moves: bool) -> None:
    """A Job that restarts as a whole has three, without a restart budget."""
    world = fragmented()
    world.restarts_whole("ns/one")
    world.change(world.job_of("ns/one"), annotations={names.RESTART_BUDGET: budget}, spec={"max_retry": retries})
    assert one_moves(world) is moves


@pytest.mark.parametrize(("version", "policy", "moves"), [
    ("batch/v1", "OnFailure", False), ("batch/v1", "Never", True), ("batch.volcano.sh/v1alpha1", "OnFailure", True),
])  # fmt: skip
def test_no_move_counts_as_a_failure(version: str, policy: str, *, moves: bool) -> None:
    """A Job of Kubernetes counts evicted pods that may restart towards its backoffLimit."""
    world = fragmented()
    uid = world.job_of("ns/one").metadata.uid
    owner = OwnerReference(api_version=version, kind="Job", name="one", uid=uid, controller=True)
    pod = world.state.pod_objects["uid-one-worker-0"]
    world.change(pod, owner_references=[owner], spec={"restart_policy": policy})
    assert one_moves(world) is moves


def moves_again(world: Cluster, number: int) -> bool:
    """A gang needs the whole node of `ns/one`, and another gang occupies the other node; then both end."""
    here = world.state.pods["uid-one-worker-0"].node
    there = "node-1" if here == "node-0" else "node-0"
    firm = world.gang(f"firm{number}", {"worker": (1, {GPU: 1})}, phase="Running")
    world.annotate(firm, "volcano.sh/preemptable", "false")
    world.pod(firm, "worker", 0, {GPU: 1}, node=there, phase="Running")
    asker = world.asks(f"asker{number}", 1, gpus=4, priority_class="low")
    moves = bool(victims(world.cycle()))
    if moves:
        world.state.on_pod(world.state.pod_objects["uid-one-worker-0"], None)
        world.room_is_there(world.cycle())
        more = {"pin": there, "epoch": world.state.placements["ns/one"].spec.epoch}
        world.pod("ns/one", "worker", 0, {GPU: 1}, node=there, phase="Running", **more)
        world.close(world.cycle())
    for key in (firm, asker):
        world.state.on_pod_group(world.state.groups[key], None)
        if key in world.state.placements:
            world.state.on_placement(world.state.placements[key], None)
        world.state.on_pod(world.state.pod_objects[f"uid-{key.removeprefix('ns/')}-worker-0"], None)
    return moves


def test_a_gang_that_was_moved_rests() -> None:
    """Others come and go as often as they like: it is moved once in ten minutes, and a minute for the move."""
    world = cluster(2, 4)
    run(world, "one", 1, 0, 100.0)
    moved = []
    for number in range(5):
        if moves_again(world, number):
            moved.append(number)
        world.now += 221
    assert moved == [0, 3]
    world.now -= 86_400
    assert moves_again(world, 9), "the clock was set back by a day"


def test_gangs_move_on_nodes_without_gpus() -> None:
    """No share of a node is counted in what no node has."""
    world = Cluster(0, checked=False).nodes(2, gpus=0, cpu=4)
    world.actions = [Consolidate()]
    for name, cpus, node in (("three", 3, 0), ("one", 1, 1), ("two", 2, 1)):
        run(world, name, cpus, node, of_="cpu")
    key = world.gang("asker", {"worker": (1, {"cpu": 2})}, priority_class="low")
    world.members(key, 1, {"cpu": 2}, gated=True)
    assert victims(world.cycle()) == {"one-worker-0"}


def test_nobody_gets_the_seat_of_a_move_while_the_gang_still_runs() -> None:
    """It may have a notice of minutes; its queue counts it once."""
    world = cluster(2, 4)
    for name, gpus, node in (("three", 3, 0), ("one", 1, 1), ("two", 2, 1)):
        run(world, name, gpus, node)
    world.asks("asker", 1, gpus=2, priority_class="low")
    use = world.state.ledger.queues.queues["default"].staying["nvidia.com/gpu"]
    assert victims(world.cycle()) == {"one-worker-0"}
    assert world.state.ledger.queues.queues["default"].staying["nvidia.com/gpu"] == use + 2000
    world.asks("next", 1, gpus=1, priority_class="low")
    assert of(world.session(Allocate()), Place) == []


def test_a_share_moves_to_another_gpu_of_its_node() -> None:
    """Two halves on two GPUs: one moves beside the other, and a gang gets the whole GPU that it leaves."""
    world = cluster(1, 2)
    for number in range(2):
        key = shares(world, f"half{number}", 1, priority="low", gpu_fraction="0.5")
        bound(world, key, ["node-0"], [str(number)], gpu_fraction="0.5")
    asker = world.asks("whole", 1, gpus=1, priority_class="low")
    session = world.cycle()
    [moved] = [place for place in of(session, Place) if place.gang.key != asker]
    [name] = victims(session)
    assert name.startswith(moved.gang.group.metadata.name)
    [((node, devices), _)] = taken_by(moved)
    stayed = 1 - int(moved.gang.group.metadata.name.removeprefix("half"))
    assert (node, devices) == ("node-0", (stayed,))

    assert not of(world.cycle(), RoomIsThere), "the whole GPU is not free yet"
    held = [each for each in world.state.ledger.entries.values() if each.kind is EntryKind.PLACED]
    assert [(each.node, each.devices) for each in held if each.gang == moved.gang.key] == [("node-0", (stayed,))]
    world.state.on_pod(world.state.pod_objects[f"uid-{name}"], None)
    assert {each.gang.key for each in of(world.cycle(), RoomIsThere)} == {moved.gang.key, asker}


def test_no_share_moves_in_vain() -> None:
    """The last GPU of a node is used by one share alone: there is nowhere to move it to."""
    world = cluster(1, 2)
    for number in range(2):
        key = shares(world, f"big{number}", 1, priority="low", gpu_fraction="0.6")
        bound(world, key, ["node-0"], [str(number)], gpu_fraction="0.6")
    world.asks("whole", 1, gpus=1, priority_class="low")
    assert not victims(world.cycle())


def test_gangs_that_can_stay_do() -> None:
    """Two pods are asked for, and one gang on each of two nodes is in their way: the other four stay."""
    world = cluster(4, 4)
    for node in range(2):
        run(world, f"small{node}", 1, node)
        run(world, f"large{node}", 2, node)
    for node in range(2, 4):
        run(world, f"three{node}", 3, node)
    asker = world.asks("asker", 2, gpus=2, priority_class="low")
    session = world.cycle()
    assert asker in {place.gang.key for place in of(session, Place)}
    assert victims(session) == {"small0-worker-0", "small1-worker-0"}


@pytest.mark.parametrize("moves", [True, False])
def test_a_gang_that_does_again_what_has_ended_stays(*, moves: bool) -> None:
    """Its Job restarts as a whole, and the room of the member that has ended would be another's by then."""
    world = cluster(1, 4)
    world.node("node-1", gpus=2)
    run(world, "three", 3, 0)
    one = {"nvidia.com/gpu": 1}
    key = world.gang("two", {"worker": (2, one)}, phase="Running", priority_class="low")
    world.pod(key, "worker", 0, one, node="node-1", phase="Running")
    world.pod(key, "worker", 1, one, node="node-1", phase="Succeeded")
    world.started(key, 10.0)
    if not moves:
        world.restarts_whole(key)
    assert world.view(key).restarts_whole is not moves
    world.asks("asker", 1, gpus=2, priority_class="low")
    assert victims(world.cycle()) == ({"two-worker-0"} if moves else set())


@given(running=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([300, 500, 600])), max_size=6))
def test_gpus_are_shared_closely_where_they_are_asked_for(running: list[tuple[int, int]]) -> None:
    """Shares on one node of four GPUs: where closer sharing leaves a whole GPU, a gang gets it, and few move."""
    world = cluster(1, 4)
    free, gangs = [1000] * 4, []
    for number, (device, portion) in enumerate(running):
        if free[device] >= portion:
            free[device] -= portion
            gangs.append((device, portion))
            key = shares(world, f"g{number}", 1, priority="low", gpu_fraction=f"{portion / 1000}")
            bound(world, key, ["node-0"], [str(device)], gpu_fraction=f"{portion / 1000}")
    asker = world.asks("whole", 1, gpus=1, priority_class="low")
    session = world.cycle()
    assert not session.failures
    moved, least = len(victims(session)), fewest_moves(gangs, 1000, bins=4, size=1000)
    assert asker in {place.gang.key for place in of(session, Place)} or least is None or least > 2
    if least is None or least <= 2:
        assert moved == (least or 0)


def test_one_leaves_its_place_to_another() -> None:
    """5 of 8 are asked for: a gang of 4 makes the room, and goes to where one of 2 was, which goes to a third node."""
    world = cluster(3, 8)
    for name, gpus, node in (("a", 2, 0), ("b", 4, 0), ("c", 5, 1), ("d", 2, 2), ("e", 4, 2)):
        run(world, name, gpus, node)
    asker = world.asks("asker", 1, gpus=5, priority_class="low")
    session = world.cycle()
    assert asker in {place.gang.key for place in of(session, Place)}
    assert len(victims(session)) == 2


WORLD = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5), st.integers(0, 5)), max_size=6)


@settings(max_examples=settings().max_examples * 3 // 2)
@given(running=WORLD, asked=st.integers(1, 8), size=st.sampled_from([4, 8]))
def test_no_more_gangs_move_than_must(running: list[tuple[int, int, int]], asked: int, size: int) -> None:
    """Where moves of one or two gangs are enough, so many move, as an exhaustive search says; nobody moves in vain."""
    world = cluster(3, size)
    free, gangs = [size] * 3, []
    for number, (node, gpus, age) in enumerate(running):
        if free[node] >= gpus:
            free[node] -= gpus
            gangs.append((node, gpus))
            run(world, f"g{number}", gpus, node, 10.0 * age)
    asker = world.asks("asker", 1, gpus=asked, priority_class="low")
    session = world.cycle()
    moved = len(victims(session))
    least = fewest_moves(gangs, asked, bins=3, size=size)
    if max(free) >= asked:
        assert not moved
    elif least is None:
        assert not of(session, MakeRoom)
    elif least <= 2:
        assert moved == least
        assert asker in {place.gang.key for place in of(session, Place)}


def fewest_moves(gangs: list[tuple[int, int]], asked: int, *, bins: int, size: int) -> int | None:
    """The fewest of these gangs (bin, amount) that must move among the bins so that the asked one fits too."""
    least = None
    for chosen in product(range(bins), repeat=len(gangs)):
        left = [size] * bins
        for each, (_, amount) in zip(chosen, gangs, strict=True):
            left[each] -= amount
        if min(left) >= 0 and max(left) >= asked:
            moves = sum(each != before for each, (before, _) in zip(chosen, gangs, strict=True))
            least = moves if least is None else min(least, moves)
    return least
