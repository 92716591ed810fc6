"""A queue gets back what it deserves, also if a whole gang goes for it, but never in turns; else it is told why not."""

from typing import Any

import pytest
from extender_world import of, slots
from hypothesis import given, settings
from hypothesis import strategies as st
from shares_world import deserving
from victims_world import victims

from extender.planner import reasons
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.framework.decisions import MakeRoom, Place, Unschedulable
from extender.planner.framework.session import Session
from extender.planner.plugins.protection import MinRuntime

GPU = "nvidia.com/gpu"


def message(session: Session, key: str) -> str:
    """Why a gang waits."""
    [why] = [each for each in of(session, Unschedulable) if each.gang.key == key]
    return str(why.message)


def test_a_whole_gang_goes_for_what_a_queue_deserves() -> None:
    """Both deserve 32 GPUs: the one that runs a gang of 64 gives it up for 16 of the other, and waits."""
    world = deserving(8, Reclaim(), a=32, b=32)
    world.runs("large", 8, queue="a")
    asker = world.asks("mine", 2, queue="b", priority_class="low")
    session = world.cycle()
    assert [place.gang.key for place in of(session, Place)] == [asker]
    assert victims(session) == {f"large-worker-{rank}" for rank in range(8)}


def test_what_is_within_two_queues_stays() -> None:
    """Nobody has more than it deserves: the gang waits, and is told so in every cycle."""
    world = deserving(4, Reclaim(), a=16, b=24)
    world.runs("first", 2, queue="a")
    world.runs("second", 2, queue="b", first=2)
    asker = world.asks("mine", 1, queue="b", priority_class="low")
    for _ in range(2):
        session = world.cycle()
        assert not victims(session)
        assert message(session, asker).endswith(str(reasons.queues.NOBODY_ABOVE))


@pytest.mark.parametrize("how", ["reclaimable", "preemptable"])
def test_who_keeps_what_it_has_is_the_reason(how: str) -> None:
    """The queue that has more is not reclaimable, or its gang is not preemptable."""
    world = deserving(4, Reclaim(), a=16, b=16)
    large = world.runs("large", 4, queue="a")
    if how == "reclaimable":
        world.queue("a", deserved={GPU: 16}, reclaimable=False)
    else:
        world.annotate(large, "volcano.sh/preemptable", "false")
    asker = world.asks("mine", 1, queue="b", priority_class="low")
    session = world.cycle()
    assert message(session, asker).endswith(str(reasons.queues.OF_OTHERS))
    assert not victims(session)


def test_who_is_protected_for_now_is_the_reason() -> None:
    """Its gang has not run for its minimum runtime."""
    world = deserving(4, Reclaim(), a=16, b=16)
    world.plugins = [*world.plugins, MinRuntime({"defaultReclaimMinRuntime": "10m"})]
    world.started(world.runs("large", 4, queue="a"), 60)
    asker = world.asks("mine", 1, queue="b", priority_class="low")
    assert message(world.cycle(), asker).endswith(str(reasons.queues.PROTECTED))
    world.now += 1000
    assert len(victims(world.cycle())) == 4


def test_too_little_is_the_reason() -> None:
    """Gangs go while their queue has more than it deserves: one more would have to, for both pods."""
    world = deserving(4, Reclaim(), a=24, b=16)
    for number in range(4):
        world.runs(f"g{number}", 1, first=number, queue="a")
    asker = world.asks("mine", 2, queue="b", priority_class="low")
    session = world.cycle()
    assert not victims(session)
    assert message(session, asker).endswith(str(reasons.queues.NOT_ENOUGH))


def test_a_gang_that_would_take_its_queue_over_what_it_deserves_is_not_told_of_it() -> None:
    """It is not owed anything."""
    world = deserving(4, Reclaim(), a=16, b=16)
    world.runs("large", 4, queue="a")
    asker = world.asks("mine", 3, queue="b", priority_class="low")
    assert "reclaimed" not in message(world.cycle(), asker)


Gang = tuple[str, int, int, str]
"""Queue, pods, GPUs of each, and priority class."""
GANGS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.sampled_from([2, 4, 8]), st.sampled_from(["low", "high"])),
    min_size=2,
    max_size=7,
)


@settings(max_examples=settings().max_examples * 3 // 5)
@given(
    gangs=GANGS,
    deserved=st.fixed_dictionaries({name: st.integers(0, 24) for name in "abc"}),
    starts=st.permutations(range(7)),
    above=st.sampled_from([0, 1]),
)
def test_nobody_is_reclaimed_from_in_turns(
    gangs: list[Gang], deserved: dict[str, int], starts: list[int], above: int
) -> None:
    """However a cluster was filled: after some cycles nobody goes any more, and nothing is as it was before."""
    running: dict[int, list[str]] = {}
    for number in starts:  # the first ones had the cluster for themselves
        if number < len(gangs):
            running = step(gangs[: number + 1], running, {}, 0)
    seen = [running]
    for _ in range(30):
        running = step(gangs, running, deserved, above)
        if running == seen[-1]:
            return
        assert running not in seen, "it goes in a circle"
        seen.append(running)
    raise AssertionError("it does not end")


def step(
    gangs: list[Gang], running: dict[int, list[str]], deserved: dict[str, int], above: int
) -> dict[int, list[str]]:
    """What runs after one cycle whose victims have gone, and whose placements have come true.

    With `above` the queues a and b are in one department, and c in another.
    """
    world: Any = deserving(4, **(deserved or dict.fromkeys("abc", 0)))
    if above:
        for name, parent in (("a", "ab"), ("b", "ab"), ("c", "cc")):
            world.queue(parent)
            world.queue(name, parent=parent, deserved={GPU: deserved[name]})
    world.actions = [Reclaim(), Preempt()]
    for number, (queue, pods, gpus, priority) in enumerate(gangs):
        requests = {GPU: gpus}
        phase = "Running" if number in running else "Inqueue"
        tasks = {"worker": (pods, requests)}
        key = world.gang(f"g{number}", tasks, phase=phase, priority_class=priority, queue=queue)
        for rank in range(pods):
            node = running[number][rank] if number in running else ""
            world.pod(key, "worker", rank, requests, node=node, phase="Running" if node else "Pending", gated=not node)
    session = world.cycle()
    gone = {int(gang.group.metadata.name[1:]) for room in of(session, MakeRoom) for gang, _ in room.victims}
    left = {number: nodes for number, nodes in running.items() if number not in gone}
    came = {int(place.gang.group.metadata.name[1:]): slots(place)["worker"] for place in of(session, Place)}
    return left | came
