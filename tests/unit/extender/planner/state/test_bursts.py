"""A gang whose pods all fail, or are all deleted, is looked at once, and not once for each of them."""

from collections.abc import Callable

import pytest
from extender_world import World

from extender.planner.state.gangtable import GangTable
from muster.api.kubernetes.core import Pod

PODS = 50
GPU = {"nvidia.com/gpu": 1}


def fail(world: World, key: str, rank: int, _: Pod) -> None:
    """It failed before it was bound."""
    world.pod(key, "worker", rank, GPU, gated=True, phase="Failed")


def delete(world: World, _key: str, _rank: int, pod: Pod) -> None:
    """It is gone."""
    world.state.on_pod(pod, None)


@pytest.mark.parametrize("end", [fail, delete])
def test_the_ends_of_the_pods_of_a_placed_gang_are_one_look(
    end: Callable[[World, str, int, Pod], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its placed slots are those of its placement in the end."""
    world = World().nodes(10)
    key = world.gang("a", {"worker": (PODS, GPU)})
    pods = [world.pod(key, "worker", rank, GPU, gated=True) for rank in range(PODS)]
    world.plan()
    assert world.state.ledger.placed[key] == PODS
    looks: list[str] = []
    look = GangTable.look

    def counted(self: GangTable, looked: str, members: list[object], aside: str) -> bool:
        looks.append(looked)
        return look(self, looked, members, aside)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(GangTable, "look", counted)
    for rank, pod in enumerate(pods):
        end(world, key, rank, pod)
    world.state.refresh()
    assert looks == [key]
    assert world.state.differences() == []
