"""What users see of admission: bad input is refused with field paths, good input comes out complete."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from manifests import as_it_stands, changed, create, dry_run, refusal_of
from tenants import refusal

from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
IMAGE = "registry.k8s.io/pause"


def vcjob(**spec: Any) -> JSON:
    """A Volcano Job of two small pods."""
    template = {"spec": {"containers": [{"name": "main", "image": IMAGE}]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"tasks": [{"name": "worker", "replicas": 2, "template": template}], **spec},
    }


def batch_job(**labels: str) -> JSON:
    """A batch/v1 Indexed Job of two pods with labels of Muster's."""
    container = {"name": "node", "image": IMAGE, "env": [{"name": "MINE", "value": "1"}]}
    pods = {"restartPolicy": "Never", "containers": [container | {"resources": {"limits": {"cpu": "1500m"}}}]}
    metadata = {"name": "torch", "labels": {f"muster.dev/{key}": value for key, value in labels.items()}}
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": {"spec": pods}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


BAD: dict[str, tuple[JSON, list[str]]] = {
    "minAvailable over replicas": (changed(vcjob(), "spec.tasks.0.minAvailable", 3),
        ["spec.tasks[0].minAvailable", "at most 2"]),
    "job minAvailable over replicas": (vcjob(minAvailable=9), ["spec.minAvailable", "at most 2"]),
    "duplicate task": (vcjob(tasks=vcjob()["spec"]["tasks"] * 2), ["spec.tasks[1].name", "worker"]),
    "unknown queue": (vcjob(queue="nowhere"), ["spec.queue", "nowhere", "default"]),
    "unknown plugin": (vcjob(plugins={"scv": []}), ["spec.plugins[scv]", "pytorch"]),
    "70 characters": (changed(vcjob(), "metadata.name", "x" * 70), ["metadata.name", "63"]),
    "image misspelt": (changed(vcjob(), "spec.tasks.0.template.spec.containers.0.imgae", IMAGE),
        ["spec.tasks[0].template.spec.containers[0].imgae"]),
    "no tasks": (vcjob(tasks=[]), ["spec.tasks"]),
    "PET_NNODES by the user": (changed(batch_job(framework="torch"), "spec.template.spec.containers.0.env.0",
        {"name": "PET_NNODES", "value": "2"}),
        ["spec.template.spec.containers[0].env[0].name", "PET_NNODES", "remove it"]),
    "not indexed": (changed(batch_job(framework="torch"), "spec.completionMode", "NonIndexed"),
        ["spec.completionMode", "Indexed"]),
    "unknown framework": (batch_job(framework="torhc"), ["metadata.labels[muster.dev/framework]", "torch"]),
    "unknown queue of a batch Job": (batch_job(queue="nowhere"),
        ["metadata.labels[muster.dev/queue]", "nowhere", "default"]),
    "queue of a bare pod": ({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "one", "labels": {"muster.dev/queue": "nowhere"}},
        "spec": {"containers": [{"name": "main", "image": IMAGE}]}}, ["metadata.labels[muster.dev/queue]", "default"]),
    "queue that is its own ancestor": ({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "loop"}, "spec": {"parent": "loop"}}, ["spec.parent", "ancestor"]),
}  # fmt: skip


@pytest.mark.parametrize(("obj", "words"), BAD.values(), ids=BAD.keys())
def test_refused_when_it_is_created(shared_client: Client, obj: JSON, words: list[str]) -> None:
    """Bad input is refused with the field's path and what would be right."""
    said = refusal_of(shared_client, obj)
    assert [word for word in words if word not in said] == [], said


def test_kubectl_shows_several_errors_together(shared_plane: Plane) -> None:
    """One refusal names all that is wrong."""
    job = changed(vcjob(minAvailable=9, queue="nowhere", plugins={"scv": []}), "spec.tasks.0.minAvailable", 3)
    said = shared_plane.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(job))
    assert said.returncode
    for path in ("spec.tasks[0].minAvailable", "spec.minAvailable", "spec.queue", "spec.plugins[scv]"):
        assert path in said.stderr


def test_volcano_job_gets_defaults(shared_client: Client) -> None:
    """A Job of a few lines comes out with its own values written down; its tasks stay as they were sent."""
    spec = dry_run(shared_client, changed(vcjob(plugins={"pytorch": []}), "spec.tasks.0.name", ""))["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"], spec["minAvailable"]) == (
        "default",
        "volcano",
        3,
        2,
    )
    assert spec["plugins"] == {"pytorch": [], "svc": []}
    [task] = spec["tasks"]
    assert not task.get("name")
    assert not task.keys() & {"minAvailable", "maxRetry"}


def test_only_counts_may_change(shared_client: Client, namespace: str) -> None:
    """Scaling is allowed, another queue is not."""
    create(shared_client, vcjob(), namespace)

    def replace(path: str, value: Any) -> None:
        shared_client.json_patch(JOBS, "train", [{"op": "replace", "path": path, "value": value}], namespace)

    replace("/spec/tasks/0/replicas", 3)
    assert "spec.queue" in refusal(lambda: replace("/spec/queue", "other"))


def test_two_labels_on_an_indexed_job(shared_client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """Each pod gets the five variables, the port, the subdomain and its gang; the user's env stays in front."""
    job = create(shared_client, batch_job(queue="default", framework="torch"), namespace)

    def pods() -> list[JSON]:
        items = shared_client.list(as_it_stands(PODS), namespace)
        return items if len(items) == 2 else []

    both = wait_for(pods, what="two pods")
    assert job["spec"]["template"]["metadata"]["labels"]["muster.dev/queue"] == "default"
    for pod in both:
        spec = pod["spec"]
        env = {each["name"]: each for each in spec["containers"][0]["env"]}
        ours = [name for name in env if name.startswith("PET_")]
        assert next(iter(env)) == "MINE"
        assert ours == ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"]
        assert env["PET_NNODES"]["value"] == "2"
        assert env["PET_NPROC_PER_NODE"]["value"] == "2"
        assert env["PET_MASTER_ADDR"]["value"] == "torch-0.torch"
        rank = env["PET_NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
        assert rank == "metadata.labels['batch.kubernetes.io/job-completion-index']"
        assert (spec["schedulerName"], spec["subdomain"]) == ("muster", "torch")
        assert spec["containers"][0]["ports"] == [{"containerPort": 29500, "protocol": "TCP"}]
        assert pod["metadata"]["labels"]["muster.dev/gang"] == f"podgroup-{job['metadata']['uid']}"


def test_pods_without_labels_are_left_alone(shared_client: Client) -> None:
    """A pod that does not ask for Muster is stored as it would be without it."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain"},
        "spec": {"containers": [{"name": "main", "image": IMAGE}]},
    }
    stored = dry_run(shared_client, pod)
    assert stored["spec"]["schedulerName"] == "default-scheduler"
    assert "env" not in stored["spec"]["containers"][0]
    assert "labels" not in stored["metadata"]
