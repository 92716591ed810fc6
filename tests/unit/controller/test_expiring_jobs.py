"""Jobs that are deleted some time after their end, with the pods that have stayed, on the simulated cluster."""

import pytest
from builders import job as a_job
from simulated_cluster import Cluster
from simulated_jobs import add, fail, job, order, pods, settle, submit, task, turn

from controller.job.rules.timers import expires_s
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS, Job, compat
from muster.api.volcano.scheduling import POD_GROUPS


def names(cluster: Cluster) -> list[str]:
    """The Jobs that are there."""
    return sorted(one.metadata.name for one in cluster.api.all(JOBS))


def finish(cluster: Cluster, name: str, *ends: str) -> None:
    """The pods of a Job end in these phases."""
    for index, end in enumerate(ends):
        cluster._phase(cluster.api.find(PODS, f"{name}-w-{index}", "n"), end, exit_code=int(end == "Failed"))


ENDS = [(("Succeeded", "Succeeded"), "Completed"), (("Succeeded", "Failed"), "Failed")]


@pytest.mark.parametrize(("ends", "phase"), ENDS)
@pytest.mark.parametrize("died", [False, True])
def test_pods_that_stay_go_with_their_job(cluster: Cluster, ends: tuple[str, ...], phase: str, *, died: bool) -> None:
    """Each Job after its own time from its own end, whoever controls it then; one without a time stays."""
    times = {"j": 20, "late": 90, "stays": None}
    for name, ttl_s in times.items():
        add(cluster, name, task("w", 2), **({} if ttl_s is None else {"ttlSecondsAfterFinished": ttl_s}))
    assert cluster.converge()
    for name in times:
        finish(cluster, name, *ends)
    settle(cluster)
    assert {one.status.state.phase for one in cluster.api.all(JOBS)} == {phase}
    assert len(pods(cluster)) == 6
    if died:
        cluster.restart()
    cluster.now_s += 19
    turn(cluster, 2)
    assert names(cluster) == ["j", "late", "stays"]
    cluster.now_s += 2
    turn(cluster, 2)
    cluster.api.collect()
    cluster.api.collect()
    assert names(cluster) == ["late", "stays"]
    assert sorted(pod.metadata.name for pod in pods(cluster)) == ["late-w-0", "late-w-1", "stays-w-0", "stays-w-1"]


def test_a_job_that_goes_on_does_not_expire(cluster: Cluster) -> None:
    """The time after a suspension ends when the Job is resumed, and the next end has a time of its own."""
    made = submit(cluster, "j", 1, ttlSecondsAfterFinished=100)
    order(cluster, "AbortJob", made)
    settle(cluster)
    assert job(cluster, "j").status.state.phase == "Aborted"
    order(cluster, "ResumeJob", made)
    settle(cluster)
    cluster.run_pods(everything=True)
    turn(cluster)
    assert job(cluster, "j").status.state.phase == "Running"
    cluster.now_s += 1000
    turn(cluster, 2)
    finish(cluster, "j", "Succeeded")
    turn(cluster, 2)
    cluster.now_s += 99
    turn(cluster, 2)
    assert job(cluster, "j").status.state.phase == "Completed"
    cluster.now_s += 2
    turn(cluster, 2)
    cluster.api.collect()
    cluster.api.collect()
    assert names(cluster) == []


def test_a_job_that_restarts_does_not_expire(cluster: Cluster) -> None:
    """Pods that failed and are kept as they say why end nothing before the last restart; then the time begins."""
    add(
        cluster, "j", task("w", 2), policies=[{"event": "PodFailed", "action": "RestartJob"}],
        maxRetry=2, ttlSecondsAfterFinished=100,
    )  # fmt: skip
    assert cluster.converge()
    cluster.now_s += 500
    fail(cluster, "j-w-0")
    assert cluster.converge()
    assert job(cluster, "j").status.state.phase == "Running"
    fail(cluster, "j-w-0")
    settle(cluster)
    assert job(cluster, "j").status.state.phase == "Failed"
    assert [pod.status.phase for pod in pods(cluster)] == ["Failed"]
    assert not cluster.api.all(POD_GROUPS)
    cluster.now_s += 101
    turn(cluster, 2)
    cluster.api.collect()
    cluster.api.collect()
    assert (names(cluster), pods(cluster)) == ([], [])


ENDED = "1970-01-01T00:01:00Z"


def ended(phase: str, *, ttl_s: int | None = 5, **more: object) -> Job:
    """A Job that entered its phase a minute after the beginning of time."""
    state = {"phase": phase, "lastTransitionTime": ENDED}
    return a_job("j", ttl_seconds_after_finished=ttl_s, status={"state": state}, **more)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated", "Aborted"])
def test_every_end_counts(phase: str) -> None:
    """The time after the end, also after an abort; 0 is a time, too."""
    assert expires_s(ended(phase)) == 65.0
    assert expires_s(ended(phase, ttl_s=0)) == 60.0
    assert expires_s(ended(phase, ttl_s=None)) is None


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Restarting", "Completing", "Terminating", "Aborting"])
def test_no_job_is_deleted_before_its_end(phase: str) -> None:
    """Whatever its last change of phase was."""
    assert expires_s(ended(phase)) is None


def test_a_job_that_goes_away_is_left_alone() -> None:
    """Somebody deletes it already."""
    assert expires_s(ended("Completed", deleted=ENDED)) is None


def test_suspended_jobs_can_be_spared() -> None:
    """As in Volcano, if the Job asks for it; other ends count as ever."""
    spared = {"muster.dev/compat": "resume-counts, ttl-spares-aborted"}
    assert expires_s(ended("Aborted", annotations=spared)) is None
    assert expires_s(ended("Failed", annotations=spared)) == 65.0
    assert compat(ended("Aborted").metadata) == frozenset()
