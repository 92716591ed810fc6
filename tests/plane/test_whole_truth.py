"""What `ps`, `explain` and the status of an owner say of workloads that failed, wait without pods, or were evicted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kubelets import kubelet, serve_all_nodes
from planes import Muster, drop_queue, drop_workloads
from train_jobs import EXIT, RUN, train_job

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import EVENTS, INDEXED_JOBS, NAMESPACES, PODS, PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
JSON = dict[str, Any]
PATIENCE_S = 60.0
GPU = "nvidia.com/gpu"
QUOTAS: Resource[JSON] = Resource("", "v1", "resourcequotas", "ResourceQuota", dict[str, Any])
RAW_JOBS: Resource[JSON] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])


def plain(name: str, pods: int = 2, labels: JSON | None = None, annotations: JSON | None = None, **spec: Any) -> JSON:
    """A Job of Kubernetes in the queue `default`, whose pods start together."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    metadata = {"name": name, "labels": {names.QUEUE: "default"} if labels is None else labels}
    metadata["annotations"] = {names.MIN_MEMBER: str(pods), **(annotations or {})}
    run = spec.pop("run", {})
    template = {"metadata": {"annotations": run}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    counts = {"parallelism": pods, "completions": pods, "backoffLimit": 0}
    return {"metadata": metadata, "spec": {**counts, "template": template, **spec}}


def with_gpus(job: JSON, gpus: int = 8) -> JSON:
    """The Job with so many GPUs per pod."""
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {GPU: gpus}, "requests": {"cpu": "1"}}
    return job


def volcano(name: str, **annotations: str) -> JSON:
    """A Volcano Job of two pods."""
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    task = {"name": "w", "replicas": 2, "template": {"metadata": {"annotations": annotations}, "spec": spec}}
    return {"metadata": {"name": name}, "spec": {"schedulerName": "volcano", "minAvailable": 2, "tasks": [task]}}


@pytest.fixture
def said(muster: Muster, namespace: str) -> Callable[..., JSON]:
    """The row of a workload in `muster ps -a`; empty without one."""

    def row(name: str) -> JSON:
        found = json.loads(muster("ps", "-a", f"--namespace={namespace}", "-o", "json"))["gangs"]
        return next((each for each in found if each["name"] == name), {})

    return row


@pytest.fixture
def explained(plane: Plane, namespace: str) -> Callable[[str], str]:
    """What `muster explain job` prints, on standard output and error."""

    def explain(name: str) -> str:
        arguments = ["explain", "job", name, "-n", namespace, "--kubeconfig", str(plane.kubeconfig)]
        return CliRunner().invoke(main, arguments).output

    return explain


@pytest.mark.alone
def test_why_a_workload_failed(
    client: Client, namespace: str, muster: Muster, wait_for: WaitFor, tmp_path: Path,
    said: Callable[[str], JSON], explained: Callable[[str], str],
) -> None:  # fmt: skip
    """The pod that failed first, its exit code, what the owner says, and the last line of its log."""
    run = {RUN: "0.1", EXIT: "139"}
    client.create(INDEXED_JOBS, plain("batch", run=run), namespace)
    client.create(JOBS, volcano("volc", **run), namespace)
    client.create(TRAIN_JOBS, train_job("fit", nodes=2, run_s=0.1, exit_code=3), namespace)
    code = {"batch": "exit code 139 (SIGSEGV)", "volc": "exit code 139 (SIGSEGV)", "fit": "exit code 3"}
    for name, words in code.items():
        wait_for(lambda name=name: said(name).get("state") == "Failed", PATIENCE_S, f"{name} to fail")
        row = said(name)
        assert row["reason"].startswith("pod ")
        assert row["reason"].endswith(words), row
        assert f"failed: {words}" in row["message"].replace("container main: ", "").replace("container node: ", "")
    wait_for(lambda: "backoffLimit 0" in said("batch")["message"], PATIENCE_S, "what the Job says")
    assert "exit code 139 (SIGSEGV)" in client.get(JOBS, "volc", namespace).status.state.message
    [ended] = [each for each in client.get(TRAIN_JOBS, "fit", namespace).status.conditions if each.type == "Failed"]
    assert "exit code 3" in ended.message
    # Only the plain Job keeps its PodGroup, which reports the end slightly later than the Job.
    wait_for(lambda: [each.status.phase for each in client.list(POD_GROUPS, namespace)] == ["Completed"], PATIENCE_S)
    with kubelet(tmp_path) as one, serve_all_nodes(client, one):
        log = "last line of the log of pod "
        for name, words in code.items():
            text = explained(name)
            assert "it failed: " in text
            assert words in text
            assert log in text
            assert text.rstrip().endswith("another")
        assert len(one.asked) == len(code)  # one request each
        view = muster("job", "view", "volc", f"--namespace={namespace}")
        assert "exit code 139 (SIGSEGV)" in view
        assert f"{log}volc-w-0: another" in view or f"{log}volc-w-1: another" in view


