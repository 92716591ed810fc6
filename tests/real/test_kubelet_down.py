"""A kubelet dies and comes back: what ran goes on, what came meanwhile waits and knows why."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from realnode.cluster import GRACE_S, Cluster
from realnode.jobs import Jobs
from realnode.node import Node

pytestmark = pytest.mark.real


@pytest.fixture
def node(cluster: Cluster) -> Iterator[Node]:
    """A node whose kubelet is there again after the test."""
    one = cluster.nodes[1]
    yield one
    one.kubelet.start()


def test_job_outlives_a_dead_kubelet(cluster: Cluster, node: Node, jobs: Jobs, wait_for: Callable[..., Any]) -> None:
    """The first job runs on without its node's kubelet; the second needs that node and starts when it is back."""
    jobs.submit("gang-first")
    before = jobs.running("first", 2)
    node.kubelet.kill()
    wait_for(lambda: not cluster.ready(node.name), timeout_s=GRACE_S + 60, what=f"{node.name} is not Ready")
    jobs.submit("beside-first")
    silent = "1 not ready (condition Ready=Unknown)"
    told = jobs.explained("second", f"1 fits now; of 2 nodes: {silent}")
    assert f"{silent} ({node.name}; 1 of them with free capacity)" in told
    node.kubelet.start()
    jobs.running("second", 2)
    assert [pod["metadata"]["uid"] for pod in jobs.running("first", 2)] == [pod["metadata"]["uid"] for pod in before]
    for job, kind, word in (("first", "vcjob", "Completed"), ("second", "job", "Complete")):
        jobs.release(job)
        assert jobs.end(kind, job) == word
