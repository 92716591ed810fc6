"""Gangs whose pods share GPUs: devices, queues, victims, and a state made anew from what is bound."""

from typing import Any

import numpy as np
import pytest
from extender_world import World, of, slots
from gpus_world import CPU1, shares
from shared_gpus import annotations
from victims_world import Cluster, victims

from extender.planner.actions.displace import Preempt
from extender.planner.framework.decisions import Place, Unschedulable
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.plugins.proportion import Proportion
from extender.planner.plugins.scores import GpuPack, GpuSpread
from muster.api.muster.placement import devices_of_text


def runs(world: World, key: str, rank: int, node: str, devices: str, **said: str) -> None:
    """A pod of a gang that has its devices on a node."""
    told = annotations(key, rank, devices, **said)
    world.pod(key, "worker", rank, CPU1, node=node, phase="Running", annotations=told)


def placed(session: Session) -> dict[str, Place]:
    """Gang → its placement."""
    return {each.gang.key: each for each in of(session, Place)}


def gpus(place: Place) -> list[tuple[str, tuple[int, ...]]]:
    """Node and devices of each rank."""
    [pod_set] = place.pod_sets
    return list(zip(slots(place)["worker"], map(devices_of_text, pod_set.gpus), strict=True))


def test_halves_share_a_device_and_whole_gpus_get_others() -> None:
    """Two devices: three halves leave no room for a gang of whole ones, and two halves do."""
    world = World().nodes(1, gpus=2)
    halves = shares(world, "halves", 2, gpu_fraction="0.5")
    assert gpus(placed(world.plan())[halves]) == [("node-0", (0,)), ("node-0", (0,))]
    whole = world.gang("whole", {"worker": (1, {"nvidia.com/gpu": 1})})
    half = shares(world, "half", 1, gpu_fraction="0.5")
    session = world.plan()
    assert set(placed(session)) == {whole}
    [waits] = of(session, Unschedulable)
    assert (waits.gang.key, waits.shortage.causes[0].words) == (half, "too little nvidia.com/gpu")
    nodes = world.state.nodes
    assert nodes.devices.unused(nodes.allocatable - nodes.used, nodes.axis).tolist()[:1] == [0]


def test_pods_of_several_devices_find_different_ones() -> None:
    """A third of each of two devices, three times on two devices."""
    world = World().nodes(1, gpus=2)
    key = shares(world, "pairs", 3, gpu_fraction="0.3", gpu_fraction_num_devices="2")
    assert gpus(placed(world.plan())[key]) == [("node-0", (0, 1))] * 3
    assert shares(world, "more", 1, gpu_fraction="0.3", gpu_fraction_num_devices="2") not in placed(world.plan())


def test_room_in_pieces_is_named() -> None:
    """Two devices with 0.4 left each have no room for 0.5, which is told."""
    world = World().nodes(1, gpus=2)
    running = shares(world, "running", 2, gpu_fraction="0.6")
    for rank in range(2):
        runs(world, running, rank, "node-0", str(rank), gpu_fraction="0.6")
    half = shares(world, "half", 1, gpu_fraction="0.5")
    [waits] = [each for each in of(world.plan(), Unschedulable) if each.gang.key == half]
    assert "missing for 1 pod of 0.5 nvidia.com/gpu; of 1 node: 1 no GPU with enough room" in waits.message


def test_memory_counts_by_the_node() -> None:
    """20 GiB fit twice on a device of 40 and four times on one of 80, and nowhere if nobody says what there is."""
    world = World().nodes(1, gpus=1)
    world.node("node-1", gpus=1, labels={"nvidia.com/gpu.memory": "40960"})
    world.node("node-2", gpus=1, labels={"nvidia.com/gpu.memory": "81920"})
    key = shares(world, "six", 6, gpu_memory="20Gi")
    assert sorted(slots(placed(world.plan())[key])["worker"]) == ["node-1"] * 2 + ["node-2"] * 4
    assert shares(world, "seventh", 1, gpu_memory="1") not in placed(world.plan())


@pytest.mark.parametrize(("plugin", "device"), [(GpuPack, (1,)), (GpuSpread, (0,))])
def test_plugins_order_the_devices(plugin: Any, device: tuple[int, ...]) -> None:
    """One takes the fullest device that has room, the other the emptiest."""
    world = World().nodes(1, gpus=2)
    world.plugins.append(plugin({}))
    other = shares(world, "other", 2, gpu_fraction="0.25")
    runs(world, other, 0, "node-0", "1", gpu_fraction="0.25")
    runs(world, other, 1, "node-0", "1", gpu_fraction="0.25")
    key = shares(world, "one", 1, gpu_fraction="0.25")
    assert gpus(placed(world.plan())[key]) == [("node-0", device)]


def test_what_a_third_party_says_decides() -> None:
    """A plugin's answer changes which device is taken."""

    class Last(PlainPlugin):
        """The device with the highest number."""

        name = "last"

        def on_session_open(self, session: Session) -> None:
            """Registers its order."""
            session.hooks.gpu_order.add(lambda _cls, _column, used: np.arange(len(used)))

    world = World().nodes(1, gpus=4)
    world.plugins.append(Last({}))
    key = shares(world, "one", 1, gpu_fraction="0.25")
    assert gpus(placed(world.plan())[key]) == [("node-0", (3,))]


def test_a_state_from_bound_pods_alone_is_the_same() -> None:
    """After a restart, devices come from the pods' annotations (the world compares both before every cycle)."""
    world = World().nodes(1, gpus=2)
    key = shares(world, "halves", 3, gpu_fraction="0.4")
    for rank, device in enumerate("001"):
        runs(world, key, rank, "node-0", device, gpu_fraction="0.4")
    again = World()
    for pod in world.state.pod_objects.values():
        again.state.on_pod(None, pod)
    again.node("node-0", gpus=2)
    for state in (world.state, again.state):
        assert state.nodes.devices.shared[0, :2].tolist() == [800, 400]
        assert state.nodes.used[state.nodes.axis["nvidia.com/gpu"], 0] == 1200
    assert world.state.differences() == []


def test_a_half_counts_half_for_a_queue() -> None:
    """A queue of 1 GPU takes two halves, and not a third one."""
    world = World().nodes(2)
    world.plugins.append(Proportion({}))
    world.queue("small", capability={"nvidia.com/gpu": 1})
    two = shares(world, "two", 2, queue="small", gpu_fraction="0.5")
    third = shares(world, "third", 1, queue="small", gpu_fraction="0.5")
    session = world.plan()
    assert set(placed(session)) == {two}
    assert [each.gang.key for each in of(session, Unschedulable)] == [third]
    assert world.state.ledger.queues.queues["small"].staying["nvidia.com/gpu"] == 1000


@pytest.mark.parametrize(("asked", "gone"), [({"gpu_fraction": "0.6"}, 1), ({}, 2)])
def test_shares_go_for_shares_and_for_whole_gpus(asked: dict[str, str], gone: int) -> None:
    """A gang of higher priority takes one half from a device that is full, or both for the whole of it."""
    world = Cluster(0).nodes(1, gpus=1)
    world.actions = [Preempt()]
    for name, part in (("big", "0.6"), ("small", "0.4")):
        runs(world, shares(world, name, 1, priority="low", gpu_fraction=part), 0, "node-0", "0", gpu_fraction=part)
    if asked:
        shares(world, "high", 1, priority="high", **asked)
    else:
        world.gang("high", {"worker": (1, {"nvidia.com/gpu": 1})}, priority_class="high")
    found = victims(world.cycle())
    assert len(found) == gone
    assert "big-worker-0" in found
