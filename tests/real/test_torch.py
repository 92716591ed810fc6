"""PyTorch over gloo, on two nodes, with the environment that Muster gives and no other."""

import pytest
from realnode.jobs import Jobs

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("torch")]


def test_torchrun_in_a_labelled_job(jobs: Jobs) -> None:
    """Two processes on each of two nodes find each other, add up and train."""
    jobs.submit("torch-script", "torch-indexed-job")
    assert jobs.end("job", "train") == "Complete"
    pods = jobs.pods("train")
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 2
    told = "4 ranks on train-0, train-0, train-1, train-1: sum 10, models equal: True"
    assert told in jobs.log(pods[0]["metadata"]["name"])


def test_volcano_job_with_plugin_pytorch(jobs: Jobs) -> None:
    """A master and a worker, each on a node of its own, meet without torchrun."""
    jobs.submit("torch-script", "torch-volcano")
    assert jobs.end("vcjob", "train") == "Completed"
    assert "2 ranks on train-master-0, train-worker-0: sum 3, models equal: True" in jobs.log("train-master-0")
