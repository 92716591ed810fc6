"""mpirun over ssh, with keys, hosts and variables that Muster gives, and an sshd as Debian configures it."""

from collections.abc import Callable
from typing import Any

import pytest
from realnode.jobs import Jobs

pytestmark = pytest.mark.real


def test_volcano_job_with_plugin_mpi(jobs: Jobs) -> None:
    """The master reaches both workers, and ends the Job."""
    jobs.submit("mpi-script", "mpi-volcano")
    assert jobs.end("vcjob", "train") == "Completed"
    assert "2 ranks on train-worker-0, train-worker-1: sum 3" in jobs.log("train-master-0")


def test_labelled_job(jobs: Jobs) -> None:
    """Rank 0 launches on both pods at once, without a second try."""
    jobs.submit("mpi-script", "mpi-indexed-job")
    assert jobs.end("job", "train") == "Complete"
    assert "2 ranks on train-0, train-1: sum 3" in jobs.log(jobs.pods("train")[0]["metadata"]["name"])


def test_labelled_stateful_set(jobs: Jobs, wait_for: Callable[..., Any]) -> None:
    """The same with names that the user's own Service gives."""
    jobs.submit("mpi-script", "mpi-stateful-set")
    jobs.running("train", 2)
    wait_for(lambda: "mpirun ended with" in jobs.log("train-0"), timeout_s=60, what="mpirun ends")
    assert "2 ranks on train-0, train-1: sum 3" in jobs.log("train-0")
    assert "mpirun ended with 0" in jobs.log("train-0")
