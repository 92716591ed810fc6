"""Budgets of queues end to end: a real recorder publishes what was used, and the extender decides by it."""

from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, job, metric
from planes import Muster

from muster.api.kubernetes.core import CONFIG_MAPS, EVENTS, PODS
from muster.api.muster.usage import KEY, PublishedUsage, read_usage
from muster.api.names import BUDGET, BUDGET_MODE, SYSTEM_NAMESPACE, USAGE
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.errors import NotFound
from musterctl.cluster import whole
from musterctl.plane.plane import Plane
from musterctl.plane.state import ALL, HISTORY

pytestmark = [pytest.mark.plane, pytest.mark.long]
WaitFor = Callable[..., Any]
GPU = "nvidia.com/gpu"
NAMESPACE = "default"
BUDGETS = {
    "paid": (f"{GPU}=0.1h/month", "enforce"),
    "quiet": (f"{GPU}=100h/month,{GPU}=0.05h/day", "enforce"),
    "told": (f"{GPU}=0.001h/week", "warn"),
}
"""12 GPUs use the first one up in 30 s, and are between 80 % of it and all of it for 6 s."""


class World:
    """A plane with a recorder, and its queues `paid`, `quiet`, `told` and `free`."""

    def __init__(self, plane: Plane, wait_for: WaitFor) -> None:
        self.plane, self.wait_for, self.client = plane, wait_for, plane.client()
        for name, (budget, mode) in BUDGETS.items():
            said = {BUDGET: budget, BUDGET_MODE: mode}
            self.client.create(QUEUES, {"metadata": {"name": name, "annotations": said}})
        self.client.create(QUEUES, {"metadata": {"name": "free"}})

    def submit(self, name: str, queue: str, gpus: int = 1, replicas: int = 1) -> None:
        """Submit a gang that runs for ever."""
        made = job(name, NAMESPACE, replicas=replicas, gpus=gpus, cpu="100m")
        made["spec"]["queue"] = queue
        self.client.create(JOBS, made, NAMESPACE)

    def runs(self, name: str) -> bool:
        """Whether a member of this Job has a node."""
        pods = (each for each in self.client.list(PODS, NAMESPACE) if each.metadata.name.startswith(f"{name}-"))
        return any(each.spec.node_name for each in pods)

    def starts(self, name: str) -> None:
        """Wait until it has started."""
        self.wait_for(lambda: self.runs(name), 60, f"{name} to start")

    def waits(self, name: str) -> str:
        """Wait until it waits for its budget, and return what its PodGroup says; it has no node then."""

        def why() -> str:
            groups = (each for each in self.client.list(POD_GROUPS, NAMESPACE) if each.metadata.name.startswith(name))
            told = (each for group in groups for each in group.status.conditions if each.status == "True")
            return next((each.message for each in told if each.reason == "QueueOverBudget"), "")

        message = str(self.wait_for(why, 60, f"{name} to wait for the budget"))
        assert not self.runs(name)
        return message

    def events(self, queue: str) -> dict[str, str]:
        """Reason → message of the events about a queue."""
        told = (each for each in self.client.list(EVENTS) if each.involved_object.get("name") == queue)
        return {each.reason: each.message for each in told}

    def ratio(self, queue: str, period: str = "month") -> float:
        """The part of its budget that is used, as the extender's metric has it."""
        series = f'muster_queue_budget_ratio{{period="{period}",queue="{queue}",resource="{GPU}"}}'
        return metric(self.plane, "extender", series)

    def published(self) -> PublishedUsage:
        """What the recorder has published; without any that can be read it counts until 0."""
        try:
            return read_usage(self.client.get(whole(CONFIG_MAPS), USAGE, SYSTEM_NAMESPACE)["data"])
        except (NotFound, ValueError):
            return PublishedUsage(0.0)


@pytest.fixture(scope="module")
def world(module_plane: Callable[..., Plane], wait_for: WaitFor) -> World:
    """A plane of its own of 64 GPUs, whose recorder is killed."""
    return World(module_plane(ALL), wait_for)


@pytest.fixture(scope="module")
def used_up(world: World) -> World:
    """The same when a gang of 12 GPUs has used up the budget of queue `paid`, and runs on."""
    world.submit("eats", "paid", gpus=6, replicas=2)
    world.wait_for(lambda: "BudgetUsed" in world.events("paid"), 90, "the budget to be used up")
    return world


