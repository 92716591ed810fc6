"""A Job that is suspended while it restarts, waits or has timers, and goes on later, on the simulated cluster."""

import pytest
from simulated_cluster import Cluster
from simulated_jobs import command, fail, job, order, pods, settle, submit, task, turn

from controller.job.rules import notes
from controller.job.rules.budget import restarts_of
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS

ABORT, RESUME = "AbortJob", "ResumeJob"


@pytest.mark.parametrize("died", [False, True])
@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod"])
def test_a_suspension_in_a_restart_ends_it(cluster: Cluster, action: str, *, died: bool) -> None:
    """The restart is counted once, nothing runs meanwhile, and all pods are new afterwards."""
    made = submit(cluster, "j", 2, {"event": "PodFailed", "action": action})
    before = {pod.metadata.uid for pod in pods(cluster)}
    fail(cluster, "j-w-0")
    turn(cluster)
    assert job(cluster, "j").status.state.phase == "Restarting"
    order(cluster, ABORT, made)
    if died:
        cluster.restart()
    assert cluster.converge()
    suspended = job(cluster, "j").status
    assert (suspended.state.phase, suspended.retry_count, suspended.running) == ("Aborted", 1, 0)
    assert notes.note(suspended, notes.RESTART) == ""
    assert not cluster.api.all(POD_GROUPS)
    command(cluster, RESUME, made)
    status = job(cluster, "j").status
    assert (status.state.phase, status.retry_count, status.running) == ("Running", 1, 2)
    assert not before & {pod.metadata.uid for pod in pods(cluster)}
    assert len({pod.metadata.annotations["volcano.sh/job-version"] for pod in pods(cluster)}) == 1


def test_what_happens_to_a_suspended_job_restarts_nothing(cluster: Cluster) -> None:
    """Its pods that fail or go while they are stopped are no failures, and its finished pods stay."""
    made = submit(
        cluster, "j", 3, {"event": "PodFailed", "action": "RestartJob"}, {"event": "PodEvicted", "action": "RestartJob"}
    )
    cluster._phase(cluster.api.find(PODS, "j-w-2", "n"), "Succeeded", exit_code=0)
    turn(cluster)
    order(cluster, ABORT, made)
    turn(cluster)
    fail(cluster, "j-w-0")
    cluster.api.remove(PODS, cluster.api.find(PODS, "j-w-1", "n"), at_once=True)
    assert cluster.converge()
    status = job(cluster, "j").status
    assert (status.state.phase, status.retry_count, status.succeeded) == ("Aborted", 0, 1)
    command(cluster, RESUME, made)
    status = job(cluster, "j").status
    assert (status.state.phase, status.running, status.succeeded, status.retry_count) == ("Running", 2, 1, 0)


@pytest.mark.parametrize("died", [False, True])
def test_a_timer_does_not_outlive_a_suspension(cluster: Cluster, *, died: bool) -> None:
    """What was to be done about a pod in a minute has no point once all pods are new."""
    made = submit(cluster, "j", 2, {"event": "PodEvicted", "action": "TerminateJob", "timeout": "60s"})
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    turn(cluster)
    assert notes.note(job(cluster, "j").status, notes.TIMERS)
    order(cluster, ABORT, made)
    turn(cluster, 3)
    if died:
        cluster.restart()
    order(cluster, RESUME, made)
    settle(cluster)
    assert notes.note(job(cluster, "j").status, notes.TIMERS) == ""
    cluster.now_s += 120
    assert cluster.converge()
    assert job(cluster, "j").status.state.phase == "Running"


def test_suspensions_leave_a_restart_budget_as_it_is(cluster: Cluster) -> None:
    """Neither do they use it up, nor do they give back what failures have used."""
    made = submit(cluster, "j", 1, {"event": "PodFailed", "action": "RestartJob"})
    cluster.api.change(JOBS, "j", {"metadata": {"annotations": {"muster.dev/restart-budget": "1 in 1h"}}}, "n")
    fail(cluster, "j-w-0")
    assert cluster.converge()
    for _ in range(2):
        command(cluster, ABORT, made)
        command(cluster, RESUME, made)
    status = job(cluster, "j").status
    assert (status.state.phase, status.retry_count, len(restarts_of(status).past)) == ("Running", 1, 1)
    fail(cluster, "j-w-0")
    assert cluster.converge()
    assert job(cluster, "j").status.state.reason == "RestartBudgetSpent"


@pytest.mark.parametrize(("compat", "retries"), [("", 1), ("resume-counts", 2)])
def test_only_a_resumption_may_count_as_a_restart(cluster: Cluster, compat: str, retries: int) -> None:
    """And only where the Job asks for it, as in Volcano; the abort before it never does."""
    made = submit(cluster, "j", 1, {"event": "PodFailed", "action": "RestartJob"}, maxRetry=5)
    cluster.api.change(JOBS, "j", {"metadata": {"annotations": {"muster.dev/compat": compat}}}, "n")
    fail(cluster, "j-w-0")
    assert cluster.converge()
    command(cluster, ABORT, made)
    assert job(cluster, "j").status.retry_count == 1
    command(cluster, RESUME, made)
    assert (job(cluster, "j").status.retry_count, job(cluster, "j").status.state.phase) == (retries, "Running")


def test_a_suspension_does_not_shorten_the_delay_after_a_refusal(cluster: Cluster) -> None:
    """Pods come when they would have come."""
    made = submit(cluster, "j", 1, {"event": "PodFailed", "action": "RestartJob"})
    status = {"phase": "Failed", "reason": "SysctlForbidden", "message": "forbidden sysctl"}
    cluster.api.change(PODS, "j-w-0", {"status": status}, "n", subresource="status")
    settle(cluster)
    order(cluster, ABORT, made)
    settle(cluster)
    assert job(cluster, "j").status.state.phase == "Aborted"
    order(cluster, RESUME, made)
    settle(cluster)
    assert not pods(cluster)
    cluster.now_s += 11
    settle(cluster)
    assert [pod.metadata.name for pod in pods(cluster)] == ["j-w-0"]


def test_a_suspended_job_with_dependencies_starts_in_order_again(cluster: Cluster) -> None:
    """The task that waits for others waits again, and its gang counts it when it has started."""
    made = submit(cluster, "j", 0, tasks=[task("a", 2), task("b", 1, dependsOn={"name": ["a"]})], minAvailable=3)
    assert [group.spec.min_member for group in cluster.api.all(POD_GROUPS)] == [3]
    command(cluster, ABORT, made)
    order(cluster, RESUME, made)
    settle(cluster)
    assert sorted(pod.metadata.name for pod in pods(cluster)) == ["j-a-0", "j-a-1"]
    assert [group.spec.min_member for group in cluster.api.all(POD_GROUPS)] == [2]
    assert cluster.converge()
    assert job(cluster, "j").status.running == 3
    assert [group.spec.min_member for group in cluster.api.all(POD_GROUPS)] == [3]
