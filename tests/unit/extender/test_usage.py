"""What several queues hold of several resources between publications, and what a new extender says of it."""

from typing import Any

import pytest
from extender_world import NOW, World
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from extender.planner.framework.snapshot import Snapshot, take_snapshot
from extender.usage import AWAY_S, WAIT_S, Meter, UsageFeed
from muster.api.muster.usage import AHEAD_S, KEY, PERIODS, Period, PeriodUsage, PublishedUsage, QueueUsage, period_of

GPU = "nvidia.com/gpu"
QUEUES = ("team", "other")
DAY, WEEK, MONTH = (period_of(each, NOW) for each in ("day", "week", "month"))
HELD = st.fixed_dictionaries({queue: st.tuples(st.integers(0, 4), st.integers(0, 4)) for queue in QUEUES})
"""GPUs and CPUs by queue."""
NOTHING = {"team": (0, 0), "other": (0, 0)}


def holding(held: dict[str, tuple[int, int]], budgets: dict[str, str] | None = None) -> Snapshot:
    """What the planner sees while each queue holds so many GPUs and CPUs, those of a pod that goes among them."""
    world = World().nodes(4)
    for queue in QUEUES:
        world.queue(queue, budget=(budgets or {"team": f"{GPU}=1h/day", "other": "cpu=1h/week"})[queue])
        gpus, cpus = held[queue]
        key = world.gang(queue, {"worker": (2, {GPU: 1})}, queue=queue, phase="Running")
        if gpus:
            world.pod(key, "worker", 0, {GPU: gpus}, node="node-0", phase="Running")
        if cpus:
            going = {"deletion_timestamp": "2026-01-01T00:00:00Z"}
            world.pod(key, "worker", 1, {"cpu": cpus}, node="node-1", phase="Running", **going)
    return take_snapshot(world.state)


def told(usage: PublishedUsage | None, queue: str, resource: str, period: Period = "day", now: float = NOW) -> float:
    """Seconds of a queue and a resource in a period."""
    return usage.queues.get(queue, QueueUsage()).within(period, period_of(period, now).name).get(resource, 0.0)


def published(until: float, **seconds: tuple[float, float]) -> PublishedUsage:
    """What the recorder has said: GPU and CPU seconds of each queue, the same in each period that goes on."""
    queues = {}
    for queue, (gpu, cpu) in seconds.items():
        amounts = {GPU: gpu, "cpu": cpu}
        names = {each: period_of(each, until).name for each in PERIODS}
        week, day = (PeriodUsage(names[each], amounts) for each in ("week", "day"))
        queues[queue] = QueueUsage(names["month"], amounts, week, day)
    return PublishedUsage(until, queues, PERIODS)


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(st.tuples(HELD, st.floats(1, AWAY_S)), min_size=1, max_size=4))
def test_each_queue_has_its_own_of_each_resource(steps: list[tuple[dict[str, tuple[int, int]], float]]) -> None:
    """Beside what was published of it; of a queue of which nothing was published, too."""
    meter, now, said = Meter(), DAY.begin + 5000.0, published(DAY.begin + 5000.0, team=(100, 7))
    expected = {(queue, resource): 0.0 for queue in QUEUES for resource in (GPU, "cpu")}
    expected |= {("team", GPU): 100.0, ("team", "cpu"): 7.0}
    usage = meter.advanced(said, holding(steps[0][0]), now)
    for held, seconds in steps:
        meter.advanced(said, holding(held), now)
        now += seconds
        usage = meter.advanced(said, holding(held), now)
        for queue, amounts in held.items():
            for resource, amount in zip((GPU, "cpu"), amounts, strict=True):
                expected[queue, resource] += amount * seconds
    for period in PERIODS:
        assert {key: told(usage, *key, period=period, now=now) for key in expected} == pytest.approx(expected)


