"""A call of the controller that is refused stops no more than it must, and is told, on the simulated cluster."""

from typing import Any

import pytest
from simulated_cluster import Cluster
from simulated_jobs import add, brief, fail, job, order, pods, submit, task, told, turn

from controller.job import provision
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import Forbidden
from muster.volcano.plugins.base import JobPlugin, PluginError


def refuse(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, verb: str, name: str) -> None:
    """From now on this verb is forbidden for the pod or other object of this name."""
    call = getattr(cluster.api, verb)

    def refused(res: Any, what: Any, *args: Any, **kwargs: Any) -> Any:
        called = what["metadata"]["name"] if isinstance(what, dict) else getattr(what, "metadata", what)
        if called == name:
            raise Forbidden("not for you")
        return call(res, what, *args, **kwargs)

    monkeypatch.setattr(cluster.api, verb, refused)


def test_one_pod_that_cannot_be_created_holds_up_no_phase(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """An elastic Job runs, and completes, with the pods that it could get."""
    refuse(cluster, monkeypatch, "create", "j-w-5")
    add(cluster, "j", task("w", 6), minAvailable=3, minSuccess=3)
    for _ in range(10):
        turn(cluster, pause_s=5)
        cluster.plan(everything=True)
        cluster.run_pods(everything=True)
    status = job(cluster, "j").status
    assert (status.state.phase, status.running, status.state.reason) == ("Running", 5, "FailedCreate")
    for pod in pods(cluster):
        cluster._phase(pod, "Succeeded", exit_code=0)
    turn(cluster, 10, pause_s=5)
    assert brief(cluster) == ("Completed", 0)


def test_a_used_up_quota_costs_few_calls_and_one_event(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass gives up pods of these amounts after a few refusals, of all tasks; a task of other pods has its tries."""
    call, asked, events = cluster.api.create, list[str](), told(cluster)

    def create(res: Any, what: Any, *args: Any, **kwargs: Any) -> Any:
        if res is PODS:
            asked.append(what["metadata"]["name"])
            if what["metadata"]["name"].startswith("j-w"):
                raise Forbidden("exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5")
        return call(res, what, *args, **kwargs)

    monkeypatch.setattr(cluster.api, "create", create)
    small = task("v", 5)
    small["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1m"}}
    equal = [task(f"w{number}", 1) for number in range(100)]
    add(cluster, "j", task("w", 2000), *equal, small, minAvailable=1)
    cluster.deliver(everything=True)
    cluster.work(1)
    cluster.plan(everything=True)
    cluster.deliver(everything=True)
    cluster.work(1)
    assert asked == ["j-w-0", "j-w-1", "j-w-2", *(f"j-v-{index}" for index in range(5))]
    [message] = [message for reason, message in events if reason == "FailedCreate"]
    assert "pod j-w-0 cannot be created" in message
    assert message.endswith("limited: pods=5 (and 3 more)")
    monkeypatch.undo()
    assert cluster.converge()
    assert job(cluster, "j").status.running == 2105


def test_no_command_waits_for_a_pod_that_cannot_be_deleted(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is carried out, and what stays is told."""
    made = submit(cluster, "j", 2, {"events": ["PodFailed"], "action": "RestartPod"})
    refuse(cluster, monkeypatch, "delete", "j-w-0")
    fail(cluster, "j-w-0")
    turn(cluster, 3, pause_s=31)
    status = job(cluster, "j").status
    assert (status.state.phase, status.state.reason, status.failed) == ("Restarting", "FailedDelete", 1)
    order(cluster, "AbortJob", made)
    turn(cluster, 5, pause_s=31)
    cluster.run_pods(everything=True)
    turn(cluster, 5, pause_s=31)
    assert brief(cluster) == ("Aborted", 1)


def test_an_object_that_cannot_be_changed_stops_no_job(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pods are counted, and end it."""
    submit(cluster, "j", 2, plugins={"svc": []})
    refuse(cluster, monkeypatch, "apply", "j")
    cluster.api.change(JOBS, "j", {"spec": {"tasks": [task("w", 3)]}}, "n")
    turn(cluster, 2, pause_s=5)
    assert job(cluster, "j").status.state.reason == "PluginError"
    cluster.api.change(JOBS, "j", {"spec": {"tasks": [task("w", 2)]}}, "n")
    for pod in pods(cluster):
        cluster._phase(pod, "Failed", exit_code=1)
    turn(cluster, 5, pause_s=31)
    assert brief(cluster) == ("Failed", 0)


class Broken(JobPlugin):
    """A plugin that cannot shape pods."""

    def shape(self, *_: Any) -> None:
        """Fails."""
        raise PluginError("spec.plugins[x]: boom")


def test_a_plugin_that_fails_at_a_pod_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """As reason of the Job and as its event, and the API server is not asked again and again."""
    monkeypatch.setattr(provision, "plugins_for", lambda _: [Broken([])])
    events = told(cluster)
    add(cluster, "j", task("w", 1), plugins={"x": []})
    turn(cluster)
    cluster.plan(everything=True)
    turn(cluster, 2, pause_s=1)
    assert job(cluster, "j").status.state.reason == "PluginError"
    assert ("PluginError", "spec.plugins[x]: boom") in events
    told_so_far = len(events)
    turn(cluster, 5, pause_s=31)
    assert len(events) == told_so_far


def test_an_uninstalled_plugin_does_not_keep_the_job_running(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pods that there are end it."""

    def missing(_: Any) -> Any:
        raise PluginError("spec.plugins: svc: unknown")

    submit(cluster, "j", 2, plugins={"svc": []})
    monkeypatch.setattr(provision, "plugins_for", missing)
    cluster.restart()
    turn(cluster)
    for pod in pods(cluster):
        cluster._phase(pod, "Succeeded", exit_code=0)
    turn(cluster, 3, pause_s=31)
    assert brief(cluster) == ("Completed", 0)


@pytest.mark.parametrize("verb", ["merge_patch", "delete"])
def test_pods_that_are_too_many_decide_nothing(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """Of four pods two have ended, and just these are scaled away, which fails: the others run on."""
    submit(cluster, "j", 4, minAvailable=1)
    for name in ("j-w-2", "j-w-3"):
        refuse(cluster, monkeypatch, verb, name)
        cluster._phase(cluster.api.find(PODS, name, "n"), "Succeeded", exit_code=0)
    turn(cluster)
    cluster.api.change(JOBS, "j", {"spec": {"tasks": [task("w", 2)]}}, "n")
    turn(cluster, 3, pause_s=31)
    status = job(cluster, "j").status
    assert (status.state.phase, status.running, status.succeeded) == ("Running", 2, 2)
    assert status.state.reason == "FailedDelete"


def test_a_group_that_cannot_be_deleted_is_told(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pods are counted all the same, and the Command is gone."""
    made = submit(cluster, "j", 2)
    events = told(cluster)
    (group,) = cluster.api.all(POD_GROUPS)
    refuse(cluster, monkeypatch, "delete", group.metadata.name)
    order(cluster, "AbortJob", made)
    turn(cluster, 2, pause_s=1)
    cluster.run_pods(everything=True)
    turn(cluster, 3, pause_s=31)
    status = job(cluster, "j").status
    assert (status.state.phase, status.state.reason, status.terminating) == ("Aborting", "PodGroupError", 0)
    assert any(reason == "PodGroupError" for reason, _ in events)
    assert not cluster.api.all(COMMANDS)


def test_a_command_that_cannot_be_deleted_stops_no_job(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is carried out once, and deleted when that is possible."""
    order(cluster, "RestartJob", submit(cluster, "j", 2), "again")
    with monkeypatch.context() as patched:
        refuse(cluster, patched, "delete", "again")
        turn(cluster, 2, pause_s=1)
        cluster.run_pods(everything=True)
        turn(cluster, 2, pause_s=31)
        assert brief(cluster) == ("Pending", 1)
    assert cluster.converge()
    assert brief(cluster) == ("Running", 1)
    assert not cluster.api.all(COMMANDS)


def test_the_reason_for_which_a_job_ended_stays(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that cannot be deleted afterwards is told in an event."""
    submit(cluster, "j", 3, minSuccess=1)
    refuse(cluster, monkeypatch, "delete", "j-w-2")
    cluster._phase(cluster.api.find(PODS, "j-w-0", "n"), "Succeeded", exit_code=0)
    turn(cluster, 4, pause_s=31)
    assert job(cluster, "j").status.state.reason == "MinSuccessReached"
