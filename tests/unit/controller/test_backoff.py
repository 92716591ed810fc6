"""Pods that kubelet refuses: what the Job says, and how long their restarts wait."""

from typing import Any

import pytest
from simulated_cluster import Cluster
from simulated_jobs import add, fail, job, pods, settle, task, turn

from controller.job.rules import notes, timers
from controller.job.rules.events import JobEvent
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JobStatus
from muster.api.volcano.scheduling import POD_GROUPS

SYSCTL = {"reason": "SysctlForbidden", "message": "forbidden sysctl"}


def refuse(cluster: Cluster, *names: str) -> None:
    """Kubelet refuses these pods."""
    for name in names:
        cluster.api.change(PODS, name, {"status": {"phase": "Failed", **SYSCTL}}, "n", subresource="status")


def made_again(cluster: Cluster, *names: str) -> float:
    """These pods have ended; seconds until they are made again."""
    before = {pod.metadata.uid for pod in pods(cluster)}
    settle(cluster)
    waited_s = 0.0
    while not set(names) <= {pod.metadata.name for pod in pods(cluster) if pod.metadata.uid not in before}:
        assert waited_s < 1000, job(cluster, "j").status.state
        cluster.now_s += 1
        waited_s += 1
        settle(cluster)
    return waited_s


def refused_again(cluster: Cluster, *names: str) -> float:
    """Kubelet refuses these pods; seconds until they are made again."""
    refuse(cluster, *names)
    return made_again(cluster, *names)


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
def test_restarts_of_refused_pods_come_later_each_time(cluster: Cluster, action: str) -> None:
    """Twice as late, up to a limit; the retries are used up as ever."""
    add(cluster, "j", task("w", 1), policies=[{"events": ["PodFailed"], "action": action}], maxRetry=8)
    settle(cluster)
    waits = [refused_again(cluster, "j-w-0") for _ in range(7)]
    assert waits == pytest.approx([10, 20, 40, 80, 160, 300, 300], abs=1)
    assert job(cluster, "j").status.retry_count == 7
    refuse(cluster, "j-w-0")
    settle(cluster)
    state = job(cluster, "j").status.state
    assert (state.phase, state.reason) == ("Failed", "MaxRetryReached")
    assert state.message.startswith("maxRetry is 8: restarted 7 times, failed again (event PodFailed of pod j-w-0")
    assert "pod j-w-0" in state.message
    assert "SysctlForbidden" in state.message


def test_a_job_that_waits_says_so_and_holds_no_nodes(cluster: Cluster) -> None:
    """Also to the next process; its gang is asked for only when it can start."""
    add(cluster, "j", task("w", 2), policies=[{"events": ["PodFailed"], "action": "RestartJob"}])
    settle(cluster)
    refuse(cluster, "j-w-1")
    settle(cluster)
    cluster.restart()
    settle(cluster)
    cluster.now_s += 1
    turn(cluster)
    state = job(cluster, "j").status.state
    assert (state.phase, state.reason) == ("Pending", "BackOff")
    assert state.message.startswith("kubelet refused pod j-w-1 (SysctlForbidden); new pods are created at 2023-")
    assert not pods(cluster)
    assert not cluster.api.all(POD_GROUPS)
    cluster.now_s += 11
    settle(cluster)
    assert len(pods(cluster)) == 2


def test_a_pod_that_ran_is_restarted_at_once(cluster: Cluster) -> None:
    """A crash of a container is no refusal."""
    add(cluster, "j", task("w", 1), policies=[{"events": ["PodFailed"], "action": "RestartPod"}])
    settle(cluster)
    fail(cluster, "j-w-0")
    settle(cluster)
    assert [pod.status.phase for pod in pods(cluster)] == ["Pending"]


def test_without_a_policy_the_job_ends_and_says_why(cluster: Cluster) -> None:
    """Kubelet's words are part of the message."""
    add(cluster, "j", task("w", 1))
    settle(cluster)
    refuse(cluster, "j-w-0")
    settle(cluster)
    state = job(cluster, "j").status.state
    assert (state.phase, state.reason) == ("Failed", "TaskFailed")
    assert state.message.endswith("; pod j-w-0 on node-1 failed: SysctlForbidden: forbidden sysctl")


def containers(cluster: Cluster, name: str, phase: str, state: dict[str, Any]) -> None:
    """Kubelet says this of the container of a pod."""
    status = {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}
    cluster.api.change(PODS, name, {"status": status}, "n", subresource="status")


