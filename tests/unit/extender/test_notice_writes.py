"""Pods are told, and that they stay; Events on gangs; and how notices end is counted, each once."""

from typing import Any

import pytest
from extender_world import NOW
from guarded_extender import process_of
from prometheus_client import REGISTRY
from victims_world import Cluster as VictimsWorld

from extender.planner.framework.decisions import EvictForFaults, MakeRoom, SendNotice, WithdrawNotice
from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import format_time
from muster.api.muster.reason import reason_of
from muster.kube.errors import NotFound

UNTIL = format_time(NOW + 300)
WHY = "preempted by Job high of priority 10 in queue default"
TWO = [0, 1]


@pytest.fixture
def world() -> VictimsWorld:
    """A gang of two runs."""
    world = VictimsWorld(2)
    world.runs("low", 2)
    return world


def counted(outcome: str) -> float:
    """Notices that ended so."""
    return REGISTRY.get_sample_value("muster_eviction_notices_total", {"outcome": outcome}) or 0.0


def lost() -> float:
    """Work that evictions have lost, in seconds."""
    return REGISTRY.get_sample_value("muster_lost_work_seconds_total") or 0.0


def test_each_pod_is_told_and_the_workload_once(world: VictimsWorld) -> None:
    """The condition first: what is read again is the annotation."""
    gang, session = world.view("ns/low"), world.session()
    with process_of(world) as process:
        for pods in (gang.pods, gang.pods[1:]):  # in the next cycle one of them knows
            session.decisions = [SendNotice(gang, pod, UNTIL, "default", WHY, 2) for pod in pods]
            process.committer._notices.write(session)
            assert process.committer.writes.settled(10)
            process.committer.writes.snapshot_taken()
    for rank in TWO:
        pod = process.api.kind(PODS)[f"ns/low-worker-{rank}"]
        [condition] = pod.status.conditions
        assert (condition.type, condition.status, condition.reason) == (names.EVICTION_NOTICE, "True", "Evicting")
        words = f"1 pod is to be evicted at {UNTIL}, or as soon as the gang answers the notice: {WHY}"
        assert condition.message == words
        assert condition.last_transition_time == format_time(NOW)
        assert [pod.metadata.annotations[key] for key in (names.EVICT_AT, names.EVICT_FOR)] == [UNTIL, "default"]
        assert world.state.pods[pod.metadata.uid].answer.evict_at == UNTIL
    verbs = [sent.site.rpartition(" ")[2] for sent in process.api.sent if sent.key == "ns/low-worker-0"]
    assert verbs == ["strategic_patch", "merge_patch"]
    words = f"low EvictionNotice: 2 pods are to be evicted at {UNTIL}, or as soon as the gang answers the notice: {WHY}"
    assert process.events == [words, words], "on the PodGroup, and on the Job"


def test_who_stays_is_told_so_and_its_answer_is_forgotten(world: VictimsWorld) -> None:
    """Counted once for the gang; a pod that is gone is no trouble."""
    told = {names.EVICT_AT: UNTIL, names.EVICT_FOR: "q", names.EVICT_READY: "true"}
    for rank in TWO:
        pod = world.state.pod_objects[f"uid-low-worker-{rank}"]
        world.change(pod, annotations={**pod.metadata.annotations, **told})
    gang, session, before = world.view("ns/low"), world.session(), counted("withdrawn")
    with process_of(world) as process:

        def gone(sent: Any) -> None:
            if sent.key == "ns/low-worker-1":
                raise NotFound("no such pod")

        process.api.meddle = gone
        session.decisions = [WithdrawNotice(gang, pod) for pod in gang.pods]
        for _ in TWO:
            process.committer._notices.write(session)
            assert process.committer.writes.settled(10)
    pod = process.api.kind(PODS)["ns/low-worker-0"]
    [condition] = pod.status.conditions
    assert (condition.status, condition.reason) == ("False", "Withdrawn")
    assert not told.keys() & pod.metadata.annotations.keys()
    assert counted("withdrawn") == before + 1
    assert process.events == ["low EvictionWithdrawn: the gang stays, because its nodes are no longer needed"] * 2


@pytest.mark.parametrize("outcome", ["answered", "silent", ""])
def test_the_end_of_a_notice_is_counted_once_and_lost_work_for_each_pod(world: VictimsWorld, outcome: str) -> None:
    """Pods may go in several cycles; nobody has lost work to a repair."""
    gang, before, work = world.view("ns/low"), counted(outcome or "silent"), lost()
    with process_of(world) as process:
        notices = process.committer._notices
        outcomes = {gang.key: outcome} if outcome else {}
        room = MakeRoom(gang, 1, (), reason_of("why"), outcomes=outcomes, unsaved_s={gang.key: 60.0})
        notices.ended(room, gang.uid, gang.key, 1)
        notices.ended(room, gang.uid, gang.key, 1)
        once = 1 if outcome else 0
        assert (counted(outcome or "silent") - before, lost() - work) == (once, 120.0)
        for epoch in (2, 2, 3):
            why = reason_of("why")
            notices.repaired(EvictForFaults(gang, "replace", (), "suspect", why, epoch=epoch, outcome=outcome))
        assert (counted(outcome or "silent") - before, lost() - work) == (3 * once, 120.0)
