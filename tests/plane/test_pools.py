"""Node pools: two pairs on one plane, each with its nodes, its queues and its gangs."""

from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import job
from poolworld import DEFAULT, OF_B, POOL_B, client, in_queue, nodes_of, pools, space

from extender.explain.find import explain
from extender.explain.pools import in_pool, pool_of_object
from extender.explain.report import GangReport
from extender.explain.whatif import WhatIf
from muster.api.kubernetes.core import INDEXED_JOBS, NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.names import NODE_POOL, QUEUE
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.reader import take_dump

__all__ = ["client", "pools", "space"]
pytestmark = [pytest.mark.plane, pytest.mark.slow]
WaitFor = Callable[..., Any]


def test_each_pair_places_the_gangs_of_its_pool(client: Client, space: str, wait_for: WaitFor) -> None:
    """A gang in a queue of pool b starts on its nodes, one in the default queue on the others, at the same time."""
    client.create(JOBS, in_queue(job("there", space, replicas=4), "b1"), space)
    client.create(JOBS, job("here", space, replicas=4), space)
    wait_for(lambda: nodes_of(client, space, "there") == POOL_B, 60, "the gang of pool b to fill its nodes")
    wait_for(lambda: nodes_of(client, space, "here") == DEFAULT, 60, "the gang of the default pool to fill the others")
    schedulers = {pod.spec.scheduler_name for pod in client.list(PODS, space)}
    assert schedulers == {"muster-b", "volcano"}
    labels = {group.spec.queue: group.metadata.labels.get(NODE_POOL) for group in client.list(POD_GROUPS, space)}
    assert labels == {"b1": "b", "default": None}
    placed = {each.metadata.labels.get(NODE_POOL) for each in client.list(PLACEMENTS, space)}
    assert placed == {"b", None}


def refusal(call: Callable[[], object]) -> str:
    """The API server's words."""
    with pytest.raises(APIError) as caught:
        call()
    return caught.value.message


def test_a_tree_with_gangs_and_a_gang_keep_their_pool(client: Client, space: str, wait_for: WaitFor) -> None:
    """Neither the label of the root queue nor that of a PodGroup can be changed while the gang is there."""
    client.create(JOBS, in_queue(job("runs", space, replicas=1), "b1"), space)
    wait_for(lambda: nodes_of(client, space, "runs"), 60, "the gang to start")
    wait_for(lambda: client.get(QUEUES, "b1").status.running, 30, "the queue to count it")
    other = {"metadata": {"labels": {NODE_POOL: "c"}}}
    assert "there are gangs in b1" in refusal(lambda: client.merge_patch(QUEUES, "team-b", other))
    (group,) = client.list(POD_GROUPS, space)
    assert "cannot be changed" in refusal(lambda: client.merge_patch(POD_GROUPS, group.metadata.name, other, space))
    moved = {"spec": {"queue": "default"}}
    assert refusal(lambda: client.merge_patch(POD_GROUPS, group.metadata.name, moved, space))


def test_pods_of_any_owner_have_the_pool_of_their_queue(client: Client, space: str, wait_for: WaitFor) -> None:
    """An Indexed Job in a queue of pool b is a gang there; a bare pod starts alone."""
    template = {
        "metadata": {"labels": {QUEUE: "b2"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]},
    }
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": template}
    client.create(INDEXED_JOBS, {"metadata": {"name": "indexed"}, "spec": spec}, space)
    client.create(PODS, {"metadata": {"name": "alone", **template["metadata"]}, "spec": template["spec"]}, space)
    pods = wait_for(
        lambda: len(found := [pod for pod in client.list(PODS, space) if pod.spec.node_name]) == 3 and found,
        60,
        "all to be bound",
    )
    assert {pod.spec.scheduler_name for pod in pods} == {"muster-b"}
    assert {pod.spec.node_name for pod in pods} <= set(POOL_B)
    assert {group.metadata.labels.get(NODE_POOL) for group in client.list(POD_GROUPS, space)} == {"b"}


def test_shares_are_of_the_nodes_of_the_pool(client: Client, space: str, wait_for: WaitFor) -> None:
    """Two queues of pool b halve its GPUs, whatever the default pool has, and reclaim them from each other."""
    client.create(JOBS, in_queue(job("first", space, replicas=OF_B, min_available=1), "b1"), space)
    wait_for(lambda: len(nodes_of(client, space, "first")) == OF_B, 60, "the first to fill the pool")
    client.create(JOBS, job("free", space, replicas=1), space)
    client.create(JOBS, in_queue(job("second", space, replicas=2), "b2"), space)
    wait_for(lambda: len(nodes_of(client, space, "second")) == 2, 90, "the second to reclaim its share")
    gpus = 8 * OF_B
    for name in ("b1", "b2"):
        wait_for(
            lambda one=name: gpu_share(client, one) == gpus // 2, 30, f"the share of {name}: {gpu_share(client, name)}"
        )
    assert len(nodes_of(client, space, "free")) == 1
    assert client.get(QUEUES, "team-b").status.largest_node["nvidia.com/gpu"] == "8"


def gpu_share(client: Client, name: str) -> int:
    """The GPUs of a queue's fair share."""
    return int(client.get(QUEUES, name).status.fair_share.get("nvidia.com/gpu", 0))


def test_a_node_changes_its_pool(client: Client, space: str, wait_for: WaitFor) -> None:
    """A gang that runs there goes on, and what it uses is not free for its new pool until it ends."""
    moved = DEFAULT[-1]
    client.create(JOBS, job("runs", space, replicas=len(DEFAULT)), space)
    wait_for(lambda: nodes_of(client, space, "runs") == DEFAULT, 60, "a gang on all nodes of the default pool")
    client.merge_patch(NODES, moved, {"metadata": {"labels": {NODE_POOL: "b"}}})
    try:
        client.create(JOBS, in_queue(job("wide", space, replicas=OF_B + 1), "b1"), space)
        waits = wait_for(lambda: why_waiting(client, space, "wide"), 60, "the wide gang to be told why it waits")
        assert nodes_of(client, space, "wide") == []
        assert nodes_of(client, space, "runs") == DEFAULT, waits
        client.delete(JOBS, "runs", space)
        wait_for(lambda: nodes_of(client, space, "wide") == [moved, *POOL_B], 60, "the wide gang to have the node")
        client.create(JOBS, job("rest", space, replicas=len(DEFAULT) - 1), space)
        wait_for(lambda: nodes_of(client, space, "rest") == DEFAULT[:-1], 60, "the rest of the default pool")
    finally:
        client.merge_patch(NODES, moved, {"metadata": {"labels": {NODE_POOL: None}}})


def why_waiting(client: Client, space: str, name: str) -> str:
    """What the PodGroup of a Job says about its wait."""
    groups = [each for each in client.list(POD_GROUPS, space) if each.metadata.name.startswith(f"{name}-")]
    return next((str(each.why_waiting) for each in groups if each.why_waiting), "")


def test_the_pool_of_a_gang_is_planned_by_commands(client: Client, space: str, wait_for: WaitFor) -> None:
    """`muster explain` runs its cycle with the nodes of the gang's pool."""
    client.create(JOBS, in_queue(job("huge", space, replicas=OF_B + 1), "b1"), space)
    wait_for(lambda: why_waiting(client, space, "huge"), 60, "it to wait")
    dump = take_dump(client)
    report = explain(WhatIf(in_pool(dump, pool_of_object(dump, "job", "huge", space))), "job", "huge", space)
    assert isinstance(report, GangReport)
    assert report.shortage is not None
    assert report.shortage.nodes == OF_B
