"""Victims whose pods share GPUs, on several nodes."""

from collections import Counter

import pytest
from extender_world import of, slots
from gpus_world import CPU1, shares
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_gpus import annotations, bound, taken_by
from victims_world import Cluster, victims

from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.evicting import Evicting
from extender.planner.framework.decisions import Place, RoomIsThere
from extender.planner.plugins.topology import TopologyPlugin
from muster.api.kubernetes.meta import format_time


def ends(world: Cluster, key: str, rank: int, node: str, devices: str) -> None:
    """A member of a gang of halves is being deleted."""
    told = annotations(key, rank, devices, gpu_fraction="0.5")
    gone = format_time(world.now + 20)
    world.pod(key, "worker", rank, CPU1, node=node, phase="Running", annotations=told, deletion_timestamp=gone)


def full_of_halves(nodes: int, gpus: int = 1) -> Cluster:
    """Nodes whose GPUs are used by gangs of low priority, one gang of halves for each."""
    world = Cluster(0).nodes(nodes, gpus=gpus)
    for number in range(nodes):
        key = shares(world, f"low{number}", 2 * gpus, priority="low", gpu_fraction="0.5")
        devices = [str(device) for device in range(gpus) for _ in range(2)]
        bound(world, key, [f"node-{number}"] * (2 * gpus), devices, gpu_fraction="0.5")
    return world


@pytest.mark.parametrize(("pods", "gone"), [(2, {"low0"}), (3, {"low0", "low1"}), (4, {"low0", "low1"})])
def test_shares_on_several_nodes_go_for_shares(pods: int, gone: set[str]) -> None:
    """The room of each node is counted with what its own devices are."""
    world = full_of_halves(3)
    asker = shares(world, "high", pods, priority="high", gpu_fraction="0.5")
    session = world.cycle()
    assert not session.failures
    assert [each.gang.key for each in of(session, Place)] == [asker]
    assert len({name.partition("-")[0] for name in victims(session)}) == len(gone)


def test_memory_is_counted_by_the_node_of_each_victim() -> None:
    """The same memory is half of a small GPU and a quarter of a large one."""
    world = Cluster(0)
    for number, memory in enumerate(("40000", "80000")):
        world.node(f"node-{number}", gpus=1, labels={"nvidia.com/gpu.memory": memory})
        key = shares(world, f"low{number}", 1, priority="low", gpu_memory="40000")
        bound(world, key, [f"node-{number}"], ["0"], gpu_memory="40000")
    bound(world, shares(world, "other", 1, priority="low", gpu_memory="40000"), ["node-1"], ["0"], gpu_memory="40000")
    asker = shares(world, "high", 3, priority="high", gpu_memory="40000")
    session = world.cycle()
    assert not session.failures
    assert [each.gang.key for each in of(session, Place)] == [asker]
    assert victims(session) == {"low0-worker-0", "low1-worker-0", "other-worker-0"}


def test_ending_shares_leave_their_own_devices() -> None:
    """Whoever gets their room gets the device that they have, and no other."""
    world = full_of_halves(2)
    for rank in range(2):
        ends(world, "ns/low0", rank, "node-0", "0")
    asker = shares(world, "high", 4, priority="high", gpu_fraction="0.5")
    session = world.cycle()
    assert victims(session) == {"low1-worker-0", "low1-worker-1"}
    [place] = of(session, Place)
    assert place.gang.key == asker
    assert {devices for (_, devices), _ in taken_by(place)} == {(0,)}


def test_what_has_gone_for_a_gang_is_not_counted_twice() -> None:
    """The next gang of the same cycle gets the next victims."""
    world = full_of_halves(3)
    for name in ("high", "higher"):
        shares(world, name, 2, priority="high", gpu_fraction="0.5")
    session = world.cycle()
    assert (len(of(session, Place)), len(victims(session))) == (2, 4)
    nodes = [node for place in of(session, Place) for (node, _), _ in taken_by(place)]
    assert sorted(nodes) == sorted(2 * sorted(set(nodes)))


