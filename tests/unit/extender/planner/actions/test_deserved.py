"""A queue gets back what it deserves, also if a whole gang goes for it, but never in turns; else it is told why not."""

from typing import Any

import pytest
from extender_world import of, only, slots
from hypothesis import given, settings
from hypothesis import strategies as st
from shares_world import deserving, one_node
from victims_world import Cluster, victims

from extender.planner import reasons
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.framework.decisions import MakeRoom, Place, Unschedulable
from extender.planner.framework.registry import Action
from extender.planner.framework.session import Session
from extender.planner.plugins.protection import MinRuntime
from muster.api.volcano.scheduling import Guarantee

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


KEEPS: dict[str, Any] = {"reclaimable": False}


@pytest.mark.parametrize(("deserved", "spec", "running", "pods", "why"), [
    pytest.param((16, 24), {}, "aabb", 1, reasons.queues.NOBODY_ABOVE, id="nobody has more than it deserves"),
    pytest.param((16, 16), KEEPS, "aaaa", 1, reasons.queues.OF_OTHERS, id="the queue that has more is not reclaimable"),
    pytest.param((24, 16), {}, "aaaa", 2, reasons.queues.NOT_ENOUGH, id="more would have to go, for both pods"),
])  # fmt: skip
def test_why_nothing_comes_back(
    deserved: tuple[int, int], spec: dict[str, Any], running: str, pods: int, why: object
) -> None:
    """The gang waits, and every cycle reports it."""
    world: Any = deserving(4, Reclaim(), a=deserved[0], b=deserved[1])
    world.queue("a", deserved={GPU: deserved[0]}, **spec)
    for number, queue in enumerate(running):
        world.runs(f"g{number}", 1, first=number, queue=queue)
    asker = world.asks("mine", pods, queue="b", priority_class="low")
    for _ in range(2):
        session = world.cycle()
        assert not victims(session)
        assert message(session, asker).endswith(str(why))


MARKS = [
    ("volcano.sh/preemptable", "false"), ("volcano.sh/jdb-min-available", "100%"),
    ("volcano.sh/jdb-min-available", "all"), ("volcano.sh/jdb-max-unavailable", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), MARKS)
def test_a_mark_after_the_start_protects_only_the_deserved_amount(name: str, value: str) -> None:
    """Of four gangs two are within it: the two that started first, regardless of priority."""
    world = deserving(4, Reclaim(), a=16, b=16)
    for number in range(4):
        key = world.runs(f"g{number}", 1, first=number, queue="a", priority_class="low" if number < 2 else "high")
        world.started(key, 1000 - number)
        world.annotate(key, name, value)
    for number in range(3):
        world.asks(f"mine{number}", 1, queue="b", priority_class="low")
    gone = victims(world.cycle()) | victims(world.cycle())
    assert gone == {"g2-worker-0", "g3-worker-0"}


def test_who_is_protected_for_now_is_the_reason() -> None:
    """Its gang has not run for its minimum runtime."""
    world = deserving(4, Reclaim(), a=16, b=16)
    world.plugins = [*world.plugins, MinRuntime({"defaultReclaimMinRuntime": "10m"})]
    world.started(world.runs("large", 4, queue="a"), 60)
    asker = world.asks("mine", 1, queue="b", priority_class="low")
    assert message(world.cycle(), asker).endswith(str(reasons.queues.PROTECTED))
    world.now += 1000
    assert len(victims(world.cycle())) == 4


def test_a_gang_that_would_take_its_queue_over_what_it_deserves_is_not_told_of_it() -> None:
    """It is not owed anything."""
    world = deserving(4, Reclaim(), a=16, b=16)
    world.runs("large", 4, queue="a")
    asker = world.asks("mine", 3, queue="b", priority_class="low")
    assert "reclaimed" not in message(world.cycle(), asker)


Gang = tuple[str, int, int, str]
"""Queue, pods, GPUs of each, and priority class."""
GANGS = st.lists(st.tuples(
    st.sampled_from("abc"), st.integers(1, 4), st.sampled_from([2, 4, 8]), st.sampled_from(["low", "high"]),
), min_size=2, max_size=7)  # fmt: skip


@settings(max_examples=settings().max_examples * 3 // 5)
@given(
    gangs=GANGS, deserved=st.fixed_dictionaries({name: st.integers(0, 24) for name in "abc"}),
    starts=st.permutations(range(7)), above=st.sampled_from([0, 1]),
)  # fmt: skip
def test_nobody_is_evicted_in_turns(gangs: list[Gang], deserved: dict[str, int], starts: list[int], above: int) -> None:
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
            world.queue(parent).queue(name, parent=parent, deserved={GPU: deserved[name]})
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
    return left | {int(place.gang.group.metadata.name[1:]): slots(place)["worker"] for place in of(session, Place)}


def singles(world: Cluster, queue: str, count: int) -> None:
    """Gangs of one pod with a GPU that run."""
    for number in range(count):
        world.runs(f"{queue}-{number}", 1, gpus=1, queue=queue, priority_class="")


def both_run() -> Cluster:
    """Each queue deserves 2 of 4 GPUs; one runs a low gang, the other borrows."""
    world = one_node(4, q0=2, q1=2)
    singles(world, "q0", 1)
    singles(world, "q1", 3)
    return world


@pytest.mark.parametrize(("gpus", "borrows", "guaranteed", "asked", "go"), [
    pytest.param(6, 1, {"q2": {}}, 1, 1, id="of another queue, which has no pods"),
    pytest.param(6, 1, {"q2": {}}, 4, 4, id="of another queue, and all that is deserved is asked for"),
    pytest.param(4, 0, {"q0": {"deserved": {GPU: 4}}}, 2, 1, id="its own, beyond which it reclaims"),
])  # fmt: skip
def test_an_idle_guarantee_does_not_end_reclaiming(
    gpus: int, borrows: int, guaranteed: dict[str, Any], asked: int, go: int
) -> None:
    """One GPU is kept for a guarantee; a queue that deserves 4 asks, and the other one has all the rest."""
    world = one_node(gpus, q0=4, q1=borrows)
    for name, spec in guaranteed.items():
        world.queue(name, guarantee=Guarantee({GPU: 1}), **spec)
    singles(world, "q1", gpus - 1)
    world.asks("a", asked, 1, queue="q0", priority_class="low")
    assert len(victims(world.cycle())) == go


def test_a_lower_gang_of_the_queue_and_a_borrower_go_together() -> None:
    """Both give one for a high gang of 2."""
    world = both_run()
    key = world.asks("high", 2, 1, queue="q0")
    session = world.cycle()
    assert [place.gang.key for place in of(session, Place)] == [key]
    assert sorted(name.partition("-")[0] for name in victims(session)) == ["q0", "q1"]
    assert str(only(session, MakeRoom).reason).startswith("reclaimed")


@pytest.mark.parametrize(("asked", "actions"), [
    pytest.param(3, [Reclaim(), Preempt()], id="no more than the queue deserves"),
    pytest.param(2, [Preempt()], id="preempt alone stays within the queue"),
])  # fmt: skip
def test_nothing_of_others_goes(asked: int, actions: list[Action]) -> None:
    """Without its low gang the queue would have 2."""
    world = both_run()
    world.actions = actions
    world.asks("high", asked, 1, queue="q0")
    assert not victims(world.cycle())
