"""A Volcano Job from submission to its end: the phases that a client sees, and what exists meanwhile."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jobs import Story, command, job, policy, task

from muster.api import names
from muster.api.base import Resource
from muster.api.batch import JOBS
from muster.api.bus import COMMANDS
from muster.api.compat import RESUME_COUNTS, TTL_SPARES_ABORTED
from muster.api.core import CONFIG_MAPS, LEASES, PODS, SERVICES
from muster.api.gang import gated
from muster.api.scheduling import POD_GROUPS
from muster.api.storage import CLAIMS
from muster.kube.errors import NotFound
from muster.local.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
RAW_CONFIG_MAPS: Resource[dict[str, Any]] = Resource("", "v1", "configmaps", "ConfigMap", dict[str, Any])
RAW_PODS: Resource[dict[str, Any]] = Resource("", "v1", "pods", "Pod", dict[str, Any])


@pytest.fixture
def story(plane: Plane, namespace: str) -> Iterator[Story]:
    """What happens in the test's namespace."""
    with Story(plane.client(), namespace) as one:
        yield one


def gone(story: Story, resource: Resource[Any], name: str) -> bool:
    """Whether there is no such object."""
    try:
        story.client.get(resource, name, story.namespace)
    except NotFound:
        return True
    return False


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
    assert gone(story, SERVICES, "j")
    assert gone(story, CONFIG_MAPS, "j-svc")
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
    assert story.job("j").status.state.message == "task a: 0 pods succeeded, 1 are needed"
    assert story.phases("j") == ["", "Pending", "Running", "Failed"]


