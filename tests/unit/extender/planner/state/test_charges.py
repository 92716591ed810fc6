"""What a bound pod is charged stays so until it ends, whatever its owner writes into it."""

from collections.abc import Mapping
from typing import Any

import pytest
from builders import pod as a_pod
from extender_world import World
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from state_oracle import recomputed_use

from extender.planner.ledgerentry import LedgerEntry
from muster.api import names
from muster.api.kubernetes.core import Pod

JSON = dict[str, Any]
ASKED = {
    "labels": {names.QUEUE: "mine"},
    "annotations": {names.GPU_FRACTION: "0.9", names.GPU_DEVICES_CHOSEN: "0", names.GPU_PORTION: "0.9"},
}
"""Of a pod that is bound: what it is charged."""
LIES: Mapping[str, JSON] = {
    "another queue": {"labels": {names.QUEUE: "theirs"}},
    "a queue by Volcano's label": {"labels": {names.QUEUE: "mine", names.QUEUE_NAME: "theirs"}},
    "no queue": {"labels": {}},
    "a smaller part": {"annotations": {**ASKED["annotations"], names.GPU_FRACTION: "0.01"}},
    "a smaller part by memory": {"annotations": {names.GPU_SHARE_MEMORY: "1", names.GPU_DEVICES_CHOSEN: "0"}},
    "no part": {"annotations": {names.GPU_DEVICES_CHOSEN: "0"}},
    "a part that cannot be read": {"annotations": {**ASKED["annotations"], names.GPU_FRACTION: "much"}},
    "parts of more devices": {"annotations": {**ASKED["annotations"], names.GPU_NUM_DEVICES: "8"}},
    "another device": {"annotations": {**ASKED["annotations"], names.GPU_DEVICES_CHOSEN: "3"}},
    "no device": {"annotations": {names.GPU_FRACTION: "0.9"}},
    "nothing": {"labels": {}, "annotations": {}},
}


def pod(world: World, metadata: JSON, **status: Any) -> Pod:
    """A newer version of a pod that shares a GPU of node-0, with these labels and annotations."""
    version = world.meta("lone", uid="uid-lone").resource_version
    return a_pod("lone", uid="uid-lone", version=version, node="node-0", status=status, **(ASKED | metadata))


def entry(world: World) -> LedgerEntry:
    """What the pod is charged."""
    return world.state.ledger.entries["uid-lone"]


@pytest.fixture
def world() -> World:
    """One node, on which the pod runs."""
    world = World().nodes(1)
    world.state.on_pod(None, pod(world, {}))
    return world


@pytest.mark.parametrize("lie", LIES)
def test_a_bound_pod_is_charged_what_it_was_bound_with_until_it_ends(world: World, lie: str) -> None:
    """Its queue, its part of a GPU and which one: nothing of it comes free before."""
    before, used = entry(world), world.state.nodes.used.copy()
    assert (before.queue, before.devices) == ("mine", (0,))
    world.state.on_pod(None, pod(world, LIES[lie]))
    assert entry(world) == before
    assert (world.state.nodes.used == used).all()
    assert world.state.ledger.queues.queues["mine"].staying["nvidia.com/gpu"] == 900
    world.state.on_pod(None, pod(world, LIES[lie], phase="Succeeded"))
    assert "uid-lone" not in world.state.ledger.entries
    assert "mine" not in world.state.ledger.queues.queues


@pytest.mark.parametrize("devices", [{}, {names.GPU_DEVICES_CHOSEN: "all"}], ids=["none", "unreadable"])
def test_a_part_that_nobody_gave_takes_nothing(devices: dict[str, str]) -> None:
    """A pod that names its node itself asks nobody for its part, and so cannot take the GPUs of others."""
    world = World().nodes(1)
    free = world.state.nodes.used.copy()
    asks = {names.GPU_FRACTION: "0.999", names.GPU_NUM_DEVICES: "8", **devices}
    world.state.on_pod(None, pod(world, {"annotations": asks}))
    assert "nvidia.com/gpu" not in world.state.ledger.queues.queues["mine"].staying
    assert (world.state.nodes.used[:, 3:] == free[:, 3:]).all()
    assert not entry(world).cls.gpu


@pytest.mark.parametrize("node", ["", "node-0"])
@pytest.mark.parametrize(
    ("whole", "amount"), [("nvidia.com/gpu", 8000), ("volcano.sh/gpu-number", 8), ("volcano.sh/gpu-memory", 8)]
)
def test_a_pod_that_asks_for_whole_gpus_has_no_part(world: World, node: str, whole: str, amount: int) -> None:
    """Annotations can be written until the binding: the amounts in the spec, which cannot, count with them, too."""
    said = pod(world, {"annotations": {names.GPU_FRACTION: "0.001", names.GPU_NUM_DEVICES: "1"}})
    said = structs.replace(said, metadata=structs.replace(said.metadata, uid="whole"))
    said.spec.node_name = node
    said.spec.containers[0].resources.limits[whole] = "8"
    world.state.on_pod(None, said)
    cls = world.state.pods["whole"].cls
    assert cls.requests[whole] == amount
    assert cls.gpu is None or cls.gpu.by_resource


