"""Each policy event leads to each action, with real pods."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jobs import Story, job, policy, task

from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import Conflict, NotFound

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
Cause = Callable[[Story, str], None]

ENDS = {
    "AbortJob": ("Aborting", "Aborted"),
    "TerminateJob": ("Terminating", "Terminated"),
    "CompleteJob": ("Completing", "Completed"),
}
RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")


def end(story: Story, pod: str, phase: str, exit_code: int) -> None:
    """The pod ends as its kubelet would say it."""
    container = {"name": "main", "restartCount": 0, "state": {"terminated": {"exitCode": exit_code}}}
    status = {"phase": phase, "containerStatuses": [container]}
    story.client.merge_patch(PODS, pod, {"status": status}, story.namespace, subresource="status")


def evict(story: Story, pod: str) -> None:
    """Somebody deletes the pod."""
    story.client.delete(PODS, pod, story.namespace, grace_period_s=0)


def restart_containers(story: Story, pod: str) -> None:
    """The pod's container has restarted too often, as its kubelet would say it."""
    status = {"containerStatuses": [{"name": "main", "ready": True, "restartCount": 3}]}
    story.client.merge_patch(PODS, pod, {"status": status}, story.namespace, subresource="status")


def lose_the_gang(story: Story, pod: str) -> None:
    """The gang has become Unknown."""
    group = f"{pod.partition('-')[0]}-{story.job(pod.partition('-')[0]).metadata.uid}"
    story.client.merge_patch(POD_GROUPS, group, {"status": {"phase": "Unknown"}}, story.namespace)


CAUSES: dict[str, Cause] = {
    "*": lambda story, pod: end(story, pod, "Failed", 1),
    "PodFailed": lambda story, pod: end(story, pod, "Failed", 1),
    "exitCode": lambda story, pod: end(story, pod, "Failed", 3),
    "PodEvicted": evict,
    "TaskCompleted": lambda story, pod: end(story, pod, "Succeeded", 0),
    "TaskFailed": restart_containers,
    "Unknown": lose_the_gang,
}


def cases() -> Iterator[tuple[str, str]]:
    """Every event with every action that says something about it: a lost gang is no one pod's or task's."""
    for event in CAUSES:
        for action in (*ENDS, *RESTARTS):
            if event != "Unknown" or action in {*ENDS, "RestartJob"}:
                yield event, action


@pytest.mark.slow
def test_each_event_leads_to_each_action(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A task of one pod, beside one that nothing happens to: the phases, what is counted, and which pods are new."""
    jobs: dict[str, tuple[str, str]] = {}
    for event, action in cases():
        name = f"{event}{action}".lower().replace("*", "any")
        jobs[name] = event, action
        one = policy(action, exitCode=3) if event == "exitCode" else policy(action, event)
        partitions = {"totalPartitions": 1, "partitionSize": 1}
        tasks = (task("a", 1, cpu="10m", partitionPolicy=partitions), task("b", 1, cpu="10m"))
        story.create(job(name, namespace, *tasks, policies=[one]))
    wait_for(lambda: all(story.phase(name) == "Running" for name in jobs), 90)
    wait_for(lambda: all(story.job(name).status.running == 2 for name in jobs), 30)
    for name, (event, _) in jobs.items():
        CAUSES[event](story, f"{name}-a-0")
    for name, (event, action) in jobs.items():
        expected = ENDS.get(action, ("Restarting", "Pending", "Running"))
        wait_for(
            lambda name=name, expected=expected: tuple(story.phases(name)[2 : 2 + len(expected)]) == expected,
            60,
            f"{event} → {action}",
        )
        assert story.job(name).status.retry_count == (1 if action in RESTARTS else 0), (event, action)
    for name, (event, action) in jobs.items():
        if action in RESTARTS:
            wait_for(lambda name=name: story.job(name).status.running == 2, 60, f"{event} → {action}: two pods again")
            assert len(story.ran[f"{name}-a-0"]) == 2, (event, action)
            assert len(story.ran[f"{name}-b-0"]) == (2 if action == "RestartJob" else 1), (event, action)
    for name in jobs:
        story.client.delete(JOBS, name, namespace)


def test_resume_is_an_action_that_leaves_a_running_job_alone(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """It is told, and nothing else happens."""
    story.create(job("j", namespace, task("w", 2), policies=[policy("ResumeJob", "PodFailed")]))
    wait_for(lambda: story.phase("j") == "Running")
    end(story, "j-w-0", "Failed", 1)
    wait_for(lambda: any("ResumeJob" in message for message in story.events("ExecuteAction")))
    wait_for(lambda: story.job("j").status.failed == 1)
    assert story.phases("j") == ["Pending", "Running"]
    assert story.job("j").status.retry_count == 0


@pytest.mark.slow
def test_a_pod_that_stays_pending_leads_to_each_action(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A pod of an elastic task that fits nowhere: the end, or one restart after the other until none is left."""
    jobs = {f"pending{action}".lower(): action for action in (*ENDS, *RESTARTS)}
    for name, action in jobs.items():
        nowhere = task("a", 1, minAvailable=0, partitionPolicy={"totalPartitions": 1, "partitionSize": 1})
        nowhere["template"]["spec"]["nodeSelector"] = {"no": "where"}
        policies = [policy(action, "PodPending", timeout="1s")]
        story.create(job(name, namespace, nowhere, task("b", 1, cpu="10m"), policies=policies, maxRetry=2))
    for name, action in jobs.items():
        end = ENDS.get(action, ("Restarting", "Failed"))
        wait_for(lambda name=name, end=end: tuple(story.phases(name)[-2:]) == end, 60, f"PodPending → {action}")
        restarts = 2 if action in RESTARTS else 0
        assert story.job(name).status.retry_count == restarts, action
        assert len(story.pods[f"{name}-a-0"]) == max(1, restarts), action
        assert len(story.pods[f"{name}-b-0"]) == (2 if action == "RestartJob" else 1), action
    for name in jobs:
        story.client.delete(JOBS, name, namespace)


@pytest.mark.slow
def test_a_hundred_failures_at_once_are_one_restart(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """All pods of a Job of 100 fail at the same time: one restart is counted, and 100 pods run again."""
    story.create(job("j", namespace, task("w", 100, cpu="10m"), policies=[policy("RestartJob", "PodFailed")]))
    wait_for(lambda: story.job("j").status.running == 100, 90)
    uids = {pod.metadata.name: pod.metadata.uid for pod in story.alive()}
    container = {"name": "main", "restartCount": 0, "state": {"terminated": {"exitCode": 1}}}
    for name, uid in uids.items():
        patch = {"metadata": {"uid": uid}, "status": {"phase": "Failed", "containerStatuses": [container]}}
        with contextlib.suppress(NotFound, Conflict):  # the restart was faster
            story.client.merge_patch(PODS, name, patch, namespace, subresource="status")
    wait_for(lambda: "Restarting" in story.phases("j"))
    wait_for(lambda: story.phase("j") == "Running" and story.job("j").status.running == 100, 120)
    status = story.job("j").status
    assert (status.retry_count, status.version) == (1, 1)
    # Of those that had a node: one that its scheduler refused never ran, and is made again.
    assert {name: len(uids) for name, uids in story.ran.items() if len(uids) != 2} == {}