def test_restart_storm_counts_once(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Eight pods fail at once: one restart, seen with pods terminating; with maxRetry 2 the second one ends the Job."""
    policies = [policy("RestartJob", "PodFailed")]
    story.create(job("j", namespace, task("w", 8, run_s=0.5, exit_code=1), policies=policies, maxRetry=2))
    wait_for(lambda: story.phase("j") == "Failed", 60)
    status = story.job("j").status
    assert (status.retry_count, status.state.reason) == (2, "MaxRetryReached")
    phases = story.phases("j")
    assert phases == ["", "Pending", "Running", "Restarting", "Pending", "Running", "Restarting", "Failed"]
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


def test_commands_suspend_and_resume(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Suspended and resumed, twice: the Job runs, no retry is used up, the Commands are gone."""
    made = story.create(job("j", namespace, task("w", 3)))
    for _ in range(2):
        wait_for(lambda: story.phase("j") == "Running")
        story.client.create(COMMANDS, command("AbortJob", made), namespace)
        wait_for(lambda: story.phase("j") == "Aborted")
        assert not story.alive()
        story.client.create(COMMANDS, command("ResumeJob", made), namespace)
    wait_for(lambda: story.phase("j") == "Running")
    once = ["Pending", "Running", "Aborting", "Aborted", "Restarting"]
    assert story.phases("j") == ["", *once, *once, "Pending", "Running"]
    assert story.most_terminating("j", "Aborting") == 3
    assert story.job("j").status.retry_count == 0
    wait_for(lambda: not story.client.list(COMMANDS, namespace))


@pytest.mark.parametrize(("action", "phases"), [
    ("TerminateJob", ["Terminating", "Terminated"]),
    ("CompleteJob", ["Completing", "Completed"]),
    ("RestartJob", ["Restarting", "Pending", "Running"]),
])  # fmt: skip
def test_commands(story: Story, namespace: str, wait_for: WaitFor, action: str, phases: list[str]) -> None:
    """Each action as a Command; one to an earlier Job of this name and one that nobody knows are dropped."""
    made = story.create(job("j", namespace, task("w", 2)))
    wait_for(lambda: story.phase("j") == "Running")
    story.client.create(COMMANDS, command("AbortJob", made, uid="another"), namespace)
    story.client.create(COMMANDS, command("Dance", made), namespace)
    story.client.create(COMMANDS, command(action, made), namespace)
    wait_for(lambda: story.phases("j") == ["", "Pending", "Running", *phases])
    wait_for(lambda: not story.client.list(COMMANDS, namespace))
    words = wait_for(lambda: len(story.events("CommandIssued")) >= 3 and " ".join(story.events("CommandIssued")))
    assert "earlier Job" in words
    assert "unknown action 'Dance'" in words


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


def test_a_name_that_is_taken_is_said(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A foreign pod in the way: event, reason and message say whose it is; the other pods exist; later all is well."""
    foreign = {
        "metadata": {"name": "j-w-1"},
        "spec": {"containers": [{"name": "c", "image": "none"}], "nodeSelector": {"no": "where"}},
    }
    story.client.create(PODS, foreign, namespace)
    story.create(job("j", namespace, task("w", 2, minAvailable=1), minAvailable=1))
    state = wait_for(lambda: story.job("j").status.state.reason == "FailedCreate" and story.job("j").status.state)
    assert "pod j-w-1 exists already and belongs to nobody" in state.message
    wait_for(lambda: story.events("FailedCreate"))
    wait_for(lambda: "j-w-0" in story.pods)
    story.client.delete(PODS, "j-w-1", namespace, grace_period_s=0)
    wait_for(lambda: story.job("j").status.running == 2)


def test_a_plugin_that_cannot_work_stops_the_job(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """The Job must not run without it, and says so."""
    story.create(job("j", namespace, task("w", 1), plugins={"ssh": ["--ssh-private-key=none"]}))
    state = wait_for(lambda: story.job("j").status.state.reason == "PluginError" and story.job("j").status.state)
    assert "ssh-private-key: the private key cannot be read" in state.message
    wait_for(lambda: story.events("PluginError"))
    assert not story.pods


def test_a_pod_that_stays_pending_aborts(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """PodPending counts after its timeout, and only for pods that are pending still."""
    policies = [policy("AbortJob", "PodPending", timeout="2s")]
    stuck = task("w", 1)
    stuck["template"]["spec"]["nodeSelector"] = {"no": "where"}
    story.create(job("good", namespace, task("w", 1), policies=policies))
    made = story.create(job("stuck", namespace, stuck, policies=policies))
    wait_for(lambda: story.phase("good") == "Running")
    # The planner admits no gang that fits nowhere; admitted by hand, its pod is born gated and stays so.
    group = f"stuck-{made.metadata.uid}"
    wait_for(lambda: not gone(story, POD_GROUPS, group))
    story.client.merge_patch(POD_GROUPS, group, {"status": {"phase": "Inqueue"}}, namespace)
    wait_for(lambda: story.phase("stuck") == "Aborted")
    assert "stuck-w-0" in story.pods
    wait_for(lambda: "Execute action AbortJob after 2s" in story.events("ExecuteAction"))
    assert story.phases("good") == ["", "Pending", "Running"]


def test_claims_are_made_for_the_job(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A volume without a claim's name gets one of its own, which is the Job's."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/scratch", "volumeClaim": claim}]
    made = story.create(job("j", namespace, task("w", 1), volumes=volumes))
    found = wait_for(lambda: story.client.list(CLAIMS, namespace))[0]
    assert found.metadata.controller is not None
    assert found.metadata.controller.uid == made.metadata.uid
    key = f"volume-pvc-{found.metadata.name}"
    wait_for(lambda: story.job("j").status.controlled_resources.get(key) == found.metadata.name)


def test_a_deleted_job_takes_everything_along(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """Pods, PodGroup and Service are the Job's."""
    made = story.create(job("j", namespace, task("w", 2), plugins={"svc": []}))
    wait_for(lambda: story.phase("j") == "Running")
    story.client.delete(JOBS, "j", namespace)
    wait_for(lambda: not story.alive())
    wait_for(lambda: gone(story, SERVICES, "j") and gone(story, POD_GROUPS, f"j-{made.metadata.uid}"))


def test_a_finished_job_is_deleted_after_its_time(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """TtlSecondsAfterFinished counts from the end."""
    story.create(job("j", namespace, task("w", 1, run_s=0.5), ttlSecondsAfterFinished=2))
    wait_for(lambda: "Completed" in story.phases("j"))
    wait_for(lambda: gone(story, JOBS, "j"))


@pytest.mark.parametrize("moment", ["submitted", "pending", "group", "pod"])
def test_the_controller_is_killed(plane: Plane, story: Story, namespace: str, wait_for: WaitFor, moment: str) -> None:
    """Kill -9 before, between and after the writes of a start: the Job ends right, and no seat is taken twice."""
    made = story.create(job("j", namespace, task("w", 12, run_s=0.5)))
    moments: dict[str, Callable[[], bool]] = {
        "submitted": lambda: True,
        "pending": lambda: "Pending" in story.phases("j"),
        "group": lambda: not gone(story, POD_GROUPS, f"j-{made.metadata.uid}"),
        "pod": lambda: "j-w-0" in story.pods,
    }
    wait_for(moments[moment])
    kill_and_start(plane)
    wait_for(lambda: story.phase("j") == "Completed")
    assert [len(story.ran[f"j-w-{i}"]) for i in range(12)] == [1] * 12
    assert story.phases("j") == ["", "Pending", "Running", "Completed"]


@pytest.mark.parametrize("action", ["AbortJob", "RestartJob"])
def test_the_controller_is_killed_in_an_action(
    plane: Plane, story: Story, namespace: str, wait_for: WaitFor, action: str
) -> None:
    """Kill -9 as soon as the action shows in the status: it is completed after the start, and counted once."""
    made = story.create(job("j", namespace, task("w", 12)))
    wait_for(lambda: story.phase("j") == "Running")
    story.client.create(COMMANDS, command(action, made), namespace)
    wait_for(lambda: len(story.phases("j")) > 3, what="the phase that the action enters")
    kill_and_start(plane)
    end = "Aborted" if action == "AbortJob" else "Running"
    wait_for(lambda: story.phases("j")[-1] == end and story.phase("j") == end)
    wait_for(lambda: not story.client.list(COMMANDS, namespace))
    status = story.job("j").status
    assert (status.version, status.retry_count) == (1, 0 if action == "AbortJob" else 1)
    assert len(story.alive()) == (0 if action == "AbortJob" else 12)


def kill_and_start(plane: Plane) -> None:
    """Kills the controller and starts another, whose dead predecessor's lease is up at once."""
    plane.part("controller").kill()
    patch = {"spec": {"holderIdentity": ""}}
    plane.client().merge_patch(LEASES, names.CONTROLLER_LEASE, patch, names.SYSTEM_NAMESPACE)
    plane.part("controller").start()


def test_pods_are_members_of_their_gang(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """A pod that runs carries its gang, its version, and the node and epoch of the placement that put it there."""
    made = story.create(job("j", namespace, task("w", 2)))
    wait_for(lambda: story.phase("j") == "Running")
    for pod in story.alive():
        annotations = pod.metadata.annotations
        assert annotations[names.GROUP_NAME] == f"j-{made.metadata.uid}"
        assert (annotations[names.JOB_VERSION], annotations[names.TEMPLATE_UID]) == ("0", "j-w")
        assert annotations[names.NODE] == pod.spec.node_name
        assert annotations[names.EPOCH] == "1"
        assert not gated(pod)


def test_resuming_counts_where_the_job_asks_for_it(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """With `muster.dev/compat: resume-counts` the second resume is one restart too many for maxRetry 2."""
    manifest = job("j", namespace, task("w", 1), maxRetry=2)
    manifest["metadata"]["annotations"] = {names.COMPAT: RESUME_COUNTS}
    made = story.create(manifest)
    for retries, end in ((1, "Running"), (2, "Failed")):
        wait_for(lambda: story.phase("j") == "Running")
        story.client.create(COMMANDS, command("AbortJob", made), namespace)
        wait_for(lambda: story.phase("j") == "Aborted")
        story.client.create(COMMANDS, command("ResumeJob", made), namespace)
        wait_for(lambda wanted=end: story.phase("j") == wanted)
        assert story.job("j").status.retry_count == retries


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
    wait_for(lambda: [len(story.ran[name]) for name in ("j-w-2", "j-w-3")] == [2, 2] and story.phase("j") == "Running")
    assert {name for name, uids in story.ran.items() if len(uids) > 1} == {"j-w-2", "j-w-3"}
    assert story.job("j").status.retry_count == 1


def test_every_end_is_followed_by_deletion(story: Story, namespace: str, wait_for: WaitFor) -> None:
    """TtlSecondsAfterFinished also counts from an abort; the Job that asks otherwise stays."""
    made = story.create(job("j", namespace, task("w", 1), ttlSecondsAfterFinished=1))
    manifest = job("spared", namespace, task("w", 1), ttlSecondsAfterFinished=1)
    manifest["metadata"]["annotations"] = {names.COMPAT: TTL_SPARES_ABORTED}
    spared = story.create(manifest)
    wait_for(lambda: {story.phase("j"), story.phase("spared")} == {"Running"})
    for one in (spared, made):
        story.client.create(COMMANDS, command("AbortJob", one), namespace)
    wait_for(lambda: gone(story, JOBS, "j"))
    assert story.phase("spared") == "Aborted"
    assert story.job("spared").status.running_duration
