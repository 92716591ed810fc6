"""When a Job is deleted after its end, and the quirks of Volcano that a Job may want back."""

import pytest
from builders import job as a_job

from controller.job.rules.timers import expires_s
from muster.api.volcano.batch import Job, compat

ENDED = "1970-01-01T00:01:00Z"


def job(phase: str, *, ttl_s: int | None = 5, **more: object) -> Job:
    """A Job that entered its phase a minute after the beginning of time."""
    state = {"phase": phase, "lastTransitionTime": ENDED}
    return a_job("j", ttl_seconds_after_finished=ttl_s, status={"state": state}, **more)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated", "Aborted"])
def test_every_end_counts(phase: str) -> None:
    """The time after the end, also after an abort; 0 is a time, too."""
    assert expires_s(job(phase)) == 65.0
    assert expires_s(job(phase, ttl_s=0)) == 60.0
    assert expires_s(job(phase, ttl_s=None)) is None


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Restarting", "Completing", "Terminating", "Aborting"])
def test_no_job_is_deleted_before_its_end(phase: str) -> None:
    """Whatever its last change of phase was."""
    assert expires_s(job(phase)) is None


def test_a_job_that_goes_away_is_left_alone() -> None:
    """Somebody deletes it already."""
    assert expires_s(job("Completed", deleted=ENDED)) is None


def test_suspended_jobs_can_be_spared() -> None:
    """As in Volcano, if the Job asks for it; other ends count as ever."""
    spared = {"muster.dev/compat": "resume-counts, ttl-spares-aborted"}
    assert expires_s(job("Aborted", annotations=spared)) is None
    assert expires_s(job("Failed", annotations=spared)) == 65.0
    assert compat(job("Aborted").metadata) == frozenset()
