"""What is remembered of a search for victims that failed holds for gangs of the same queue and user alone."""

import pytest
from extender_world import of
from victims_world import Cluster, victims

from extender.planner.framework.decisions import Place
from extender.planner.plugins.proportion import Proportion

LIMITED = {"capability": {"nvidia.com/gpu": 4}, "max-per-user": "nvidia.com/gpu=3"}


def check_cycle(world: Cluster, gang: str, gone: set[str]) -> None:
    """In one cycle this gang alone gets the capacity of these pods."""
    session = world.cycle()
    assert [place.gang.key for place in of(session, Place)] == [gang]
    assert victims(session) == gone


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("users", [("alice", "bob"), ("alice", ""), ("", "alice")])
def test_a_search_in_vain_for_one_user_leaves_that_of_another(users: tuple[str, str], *, together: bool) -> None:
    """The first has a gang that stays, and with three GPUs more would exceed what the queue allows each user."""
    world = Cluster(1)
    world.plugins = [Proportion({}), *world.plugins]
    world.queue("team", **LIMITED)
    full, other = users
    world.runs("stays", 1, gpus=1, queue="team", user=full, priority_class="high")
    world.runs("low", 3, gpus=1, queue="team", user="carol")
    world.asks("first", 1, gpus=3, queue="team", user=full)
    if not together:
        assert not victims(world.cycle())
    second = world.asks("second", 1, gpus=3, queue="team", user=other)
    check_cycle(world, second, {f"low-worker-{rank}" for rank in range(3)})


@pytest.mark.parametrize("together", [True, False])
def test_a_search_in_vain_in_one_queue_leaves_that_of_another(*, together: bool) -> None:
    """Gangs of one user and one shape: half a node alone would help the gang of the first queue."""
    world = Cluster(2).queue("one").queue("two")
    world.runs("stays", 1, gpus=4, queue="one", priority_class="high")
    world.runs("half", 1, gpus=4, queue="one")
    world.runs("whole", 1, gpus=8, first=1, queue="two")
    world.asks("first", 1, queue="one", user="alice")
    if not together:
        assert not victims(world.cycle())
    check_cycle(world, world.asks("second", 1, queue="two", user="alice"), {"whole-worker-0"})
