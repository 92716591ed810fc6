"""Evictions that ask first, on a real API server: told, answered, silent, withdrawn; with killed planners, too."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, runs
from planes import Muster
from priorities import client_of, gang, placement_of
from test_trainjob_reports import PATH, report, token
from train_jobs import TrainStory, train_job

from muster.api import names
from muster.api.kubernetes.core import EVENTS, PODS, Pod
from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
LONG = "10m"
"""A notice that no test waits for."""
SHORT_S = 8


@pytest.fixture
def client(plane: Plane, namespace: str) -> Iterator[Client]:
    """A client, with two priority classes."""
    yield from client_of(plane, namespace)


def submit(client: Client, namespace: str, name: str, priority: str, notice: str = "", replicas: int = 8) -> None:
    """A gang of one pod per node that starts again as a whole."""
    manifest = gang(name, namespace, priority, replicas=replicas)
    if notice:
        manifest["metadata"]["annotations"] = {names.EVICT_NOTICE: notice}
    client.create(JOBS, manifest, namespace)


def pods_of(client: Client, namespace: str, gang: str) -> list[Pod]:
    """The pods of a Job, in the order of their ranks."""
    found = [pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith(f"{gang}-")]
    return sorted(found, key=lambda pod: pod.metadata.name)


def told(client: Client, namespace: str, gang: str) -> str:
    """The time that all pods of a gang were told; empty unless all of them were told the same."""
    times = {pod.metadata.annotations.get(names.EVICT_AT, "") for pod in pods_of(client, namespace, gang)}
    return times.pop() if len(times) == 1 else ""


def condition(pod: Pod) -> tuple[str, str]:
    """Status and message of a pod's condition about its eviction."""
    found = pod.status.condition(names.EVICTION_NOTICE)
    return (found.status, found.message) if found else ("", "")


def withdrawn(pod: Pod) -> bool:
    """Whether a pod was told that it stays, and has no time any more: two writes, the condition is the first."""
    return condition(pod)[0] == "False" and names.EVICT_AT not in pod.metadata.annotations


def annotate(client: Client, pod: Pod, **annotations: str) -> None:
    """As the pod itself would, with the right to patch pods."""
    body = {
        "metadata": {
            "annotations": {f"{names.DOMAIN}/{key.replace('_', '-')}": annotations[key] for key in annotations}
        }
    }
    client.merge_patch(PODS, pod.metadata.name, body, pod.metadata.namespace)


def events(client: Client, namespace: str, reason: str, kind: str = "Job") -> list[str]:
    """The messages of the Events with this reason on objects of a kind."""
    found = client.list(EVENTS, namespace)
    return [each.message for each in found if each.reason == reason and each.involved_object.get("kind") == kind]


def asked(client: Client, namespace: str, wait_for: WaitFor, notice: str = LONG) -> str:
    """A gang that runs everywhere has been told to go for another; returns until when."""
    submit(client, namespace, "low", "low", notice)
    wait_for(lambda: runs(client, namespace, "low", 8), 60, "low")
    submit(client, namespace, "high", "high", replicas=2)
    until: str = wait_for(lambda: told(client, namespace, "low"), 30, "the notice")
    return until


def reasons(muster: Muster, namespace: str) -> dict[str, str]:
    """What `muster ps` says of each gang."""
    found = json.loads(muster("ps", f"--namespace={namespace}", "-o", "json"))["gangs"]
    return {each["name"]: each["reason"] for each in found}


def test_a_gang_that_answers_goes_at_once(client: Client, namespace: str, muster: Muster, wait_for: WaitFor) -> None:
    """It is told for whom, why and until when; its checkpoint stands in what its owner reads."""
    until = asked(client, namespace, wait_for)
    assert reasons(muster, namespace) == {
        "low": f"leaves at {until[11:]} for Job high (preempt)",
        "high": f"waits until Job low leaves, at {until[11:]} at the latest",
    }
    [first, *_] = pods_of(client, namespace, "low")
    assert first.metadata.annotations[names.EVICT_FOR] == "default"
    why = "preempted by Job high of priority 1000 in queue default"
    assert condition(first) == (
        "True",
        f"1 pod is to be evicted at {until}, or as soon as the gang answers the notice: {why}",
    )
    wait_for(lambda: events(client, namespace, "EvictionNotice"), 10, "an Event on the Job")
    assert not any(pod.metadata.deletion_timestamp for pod in pods_of(client, namespace, "low"))
    at = format_time(time.time())
    annotate(client, first, checkpoint=f"step=1200,at={at}")
    wait_for(lambda: runs(client, namespace, "high", 2), RECOVERY_S, "high")
    [message] = wait_for(lambda: events(client, namespace, "Evicted"), 10, "an Event on the Job")
    assert message == f"8 pods were evicted: {why}; the gang's last checkpoint was saved at {at} (step 1200)"