@pytest.mark.parametrize("began", [DAY.begin + 3600, DAY.end - 30, WEEK.end - 30, MONTH.end - 30])
def test_a_new_extender_says_what_the_one_before_did(began: float) -> None:
    """By what was published and what is held since, over midnights, too."""
    said = published(began, team=(100, 7), other=(5, 50))
    snapshot, before = holding({"team": (2, 1), "other": (0, 3)}), Meter()
    for after in (0.0, 10.0, 20.0, 45.0, 60.0):
        usage = before.advanced(said, snapshot, began + after)
    assert Meter().advanced(said, snapshot, began + 60) == usage
    for queue, amounts in (("team", (2, 1)), ("other", (0, 3))):
        for resource, amount, of in zip((GPU, "cpu"), amounts, said.queues[queue].seconds.values(), strict=True):
            for period in PERIODS:
                span = period_of(period, began + 60)
                known = of if span.begin <= began else 0.0
                expected = known + amount * (began + 60 - max(began, span.begin))
                assert told(usage, queue, resource, period, began + 60) == pytest.approx(expected), (queue, period)


def test_what_nobody_has_a_budget_for_is_left_out() -> None:
    """The planner compares usage with budgets, and those are of one resource here."""
    budgets = {"team": f"{GPU}=1h/day", "other": ""}
    said = published(NOW, team=(100, 7), other=(5, 50))
    usage = Meter().advanced(said, holding({"team": (1, 1), "other": (1, 1)}, budgets), NOW)
    assert {name: set(each.seconds) for name, each in usage.queues.items()} == {"team": {GPU}, "other": {GPU}}


def test_a_publication_takes_the_place_of_what_was_counted() -> None:
    """It goes on from its moment."""
    meter, snapshot = Meter(), holding({"team": (2, 0), "other": (0, 0)})
    meter.advanced(published(NOW), snapshot, NOW)
    assert told(meter.advanced(published(NOW), snapshot, NOW + 50), "team", GPU) == pytest.approx(100)
    later = meter.advanced(published(NOW + 40, team=(500, 0)), snapshot, NOW + 60)
    assert told(later, "team", GPU) == pytest.approx(540)
    assert (later.until, later.periods) == (NOW + 60, PERIODS)
    assert meter.advanced(published(NOW + 90), snapshot, NOW + 60).until == NOW + 90  # type: ignore[union-attr]


@pytest.mark.parametrize(("away_s", "counted"), [(AWAY_S, 100 + 2 * AWAY_S), (AWAY_S + 1, 100)])
def test_a_replica_that_has_not_looked_for_long_goes_by_what_it_sees(away_s: float, counted: float) -> None:
    """Another one led meanwhile; nobody knows here when the gang has ended."""
    meter, said, snapshot = Meter(), published(NOW), holding({"team": (2, 0), "other": (0, 0)})
    meter.advanced(said, snapshot, NOW)
    meter.advanced(said, snapshot, NOW + 50)
    assert told(meter.advanced(said, holding(NOTHING), NOW + 50 + away_s), "team", GPU) == pytest.approx(counted)


def test_without_publication_or_budget_nothing_is_counted() -> None:
    """What is not published is not known; one of the future is not believed, and what was counted is dropped."""
    meter, snapshot = Meter(), holding({"team": (1, 0), "other": (0, 0)})
    meter.advanced(published(NOW), snapshot, NOW)
    assert meter.advanced(None, snapshot, NOW) is None
    assert told(meter.advanced(published(NOW), snapshot, NOW + 5), "team", GPU) == pytest.approx(5)
    ahead = PublishedUsage(NOW + AHEAD_S + 1)
    assert meter.advanced(ahead, snapshot, NOW) is ahead
    known = PublishedUsage(NOW)
    assert meter.advanced(known, holding(NOTHING, {"team": "", "other": ""}), NOW + 5) is known


class Known:
    """A ConfigMap."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data


def test_it_follows_the_config_map_and_does_not_wait_for_it_for_ever() -> None:
    """While it cannot be read the last one counts, once it is gone none; a missing right keeps no gang waiting."""
    clock = [0.0]
    feed = UsageFeed(None, "muster-system", monotonic_s=lambda: clock[0])  # type: ignore[arg-type]  # never started
    good, bad = Known({KEY: '{"until": 5}'}), Known({KEY: "{"})
    with capture_logs() as lines:
        for new, until in ((good, 5), (bad, 5), (bad, 5), (good, 5), (None, None), (bad, None)):
            feed.on_change(None, new)  # type: ignore[arg-type]  # with its fields
            assert (feed.current.until if feed.current else None) == until
    assert [line["log_level"] for line in lines] == ["warning"] * 2, "each reason once"
    for clock[0], ready in ((WAIT_S, False), (WAIT_S + 1, True)):
        assert feed.ready() is ready