def test_a_job_tells_why_containers_do_not_start(cluster: Cluster) -> None:
    """While it is Pending, and also while it runs; when that is over it says so."""
    add(cluster, "j", task("w", 2), minAvailable=1)
    settle(cluster)
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "x"'}}
    told = 'pod j-w-1 on node-1: container main: ImagePullBackOff: Back-off pulling image "x"'
    containers(cluster, "j-w-1", "Pending", waits)
    turn(cluster, 3, pause_s=1)
    state = job(cluster, "j").status.state
    assert (state.phase, state.reason, state.message) == ("Pending", "ImagePullBackOff", told)
    containers(cluster, "j-w-0", "Running", {})
    turn(cluster, 5, pause_s=1)
    state = job(cluster, "j").status.state
    assert (state.phase, state.reason, state.message) == ("Running", "ImagePullBackOff", told)
    containers(cluster, "j-w-1", "Running", {"waiting": None})
    turn(cluster, 5, pause_s=1)
    state = job(cluster, "j").status.state
    assert (state.phase, state.message) == ("Running", "ImagePullBackOff is over")


def test_another_restart_ends_the_row() -> None:
    """But not the delay that is still under way."""
    refusal = JobEvent(pod="p", refused="OutOfcpu")
    status = timers.restarted(JobStatus(), refusal, 0.0, 1.0)
    assert timers.left_s(status, 4.0) == 6.0
    assert timers.left_s(status, -3600.0) == 0.0, "the clock was set back"
    assert timers.restarted(status, JobEvent(), 4.0, 1.0) == status
    assert timers.back_off(timers.restarted(status, JobEvent(), 11.0, 1.0)) is None
    noted = timers.back_off(timers.restarted(JobStatus(), refusal, 0.00049, 1.0))
    assert noted
    assert noted.until_s == 10.0, "to the millisecond"


def test_a_timer_does_not_wait_for_a_clock_that_was_set_back(cluster: Cluster) -> None:
    """By an hour: the whole delay begins again, and is recorded then."""
    add(cluster, "j", task("w", 1), policies=[{"event": "PodEvicted", "action": "RestartJob", "timeout": "60s"}])
    settle(cluster)
    actions = cluster.controller.jobs._reconciler._actions
    uid = job(cluster, "j").metadata.uid
    pod = pods(cluster)[0].metadata
    far = timers.Timer(cluster.now_s + 3660, JobEvent("PodEvicted", task="w", pod=pod.name, pod_uid=pod.uid))
    actions._timers[uid] = {far.key: far}
    cluster.api.change(PODS, pod.name, {"status": {"phase": "Running"}}, "n", subresource="status")
    settle(cluster)
    [timer] = actions._timers[uid].values()
    assert timer.due_s <= cluster.now_s + 60
    assert timers.Timer(2e9, JobEvent(since_s=2e9 - 60)).to_check(1.9e9)


def test_a_note_that_somebody_edited_is_none() -> None:
    """It delays nothing."""
    status = JobStatus(controlled_resources={notes.BACK_OFF: "[3]"})
    assert timers.left_s(status, 0.0) == 0.0
    assert timers.restarted(status, JobEvent(pod="p", refused="OutOfcpu"), 0.0, 1.0).controlled_resources


def ended_again(cluster: Cluster, name: str, ran_s: float) -> float:
    """The pod runs for so long and fails; seconds until it is made again."""
    cluster.now_s += ran_s
    fail(cluster, name)
    return made_again(cluster, name)


def test_a_job_that_ends_at_once_every_time_comes_back_later(cluster: Cluster) -> None:
    """After three restarts, which are never delayed; a life of a minute ends the row."""
    add(cluster, "j", task("w", 1), policies=[{"events": ["PodFailed"], "action": "RestartJob"}], maxRetry=1_000_000)
    settle(cluster)
    waits = [ended_again(cluster, "j-w-0", 1.0) for _ in range(9)]
    assert (waits[:3], waits[3:]) == ([0.0] * 3, pytest.approx([5, 10, 20, 40, 40, 40], abs=1))
    assert ended_again(cluster, "j-w-0", 61.0) == 0.0
    assert ended_again(cluster, "j-w-0", 1.0) <= 6.0


def test_a_quick_job_says_why_it_waits(cluster: Cluster) -> None:
    """In its status, as long as it waits."""
    add(cluster, "j", task("w", 1), policies=[{"events": ["PodFailed"], "action": "RestartJob"}], maxRetry=1_000_000)
    settle(cluster)
    for _ in range(5):
        ended_again(cluster, "j-w-0", 1.0)
    cluster.now_s += 1
    fail(cluster, "j-w-0")
    settle(cluster)
    cluster.now_s += 1
    turn(cluster)
    state = job(cluster, "j").status.state
    assert (state.phase, state.reason) == ("Pending", "BackOff")
    assert state.message.startswith(
        "the Job was restarted more than 3 times, and its last runs were shorter than 60 s; new"
    )
