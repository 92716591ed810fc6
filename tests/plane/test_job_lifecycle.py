"""A Volcano Job from submission to its end: the phases that a client sees, and what exists meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story, job, policy, task

from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, PODS, SERVICES
from muster.api.volcano.scheduling import POD_GROUPS

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
RAW_CONFIG_MAPS: Resource[dict[str, Any]] = Resource("", "v1", "configmaps", "ConfigMap", dict[str, Any])
RAW_PODS: Resource[dict[str, Any]] = Resource("", "v1", "pods", "Pod", dict[str, Any])


def test_a_job_runs_to_its_end(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Pending, Running, Completed; three pods with ranks, names and variables; then nothing but the finished pods."""
    plugins: dict[str, list[str]] = {"env": [], "svc": [], "pytorch": []}
    made = story.create(job("j", namespace, task("master", 1, run_s=2), task("worker", 2, run_s=2), plugins=plugins))
    wait_for(lambda: story.phase("j") == "Running")
    group = story.client.get(POD_GROUPS, f"j-{made.metadata.uid}", namespace)
    assert (group.spec.min_member, group.spec.min_task_member) == (3, {"master": 1, "worker": 2})
    assert group.spec.min_resources == {"cpu": "300m", "requests.cpu": "300m", "pods": "3", "count/pods": "3"}
    hosts = story.client.get(RAW_CONFIG_MAPS, "j-svc", namespace)["data"]
    assert hosts["VC_WORKER_HOSTS"] == "j-worker-0.j,j-worker-1.j"
    pod = story.client.get(RAW_PODS, "j-worker-1", namespace)
    env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
    assert (env["RANK"], env["WORLD_SIZE"], env["MASTER_ADDR"], env["VC_TASK_INDEX"]) == ("2", "3", "j-master-0.j", "1")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("j-worker-1", "j")
    wait_for(lambda: story.phase("j") == "Completed")
    wait_for(lambda: story.job("j").status.controlled_resources == {}, what="the plugins' objects are gone")
    assert story.gone(SERVICES, "j")
    assert story.gone(CONFIG_MAPS, "j-svc")
    status = story.job("j").status
    assert story.phases("j") == ["Pending", "Running", "Completed"]
    assert (status.succeeded, status.running, status.terminating, status.retry_count) == (3, 0, 0, 0)
    assert status.state.reason == "PodsSucceeded"
    assert status.task_status_count["worker"].phase == {"Succeeded": 2}
    assert {name: len(uids) for name, uids in story.pods.items()} == {"j-master-0": 1, "j-worker-0": 1, "j-worker-1": 1}


def test_a_partition_is_restarted_alone(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A pod of the second partition is evicted: its neighbour comes again, too, and nobody else."""
    parts = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": 3}
    restarted = task("w", 6, partitionPolicy=parts, policies=[policy("RestartPartition", "PodEvicted")])
    made = story.create(job("j", namespace, restarted, task("v", 1), policies=[policy("AbortJob", "*")]))
    wait_for(lambda: story.phase("j") == "Running")
    (sub_group,) = story.client.get(POD_GROUPS, f"j-{made.metadata.uid}", namespace).spec.sub_group_policy
    assert (sub_group.name, sub_group.sub_group_size, sub_group.min_sub_groups) == ("w", 2, 3)
    labels = {pod.metadata.name: pod.metadata.labels.get("volcano.sh/partition-id") for pod in story.alive()}
    assert labels == {"j-v-0": None, **{f"j-w-{index}": str(index // 2) for index in range(6)}}
    story.client.delete(PODS, "j-w-2", namespace, grace_period_s=0)
    wait_for(
        lambda: [len(story.ran[name]) for name in ("j-w-2", "j-w-3")] == [2, 2] and story.phase("j") == "Running",
        what=lambda: f"both to run again: {story.phases('j')}, {story.pods}, {story.ran}",
    )
    assert {name for name, uids in story.ran.items() if len(uids) > 1} == {"j-w-2", "j-w-3"}
    assert story.job("j").status.retry_count == 1
