"""Gangs that are no victims: for some time after their start, or as the cluster needs them."""

import pytest
from victims_world import Cluster

from extender.planner.framework.operations import Chunk, Scenario
from extender.planner.plugins.protection import MinRuntime

MINUTE_S = 60
BOTH = {"team": "10m", "dep": "20m"}
LCA, QUEUE = {"reclaimResolveMethod": "lca"}, {"reclaimResolveMethod": "queue"}
RECLAIM, PREEMPT = {"defaultReclaimMinRuntime": "5m"}, {"defaultPreemptMinRuntime": "7m"}


def world_of(arguments: dict[str, str], asker: str, annotations: dict[str, str], kind: str, age_s: float) -> Cluster:
    """A gang `victim` of queue team, which started so long ago, and one `asker` of another queue."""
    world = Cluster(3)
    world.plugins = [MinRuntime(RECLAIM | PREEMPT | arguments)]
    for name, parent in (("dep", ""), ("team", "dep"), ("beside", "dep"), ("other", "")):
        world.queue(name, parent=parent, **{f"{kind}-min-runtime": annotations[name]} if name in annotations else {})
    world.started(world.runs("victim", 2, queue="team"), age_s)
    world.asks("asker", 1, queue=asker)
    return world


@pytest.mark.parametrize(("kind", "arguments", "asker", "annotations", "minutes"), [
    pytest.param("reclaim", LCA, "other", BOTH, 20, id="of the queue below the shared one"),
    pytest.param("reclaim", LCA, "beside", BOTH, 10, id="of the victim's own queue, beside the reclaimer's"),
    pytest.param("reclaim", LCA, "team", BOTH, 10, id="of the same queue"),
    pytest.param("reclaim", LCA, "other", {"team": "10m"}, 5, id="the default, as none counts"),
    pytest.param("reclaim", LCA, "other", {}, 5, id="the default"),
    pytest.param("reclaim", {}, "other", BOTH, 20, id="lca is the default"),
    pytest.param("reclaim", QUEUE, "other", BOTH, 10, id="of the victim's queue"),
    pytest.param("reclaim", QUEUE, "other", {"dep": "20m"}, 20, id="of the nearest queue above"),
    pytest.param("reclaim", QUEUE, "other", {"team": "soon", "dep": "20m"}, 20, id="of the nearest that can be read"),
    pytest.param("reclaim", QUEUE, "other", {"team": "0s", "dep": "20m"}, 0, id="none at all"),
    pytest.param("preempt", {}, "team", {}, 7, id="from preemption by default"),
    pytest.param("preempt", {}, "team", BOTH, 10, id="from preemption by its queue"),
    pytest.param("preempt", {}, "team", {"dep": "20m"}, 20, id="from preemption by the nearest queue above"),
    pytest.param("preempt", {}, "team", {"other": "1m"}, 7, id="from preemption by no other queue"),
])  # fmt: skip
def test_a_gang_is_protected_until_the_time_is_over(
    kind: str, arguments: dict[str, str], asker: str, annotations: dict[str, str], minutes: int
) -> None:
    """The time is that of the queue, of which one depends on the method, or the default."""
    for age_s, gives in ((MINUTE_S * minutes - 1, False), (MINUTE_S * minutes, True)):
        world = world_of(arguments, asker, annotations, kind, age_s)
        asks = world.session().hooks.named(f"{kind}_victim_filter")
        assert asks.call(world.view("ns/asker"), world.view("ns/victim")) == gives


def test_a_gang_that_has_not_started_is_not_protected() -> None:
    """Whatever its queue says."""
    world = world_of({}, "other", {}, "reclaim", 1)
    world.change(world.state.placements["ns/victim"], status={"started_at": ""})
    assert world.session().hooks.reclaim_victim_filter.call(world.view("ns/asker"), world.view("ns/victim"))


@pytest.mark.parametrize(("more", "gone", "agrees"), [(0, 1, False), (1, 1, True), (1, 2, False), (1, 3, False)])
def test_pods_above_the_minimum_are_not_protected(*, more: int, gone: int, agrees: bool) -> None:
    """One after the other, as long as the minimum of two is kept."""
    world = world_of({}, "other", {}, "reclaim", 1)
    if more:
        world.scale("ns/victim", "worker", 2 + more)
        world.change(world.state.groups["ns/victim"], spec={"min_member": 2, "min_task_member": {"worker": 2}})
        world.pod("ns/victim", "worker", 2, {"nvidia.com/gpu": 8}, node="node-2", phase="Running")
    session, victim, asker = world.session(), world.view("ns/victim"), world.view("ns/asker")
    assert session.hooks.reclaim_victim_filter.call(asker, victim) == bool(more)
    pods = sorted((pod for pod in victim.pods), key=lambda pod: -pod.slot.rank if pod.slot else 0)[:gone]
    amounts = session.snapshot.row_of(pods[0].cls)
    scenario = Scenario(asker, amounts, tuple(Chunk(victim, (pod,), amounts) for pod in pods))
    assert session.hooks.reclaim_scenario_validator.call(scenario) == agrees
    assert session.hooks.preempt_scenario_validator.call(scenario) == agrees
