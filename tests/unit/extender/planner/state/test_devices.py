"""GPUs that pods share, one by one: room, choice, and accounts, against a search that tries everything."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.state.devices import Devices
from muster.api.limits import GPU_DEVICES
from muster.api.names import VOLCANO_GPU_NUMBER
from muster.resources.gpus import GpuShare
from muster.resources.vector import GPU

AXIS = {GPU: 1, VOLCANO_GPU_NUMBER: 0}
WHOLE = 1000
MANY = np.iinfo(np.int64).max


@dataclass
class Node:
    """A node as the search knows it."""

    gpus: int
    memory: int = 0
    volcano: bool = False
    divided: bool = False
    whole: int = 0
    """GPUs of pods that share none."""
    used: list[int] = field(default_factory=lambda: [0] * 8)
    unknown: int = 0
    counted: int = 0
    pods: int = 0

    def part(self, share: GpuShare) -> int:
        """Thousandths of each device; more than 1000 where no such pod can be."""
        if share.portion:
            return WHOLE + 1 if self.volcano or self.divided else share.portion
        there = self.memory > 0 and self.volcano == share.by_resource and (share.by_resource or not self.divided)
        return min(-(-share.memory * WHOLE // self.memory), WHOLE + 1) if there else WHOLE + 1

    @property
    def spare(self) -> int:
        """Devices of which nobody has a part."""
        return self.gpus - self.whole - sum(part > 0 for part in self.used) - self.unknown

    def choice(self, share: GpuShare) -> tuple[int, ...] | None:
        """The devices of one more pod: those that take most such pods, then the fullest, then the first."""
        part, fresh = self.part(share), [number for number, used in enumerate(self.used) if not used]
        possible = [n for n, used in enumerate(self.used) if used and used + part <= WHOLE]
        possible += fresh[: max(self.spare, 0)] if part <= WHOLE else []
        fits = [(WHOLE - used) // part if share.devices > 1 else 0 for used in self.used]
        best = sorted(possible, key=lambda number: (-fits[number], -self.used[number], number))[: share.devices]
        return tuple(sorted(best)) if len(best) == share.devices else None

    def take(self, share: GpuShare, devices: Sequence[int], sign: int = 1) -> None:
        """One more pod, or one less."""
        part = min(share.on(self.memory), WHOLE)
        self.pods += sign
        self.counted += sign * part * share.devices * (not self.volcano)
        self.unknown += sign * share.devices * (not devices)
        for number in devices:
            self.used[number] += sign * part

    def room(self, share: GpuShare) -> int:
        """Pods that find devices one after the other."""
        left, count = replace(self, used=[*self.used]), 0
        while (chosen := left.choice(share)) is not None:
            left.take(share, chosen)
            count += 1
        return count


NODES = st.builds(
    Node, gpus=st.integers(1, 4), memory=st.sampled_from([0, 1000, 16_000]), volcano=st.booleans(),
    divided=st.booleans(), whole=st.integers(0, 1),
)  # fmt: skip
SHARES = st.builds(GpuShare, portion=st.integers(1, 999), devices=st.integers(1, 3)) | st.builds(
    GpuShare, memory=st.sampled_from([1, 333, 1000, 1001, 5000]), devices=st.integers(1, 2), by_resource=st.booleans()
)


def table(nodes: Sequence[Node]) -> Devices:
    """The devices of these nodes, without pods."""
    devices = Devices()
    devices.grow(len(nodes))
    devices.widen(max(node.gpus for node in nodes))
    for column, node in enumerate(nodes):
        devices.memory[column] = node.memory
        devices.volcano[column], devices.divided[column] = node.volcano, node.divided
    return devices


def free_of(nodes: Sequence[Node]) -> np.ndarray:
    """What is free of all GPUs of each node, in both rows."""
    own = [0 if node.volcano else WHOLE * (node.gpus - node.whole) - node.counted for node in nodes]
    return np.array([[(node.gpus - node.whole) * node.volcano for node in nodes], own])


@given(st.lists(NODES, min_size=1, max_size=3), st.lists(st.tuples(SHARES, st.booleans()), max_size=8), SHARES)
def test_room_choice_and_accounts_are_those_of_a_search(
    nodes: list[Node], pods: list[tuple[GpuShare, bool]], asked: GpuShare
) -> None:
    """On nodes of each kind, beside pods of each kind, of which some do not say where they are; and when they go."""
    devices, taken = table(nodes), []
    for number, (share, known) in enumerate(pods):
        column, chosen = number % len(nodes), None
        if nodes[column].part(share) <= WHOLE:
            chosen = devices.choose(share, column, devices.unused_at(free_of(nodes), AXIS, column))
            assert chosen == nodes[column].choice(share)
        if chosen is not None or not known:
            where = (chosen or ()) if known else ()
            devices.add_share(share, column, where)
            nodes[column].take(share, where)
            taken.append((share, column, where))
    free = free_of(nodes)
    unused = devices.unused(free, AXIS)
    assert unused.tolist() == [max(node.spare, 0) for node in nodes]
    assert devices.portions(asked).clip(max=WHOLE + 1).tolist() == [node.part(asked) for node in nodes]
    assert devices.room(asked, unused).tolist() == [node.room(asked) for node in nodes]
    assert devices.overfull(free, AXIS).tolist() == [node.pods > 0 and node.spare < 0 for node in nodes]
    assert devices.at([0]).room(asked, unused[:1])[0] == devices.room(asked, unused)[0]
    each = np.maximum(free[1], 0) // (devices.portions(asked) * asked.devices)
    assert devices.most(asked, free, AXIS).tolist() == np.where(devices.volcano, MANY, each).tolist()
    empty = devices.emptied()
    assert not any(array.any() for array in (empty.shared, empty.touched, empty.unknown, empty.counted, empty.pods))
    for share, column, where in taken:
        devices.add_share(share, column, where, -1)
    for name in ("shared", "touched", "unknown", "counted", "pods"):
        assert not getattr(devices, name).any(), name


def test_a_device_of_which_more_is_used_than_there_is_is_overfull() -> None:
    """By whomever two pods were bound."""
    devices = table([Node(2)])
    for portion, overfull in ((600, False), (400, False), (1, True)):
        devices.add_share(GpuShare(portion=portion), 0, (1,))
        assert devices.overfull(np.array([[0], [2000]]), AXIS).tolist() == [overfull]


@pytest.mark.parametrize("devices", [(GPU_DEVICES.value,), (1, 1), (0,)], ids=["too high", "twice the same", "too few"])
def test_devices_that_cannot_be_are_unknown_ones(devices: tuple[int, ...]) -> None:
    """A pod's annotation may say anything."""
    kept = table([Node(2)])
    share = GpuShare(portion=500, devices=1 if devices == (GPU_DEVICES.value,) else 2)
    kept.add_share(share, 0, devices)
    assert (kept.unknown[0], kept.touched[0]) == (share.devices, 0)


def test_a_cluster_without_gpus_has_room_for_no_share() -> None:
    """No node offers them, so that there is no row."""
    devices = table([Node(1), Node(1, volcano=True)])
    assert devices.unused(np.zeros((0, 2), dtype=np.int64), {}).tolist() == [0, 0]
    assert devices.most(GpuShare(portion=5), np.zeros((0, 2), dtype=np.int64), {}).tolist() == [0, MANY]


def test_the_order_of_plugins_decides_which_device() -> None:
    """Without one the fullest device that has room; with one whatever it likes best."""
    devices, node = table([Node(3)]), Node(3)
    for number, portion in enumerate((200, 900)):
        devices.add_share(GpuShare(portion=portion), 0, (number,))
        node.take(GpuShare(portion=portion), (number,))
    share, unused = GpuShare(portion=100), devices.unused_at(free_of([node]), AXIS, 0)
    assert devices.choose(share, 0, unused) == (1,)
    assert devices.choose(share, 0, unused, lambda used: -used.astype(float)) == (2,)
