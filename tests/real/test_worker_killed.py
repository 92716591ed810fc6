"""A worker's process is killed on its node: what the user asked for brings it back, and the job completes."""

import pytest
from realnode.cluster import Cluster
from realnode.jobs import JSON, Jobs, container

pytestmark = pytest.mark.real


def kill(cluster: Cluster, pod: JSON) -> None:
    """Kills the pod's process behind the back of kubelet."""
    cluster.node(pod["spec"]["nodeName"]).kill(container(pod)["containerID"])


def test_policy_restarts_the_gang(cluster: Cluster, jobs: Jobs) -> None:
    """RestartJob makes all pods anew, not only the one that was killed."""
    jobs.submit("restart-volcano")
    before = jobs.running("train", 2)
    kill(cluster, before[1])
    jobs.running("train", 2, but=frozenset(pod["metadata"]["uid"] for pod in before))
    assert jobs.status("vcjob", "train")["retryCount"] == 1
    jobs.release("train")
    assert jobs.end("vcjob", "train") == "Completed"


def test_kubelet_restarts_the_container(cluster: Cluster, jobs: Jobs) -> None:
    """With restartPolicy OnFailure the pod stays where it is, and its container starts again."""
    jobs.submit("restart-indexed-job")
    before = jobs.running("train", 2)
    kill(cluster, before[1])
    after = jobs.running("train", 2, restarts=1)
    assert [pod["metadata"]["uid"] for pod in after] == [pod["metadata"]["uid"] for pod in before]
    assert container(after[1])["lastState"]["terminated"]["exitCode"] == 137
    jobs.release("train")
    assert jobs.end("job", "train") == "Complete"
