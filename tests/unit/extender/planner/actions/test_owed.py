"""What keeps a queue from what it deserves: guarantees that nobody uses, and victims of one kind alone."""

import pytest
from extender_world import of
from victims_world import Cluster, victims

from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.framework.decisions import MakeRoom, Place
from extender.planner.plugins.proportion import Proportion
from muster.api.volcano.scheduling import Guarantee

GPU = "nvidia.com/gpu"


def cluster(gpus: int, **deserved: int) -> Cluster:
    """One node, whose queues deserve so many GPUs of it."""
    world = Cluster(0, checked=False)
    world.node("node-0", gpus=gpus)
    world.actions = [Reclaim(), Preempt()]
    world.plugins = [Proportion({}), *world.plugins]
    for name, own in deserved.items():
        world.queue(name, deserved={GPU: own})
    return world


def singles(world: Cluster, queue: str, count: int) -> None:
    """Gangs of one pod with a GPU that run."""
    for number in range(count):
        key = world.gang(f"{queue}-{number}", {"worker": (1, {GPU: 1})}, phase="Running", queue=queue)
        world.members(key, 1, {GPU: 1}, node="node-0", phase="Running")


@pytest.mark.parametrize("asked", [1, 4])
def test_an_idle_guarantee_does_not_end_reclaiming(asked: int) -> None:
    """Of 6 GPUs one is kept for a queue without pods, and another queue runs 5 and deserves 1."""
    world = cluster(6, q0=4, q1=1).queue("q2", guarantee=Guarantee({GPU: 1}))
    singles(world, "q1", 5)
    world.asks("a", asked, 1, queue="q0", priority_class="low")
    assert len(victims(world.cycle())) == asked


def test_a_queue_may_reclaim_beyond_its_own_guarantee() -> None:
    """Of 4 GPUs it deserves all and is guaranteed one; the other queue runs 3."""
    world = cluster(4, q1=0).queue("q0", deserved={GPU: 4}, guarantee=Guarantee({GPU: 1}))
    singles(world, "q1", 3)
    world.asks("a", 2, 1, queue="q0", priority_class="low")
    assert len(victims(world.cycle())) == 1


def test_a_lower_gang_of_the_queue_and_a_borrower_go_together() -> None:
    """Each queue deserves 2 of 4 GPUs; one runs a low gang, the other borrows: both give one for a high gang of 2."""
    world = cluster(4, q0=2, q1=2)
    singles(world, "q0", 1)
    singles(world, "q1", 3)
    key = world.asks("high", 2, 1, queue="q0")
    session = world.cycle()
    assert [place.gang.key for place in of(session, Place)] == [key]
    assert sorted(name.partition("-")[0] for name in victims(session)) == ["q0", "q1"]
    [room] = of(session, MakeRoom)
    assert str(room.reason).startswith("reclaimed")


def test_a_queue_takes_no_more_of_others_than_it_deserves() -> None:
    """Without its low gang it would have 2, and asks for 3."""
    world = cluster(4, q0=2, q1=2)
    singles(world, "q0", 1)
    singles(world, "q1", 3)
    world.asks("high", 3, 1, queue="q0")
    assert not victims(world.cycle())


def test_nothing_of_others_goes_where_reclaim_is_not_configured() -> None:
    """Preempt alone stays within the queue."""
    world = cluster(4, q0=2, q1=2)
    world.actions = [Preempt()]
    singles(world, "q0", 1)
    singles(world, "q1", 3)
    world.asks("high", 2, 1, queue="q0")
    assert not victims(world.cycle())
