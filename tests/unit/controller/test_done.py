"""Members of a Volcano Job that have succeeded, and whose pods go with their nodes, on the simulated cluster."""

import pytest
from simulated_cluster import Cluster
from simulated_jobs import command, fail, job, pods, submit, told, turn

from controller.job.effects import PODS_DELETED
from controller.job.rules.status import only_counters
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JobStatus
from muster.volcano.done import SUCCEEDED

RESTARTS = {"event": "PodEvicted", "action": "RestartJob"}


def succeed(cluster: Cluster, name: str) -> None:
    """A pod succeeds, and all is quiet."""
    cluster._phase(cluster.api.find(PODS, name, "n"), "Succeeded", exit_code=0)
    assert cluster.converge()


def collect(cluster: Cluster, name: str) -> None:
    """A pod is removed, as by the garbage collector when its node is gone."""
    cluster.api.remove(PODS, cluster.api.find(PODS, name, "n"), at_once=True)


def disrupt(cluster: Cluster, name: str) -> None:
    """A pod is about to be deleted for a taint of its node."""
    conditions = [{"type": "DisruptionTarget", "status": "True"}]
    cluster.api.change(PODS, name, {"status": {"conditions": conditions}}, "n", subresource="status")


def one_gone(cluster: Cluster, *policies: dict[str, str], died: bool = False, disrupted: bool = False) -> None:
    """Job `j` of two runs; the second member has succeeded, and its pod is gone."""
    submit(cluster, "j", 2, *policies)
    succeed(cluster, "j-w-1")
    if disrupted:
        disrupt(cluster, "j-w-1")
    collect(cluster, "j-w-1")
    if died:
        cluster.restart()
    assert cluster.converge()


def names(cluster: Cluster) -> list[str]:
    """The pods that exist."""
    return sorted(pod.metadata.name for pod in pods(cluster))


@pytest.mark.parametrize("disrupted", [False, True])
@pytest.mark.parametrize("died", [False, True])
def test_finished_work_is_not_done_again(cluster: Cluster, *, died: bool, disrupted: bool) -> None:
    """The Job runs on with the rest, and ends with it; policies fire once, and not for the pod that is gone."""
    one_gone(cluster, RESTARTS, {"event": "TaskCompleted", "action": "CompleteJob"}, died=died, disrupted=disrupted)
    status = job(cluster, "j").status
    assert names(cluster) == ["j-w-0"]
    assert (status.state.phase, status.running, status.succeeded, status.retry_count) == ("Running", 1, 1, 0)
    assert status.task_status_count["w"].phase == {"Running": 1, "Succeeded": 1}
    events = told(cluster)
    succeed(cluster, "j-w-0")
    status = job(cluster, "j").status
    assert (status.state.phase, status.succeeded, status.retry_count) == ("Completed", 2, 0)
    assert [reason for reason, _ in events].count("ExecuteAction") == 1


def test_only_the_others_are_missed(cluster: Cluster) -> None:
    """The first of three is done and gone when the second is lost: only that one comes again."""
    submit(cluster, "j", 3, {"event": "PodEvicted", "action": "RestartPod"})
    succeed(cluster, "j-w-0")
    for name in ("j-w-0", "j-w-1"):
        collect(cluster, name)
    assert cluster.converge()
    status = job(cluster, "j").status
    assert names(cluster) == ["j-w-1", "j-w-2"]
    assert (status.state.phase, status.running, status.succeeded, status.retry_count) == ("Running", 2, 1, 1)


@pytest.mark.parametrize(("action", "again"), [
    ("RestartJob", True), ("RestartTask", True), ("RestartPod", False), ("ResumeJob", False),
])  # fmt: skip
def test_what_a_restart_covers_is_done_again(cluster: Cluster, action: str, *, again: bool) -> None:
    """A restart of another pod, and a suspension, leave it as it is; nobody deletes a pod that is gone."""
    one_gone(cluster, {"event": "PodFailed", "action": action})
    if action == "ResumeJob":
        command(cluster, "AbortJob", job(cluster, "j"))
        assert job(cluster, "j").status.succeeded == 1
        command(cluster, action, job(cluster, "j"))
    else:
        before = PODS_DELETED.labels("Restart")._value.get()
        fail(cluster, "j-w-0")
        turn(cluster)
        assert PODS_DELETED.labels("Restart")._value.get() == before + 1
        assert job(cluster, "j").status.terminating == 1
    assert cluster.converge()
    status = job(cluster, "j").status
    assert names(cluster) == ["j-w-0", "j-w-1"][: 1 + again]
    assert (status.state.phase, status.running, status.succeeded) == ("Running", 1 + again, 1 - again)


def test_a_pod_that_is_evicted_is_not_done(cluster: Cluster) -> None:
    """Its program answers the signal with exit code 0."""
    submit(cluster, "j", 2, {"event": "PodEvicted", "action": "RestartPod"})
    pod = cluster.api.find(PODS, "j-w-1", "n")
    disrupt(cluster, "j-w-1")
    succeed(cluster, "j-w-1")
    collect(cluster, "j-w-1")
    assert cluster.converge()
    [after] = [each for each in pods(cluster) if each.metadata.name == "j-w-1"]
    assert after.metadata.uid != pod.metadata.uid
    assert job(cluster, "j").status.retry_count == 1


def test_the_note_costs_no_write_of_its_own() -> None:
    """It is written with the counters, which wait until they rest."""
    assert only_counters(JobStatus(), JobStatus(controlled_resources={SUCCEEDED: "{}"}, succeeded=1))
