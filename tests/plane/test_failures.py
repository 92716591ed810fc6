"""Any process may be killed at any moment: gangs still run whole, once."""

from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, job, lone_pod, metric, runs, submitted

from muster.api.kubernetes.core import EVENTS, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]


@pytest.mark.long
def test_the_extender_is_killed_between_placement_and_binding(plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """The placement was written ahead, so its successor carries it out."""
    wait_for(lambda: metric(plane, "extender", 'muster_leading{pool=""}') == 1, 30, "the extender to lead")
    # kube-scheduler is away, so nothing can be bound; the extender plans on until the lease runs out.
    with submitted(plane, namespace, wait_for, replicas=8, without="muster-scheduler") as gang:
        gang.wait_until_there_is(PLACEMENTS)
        gang.restart("extender")
        plane.part("muster-scheduler").start()
        gang.wait_until_it_runs_whole()
        assert gang.history.half_placed_s("gang-", 8) < 10


@pytest.mark.long
def test_the_extender_is_killed_in_the_middle_of_a_gang(plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """As soon as the placement stands; some members may be bound already."""
    with submitted(plane, namespace, wait_for, replicas=32, gpus=2) as gang:
        gang.wait_until_there_is(PLACEMENTS)
        gang.restart("extender")
        gang.wait_until_it_runs_whole()


@pytest.mark.long
def test_the_controller_is_killed_between_pod_group_and_pods(plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """Its successor finds the PodGroup and makes each pod once."""
    with submitted(plane, namespace, wait_for, replicas=16, gpus=4) as gang:
        gang.wait_until_there_is(POD_GROUPS)
        gang.restart("controller")
        gang.wait_until_it_runs_whole()
        assert len(gang.client.list(POD_GROUPS, namespace)) == 1


@pytest.mark.long
def test_kube_scheduler_is_killed_in_the_middle_of_a_gang(plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """Held bind calls are dropped with it; its successor brings the members again."""
    with submitted(plane, namespace, wait_for, replicas=32, gpus=2) as gang:
        gang.wait_until_there_is(PODS)
        gang.restart("muster-scheduler")
        gang.wait_until_it_runs_whole()


def test_a_pinned_pod_costs_one_filter_call_with_one_name(plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """Whatever the size of the cluster."""
    client = plane.client()
    calls = 'muster_filter_total{pod="pinned",reason="",verdict="passed"}'
    names = 'muster_filter_names_total{pod="pinned"}'
    before = metric(plane, "extender", calls), metric(plane, "extender", names)
    client.create(JOBS, job("gang", namespace, replicas=8), namespace)
    wait_for(lambda: runs(client, namespace, "gang", 8), 30, "the gang to run")
    assert metric(plane, "extender", calls) - before[0] == 8
    assert metric(plane, "extender", names) - before[1] == 8
    client.delete(JOBS, "gang", namespace)


@pytest.mark.long
def test_without_the_extender_musters_pods_wait_and_others_do_not(
    plane: Plane, namespace: str, wait_for: WaitFor
) -> None:
    """kube-scheduler reports the error as an Event and tries again."""
    client = plane.client()
    plane.part("extender").stop()
    try:
        for name, scheduler in (("ours", "muster"), ("theirs", "default-scheduler")):
            client.create(PODS, lone_pod(name, namespace, scheduler), namespace)
        wait_for(lambda: client.get(PODS, "theirs", namespace).spec.node_name, 30, "the other pod to be bound")

        def said() -> bool:
            events = [event for event in client.list(EVENTS, namespace) if event.involved_object.get("name") == "ours"]
            return any(event.reason == "FailedScheduling" and "/filter" in event.message for event in events)

        wait_for(said, 30, "an Event that names the extender")
        assert not client.get(PODS, "ours", namespace).spec.node_name
    finally:
        plane.mend()
    wait_for(lambda: client.get(PODS, "ours", namespace).spec.node_name, RECOVERY_S, "our pod to be bound in the end")


@pytest.mark.long
def test_the_webhook_is_killed_and_only_what_asks_for_muster_is_refused(plane: Plane, namespace: str) -> None:
    """Closed and small: plain pods are created as always."""
    client = plane.client()
    plane.part("webhook").kill()
    try:
        client.create(PODS, lone_pod("plain", namespace), namespace)
        with pytest.raises(Exception, match="webhook"):
            client.create(JOBS, job("gang", namespace, replicas=1), namespace)
    finally:
        plane.mend()
