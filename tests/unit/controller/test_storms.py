"""What storms, pauses and restarts of the controller must not do to a Job, on the simulated cluster."""

from typing import Any

import pytest
from builders import job as a_job
from builders import pod as a_pod
from simulated_cluster import Cluster
from simulated_jobs import command, fail, job, order, pods, submit, trickle, turn

from controller.job.rules import notes
from controller.job.rules.events import JobEvent, unseen_evictions
from controller.job.rules.timers import Timer, noted, timers_of
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS, JobStatus


def test_a_hundred_failures_at_once_are_one_restart(cluster: Cluster) -> None:
    """Told one by one or all together, before and after the restart has begun: one restart is counted."""
    submit(cluster, "j", 100, {"events": ["PodFailed"], "action": "RestartJob"})
    for pod in pods(cluster):
        cluster._phase(pod, "Failed", exit_code=1)
    trickle(cluster)
    assert cluster.converge()
    status = job(cluster, "j").status
    assert (status.state.phase, status.retry_count, status.version, status.running) == ("Running", 1, 1, 100)
    assert len(pods(cluster)) == 100


def test_ten_suspensions_use_up_no_retry(cluster: Cluster) -> None:
    """A Job may be paused as often as one likes."""
    made = submit(cluster, "j", 2)
    for _ in range(10):
        command(cluster, "AbortJob", made)
        assert job(cluster, "j").status.state.phase == "Aborted"
        command(cluster, "ResumeJob", made)
        assert job(cluster, "j").status.state.phase == "Running"
    assert job(cluster, "j").status.retry_count == 0


@pytest.mark.parametrize("restarted", [False, True])
def test_scaling_down_raises_no_policy(cluster: Cluster, restarted: bool) -> None:  # noqa: FBT001 - a parameter of a table
    """Not even a policy for everything, nor when the controller dies on the way."""
    submit(cluster, "j", 4, {"events": ["*"], "action": "AbortJob"}, minAvailable=1)
    cluster.api.change(JOBS, "j", {"spec": {"tasks": [{"name": "w", "replicas": 1, "template": {}}]}}, "n")
    if restarted:
        turn(cluster)
        cluster.restart()
    assert cluster.converge()
    assert job(cluster, "j").status.state.phase == "Running"
    assert [pod.metadata.name for pod in pods(cluster)] == ["j-w-0"]


def test_a_pending_timeout_does_not_hit_running_pods_after_a_restart(cluster: Cluster) -> None:
    """The pods are pending no more."""
    submit(cluster, "j", 2, {"events": ["PodPending"], "action": "AbortJob", "timeout": "60s"})
    cluster.restart()
    cluster.now_s += 3600
    assert cluster.converge()
    assert job(cluster, "j").status.state.phase == "Running"


def test_a_pending_timeout_counts_from_the_creation_whoever_controls(cluster: Cluster) -> None:
    """A controller that starts late carries it out in time."""
    submit(cluster, "j", 1, {"events": ["PodPending"], "action": "AbortJob", "timeout": "60s"})
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    turn(cluster)
    cluster.now_s += 1
    turn(cluster)
    assert pods(cluster), "the pod is there again and nobody binds it"
    cluster.now_s += 40
    cluster.restart()
    turn(cluster)
    assert job(cluster, "j").status.state.phase in {"Running", "Pending"}
    cluster.now_s += 21
    turn(cluster)
    assert job(cluster, "j").status.state.phase == "Aborting"


def test_a_timer_of_a_deleted_job_does_not_touch_its_successor(cluster: Cluster) -> None:
    """Same name, same pods' names, another Job."""
    policy = {"events": ["PodEvicted"], "action": "AbortJob", "timeout": "60s"}
    submit(cluster, "j", 1, policy, minAvailable=0)
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    turn(cluster)
    cluster.api.remove(JOBS, job(cluster, "j"))
    cluster.api.collect()
    submit(cluster, "j", 1, policy)
    cluster.now_s += 120
    assert cluster.converge()
    assert job(cluster, "j").status.state.phase == "Running"


@pytest.mark.parametrize("restarts", [0, 1, 3])
def test_a_timer_of_an_evicted_pod_outlives_the_controller(cluster: Cluster, restarts: int) -> None:
    """It is due when it was due, and not later for each restart."""
    submit(cluster, "j", 2, {"events": ["PodEvicted"], "action": "TerminateJob", "timeout": "60s"})
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    turn(cluster)
    for _ in range(restarts):
        cluster.now_s += 10
        cluster.restart()
        turn(cluster)
    assert job(cluster, "j").status.state.phase in {"Running", "Pending"}
    cluster.now_s += 61 - 10 * restarts
    turn(cluster)
    assert job(cluster, "j").status.state.phase == "Terminating"


def test_an_evicted_pod_that_is_back_in_time_stops_the_timer(cluster: Cluster) -> None:
    """RestartPod now, the whole Job later unless the pod runs again."""
    submit(cluster, "j", 2, {"events": ["PodEvicted"], "action": "TerminateJob", "timeout": "60s"})
    cluster.api.remove(PODS, pods(cluster)[0], at_once=True)
    assert cluster.converge()
    cluster.now_s += 120
    assert cluster.converge()
    status = job(cluster, "j").status
    assert (status.state.phase, status.running) == ("Running", 2)
    assert "muster.dev/timers" not in status.controlled_resources


def test_a_deletion_that_was_cut_short_is_completed(cluster: Cluster) -> None:
    """The caller died between the two steps in which the API server removes a pod: somebody has to ask again."""
    made = submit(cluster, "j", 2)
    (first, _) = pods(cluster)
    cluster._phase(first, "Failed", exit_code=1)
    cluster.api._mark(PODS, cluster.api.find(PODS, first.metadata.name, "n"), grace_period_s=0)
    cluster.restart()
    turn(cluster)
    assert len(pods(cluster)) == 2, "it may be on its way"
    command(cluster, "TerminateJob", made)
    assert job(cluster, "j").status.state.phase == "Terminated"
    assert not pods(cluster)


