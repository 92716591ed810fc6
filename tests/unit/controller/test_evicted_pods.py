"""What an eviction costs a Job, and that it comes back whole, on the simulated cluster."""

from typing import Any

import pytest
from simulated_cluster import Cluster
from simulated_jobs import job, pods, submit

from muster.api.kubernetes.core import PODS


@pytest.mark.parametrize(
    ("policies", "retries", "new"),
    [
        ([], 0, 1),
        ([{"event": "PodFailed", "action": "RestartJob"}], 0, 1),
        ([{"event": "PodEvicted", "action": "RestartPod"}], 1, 1),
        ([{"event": "PodEvicted", "action": "RestartJob"}], 1, 3),
        ([{"event": "*", "action": "RestartTask"}], 1, 3),
    ],
)
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