def test_a_pod_is_charged_no_more_than_its_node_offers() -> None:
    """One that was bound by hand, or is resized. What the node has offered counts, while it offers less too."""
    world = World()
    asked = {"cpu": "100000000", "memory": "1Mi", "example.com/none": "5", "example.com/device": "7"}

    def charged(phase: str = "Running") -> dict[str, int]:
        """Return what the queue of the pod has in use."""
        version = world.meta("huge").resource_version
        huge = a_pod("huge", uid="huge", version=version, node="big", status={"phase": phase})
        huge.metadata.labels[names.QUEUE] = "mine"
        huge.spec.containers[0].resources.requests |= asked
        world.state.on_pod(None, huge)
        used = world.state.ledger.queues.queues.get("mine")
        return dict(used.staying) if used else {}

    charged()
    world.node("big", cpu=4)
    assert charged() == {"cpu": 4000, "memory": 2**20, "pods": 1}
    world.node("big", cpu=8)
    world.state.ledger.equip("big", {"example.com/device": 3})
    assert charged() == {"cpu": 8000, "memory": 2**20, "pods": 1, "example.com/device": 3}
    world.state.ledger.equip("big", {})
    world.node("big", cpu=2)
    assert charged() == {"cpu": 8000, "memory": 2**20, "pods": 1, "example.com/device": 3}
    assert [*world.state.differences()] == []
    assert charged("Succeeded") == {}
    assert world.state.ledger.queues.queues == {}


def test_a_deleted_pod_group_frees_nothing_of_its_queue() -> None:
    """Its pods run, and would count for another queue, until the last has gone or the gang is made again."""
    world = World().nodes(1).queue("theirs")
    key = world.pod_group("g", queue="theirs")
    world.members(key, 2, {"cpu": 1}, node="node-0", phase="Running")

    def charged() -> dict[str, int]:
        """CPUs by queue."""
        return {name: use.staying.get("cpu", 0) for name, use in world.state.ledger.queues.queues.items()}

    group = world.state.groups[key]
    world.state.on_pod_group(group, None)
    assert charged() == {"theirs": 2000}
    world.members(key, [0], {"cpu": 1}, node="node-0", phase="Succeeded")
    assert charged() == {"theirs": 1000}
    assert world.pod_group("g", queue="default") == key
    assert charged() == {"default": 1000}
    world.state.on_pod_group(world.state.groups[key], None)
    world.members(key, [1], {"cpu": 1}, node="node-0", phase="Succeeded")
    ledger = world.state.ledger
    assert not ledger.queues.queues | ledger.queues.queue_of | ledger.queues.user_of
    assert not ledger.left_behind


def test_what_was_assumed_when_it_was_bound_counts_too() -> None:
    """A write between the binding and its news changes nothing."""
    world = World().nodes(1)
    waits = pod(world, {"annotations": {names.GPU_FRACTION: "0.9"}}, phase="Pending")
    waits.spec.node_name = ""
    world.state.on_pod(None, waits)
    world.state.assume("uid-lone", "node-0", (0,))
    world.state.on_pod(None, pod(world, LIES["a smaller part"] | LIES["another queue"]))
    assert (entry(world).queue, entry(world).devices) == ("mine", (0,))
    assert world.state.ledger.queues.queues["mine"].staying["nvidia.com/gpu"] == 900


def test_a_bound_pod_stays_in_its_gang_and_in_its_slot() -> None:
    """It cannot leave its gang's queue for another one's, and gives no slot back that it has."""
    world = World().nodes(1).queue("theirs")
    one = world.gang("one", {"worker": (2, {"cpu": 1})})
    world.gang("two", {"worker": (2, {"cpu": 1})}, queue="theirs")
    bound = world.pod(one, "worker", 0, {"cpu": 1}, node="node-0", phase="Running")
    moved = {**bound.metadata.annotations, names.GROUP_NAME: "two", names.TASK_INDEX: "1"}
    world.pod(one, "worker", 0, {"cpu": 1}, node="node-0", phase="Running", annotations=moved)
    assert [taken for pod_set in world.view(one).pod_sets for taken in pod_set.taken] == [0]
    assert not world.view("ns/two").taken
    assert "theirs" not in world.state.ledger.queues.queues


def test_a_bound_pod_whose_part_cannot_be_read_counts_the_rest() -> None:
    """A planner that begins later has nothing else to go by."""
    world = World().nodes(1)
    said = pod(world, LIES["a part that cannot be read"])
    said.spec.containers[0].resources.requests["cpu"] = "4"
    world.state.on_pod(None, said)
    assert world.state.ledger.queues.queues["mine"].staying["cpu"] == 4000


@settings(max_examples=settings().max_examples // 2)
@given(lies=st.lists(st.sampled_from(sorted(LIES)), max_size=6))
def test_no_history_of_what_it_says_changes_the_sums(lies: list[str]) -> None:
    """However often it is written: one entry, and the sums are those of the entries."""
    world = World().nodes(1)
    world.state.on_pod(None, pod(world, {}))
    before = entry(world)
    for lie in lies:
        world.state.on_pod(None, pod(world, LIES[lie]))
        assert entry(world) == before
    assert (recomputed_use(world.state.ledger) == world.state.nodes.used).all()
    assert world.state.differences() == []