COUNTED = {"a": {"Running": 3}, "b": {"Running": 2, "Pending": 1}, "c": {"Running": 3}}


@pytest.mark.parametrize(("phase", "counts", "there", "evicted"), [
    pytest.param("Running", {"w": 3}, "w0 w1 w2", "", id="all are there"),
    pytest.param("Running", {"w": 3}, "w0", "w1 w2", id="two of three"),
    pytest.param("Running", {"w": 1}, "w0", "", id="the others were never counted as running"),
    pytest.param("Running", {"w": 5}, "w0 w1 w2", "", id="scaled down since"),
    pytest.param("Pending", {"w": 1}, "", "w0", id="some ran, though not enough"),
    pytest.param("Restarting", {"w": 3}, "w0", "", id="our own doing"),
    pytest.param("Running", COUNTED, "a0 a2 b0 b1 c0 c1 c2", "a1", id="of the task that lacks it; b2 was pending"),
    pytest.param("Running", COUNTED, "b0 b1 c0 c1 c2", "a0 a1 a2", id="each task for itself"),
])  # fmt: skip
def test_unseen_evictions(phase: str, counts: dict[str, Any], there: str, evicted: str) -> None:
    """As many as ran and are not there, and only of slots that are empty."""
    phases = {name: each if isinstance(each, dict) else {"Running": each} for name, each in counts.items()}
    status = {"state": {"phase": phase}, "taskStatusCount": {name: {"phase": each} for name, each in phases.items()}}
    of = a_job("j", dict.fromkeys(counts, 3), "n", uid="u", status=status)
    found = unseen_evictions(
        of, [a_pod(f"j-{each[0]}-{each[1]}", task=each[0], phase="Running") for each in there.split()]
    )
    assert [(request.event, request.task, request.pod) for request in found] == [
        ("PodEvicted", each[0], f"j-{each[0]}-{each[1]}") for each in evicted.split()
    ]


def test_timers_can_be_noted() -> None:
    """What goes into the status comes back; timers that an object tells are left out, and so is nonsense."""
    lasting = [
        Timer(20.0, JobEvent(event="PodEvicted", pod="p", job_version=1)),
        Timer(10.0, JobEvent(event="Unknown")),
    ]
    derived = Timer(5.0, JobEvent(event="PodPending", since_s=1.0))
    assert timers_of(noted(JobStatus(), [derived, *lasting])) == lasting[::-1]
    assert noted(JobStatus(), [derived]) == JobStatus()
    assert timers_of(notes.noted(JobStatus(), notes.TIMERS, "[nonsense")) == timers_of(JobStatus()) == []
    assert len(timers_of(noted(JobStatus(), lasting[:1] * 200))) == 100


MANY = 20


def gathering(cluster: Cluster) -> list[str]:
    """From now on events wait for others; the keys of the Jobs that get a pass. The list grows."""
    cluster.controller.jobs._gather_s = 0.1
    passes: list[str] = []
    process = cluster.controller.jobs.worker._process

    def noted(key: str) -> None:
        passes.append(key)
        process(key)

    cluster.controller.jobs.worker._process = noted
    return passes


def test_many_pods_are_one_pass(cluster: Cluster) -> None:
    """Each of them fails at another moment, and the caches tell of each on its own."""
    submit(cluster, "j", MANY, {"event": "PodFailed", "action": "RestartJob"})
    passes = gathering(cluster)
    for pod in pods(cluster):
        fail(cluster, pod.metadata.name)
        cluster.deliver(everything=True)
        cluster.work(1)
    assert passes == []
    cluster.now_s += 0.1
    cluster.work(1)
    assert passes == ["n/j"]
    assert (job(cluster, "j").status.state.phase, job(cluster, "j").status.retry_count) == ("Restarting", 1)


def test_what_somebody_asks_for_is_done_at_once(cluster: Cluster) -> None:
    """A Command waits for nobody, nor do pods that wait for their gang."""
    made = submit(cluster, "j", 2)
    passes = gathering(cluster)
    order(cluster, "AbortJob", made)
    cluster.deliver(everything=True)
    cluster.work(1)
    assert passes == ["n/j"]
    assert job(cluster, "j").status.state.phase == "Aborting"


@pytest.mark.parametrize(("policies", "retries", "new"), [
    ([], 0, 1),
    ([{"event": "PodFailed", "action": "RestartJob"}], 0, 1),
    ([{"event": "PodEvicted", "action": "RestartPod"}], 1, 1),
    ([{"event": "PodEvicted", "action": "RestartJob"}], 1, 3),
    ([{"event": "*", "action": "RestartTask"}], 1, 3),
])  # fmt: skip
@pytest.mark.parametrize("gone", [1, 3])
@pytest.mark.parametrize("died", [False, True])
def test_an_evicted_pod_comes_again(
    cluster: Cluster, policies: list[dict[str, Any]], retries: int, new: int, *, gone: int, died: bool
) -> None:
    """Pods that are made again are no retry, a restart by a policy is one, however many go at once."""
    submit(cluster, "j", 3, *policies)
    before = {pod.metadata.uid for pod in pods(cluster)}
    for pod in pods(cluster)[:gone]:
        cluster.api.remove(PODS, pod, at_once=True)
    if died:
        cluster.restart()
    assert cluster.converge()
    status = job(cluster, "j").status
    assert (status.state.phase, status.running, status.retry_count) == ("Running", 3, retries)
    assert len({pod.metadata.uid for pod in pods(cluster)} - before) == max(new, gone)
