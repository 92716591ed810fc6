"""Evictions for a gang: only once its placement stands, all or none, and none twice in a short time."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from extender_world import NOW, of
from guarded_api import Sent
from guarded_extender import Process, process_of
from victims_world import Cluster as VictimsWorld

from extender.evictions import EVICT_AGAIN_S, EVICTED
from extender.planner import reasons
from extender.planner.framework.decisions import MakeRoom
from muster.api import names
from muster.kube.errors import NotFound, TooManyRequests

WHY = "preempted by Job high of priority 10 in queue default"
Meddle = Callable[[Process, Sent], None]


def answered(error: Exception) -> Meddle:
    """The eviction of the first pod is answered so."""

    def meddle(_: Process, sent: Sent) -> None:
        if sent.key == "ns/low-worker-0":
            raise error

    return meddle


def changed(process: Process, sent: Sent) -> None:
    """The first pod has changed by the time of its eviction."""
    if sent.key == "ns/low-worker-0":
        process.api.replaced(sent, "resourceVersion")


def carried_out(
    *,
    written: bool = True,
    budgeted: bool = False,
    times: tuple[float, ...] = (0,),
    set_back_s: float = 0.0,
    meanwhile: Callable[[VictimsWorld], None] = lambda _: None,
    meddle: Meddle = lambda *_: None,
) -> Process:
    """The evictions of a cycle in which a gang of two pods is evicted for another.

    `meanwhile` is what happens between the decision and the evictions, `meddle` what happens before each. After the
    first of these `times` the clock of the machine is set back.
    """
    world = VictimsWorld(2)
    world.runs("low", 2)
    if budgeted:
        world.label_pods("low", app="db")
        world.budget("db", allowed=2, app="db")
    world.asks("high", 2)
    session = world.cycle()
    session.decisions = of(session, MakeRoom)
    assert session.decisions
    if not written:
        world.state.on_placement(world.state.placements["ns/high"], None)
    meanwhile(world)
    with process_of(world) as process:
        process.api.meddle = lambda sent: meddle(process, sent)
        for moment in times:
            process.set_back_s = set_back_s if moment else 0.0
            world.now = NOW + moment - process.set_back_s
            process.committer._evictions.make_room(session)
    return process


def test_all_go_and_their_owners_can_read_why() -> None:
    """An Event on the PodGroup and on each pod, and one on the workload; in their namespace the gang has a name."""
    before = EVICTED.labels("preempt")._value.get()
    process = carried_out()
    assert process.done("evict") == ["low-worker-0", "low-worker-1"]
    assert EVICTED.labels("preempt")._value.get() == before + 2
    assert sorted(process.events) == [
        f"low Evict: low-worker-0: {WHY}",
        f"low Evict: low-worker-1: {WHY}",
        f"low Evicted: 2 pods were evicted: {WHY}",
        f"low-worker-0 Evict: {WHY}",
        f"low-worker-1 Evict: {WHY}",
    ]


def test_a_job_of_kubernetes_does_not_count_its_evicted_pods() -> None:
    """Once they are evicted, its controller no longer sees their end; a pod that stays keeps its finalizer."""

    def of_a_job(world: VictimsWorld) -> None:
        world.label_pods("low", **{names.BATCH_JOB_NAME: "low"})

    process = carried_out(meanwhile=of_a_job, meddle=changed)
    assert sorted((sent.site.rpartition(" ")[2], sent.key, sent.refused) for sent in process.api.sent) == [
        ("evict", "ns/low-worker-0", "Conflict"),
        ("evict", "ns/low-worker-1", ""),
        ("strategic_patch", "ns/low-worker-1", ""),
    ]


def test_the_name_of_the_gang_is_not_for_other_namespaces() -> None:
    """They read its queue and its priority."""
    theirs = SimpleNamespace(metadata=SimpleNamespace(namespace="other", name="g", controller=None))
    asker: Any = SimpleNamespace(group=theirs, uid="theirs")
    room = MakeRoom(asker, 1, (), reasons.placements.preempted(priority=10, queue="q"))
    world = VictimsWorld(1)
    assert str(room.reason_for(world.view(world.runs("low", 1)))) == "preempted by a gang of priority 10 in queue q"


@pytest.mark.parametrize(("own_s", "grace_s"), [(600, None), (601, 600), (31_536_000, 600)])
def test_a_victim_has_its_own_grace_period_up_to_the_longest_notice(own_s: int, grace_s: int | None) -> None:
    """A gang waits for it, whose owner did not choose it."""

    def meanwhile(world: VictimsWorld) -> None:
        for pod in [*world.state.pod_objects.values()]:
            world.change(pod, spec={"termination_grace_period_seconds": own_s})

    sent = carried_out(meanwhile=meanwhile).api.sent
    assert [each.grace_period_s for each in sent if each.site.endswith("evict")] == [grace_s, grace_s]


ONE_STAYS: dict[str, dict[str, Any]] = {
    "it is gone": {"meddle": answered(NotFound("no such pod"))},
    "it has just changed, and may have ended": {"meddle": changed},
    "it has ended: its owner counts on it": {"meanwhile": lambda world: world.ends("low", 0)},
}


@pytest.mark.parametrize("case", ONE_STAYS.values(), ids=ONE_STAYS)
def test_the_others_go_if_one_need_not(case: dict[str, Any]) -> None:
    """The gang waits for its room, and says nothing of the one that stays."""
    process = carried_out(**case)
    assert process.done("evict") == ["low-worker-1"]
    assert process.world.state.placements["ns/high"].status.phase == "Planned"
    assert f"low Evicted: 1 pod was evicted: {WHY}" in process.events


def test_nobody_goes_for_a_placement_that_does_not_stand() -> None:
    """Its write was lost."""
    process = carried_out(written=False)
    assert (process.api.sent, process.events) == ([], [])


def test_the_first_refusal_spares_the_others() -> None:
    """The placement is given up, and says that it was in vain."""
    process = carried_out(budgeted=True, meddle=answered(TooManyRequests("the budget db needs 1 pod")))
    assert process.done("evict") == []
    status = process.world.state.placements["ns/high"].status
    assert (status.phase, status.evictions_in_vain) == ("Abandoned", 1)
    assert "a PodDisruptionBudget forbids evicting pods" in status.message
    assert "low" not in status.message, "neither pod nor budget are for the gang's owner to see"
    assert "db" not in status.message.split()


@pytest.mark.parametrize("set_back_s", [0.0, 3600.0])
@pytest.mark.parametrize("budgeted", [False, True])
@pytest.mark.parametrize(("later_s", "times"), [(EVICT_AGAIN_S - 0.5, 1), (EVICT_AGAIN_S, 2)])
def test_nobody_is_evicted_twice_in_a_short_time(
    later_s: float, times: int, set_back_s: float, *, budgeted: bool
) -> None:
    """A watch may lag, and the clock of the machine may be set back."""
    process = carried_out(times=(0, later_s), budgeted=budgeted, set_back_s=set_back_s)
    assert len(process.api.sent) == 2 * times
