"""Pods that are to be evicted for one gang count as gone for the others, although they still run."""

import pytest
from extender_world import of
from hypothesis import given, settings
from hypothesis import strategies as st
from shares_world import one_node
from victims_world import Cluster

from extender.planner.framework.decisions import Place
from muster.api import names

GPU = "nvidia.com/gpu"


def singles(world: Cluster, queue: str, count: int, *, gpus: int = 1, notice: str = "300s") -> None:
    """Gangs of one pod that run, and are told before they are evicted."""
    for number in range(count):
        key = world.runs(f"{queue}-{number}", 1, gpus, queue=queue, priority_class="")
        if notice:
            world.annotate(key, names.EVICT_NOTICE, notice)


@pytest.mark.parametrize("notice", ["300s", ""])
def test_each_gang_that_asks_has_one_victim(notice: str) -> None:
    """They come one per cycle, while the victims of the first are still told or only decided."""
    world = one_node(16, q0=8, q1=8)
    singles(world, "q0", 16, notice=notice)
    for number in range(5):
        world.asks(f"b{number}", 1, 1, queue="q1", priority_class="low")
        assert [len(place.victims) for place in of(world.cycle(), Place)] == [1]
        world.now += 2


def test_a_queue_keeps_what_it_deserves_while_its_victims_still_run() -> None:
    """Of 16 pods eight are told; the ninth gang of the other queue waits."""
    world = one_node(16, q0=8, q1=8)
    singles(world, "q0", 16)
    told = []
    for number in range(10):
        world.asks(f"b{number}", 1, 1, queue="q1", priority_class="low")
        told += [pod.uid for place in of(world.cycle(), Place) for _, pod in place.victims]
        world.now += 2
    assert (len(told), len({*told})) == (8, 8)


@settings(max_examples=settings().max_examples // 2)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6), piece=st.integers(1, 3), own=st.integers(0, 12),
    notice=st.sampled_from(["300s", ""]),
)  # fmt: skip
def test_victims_free_what_is_asked_and_not_a_piece_more(sizes: list[int], piece: int, own: int, notice: str) -> None:
    """Gangs come one per cycle: nobody is evicted twice, and the losing queue keeps what it deserves."""
    world = one_node(12, q0=own, q1=12 - own)
    singles(world, "q0", 12 // piece, gpus=piece, notice=notice)
    victims, placed = list[str](), 0
    for number, size in enumerate(sizes):
        world.asks(f"b{number}", 1, size, queue="q1", priority_class="low")
        for place in of(world.cycle(), Place):
            victims += [pod.uid for _, pod in place.victims]
            placed += sum(sizes[int(place.gang.group.metadata.name[1:])] for _ in [place])
            assert len(place.victims) * piece < sizes[int(place.gang.group.metadata.name[1:])] + piece
        world.now += 2
    assert len(victims) == len({*victims})
    left = 12 // piece * piece - len(victims) * piece
    assert not victims or left > own - piece
    assert placed <= 12 - left
