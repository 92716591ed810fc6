"""What a Job's status says after the work of its phase."""

import pytest
from builders import job as a_job
from builders import pod

from controller.job.rules.status import Failure, Work, concluded
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job, JobStatus

NOW_S = 60.0
FULL = Failure("FailedCreate", "pod j-w-0 cannot be created: the quota is used up")
WAITS = ("Unschedulable", "no room")


def job(phase: str, reason: str = "") -> Job:
    """A Job of two pods that both must start."""
    state = {"phase": phase, "reason": reason, "message": "as before"}
    return a_job("j", {"w": 2}, "n", uid="u", min_available=2, status={"state": state})


def pods(*phases: str) -> list[Pod]:
    """Pods of task `w` in these phases."""
    return [pod(f"j-w-{index}", uid=str(index), task="w", phase=phase) for index, phase in enumerate(phases)]


def outcome(
    of: Job, *phases: str, failures: tuple[Failure, ...] = (), waiting: tuple[str, str] | None = None
) -> tuple[JobStatus, str | None]:
    """What follows for a Job with pods in these phases."""
    return concluded(of, Work(of.status, pods(*phases), failures, waiting), NOW_S)


def test_pods_lead_to_the_next_phase_and_are_counted() -> None:
    """Also where something failed: that does not hold up a phase that is about having pods."""
    for failures in ((), (FULL,)):
        status, unschedulable = outcome(job("Pending"), "Running", "Running", failures=failures)
        assert (status.state.phase, status.running, status.min_available) == ("Running", 2, 2)
        assert unschedulable is None


def test_a_phase_that_deletes_stays_while_deletions_fail() -> None:
    """It says why; without a failure the Job moves on."""
    failure = Failure("FailedDelete", "pod j-w-0 cannot be deleted: no answer")
    status, _ = outcome(job("Aborting"), failures=(failure, failure))
    assert (status.state.phase, status.state.reason) == ("Aborting", "FailedDelete")
    assert status.state.message == "pod j-w-0 cannot be deleted: no answer (and 1 more)"
    assert outcome(job("Aborting"))[0].state.phase == "Aborted"


def test_why_a_job_waits_is_told_unless_something_failed() -> None:
    """The failure comes first, and nothing is said of a gang that may only lack what has failed."""
    waiting, unschedulable = outcome(job("Pending"), waiting=WAITS)
    assert (waiting.state.reason, waiting.state.message, unschedulable) == (*WAITS, "no room")
    failed, unschedulable = outcome(job("Pending"), failures=(FULL,), waiting=WAITS)
    assert (failed.state.reason, unschedulable) == ("FailedCreate", None)
    queued, unschedulable = outcome(job("Pending"), waiting=("Queued", "its turn comes"))
    assert (queued.state.reason, unschedulable) == ("Queued", None)


@pytest.mark.parametrize(("reason", "after"), [("FailedCreate", "Recovered"), ("MinAvailableReached", None)])
def test_a_failure_that_is_over_gives_way(reason: str, after: str | None) -> None:
    """Any other reason stays."""
    assert outcome(job("Running", reason), "Running", "Running")[0].state.reason == (after or reason)


def test_a_job_that_has_stopped_keeps_its_reason() -> None:
    """Whatever fails afterwards."""
    status, _ = outcome(job("Failed", "MaxRetryReached"), failures=(FULL,))
    assert (status.state.reason, status.state.message) == ("MaxRetryReached", "as before")


def test_pods_that_are_too_much_count_and_decide_nothing() -> None:
    """Their deletion may have failed."""
    all_pods = pods("Succeeded", "Succeeded", "Failed")
    of = job("Running")
    status, _ = concluded(of, Work(of.status, all_pods, (), surplus=all_pods[2:]), NOW_S)
    assert (status.state.phase, status.succeeded, status.failed) == ("Completed", 2, 1)
