"""What queues hold between two publications of the recorder counts for budgets, also when it has ended."""

from itertools import pairwise

import pytest
from extender_world import NOW, World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.framework.snapshot import Snapshot, take
from extender.usage import AWAY_S, Meter
from muster.api.muster.usage import PERIODS, PeriodUsage, QueueUsage, Usage, period_of

GPU = "nvidia.com/gpu"
DAY = period_of("day", NOW)
SIZES = st.integers(0, 3)


def world_of(budget: str = f"{GPU}=1h/day") -> World:
    """One node, and a queue with a budget."""
    return World().nodes(1).queue("team", budget=budget)


def holding(world: World, gpus: int) -> Snapshot:
    """What the planner sees while the queue holds so many GPUs."""
    pod = None
    if gpus:
        key = world.gang(f"g{gpus}", {"worker": (1, {GPU: gpus})}, queue="team", phase="Running")
        pod = world.pod(key, "worker", 0, {GPU: gpus}, node="node-0", phase="Running")
    snapshot = take(world.state)
    if pod is not None:
        world.state.on_pod(pod, None)
    return snapshot


def told(usage: Usage | None, period: str = "day", now: float = NOW) -> float:
    """The GPU seconds of the queue in a period that goes on."""
    assert usage is not None
    [each] = [each for each in PERIODS if each == period]
    return usage.queues["team"].within(each, period_of(each, now).name).get(GPU, 0.0) if usage.queues else 0.0


@given(st.lists(st.tuples(SIZES, st.floats(0.01, AWAY_S)), min_size=2, max_size=6), st.floats(0, 1000))
def test_it_is_the_integral_of_what_was_held(steps: list[tuple[int, float]], before: float) -> None:
    """From the publication on, whatever has begun and ended since, besides what was published."""
    world, meter, now = world_of(), Meter(), DAY.begin + 1000.0
    published = Usage(now, {"team": QueueUsage(day=PeriodUsage(DAY.name, {GPU: before}))}, PERIODS)
    moments = [now]
    for _, seconds in steps:
        moments.append(moments[-1] + seconds)
    seen = [meter.advanced(published, holding(world, gpus), at) for (gpus, _), at in zip(steps, moments, strict=False)]
    expected = before + sum(
        gpus * (after - at) for (gpus, _), (at, after) in zip(steps[:-1], pairwise(moments), strict=False)
    )
    assert told(seen[-1]) == pytest.approx(expected)
    assert [told(each) for each in seen] == sorted(told(each) for each in seen)


def test_a_publication_takes_the_place_of_what_was_counted() -> None:
    """It goes on from its moment."""
    world, meter = world_of(), Meter()
    snapshot = holding(world, 2)
    meter.advanced(Usage(NOW, {}, PERIODS), snapshot, NOW)
    assert told(meter.advanced(Usage(NOW, {}, PERIODS), snapshot, NOW + 50)) == pytest.approx(100)
    later = Usage(NOW + 40, {"team": QueueUsage(day=PeriodUsage(DAY.name, {GPU: 500}))}, PERIODS)
    assert told(meter.advanced(later, snapshot, NOW + 60)) == pytest.approx(540)


def test_a_replica_that_has_not_looked_for_long_goes_by_what_it_sees() -> None:
    """Another one led meanwhile; nobody knows here when the gang has ended."""
    world, meter, published = world_of(), Meter(), Usage(NOW, {}, PERIODS)
    snapshot = holding(world, 2)
    meter.advanced(published, snapshot, NOW)
    meter.advanced(published, snapshot, NOW + 50)
    assert told(meter.advanced(published, holding(world, 0), NOW + 51 + AWAY_S)) == pytest.approx(100)


def test_a_new_period_begins_at_nothing() -> None:
    """Of the day before nothing counts, of the week all of it."""
    world, meter = world_of(f"{GPU}=1h/day,{GPU}=1h/week"), Meter()
    snapshot, published = holding(world, 1), Usage(DAY.end - 60, {}, PERIODS)
    meter.advanced(published, snapshot, DAY.end - 60)
    meter.advanced(published, snapshot, DAY.end - 10)
    usage = meter.advanced(published, snapshot, DAY.end + 30)
    assert told(usage, "day", DAY.end + 30) == pytest.approx(30)
    assert told(usage, "week", DAY.end + 30) == pytest.approx(90)
    assert told(usage, "day", DAY.begin) == 0


def test_without_publication_or_budget_nothing_is_counted() -> None:
    """What is not published is not known; one of the future is not believed."""
    world, meter = world_of(), Meter()
    snapshot = holding(world, 1)
    assert meter.advanced(None, snapshot, NOW) is None
    ahead = Usage(NOW + 601)
    assert meter.advanced(ahead, snapshot, NOW) is ahead
    world.queue("team")
    known = Usage(NOW)
    assert meter.advanced(known, take(world.state), NOW + 5) is known