@pytest.mark.slow
def test_a_gang_that_is_silent_goes_when_its_time_is_over(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Not a second before."""
    until = asked(client, namespace, wait_for, f"{SHORT_S}s")
    wait_for(
        lambda: (
            any(pod.metadata.deletion_timestamp for pod in pods_of(client, namespace, "low"))
            or runs(client, namespace, "high", 2)
        ),
        SHORT_S + 30,
        "the eviction",
    )
    assert time.time() >= (parse_time(until) or 0.0)
    wait_for(lambda: runs(client, namespace, "high", 2), RECOVERY_S, "high")


def test_a_gang_whose_room_is_not_needed_any_more_stays(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """The asker is deleted: the same pods run on, and are told so."""
    asked(client, namespace, wait_for)
    before = {pod.metadata.uid for pod in pods_of(client, namespace, "low")}
    client.delete(JOBS, "high", namespace)
    wait_for(lambda: all(withdrawn(pod) for pod in pods_of(client, namespace, "low")), 60, "the withdrawal")
    assert {pod.metadata.uid for pod in pods_of(client, namespace, "low")} == before
    wait_for(lambda: events(client, namespace, "EvictionWithdrawn"), 10, "an Event on the Job")


@pytest.mark.slow
def test_a_killed_planner_keeps_the_time(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """Its successor neither prolongs the notice nor tells anybody anew, and evicts the same pods."""
    until = asked(client, namespace, wait_for)
    before = placement_of(client, namespace, "high")
    assert before is not None
    for _ in range(2):
        plane.part("extender").kill()
        plane.part("extender").start()
    annotate(client, pods_of(client, namespace, "low")[0], evict_ready="true")
    victims = {victim.uid for victim in before.spec.victims}
    assert [notice.evict_at for notice in before.spec.notices] == [until]
    wait_for(lambda: runs(client, namespace, "high", 2), RECOVERY_S, "high")
    after = placement_of(client, namespace, "high")
    assert after is not None
    assert after.spec.epoch == before.spec.epoch
    left = {pod.metadata.uid for pod in pods_of(client, namespace, "low")}
    assert victims.isdisjoint(left)


def test_a_train_job_answers_by_its_report(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """The metric `muster.dev/checkpoint` of a report reaches the gang, and the planner."""
    with contextlib.closing(plane.client()) as own, TrainStory(own, namespace) as story:
        manifest = train_job("t", run_s=600)
        manifest["metadata"].setdefault("annotations", {})[names.EVICT_NOTICE] = LONG
        story.create(manifest)
        wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 60, "the TrainJob")
        [group] = client.list(POD_GROUPS, namespace)
        assert group.metadata.annotations[names.EVICT_NOTICE] == LONG
        [pod] = client.list(PODS, namespace)
        url = next(each.value for each in pod.spec.containers[0].env if each.name == "KUBEFLOW_TRAINER_SERVER_URL")
        bearer = token(client, namespace, PATH.format(namespace, "t"))
        text = f"step=7,at={format_time(time.time())}"
        said = {"metrics": [{"name": names.CHECKPOINT, "value": text}], "lastUpdatedTime": format_time(time.time())}
        assert report(plane, url, bearer, json.dumps({"trainerStatus": said}).encode())[0] == 200
        [group] = client.list(POD_GROUPS, namespace)
        assert group.metadata.annotations[names.CHECKPOINT] == text
        said["metrics"][0]["value"] = "7"  # type: ignore[index]
        assert report(plane, url, bearer, json.dumps({"trainerStatus": said}).encode())[0] == 422
