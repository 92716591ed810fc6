"""Pods of real owners are shaped, and the API server accepts what TrainJobs are compiled to."""

from collections.abc import Callable
from typing import Any

import pytest
from frameworks_world import compiled, env_of, mpi_runtime, replicated_job, runtime, train_job
from manifests import SHARED_NAMESPACE, as_it_stands, create, dry_run, refusal_of, resource_of
from tenants import refusal

from certs.ssh import complete
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.runtime.plan import Compiled

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
IMAGE = "registry.k8s.io/pause"
LABELS = {"app": "train", "muster.dev/framework": "torch"}


def workload(kind: str, **spec: Any) -> JSON:
    """A workload of apps/v1 with two pods that ask for Torch."""
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": IMAGE}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "train"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "train"}}, "template": template, **spec},
    }


def pods_of(shared_client: Client, namespace: str, count: int) -> list[JSON]:
    """The pods of a namespace, once they are so many."""
    items = shared_client.list(as_it_stands(PODS), namespace)
    return items if len(items) == count else []


def test_pods_of_a_stateful_set(shared_client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """The real controller's pods get their rank from where ordinals start, and rank 0's name from the Service."""
    wanted = workload(
        "StatefulSet", serviceName="peers", podManagementPolicy="Parallel", ordinals={"start": 3}, replicas=2
    )
    create(shared_client, wanted, namespace)
    pods = wait_for(lambda: pods_of(shared_client, namespace, 2), what="two pods")
    found = {pod["metadata"]["name"]: env_of(pod["spec"]["containers"][0]) for pod in pods}
    assert {name: env["PET_NODE_RANK"] for name, env in found.items()} == {"train-3": "0", "train-4": "1"}
    assert {env["PET_MASTER_ADDR"] for env in found.values()} == {"train-3.peers"}


def test_pods_of_a_volcano_job(shared_client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """The tasks with the label form one world, in their order; without plugin `svc` the Job is refused."""

    def task(name: str, replicas: int, **metadata: Any) -> JSON:
        template = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": IMAGE}]}}
        return {"name": name, "replicas": replicas, "template": template}

    spec: JSON = {"tasks": [task("master", 1, labels=LABELS), task("worker", 2, labels=LABELS), task("watcher", 1)]}
    job = {"apiVersion": JOBS.api_version, "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    refused = refusal_of(shared_client, job)
    assert "spec.plugins" in refused
    assert "must include svc" in refused
    spec["plugins"] = {"svc": []}
    create(shared_client, job, namespace)
    pods = wait_for(lambda: pods_of(shared_client, namespace, 4), what="four pods")
    found = {pod["metadata"]["name"]: env_of(pod["spec"]["containers"][0]) for pod in pods}
    assert "PET_NNODES" not in found.pop("train-watcher-0")
    assert {env["PET_NNODES"] for env in found.values()} == {"3"}
    assert {env["PET_MASTER_ADDR"] for env in found.values()} == {"train-master-0.train"}
    assert (found["train-worker-0"]["PET_NODE_RANK"], found["train-worker-1"]["PET_NODE_RANK"]) == ("1", "2")


def test_pods_of_a_deployment(shared_client: Client, namespace: str) -> None:
    """The Deployment is refused when it is made, as its pods would be; and one that becomes so."""
    deployment = workload("Deployment")
    refused = "pods of a ReplicaSet (or Deployment) have no index"
    assert refused in refusal_of(shared_client, deployment)
    deployment["spec"]["template"]["metadata"]["labels"] = {"app": "train"}
    create(shared_client, deployment, namespace)
    change = {"spec": {"template": {"metadata": {"labels": LABELS}}}}
    resource = resource_of(shared_client, deployment)
    assert refused in refusal(lambda: shared_client.merge_patch(resource, "train", change, namespace))


def test_bare_pods(shared_client: Client) -> None:
    """A pod with rank, size and leader is shaped; without a leader it is refused at the annotation that is missing."""
    annotations = {"muster.dev/rank": "1", "muster.dev/size": "2", "muster.dev/leader": "one.peers"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "two", "labels": LABELS, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": IMAGE}]},
    }
    assert env_of(dry_run(shared_client, pod)["spec"]["containers"][0])["PET_MASTER_ADDR"] == "one.peers"
    del annotations["muster.dev/leader"]
    said = refusal_of(shared_client, pod)
    assert "metadata.annotations[muster.dev/leader]: Required value: must be the host name of rank 0" in said


def node(**fields: Any) -> JSON:
    """A pod spec that a Job can have."""
    return {"restartPolicy": "OnFailure", "containers": [{"name": "node", "image": IMAGE, **fields}]}


FETCH = {"restartPolicy": "Never", "containers": [{"name": "dataset-initializer", "image": IMAGE}]}
MPI = mpi_runtime(node(), node(ports=[{"containerPort": 2222}]), mpiImplementation="MPICH")
TORCH = runtime(
    {"torch": {}},
    replicated_job("dataset-initializer", "dataset-initializer", FETCH),
    replicated_job("node", "trainer", node(), dependsOn=[{"name": "dataset-initializer", "status": "Complete"}]),
    podGroupPolicy={"volcano": {"networkTopology": {"mode": "soft"}}},
    jobset={"failurePolicy": {"maxRestarts": 2}},
)
RUNTIMES = {"mpi": MPI, "torch": TORCH}


def objects_of(result: Compiled) -> list[JSON]:
    """All components, a JobSet as the Jobs that its controller would make of it."""
    assert not result.errors
    objects = []
    for each in result.components:
        manifest = complete(each)
        if each.kind != "JobSet":
            objects.append(manifest)
            continue
        for job in manifest["spec"]["replicatedJobs"]:
            spec = {**job["template"]["spec"], "completionMode": "Indexed"}
            metadata = {"name": f"{each.name}-{job['name']}-0"}
            objects.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    return objects


@pytest.mark.parametrize("target", ["Job", "JobSet"])
@pytest.mark.parametrize("name", RUNTIMES)
def test_components_are_accepted(shared_client: Client, name: str, target: str) -> None:
    """Nothing that a TrainJob becomes has an unknown field, a bad value or is refused by admission."""
    trainer = {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}
    initializer = {"initializer": {"dataset": {"storageUri": "hf://data"}}} if name == "torch" else {}
    job = train_job({"namespace": SHARED_NAMESPACE}, trainer=trainer, **initializer)
    for manifest in objects_of(compiled(job, RUNTIMES[name], "Job" if target == "Job" else "JobSet")):
        assert not refusal_of(shared_client, manifest)
