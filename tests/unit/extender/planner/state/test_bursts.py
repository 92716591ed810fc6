"""A gang whose pods all fail, or are all deleted, is looked at once, and not once for each of them."""

import pytest
from extender_world import World

from extender.planner.state.gangtable import GangTable

PODS = 50
GPU = {"nvidia.com/gpu": 1}


@pytest.mark.parametrize("fails", [True, False])
def test_the_ends_of_the_pods_of_a_placed_gang_are_one_look(monkeypatch: pytest.MonkeyPatch, *, fails: bool) -> None:
    """They fail before they are bound, or are gone; its placed slots are those of its placement in the end."""
    world = World().nodes(10)
    key = world.gang("a", {"worker": (PODS, GPU)})
    pods = [world.pod(key, "worker", rank, GPU, gated=True) for rank in range(PODS)]
    world.plan()
    assert world.state.ledger.placed[key] == PODS
    looks: list[str] = []
    look = GangTable.check

    def counted(self: GangTable, looked: str, members: list[object], aside: str) -> bool:
        looks.append(looked)
        return look(self, looked, members, aside)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(GangTable, "check", counted)
    for rank, pod in enumerate(pods):
        if fails:
            world.pod(key, "worker", rank, GPU, gated=True, phase="Failed")
        else:
            world.state.on_pod(pod, None)
    world.state.refresh()
    assert looks == [key]
    assert world.state.differences() == []