def test_a_budget_that_is_used_up_lets_nobody_start(used_up: World) -> None:
    """It was warned of before; a gang waits and says why, everywhere; others start; what runs goes on."""
    told = used_up.events("paid")
    assert "of its budget of nvidia.com/gpu this month" in told["BudgetNearlyUsed"]
    assert told["BudgetUsed"].endswith("; no more gangs that request it start")
    used_up.submit("late", "paid")
    reason = "queue paid has used its budget of 0.1 h of nvidia.com/gpu this month"
    assert used_up.waits("late").startswith(reason)
    assert reason in Muster(used_up.plane.kubeconfig)("explain", "job", "late", "-n", NAMESPACE)
    assert "of the budget of nvidia.com/gpu per month used)" in Muster(used_up.plane.kubeconfig)("queue", "top")
    used_up.submit("other", "free")
    used_up.starts("other")
    assert used_up.runs("eats")


def test_a_budget_that_is_only_told_keeps_nobody(world: World) -> None:
    """A gang starts, with an event on the queue that says so."""
    world.submit("first", "told")
    world.wait_for(lambda: "BudgetUsed" in world.events("told"), 60, "the budget to be used up")
    assert world.events("told")["BudgetUsed"].endswith("; its gangs still start")
    world.submit("second", "told")
    world.starts("second")


def test_it_holds_while_the_recorder_is_dead(world: World) -> None:
    """A gang uses a budget up, of which nobody writes, and ends: that stays used, also when it is read later."""
    world.submit("alone", "quiet", gpus=6, replicas=2)
    world.wait_for(lambda: "quiet" in world.published().queues, 60, "its start to be published")
    world.plane.part(HISTORY).kill()
    until = world.published().until
    world.wait_for(lambda: "BudgetUsed" in world.events("quiet"), 60, "the budget to be used up")
    world.submit("unseen", "quiet")
    assert "of nvidia.com/gpu today" in world.waits("unseen")
    world.client.delete(JOBS, "alone", NAMESPACE)
    world.wait_for(lambda: not world.runs("alone"), 60, "its pods to go")
    for name in ("witness", "evidence"):
        world.submit(name, "free")
        world.starts(name)
    assert not world.runs("unseen")
    assert world.ratio("quiet", "day") > 1 > world.ratio("quiet")
    world.plane.part(HISTORY).start()
    world.wait_for(lambda: world.published().until > until, RECOVERY_S, "the recorder to publish again")
    world.submit("known", "quiet")
    assert "of nvidia.com/gpu today" in world.waits("known")
    assert not world.runs("unseen")


@pytest.mark.parametrize("kind", ["garbage", "gone"])
def test_without_usage_nobody_is_kept(used_up: World, kind: str) -> None:
    """The event and the metric report unknown usage; the recorder repairs it, and the budget is enforced again.

    While it cannot be read the usage that was read last counts.
    """
    used_up.wait_for(lambda: used_up.ratio("paid") > 1, 30, "the budget to be known")
    name = f"after-{kind}"
    used_up.plane.part(HISTORY).kill()
    if kind == "garbage":
        used_up.client.merge_patch(whole(CONFIG_MAPS), USAGE, {"data": {KEY: '{"until": "soon"}'}}, SYSTEM_NAMESPACE)
    else:
        used_up.client.delete(CONFIG_MAPS, USAGE, SYSTEM_NAMESPACE)
    used_up.submit(name, "paid")
    if kind == "garbage":
        used_up.waits(name)
    else:
        used_up.starts(name)
        used_up.wait_for(lambda: "BudgetNotKnown" in used_up.events("paid"), 90, "the event that it is not known")
        known = 'muster_queue_budget_known{queue="paid"}'
        used_up.wait_for(lambda: metric(used_up.plane, "extender", known) == 0, 30, "the metric to say so")
    used_up.plane.part(HISTORY).start()
    used_up.wait_for(lambda: used_up.published().until, RECOVERY_S, "the recorder to publish again")
    used_up.submit(f"{name}-late", "paid")
    used_up.waits(f"{name}-late")
