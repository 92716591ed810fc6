"""A gang of one: its placement stands in its PodGroup as long as there is nothing to tell, whoever is killed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import job, metric

from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.muster.placementnotes import noted
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
RECOVERY_S = 90.0


@pytest.fixture
def client(plane: Plane) -> Iterator[Client]:
    """A client; afterwards everything runs again and every node is schedulable."""
    client = plane.client()
    yield client
    plane.mend()
    for node in client.list(NODES):
        if node.spec.unschedulable:
            client.merge_patch(NODES, node.metadata.name, {"spec": {"unschedulable": None}})


def note(client: Client, namespace: str) -> Placement | None:
    """What is noted in the PodGroup of the Job."""
    return next((noted(group) for group in client.list(POD_GROUPS, namespace)), None)


def running(client: Client, namespace: str) -> bool:
    """Whether the Job runs with its pod."""
    status = client.get(JOBS, "one", namespace).status
    return status.state.phase == "Running" and status.running == 1


def planned(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> Placement:
    """Stops kube-scheduler and submits a Job of one pod: it is pinned, and not bound."""
    wait_for(lambda: metric(plane, "extender", 'muster_leading{pool=""}') == 1, 30, "the extender to lead")
    plane.part("muster-scheduler").kill()
    client.create(JOBS, job("one", namespace, replicas=1, gpus=8), namespace)
    wait_for(lambda: client.list(PODS, namespace), 30, "the pod")
    found = note(client, namespace)
    assert found is not None
    assert client.list(PLACEMENTS, namespace) == []
    return found


@pytest.mark.long
@pytest.mark.parametrize("killed", ["extender", "controller"])
def test_whoever_is_killed_before_the_pod_is_bound_takes_it_up_again(
    killed: str, plane: Plane, client: Client, namespace: str, wait_for: WaitFor
) -> None:
    """The note is all that there is to know; it needs no object afterwards either."""
    found = planned(plane, client, namespace, wait_for)
    plane.part(killed).kill()
    plane.mend()
    wait_for(lambda: running(client, namespace), RECOVERY_S, "the Job to run")
    [pod] = client.list(PODS, namespace)
    assert pod.spec.node_name == found.spec.pod_sets[0].runs[0].node
    assert wait_for(lambda: (one := note(client, namespace)) and one.status.phase == "Bound", 30, "the note")
    assert client.list(PLACEMENTS, namespace) == []


@pytest.mark.slow
def test_a_node_that_is_lost_is_left_for_another_one(
    plane: Plane, client: Client, namespace: str, wait_for: WaitFor
) -> None:
    """There is something to tell then: an object with a later epoch takes the place of the note."""
    found = planned(plane, client, namespace, wait_for)
    node = found.spec.pod_sets[0].runs[0].node
    client.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
    plane.mend()
    wait_for(lambda: running(client, namespace), RECOVERY_S, "the Job to run elsewhere")
    [pod] = client.list(PODS, namespace)
    assert pod.spec.node_name != node
    [placement] = client.list(PLACEMENTS, namespace)
    assert placement.spec.epoch > found.spec.epoch
    assert note(client, namespace) is None


def test_a_pod_that_comes_again_is_planned_again(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """With a later epoch than the pod that has gone."""
    client.create(JOBS, job("one", namespace, replicas=1), namespace)
    wait_for(lambda: running(client, namespace), 60, "the Job to run")
    [first] = client.list(PODS, namespace)
    before = wait_for(lambda: (one := note(client, namespace)) and one.status.phase == "Bound" and one, 30, "the note")
    client.delete(PODS, first.metadata.name, namespace)

    def again() -> bool:
        one = note(client, namespace)
        return one is not None and one.status.phase == "Bound" and one.spec.epoch > before.spec.epoch

    wait_for(again, RECOVERY_S, "a later epoch to be carried out")
    wait_for(lambda: running(client, namespace), RECOVERY_S, "the Job to run")
    [second] = client.list(PODS, namespace)
    assert second.metadata.uid != first.metadata.uid
    assert client.list(PLACEMENTS, namespace) == []
