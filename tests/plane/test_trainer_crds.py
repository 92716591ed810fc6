"""TrainJobs and runtimes on a real API server without Muster's processes: what their CRDs alone promise."""

import json
from typing import Any

import pytest
from manifests import changed

from muster.api.base import Resource
from muster.api.kubeflow.trainer import CONTROLLER, TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.kube.client import Client
from muster.kube.errors import Invalid
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.api]

JSON = dict[str, Any]
IMAGE = "registry.k8s.io/pause"


@pytest.fixture(scope="module")
def client(api_plane: Plane) -> Client:
    """A client of an API server with the CRDs."""
    return api_plane.client()


def train_job(**spec: Any) -> JSON:
    """A TrainJob with a patch of two managers."""
    return {
        "metadata": {"generateName": "train-"},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"numNodes": 2, "env": [{"name": "A", "value": "1"}]},
            "initializer": {"dataset": {"storageUri": "hf://data"}},
            "activeDeadlineSeconds": 60,
            "runtimePatches": [
                patch("one.io/x", containers=[{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]),
                patch("two.io/y", nodeSelector={"a": "b"}),
            ],
            **spec,
        },
    }


def patch(manager: str, **spec: Any) -> JSON:
    """One manager's patch of the pods of `node`."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}


def runtime(ml_policy: JSON | None = None, **spec: Any) -> JSON:
    """A runtime of one replicated job."""
    container = {"name": "node", "image": IMAGE, "ports": [{"containerPort": 80}]}
    job = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [container]}}}}}
    return {
        "metadata": {"generateName": "runtime-"},
        "spec": {"mlPolicy": ml_policy or {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [job], **spec}}},
    }


def stored(client: Client, resource: Resource[Any], obj: JSON) -> JSON:
    """What the API server makes of an object, untrimmed."""
    namespace = "default" if resource.namespaced else None
    made = client.create(resource, obj, namespace)
    answer: JSON = json.loads(client.request("GET", resource.path(namespace, made.metadata.name)))
    return answer


def refused(client: Client, resource: Resource[Any], obj: JSON) -> str:
    """What the API server says against an object."""
    with pytest.raises(Invalid) as error:
        client.create(resource, obj, "default" if resource.namespaced else None)
    return str(error.value)


def test_defaults_of_a_train_job(client: Client) -> None:
    """Clients read these without having written them."""
    spec = stored(client, TRAIN_JOBS, train_job())["spec"]
    reference = {"name": "torch-distributed", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
    assert spec["runtimeRef"] == reference
    assert (spec["suspend"], spec["managedBy"]) == (False, CONTROLLER)


@pytest.mark.parametrize(("path", "value", "words"), [
    ("metadata.name", "1st", "letter in front"),
    ("metadata.name", "x" * 64, "63"),
    ("spec.runtimeRef.name", "", "spec.runtimeRef.name"),
    ("spec.managedBy", "somebody.io/else", "must be trainer.kubeflow.org/trainjob-controller or"),
    ("spec.activeDeadlineSeconds", 0, "spec.activeDeadlineSeconds"),
    ("spec.trainer.numNodes", -1, "spec.trainer.numNodes"),
    ("spec.trainer.numProcPerNode", 0, "at least 1, or auto, cpu or gpu"),
    ("spec.trainer.numProcPerNode", "many", "at least 1, or auto, cpu or gpu"),
    ("spec.trainer.image", "x" * 501, "spec.trainer.image"),
    ("spec.trainer.env", [{"name": "A"}, {"name": "A"}], "Duplicate value"),
    ("spec.trainer.command", ["x"] * 129, "spec.trainer.command"),
    ("spec.initializer.dataset.storageUri", "data", "spec.initializer.dataset.storageUri"),
    ("spec.runtimePatches.1.manager", "one.io/x", "Duplicate value"),
    ("spec.runtimePatches", [patch(f"m{number}.io/x") for number in range(17)], "at most 16"),
    ("spec.trainer.resourcesPerNode", {"limits": {"cpu": "many"}}, "spec.trainer.resourcesPerNode.limits.cpu"),
])  # fmt: skip
def test_refused_train_jobs(client: Client, path: str, value: Any, words: str) -> None:
    """The schema and its rules refuse what no webhook needs to see, as Invalid."""
    assert words in refused(client, TRAIN_JOBS, changed(train_job(), path, value))


@pytest.mark.parametrize("value", ["auto", "cpu", "gpu", 4])
def test_processes_per_node(client: Client, value: Any) -> None:
    """Numbers and three words are taken."""
    client.create(TRAIN_JOBS, train_job(trainer={"numProcPerNode": value}), "default", dry_run=True)


def test_quantities_as_the_python_sdk_writes_them(client: Client) -> None:
    """It sends whole numbers as JSON floats."""
    resources = {"limits": {"nvidia.com/gpu": 1.0, "cpu": 3.0}, "requests": {"nvidia.com/gpu": 1.0}}
    client.create(TRAIN_JOBS, train_job(trainer={"resourcesPerNode": resources}), "default", dry_run=True)


@pytest.mark.parametrize(("change", "allowed"), [
    ({"spec": {"suspend": True}}, True),
    ({"spec": {"runtimePatches": [patch("one.io/x"), patch("three.io/z")]}}, True),
    ({"spec": {"trainer": {"numNodes": 3}}}, False),
    ({"spec": {"runtimeRef": {"name": "other"}}}, False),
    ({"spec": {"initializer": {"dataset": {"storageUri": "hf://other"}}}}, False),
    ({"spec": {"activeDeadlineSeconds": 61}}, False),
    ({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}, False),
    ({"spec": {"runtimePatches": [patch("one.io/x", containers=[{"name": "other"}])]}}, False),
    ({"spec": {"runtimePatches": [patch("two.io/y", nodeSelector={"a": "c"})]}}, True),
])  # fmt: skip
def test_what_may_change(client: Client, change: JSON, *, allowed: bool) -> None:
    """Suspending, and where pods go; nothing else."""
    made = client.create(TRAIN_JOBS, train_job(), "default")
    if allowed:
        client.merge_patch(TRAIN_JOBS, made.metadata.name, change, "default")
    else:
        with pytest.raises(Invalid, match="field is immutable"):
            client.merge_patch(TRAIN_JOBS, made.metadata.name, change, "default")


def test_status_of_a_train_job(client: Client) -> None:
    """It goes through the subresource, is never empty, and its counts are complete."""
    made = client.create(TRAIN_JOBS, train_job(), "default")
    write = {"subresource": "status"}
    with pytest.raises(Invalid, match="status"):
        client.merge_patch(TRAIN_JOBS, made.metadata.name, {"status": {}}, "default", **write)
    partly = {"status": {"jobsStatus": [{"name": "node", "ready": 1}]}}
    with pytest.raises(Invalid, match="active"):
        client.merge_patch(TRAIN_JOBS, made.metadata.name, partly, "default", **write)
    counts = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    status = client.merge_patch(
        TRAIN_JOBS, made.metadata.name, {"status": {"jobsStatus": [counts]}}, "default", **write
    ).status
    assert status.jobs_status[0].active == 1


def test_defaults_of_a_runtime(client: Client) -> None:
    """Policies come out with their defaults, ports with a protocol; nothing is filled in within a list of Jobs."""
    spec = stored(client, CLUSTER_TRAINING_RUNTIMES, runtime({"mpi": {}}))["spec"]
    assert spec["mlPolicy"]["mpi"] == {
        "numProcPerNode": 1,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/root/.ssh",
        "runLauncherAsNode": False,
    }
    [job] = spec["template"]["spec"]["replicatedJobs"]
    assert not job.keys() & {"replicas", "groupName"}
    [container] = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


@pytest.mark.parametrize("resource", [TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES], ids=["namespaced", "cluster"])
def test_refused_runtimes(client: Client, resource: Resource[Any]) -> None:
    """One framework, known words, no start order told twice; the same rules in both scopes."""
    assert "at most one of torch" in refused(client, resource, runtime({"torch": {}, "jax": {}}))
    assert "mpiImplementation" in refused(client, resource, runtime({"mpi": {"mpiImplementation": "LAM"}}))
    targets = {"targets": [{"jobName": "a", "containerNames": ["node"]}]}
    assert "must not hold node" in refused(client, resource, runtime({"torch": {"envInjection": targets}}))
    both = runtime(startupPolicy={"startupPolicyOrder": "InOrder"})
    both["spec"]["template"]["spec"]["replicatedJobs"][0]["dependsOn"] = [{"name": "a", "status": "Ready"}]
    assert "either startupPolicy InOrder or dependsOn" in refused(client, resource, both)
    assert "restartStrategy" in refused(client, resource, runtime(failurePolicy={"restartStrategy": "Sometimes"}))


def test_a_runtime_may_be_applied_again(client: Client) -> None:
    """Server-side apply takes the large objects, and the rules accept what does not change."""
    name = {"metadata": {"name": "applied"}}
    for _ in range(2):
        obj = {**runtime({"torch": {}}, network={"publishNotReadyAddresses": True}), **name}
        assert client.apply(CLUSTER_TRAINING_RUNTIMES, obj).spec.ml_policy is not None
    with pytest.raises(Invalid, match="Value is immutable"):
        client.apply(CLUSTER_TRAINING_RUNTIMES, {**runtime({"torch": {}}, network={"subdomain": "x"}), **name})
