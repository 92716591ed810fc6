"""Budgets of queues are told: by a metric, by events at each step, and not twice."""

import pytest
from extender_world import NOW, World
from prometheus_client import REGISTRY

from extender.budgetreports import EVERY_S, LATE_S, RATIO, BudgetReporter
from extender.planner.plugins.proportion import Proportion
from muster.api.muster.usage import PERIODS, PeriodUsage, PublishedUsage, QueueUsage, period_of

GPU = "nvidia.com/gpu"


class Events:
    """A recorder of events in memory."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def event(self, obj: object, type: str, reason: str, message: str) -> None:  # noqa: A002 - as the recorder's
        """Remember it."""
        assert type == "Warning"
        self.told.append((obj.metadata.name, reason, message))  # type: ignore[attr-defined]  # a Queue


class Budgets:
    """A queue with a budget of 100 GPU hours, and what is told of it."""

    def __init__(self, mode: str = "enforce") -> None:
        self.world = World()
        self.world.plugins = [Proportion({})]
        self.world.nodes(1)
        self.world.queue("team", **{"budget": "nvidia.com/gpu=100h/month", "budget-mode": mode})
        self.events = Events()
        self.reporter = BudgetReporter(self.events, wall_s=lambda: self.world.now)  # type: ignore[arg-type]  # as it

    def told(self, hours: float | None, after_s: float = EVERY_S + 1) -> list[str]:
        """The reasons of events after a cycle with this usage."""
        self.world.now += after_s
        usage = {"nvidia.com/gpu": (hours or 0) * 3600}
        known = PublishedUsage(self.world.now, {"team": QueueUsage(period_of("month", NOW)[0], usage)})
        self.world.usage = None if hours is None else known
        before = len(self.events.told)
        self.reporter.report(self.world.plan())
        return [reason for _, reason, _ in self.events.told[before:]]


def ratios() -> dict[tuple[str, str, str], float]:
    """The metric: by queue, resource and period."""
    [family] = RATIO.collect()
    names = ("queue", "resource", "period")
    return {tuple(each.labels[name] for name in names): each.value for each in family.samples}


def ratio() -> float | None:
    """Of the queue's budget."""
    return ratios().get(("team", GPU, "month"))


def test_each_step_is_told_once() -> None:
    """At 80 % and at all of it, again in the next month; the metric follows."""
    budgets = Budgets()
    assert budgets.told(79.9) == []
    assert ratio() == 0.799
    assert budgets.told(80) == ["BudgetNearlyUsed"]
    assert budgets.told(90) == []
    assert budgets.told(100) == ["BudgetUsed"]
    why = "queue team has used 100% of its budget of nvidia.com/gpu this month; no more gangs that request it start"
    assert budgets.events.told[-1] == ("team", "BudgetUsed", why)
    assert budgets.told(120) == []
    assert budgets.told(0) == []
    assert budgets.told(85) == ["BudgetNearlyUsed"]


def test_nobody_looks_in_each_cycle() -> None:
    """Budgets are summed up for it; a clock that was set back holds nothing up."""
    budgets = Budgets()
    assert budgets.told(79) == []
    for after_s, reasons in ((0.0, []), (EVERY_S, []), (0.1, ["BudgetNearlyUsed"])):
        assert budgets.told(80, after_s) == reasons
    assert budgets.told(100, -EVERY_S - 1) == ["BudgetUsed"]


def test_unknown_usage_is_told_when_it_lasts() -> None:
    """Not while the process starts; and the metric says so at once."""
    budgets = Budgets("warn")
    assert budgets.told(None) == []
    assert REGISTRY.get_sample_value("muster_queue_budget_known", {"queue": "team"}) == 0
    assert budgets.told(None, after_s=60) == ["BudgetNotKnown"]
    assert budgets.told(1) == []
    assert REGISTRY.get_sample_value("muster_queue_budget_known", {"queue": "team"}) == 1


def test_usage_that_lacks_what_happened_is_not_believed() -> None:
    """Its age alone says nothing: it is written when something has changed. A later one is believed at once."""
    budgets = Budgets()
    world, old = budgets.world, PublishedUsage(NOW, {})

    def look(after_s: float = EVERY_S + 1) -> None:
        world.now += after_s
        budgets.reporter.report(world.plan())

    look()
    look(10 * LATE_S)
    assert budgets.reporter.believed(old) is old
    key = world.gang("a", {"worker": (1, {"nvidia.com/gpu": 1})}, queue="team", phase="Running")
    world.pod(key, "worker", 0, {"nvidia.com/gpu": 1}, node="node-0", phase="Running")
    look()
    look(LATE_S - EVERY_S)
    assert budgets.reporter.believed(old) is old
    world.now += EVERY_S + 1
    assert budgets.reporter.believed(old) is None
    new = PublishedUsage(world.now, {})
    assert budgets.reporter.believed(new) is new
    look(LATE_S + 1)
    assert budgets.reporter.believed(new) is new


def test_a_budget_that_is_gone_is_told_no_more() -> None:
    """Its series goes with it."""
    budgets = Budgets()
    budgets.told(50)
    budgets.world.queue("team")
    budgets.told(50)
    assert ratio() is None


def test_each_budget_is_told_of_its_own_queue() -> None:
    """By its resource and period; the step of one is no step of another, and goes with its own queue's budget."""
    budgets = Budgets()
    world, told = budgets.world, budgets.events.told
    world.queue("team", budget=f"{GPU}=1h/day,cpu=10h/month").queue("other", budget=f"{GPU}=1h/week")

    def reasons(**seconds: tuple[float, float]) -> list[tuple[str, str]]:
        world.now += EVERY_S + 1
        queues = {}
        for queue, (gpu, cpu) in seconds.items():
            amounts, names = {GPU: gpu, "cpu": cpu}, {each: period_of(each, world.now).name for each in PERIODS}
            week, day = (PeriodUsage(names[each], amounts) for each in ("week", "day"))
            queues[queue] = QueueUsage(names["month"], amounts, week, day)
        world.usage = PublishedUsage(world.now, queues, PERIODS)
        told.clear()
        budgets.reporter.report(world.plan())
        return [(name, reason) for name, reason, _ in told]

    assert reasons(team=(360, 3600), other=(3000, 9)) == [("other", "BudgetNearlyUsed")]
    assert ratios() == {
        ("team", GPU, "day"): 0.1, ("team", "cpu", "month"): 0.1, ("other", GPU, "week"): pytest.approx(3000 / 3600)
    }  # fmt: skip
    assert reasons(team=(360, 36_000), other=(3000, 9)) == [("team", "BudgetUsed")]
    assert "its budget of cpu this month" in told[-1][2]
    world.queue("other")
    assert reasons(team=(360, 36_000), other=(3000, 9)) == []
    assert {queue for queue, _, _ in ratios()} == {"team"}
