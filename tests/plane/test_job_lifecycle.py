"""A Volcano Job from submission to its end: the phases that a client sees, and what exists meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story, job, policy, task

from muster.api.base import Resource
from muster.api.kubernetes.core import CONFIG_MAPS, PODS, SERVICES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.plane import Plane

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
    assert story.phases("j") == ["", "Pending", "Running", "Completed"]
    assert (status.succeeded, status.running, status.terminating, status.retry_count) == (3, 0, 0, 0)
    assert status.state.reason == "PodsSucceeded"
    assert status.task_status_count["worker"].phase == {"Succeeded": 2}
    assert {name: len(uids) for name, uids in story.pods.items()} == {"j-master-0": 1, "j-worker-0": 1, "j-worker-1": 1}


def test_a_pod_that_fails_fails_its_job(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Without a policy the other pods end first, and the Job says which task was short."""
    story.create(job("j", namespace, task("a", 1, run_s=0.5, exit_code=3), task("b", 1, run_s=1)))
    wait_for(lambda: story.phase("j") == "Failed")
    assert story.job("j").status.state.message == "task a: 0 pods succeeded, 1 is needed"
    assert story.phases("j") == ["", "Pending", "Running", "Failed"]


def test_restart_storm_counts_once(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Eight pods fail at once: one restart, seen with pods terminating; with maxRetry 2 the second one ends the Job."""
    policies = [policy("RestartJob", "PodFailed")]
    story.create(job("j", namespace, task("w", 8, run_s=0.5, exit_code=1), policies=policies, maxRetry=2))
    wait_for(lambda: story.phase("j") == "Failed", 60)
    status = story.job("j").status
    assert (status.retry_count, status.state.reason) == (2, "MaxRetryReached")
    # The first pods may fail before the last ones run: then the Job was never Running.
    phases = [phase for phase in story.phases("j") if phase != "Running"]
    assert phases == ["", "Pending", "Restarting", "Pending", "Restarting", "Failed"]
    assert story.most_terminating("j", "Restarting") == 8
    assert {len(uids) for uids in story.pods.values()} == {2}, "each pod ran twice"
    assert "Start to execute action RestartJob " in story.events("ExecuteAction")
    wait_for(lambda: all(pod.finished for pod in story.alive()), what="on the last retry failed pods stay")


def test_exit_code_of_any_container_aborts(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A policy on an exit code sees the second container's; finished pods stay, running ones go."""
    codes = {"kwok.muster.dev/exit-codes": "main=1,side=137"}
    failing = task("a", 1, run_s=0.5, containers=["main", "side"], annotations=codes)
    policies = [policy("CompleteJob", "PodEvicted"), policy("AbortJob", exitCode=137)]
    story.create(job("j", namespace, failing, task("b", 3), policies=policies))
    wait_for(lambda: story.phase("j") == "Aborted")
    assert story.phases("j") == ["", "Pending", "Running", "Aborting", "Aborted"]
    assert story.most_terminating("j", "Aborting") == 3
    status = story.job("j").status
    assert (status.failed, status.running, status.pending, status.terminating) == (1, 0, 0, 0)


def test_an_evicted_pod_restarts_its_task_only(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """The deletions of the restart are our own and restart nothing again."""
    restarted = task("a", 2, policies=[policy("RestartTask", "PodEvicted")])
    story.create(job("j", namespace, restarted, task("b", 2), policies=[policy("AbortJob", "*")]))
    wait_for(lambda: story.phase("j") == "Running")
    story.client.delete(PODS, "j-a-0", namespace, grace_period_s=0)
    wait_for(lambda: [len(story.pods.get(name, ())) for name in ("j-a-0", "j-a-1")] == [2, 2])
    wait_for(lambda: story.phases("j")[-2:] == ["Pending", "Running"] and story.phase("j") == "Running")
    assert {name: len(uids) for name, uids in story.pods.items()} == {"j-a-0": 2, "j-a-1": 2, "j-b-0": 1, "j-b-1": 1}
    assert story.job("j").status.retry_count == 1
    assert story.most_terminating("j", "Restarting") >= 1


def test_scaling_raises_no_policy(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Up, down, to zero and back: a policy for every event sees none of it, and the pods that stay are the same."""
    made = story.create(job("j", namespace, task("w", 3, minAvailable=1), policies=[policy("AbortJob", "*")]))
    group = f"j-{made.metadata.uid}"
    wait_for(lambda: story.job("j").status.running == 3)
    for replicas in (5, 1, 0, 2):
        least = min(1, replicas)
        operations = [
            {"op": "replace", "path": "/spec/tasks/0/replicas", "value": replicas},
            {"op": "replace", "path": "/spec/tasks/0/minAvailable", "value": least},
            {"op": "replace", "path": "/spec/minAvailable", "value": least},
        ]
        story.client.json_patch(JOBS, "j", operations, namespace)
        wait_for(lambda n=replicas: len(story.alive()) == n and story.job("j").status.running == n)
        assert story.client.get(POD_GROUPS, group, namespace).spec.min_member == min(1, replicas)
    assert "Aborting" not in story.phases("j")
    assert story.job("j").status.retry_count == 0
    assert [len(story.pods[f"j-w-{i}"]) for i in range(5)] == [2, 2, 1, 1, 1]


@pytest.mark.alone
def test_a_pending_timeout_is_about_pods_that_are_pending_still(
    plane: Plane, story: Story, namespace: str, wait_for: WaitFor
) -> None:
    """A pod that fits nowhere aborts its Job; one that ran in time does not, also not when the controller restarts."""
    policies = [policy("AbortJob", "PodPending", timeout="10s")]
    story.create(job("good", namespace, task("w", 1), policies=policies))
    wait_for(lambda: story.phase("good") == "Running")
    plane.part("controller").restart()
    # Its timer would be due before the one of the Job that comes now.
    nowhere = task("nowhere", 1, minAvailable=0)
    nowhere["template"]["spec"]["nodeSelector"] = {"no": "where"}
    story.create(job("stuck", namespace, task("w", 1), nowhere, policies=policies))
    wait_for(lambda: story.phase("stuck") == "Aborted", 60)
    assert story.phases("good") == ["", "Pending", "Running"]
    wait_for(lambda: "Execute action AbortJob after 10s" in story.events("ExecuteAction"))


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
