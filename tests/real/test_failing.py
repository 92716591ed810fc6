"""Jobs that cannot succeed end, or wait, with the reason."""

from collections.abc import Callable
from typing import Any

import pytest
from realnode.jobs import Jobs

pytestmark = pytest.mark.real


def test_failing_rank_ends_a_labelled_job(jobs: Jobs) -> None:
    """Without retries the first failure fails the Job, and the rank that waits is ended."""
    jobs.submit("failing-indexed-job")
    assert jobs.end("job", "train") == "Failed"
    told = {one["type"]: one["reason"] for one in jobs.status("job", "train")["conditions"]}
    assert told["Failed"] == "BackoffLimitExceeded"


def test_failing_task_ends_a_volcano_job(jobs: Jobs) -> None:
    """The Job is Failed, and says which task did not get through."""
    jobs.submit("failing-volcano")
    assert jobs.end("vcjob", "train") == "Failed"
    status = jobs.status("vcjob", "train")
    assert status["failed"] == 1
    assert status["state"]["message"] == "task bad: 0 pods succeeded, 1 is needed"
    assert status["state"]["reason"]


def test_absent_image_is_named(jobs: Jobs, wait_for: Callable[..., Any]) -> None:
    """The Job's status and `muster explain` name kubelet's reason and the image."""
    jobs.submit("absent-image")
    wait_for(lambda: jobs.waits("train", "ErrImageNeverPull"), timeout_s=60, what="kubelet's reason")

    def message() -> str:
        return str(jobs.status("vcjob", "train").get("state", {}).get("message", ""))

    wait_for(lambda: "ErrImageNeverPull" in message(), timeout_s=20, what="kubelet's reason in the Job's status")
    assert "localhost/absent:1" in message()
    assert "ErrImageNeverPull" in jobs.explain("train")
