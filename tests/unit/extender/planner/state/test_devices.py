"""GPUs that pods share, one by one: room, choice, and accounts, against a search that tries everything."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.state.devices import Devices
from muster.resources.gpus import GpuShare
from muster.resources.vector import GPU

AXIS = {GPU: 0}
SHARES = st.builds(GpuShare, portion=st.integers(1, 999), devices=st.integers(1, 3))


def table(gpus: int, memory: int = 0) -> tuple[Devices, np.ndarray]:
    """The devices of one node, and what is free of its GPUs."""
    devices = Devices()
    devices.grow(1)
    devices.widen(gpus)
    devices.memory[0] = memory
    return devices, np.array([[gpus * 1000]])


def put(devices: Devices, free: np.ndarray, share: GpuShare) -> tuple[int, ...] | None:
    """Gives one pod its devices, if there is room."""
    chosen = devices.choose(share, 0, int(devices.unused(free, AXIS)[0]))
    if chosen is not None:
        devices.take(share, 0, chosen)
        free[0, 0] -= devices.portion(share, 0) * share.devices
    return chosen


@given(st.integers(1, 4), st.lists(SHARES, max_size=8), st.integers(0, 2), SHARES)
def test_room_is_how_many_pods_find_devices(gpus: int, shares: list[GpuShare], whole: int, asked: GpuShare) -> None:
    """Whatever is there: exactly so many pods find devices one after the other, and no device has more than it is."""
    devices, free = table(gpus)
    for share in shares:
        put(devices, free, share)
    if devices.unused(free, AXIS)[0] >= whole:
        free[0, 0] -= 1000 * whole
    room = int(devices.room(asked, devices.unused(free, AXIS))[0])
    placed = 0
    while put(devices, free, asked) is not None:
        placed += 1
    assert placed == room
    assert devices.unused_at(free, AXIS, 0) == devices.unused(free, AXIS)[0]
    assert (devices.shared <= 1000).all()
    assert devices.unused(free, AXIS)[0] + devices.touched[0] + (whole if free[0, 0] >= 0 else 0) >= 0
    assert free[0, 0] >= 0


@given(st.integers(1, 4), st.lists(SHARES, max_size=8))
def test_what_is_given_back_leaves_no_trace(gpus: int, shares: list[GpuShare]) -> None:
    """Taking and giving back in any order ends with what was there before."""
    devices, free = table(gpus)
    taken = [(share, chosen) for share in shares if (chosen := put(devices, free, share)) is not None]
    for share, chosen in taken:
        devices.take(share, 0, chosen, -1)
    assert not devices.shared.any()
    assert not devices.pods.any()
    assert not devices.counted.any()
    assert not devices.touched.any()


def test_memory_is_a_part_that_depends_on_the_node() -> None:
    """4,000 MiB are a quarter of a device of 16,000 and do not fit where nobody says how much there is."""
    devices, free = table(2, memory=16_000)
    assert devices.room(GpuShare(memory=4000), devices.unused(free, AXIS))[0] == 8
    devices, free = table(2)
    assert devices.room(GpuShare(memory=4000), devices.unused(free, AXIS))[0] == 0


def test_shares_that_do_not_say_which_devices_count_as_whole_ones() -> None:
    """Nobody else is put beside a pod whose device nobody knows."""
    devices, free = table(2)
    devices.take(GpuShare(portion=500), 0, ())
    free[0, 0] -= 500
    assert devices.unused(free, AXIS)[0] == 1
    assert devices.room(GpuShare(portion=500), devices.unused(free, AXIS))[0] == 2


def test_the_order_of_plugins_decides_which_device() -> None:
    """Without one the fullest device that has room; with one whatever it likes best."""
    devices, free = table(3)
    for portion in (200, 900):
        devices.take(GpuShare(portion=portion), 0, (len(np.flatnonzero(devices.shared[0])),))
        free[0, 0] -= portion
    share = GpuShare(portion=100)
    unused = int(devices.unused(free, AXIS)[0])
    assert devices.choose(share, 0, unused) == (1,)
    assert devices.choose(share, 0, unused, lambda used: -used.astype(float)) == (2,)