def test_domains_are_compared_without_the_shares_of_victims() -> None:
    """A rack whose devices are used in part by every gang is as good as an empty one."""
    world = full_of_halves(2)
    world.plugins = [*world.plugins, TopologyPlugin({"levels": ["rack"]})]
    for number in range(2):
        world.node(f"node-{number}", gpus=1, labels={"rack": "r0"})
    asker = shares(world, "high", 3, priority="high", gpu_fraction="0.6", gpu_fraction_num_devices="1")
    world.annotate(asker, "muster.dev/topology-required", "rack")
    assert not victims(world.cycle()), "three do not fit on two devices"
    two = shares(world, "two", 2, priority="high", gpu_fraction="0.6")
    world.annotate(two, "muster.dev/topology-required", "rack")
    assert len(victims(world.cycle())) == 4


def test_room_is_there_when_devices_are() -> None:
    """A gang that waits for one half of a device is not let go by the end of the half of another one."""
    world = Cluster(0).nodes(1, gpus=2)
    bound(world, shares(world, "low", 1, priority="low", gpu_fraction="0.9"), ["node-0"], ["0"], gpu_fraction="0.9")
    bound(world, shares(world, "kept", 1, priority="high", gpu_fraction="0.9"), ["node-0"], ["1"], gpu_fraction="0.9")
    asker = shares(world, "high", 1, priority="high", gpu_fraction="0.5")
    assert victims(world.cycle()) == {"low-worker-0"}
    world.state.on_pod(world.state.pod_objects["uid-kept-worker-0"], None)
    assert not of(world.cycle(), RoomIsThere), "its device is still used"
    world.state.on_pod(world.state.pod_objects["uid-low-worker-0"], None)
    assert [each.gang.key for each in of(world.cycle(), RoomIsThere)] == [asker]


@settings(max_examples=settings().max_examples * 3 // 5)
@given(
    running=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.sampled_from(["0.5", "0.3", "1"])), max_size=8),
    pods=st.integers(1, 6), asked=st.sampled_from(["0.5", "0.4", "1"]), action=st.sampled_from([Preempt, Consolidate]),
)  # fmt: skip
def test_any_mixture(running: list[tuple[int, int, str]], pods: int, asked: str, action: type[Evicting]) -> None:
    """No search fails, and with all victims gone no device is used more than whole."""
    world = Cluster(0, checked=False)
    world.actions = [action()]
    world.nodes(4, gpus=2)
    used = {(f"node-{node}", device): 0.0 for node in range(4) for device in range(2)}
    for number, (node, count, part) in enumerate(running):
        run_where_it_fits(world, f"g{number}", used, f"node-{node}", count, part)
    if asked == "1":
        world.asks("high", pods, gpus=1)
    else:
        shares(world, "high", pods, priority="high", gpu_fraction=asked)
    session = world.cycle()
    assert not session.failures
    stay = [pod for pod in world.state.pods.values() if pod.name not in victims(session)]
    left = dict.fromkeys(used, 0)
    whole = Counter(pod.node for pod in stay if pod.node and not pod.cls.gpu)
    for pod in stay:
        for device in pod.devices if pod.cls.gpu else ():
            left[pod.node, device] += pod.cls.gpu.portion if pod.cls.gpu else 0
    for place in of(session, Place):
        for (node, taken), cls in taken_by(place):
            for device in taken:
                left[node, device] += cls.gpu.portion if cls.gpu else 0
        if place.gang.pod_sets[0].cls and not place.gang.pod_sets[0].cls.gpu:
            whole.update(slots(place)["worker"])
    for node in {node for node, _ in left}:
        assert sum(left[node, device] > 0 for device in range(2)) + whole[node] <= 2
    assert all(portion <= 1000 for portion in left.values())


def run_where_it_fits(
    world: Cluster, name: str, used: dict[tuple[str, int], float], node: str, count: int, part: str
) -> None:
    """A gang on one node, its members on the devices that have room; none if they do not fit."""
    chosen: list[int] = []
    before = dict(used)
    for _ in range(count):
        device = next((each for each in range(2) if used[node, each] + float(part) <= 1), None)
        if device is None:
            used.update(before)
            return
        used[node, device] += float(part)
        chosen.append(device)
    if part == "1":
        requests = {"nvidia.com/gpu": 1}
        key = world.gang(name, {"worker": (count, requests)}, phase="Running", priority_class="low")
        for rank in range(count):
            world.pod(key, "worker", rank, requests, node=node, phase="Running")
        return
    key = shares(world, name, count, priority="low", gpu_fraction=part)
    bound(world, key, [node] * count, [str(each) for each in chosen], gpu_fraction=part)