def test_what_has_no_pods_is_visible(
    client: Client, namespace: str, muster: Muster, wait_for: WaitFor,
    said: Callable[[str], JSON], explained: Callable[[str], str],
) -> None:  # fmt: skip
    """Each with the reason, in the words of who refuses its pods."""
    client.create(RAW_JOBS, plain("held", suspend=True), namespace)
    client.create(TRAIN_JOBS, train_job("fit", nodes=2, suspend=True), namespace)
    client.create(RAW_JOBS, plain("astray", labels={}, annotations={names.QUEUE: "default"}), namespace)
    wait_for(lambda: said("fit").get("state") == "Suspended", PATIENCE_S, "the TrainJob to be suspended")
    assert {"held", "fit"} <= {
        *muster("ps", "--mine", "-o", "name", f"--namespace={namespace}").replace("/", "\n").split()
    }
    row = said("held")
    assert (row["state"], row["wanted"]) == ("Suspended", 2)
    assert "muster release held" in row["reason"]
    assert f"it is suspended (held): `muster release held -n {namespace}` starts it" in explained("held")
    assert f"it is suspended (held): `muster release fit -n {namespace}` starts it" in explained("fit")
    assert said("astray")["message"].startswith("it has no label muster.dev/queue, so Muster does not place its pods")
    assert "metadata.annotations[muster.dev/queue]" in explained("astray")
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"count/pods": "1"}}}
    client.create(QUOTAS, quota, namespace)
    client.delete(RAW_JOBS, "astray", namespace)
    wait_for(lambda: client.get(QUOTAS, "few", namespace).get("status"), PATIENCE_S, "the quota to count")
    client.create(RAW_JOBS, plain("refused", 4), namespace)
    wait_for(lambda: "exceeded quota: few" in said("refused").get("reason", ""), PATIENCE_S, "the reason")
    assert said("refused")["state"] == "Waiting"
    assert "exceeded quota: few" in explained("refused")
    assert "there is no job with a gang" not in explained("refused")


@pytest.mark.alone
def test_explain_does_not_contradict_itself(
    client: Client, plane: Plane, namespace: str, wait_for: WaitFor,
    said: Callable[[str], JSON], explained: Callable[[str], str],
) -> None:  # fmt: skip
    """An evicted gang has no nodes, the whole gang lacks room, and what cannot help is not offered."""

    def running(name: str) -> int:
        return sum(pod.status.phase == "Running" for pod in client.list(PODS, namespace) if name in pod.metadata.name)

    wait_for(lambda: not any(pod.spec.node_name and not pod.finished for pod in client.list(PODS)), PATIENCE_S, "room")
    client.create(PRIORITY_CLASSES, {"metadata": {"name": namespace}, "value": 1000})
    client.create(QUEUES, {"metadata": {"name": namespace}, "spec": {"capability": {GPU: "8"}}})
    try:
        client.create(RAW_JOBS, with_gpus(plain("low", 8)), namespace)
        client.create(JOBS, volcano("volc"), namespace)
        client.create(TRAIN_JOBS, train_job("fit", nodes=2), namespace)
        wait_for(lambda: [*map(running, ("low", "volc", "fit"))] == [8, 2, 2], PATIENCE_S, "all to run")
        events = client.list(EVENTS, namespace)
        assert [each.message for each in events if each.type == "Warning"] == []
        urgent = with_gpus(plain("urgent", 8))
        urgent["spec"]["template"]["spec"]["priorityClassName"] = namespace
        client.create(RAW_JOBS, urgent, namespace)
        wait_for(lambda: running("urgent") == 8, PATIENCE_S, "the urgent one to run")
        text = explained("low")
        assert "it waits: " in text  # as its pods were evicted, or for room once the Job has made new ones
        assert "Bound" not in text
        assert "\non " not in text
        tasks = [
            {"name": name, "replicas": pods, "template": with_gpus(plain("x"))["spec"]["template"]}
            for name, pods in (("master", 1), ("worker", 3))
        ]
        spec = {"schedulerName": "volcano", "minAvailable": 4, "tasks": tasks}
        client.create(JOBS, {"metadata": {"name": "ddp"}, "spec": spec}, namespace)
        wait_for(lambda: f"no room for 4 pods of 8 {GPU}" in said("ddp").get("reason", ""), PATIENCE_S, "its reason")
        assert f"4 more nodes with 8 free {GPU} are needed" in explained("ddp")
        client.create(JOBS, {"metadata": {"name": "huge"}, "spec": {**spec, "queue": namespace}}, namespace)
        wait_for(lambda: "(capability)" in said("huge").get("message", ""), PATIENCE_S, "its reason")
        text = explained("huge")
        assert "never fit; request less, or raise its capability" in text
        assert "would help" not in text
    finally:
        drop_workloads(plane, namespace)
        client.delete(PRIORITY_CLASSES, namespace)
        drop_queue(client, namespace)


def test_a_namespace_that_is_being_deleted_is_the_reason(
    client: Client, namespace: str, muster: Muster, wait_for: WaitFor
) -> None:
    """What waits in it does not start any more."""
    name = f"{namespace}-goes"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    job = plain("held", suspend=True)
    job["metadata"]["finalizers"] = ["tests.muster.dev/stays"]
    client.create(RAW_JOBS, job, name)
    client.delete(NAMESPACES, name)

    def reason() -> str:
        [row] = json.loads(muster("ps", f"--namespace={name}", "-o", "json"))["gangs"]
        return str(row["reason"])

    try:
        wait_for(lambda: reason() == f"namespace {name} is being deleted", PATIENCE_S, "the reason")
    finally:
        client.merge_patch(RAW_JOBS, "held", {"metadata": {"finalizers": None}}, name)
