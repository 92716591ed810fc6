"""TrainJobs and runtimes on the whole plane: what kubectl users and clients read when they are right and when not."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from manifests import SHARED_NAMESPACE

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.kube.client import Client
from muster.kube.errors import Forbidden, Invalid
from musterctl.plane import install

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
SHIPPED = sorted((Path(__file__).parents[2] / "charts" / "muster" / "runtimes").glob("*.yaml"))


def train_job(name: str = "train", runtime: str = "torch-distributed", **spec: Any) -> JSON:
    """A TrainJob as the Python SDK sends it."""
    reference = {"name": runtime, "kind": "ClusterTrainingRuntime"}
    # Suspended, so that nothing runs for it.
    return {"metadata": {"name": name}, "spec": {"runtimeRef": reference, "suspend": True, **spec}}


def patch(manager: str, job: str = "node", **spec: Any) -> JSON:
    """One manager's patch of the pods of a replicated job."""
    entry = {"name": job, "template": {"spec": {"template": {"spec": spec}}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [entry]}}}}


def test_shipped_runtimes_are_accepted_again_and_again(shared_client: Client) -> None:
    """Applying them twice changes nothing."""
    for path in SHIPPED:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        before = shared_client.get(CLUSTER_TRAINING_RUNTIMES, document["metadata"]["name"]).metadata.resource_version
        assert shared_client.apply(CLUSTER_TRAINING_RUNTIMES, document).metadata.resource_version == before
    assert [path.stem for path in SHIPPED] == [
        "jax-distributed",
        "mpi-distributed",
        "plain",
        "torch-distributed",
        "torchtune-llama3.2-1b",
        "torchtune-llama3.2-3b",
        "torchtune-qwen2.5-1.5b",
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_train_job_of_each_shipped_runtime(shared_client: Client, path: Path) -> None:
    """A few lines are enough."""
    command = ["tune", "run"] if path.stem.startswith("torchtune") else ["true"]
    job = train_job("a", path.stem, trainer={"numNodes": 1, "command": command})
    shared_client.create(TRAIN_JOBS, job, SHARED_NAMESPACE, dry_run=True)


REFUSED = {
    "no such runtime": (train_job(runtime="nowhere"), ["spec.runtimeRef", "nowhere",
        "specified clusterTrainingRuntime must be created before the TrainJob"]),
    "kind of runtime": (train_job(runtimeRef={"name": "x", "kind": "Runtime"}),
        ["spec.runtimeRef.kind", "ClusterTrainingRuntime or TrainingRuntime"]),
    "reserved env": (train_job(trainer={"env": [{"name": "PET_NNODES", "value": "2"}]}),
        ["spec.trainer.env", "PET_NNODES"]),
    "no initializer": (train_job(initializer={"dataset": {"storageUri": "hf://x"}}),
        ["spec.runtimeRef", "dataset-initializer"]),
    "manager": (train_job(runtimePatches=[patch("kueue")]), ["spec.runtimePatches[0].manager", "acme.io/foo"]),
    "unknown job": (train_job(runtimePatches=[patch("a.io/b", "nodes")]), ["nodes"]),
    "unknown container": (train_job(runtimePatches=[patch("a.io/b", containers=[{"name": "main"}])]), ["main"]),
    "unknown queue": (
        {**train_job(), "metadata": {"name": "train", "labels": {"muster.dev/queue": "nowhere"}}},
        ["metadata.labels[muster.dev/queue]", "usable queues are: "],
    ),
    "GPUs in requests only": (
        train_job(trainer={"resourcesPerNode": {"requests": {"nvidia.com/gpu": 1}}}),
        ["spec.trainer.resourcesPerNode.limits: Required value: Limit must be set"],
    ),
    "patch without its volume": (
        train_job(
            runtimePatches=[
                patch("a.io/b", containers=[{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}])
            ]
        ),
        ["spec.runtimePatches: spec.containers[0].volumeMounts[0].name of its pods: Not found"],
    ),
    "host name too long": (train_job("x" * 60, trainer={"numNodes": 20}), ["metadata.name", "is too long"]),
}  # fmt: skip


@pytest.mark.parametrize(("job", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_the_webhook(shared_client: Client, job: JSON, words: list[str]) -> None:
    """What does not fit the runtime is Forbidden, with path, value and what is right."""
    with pytest.raises(Forbidden) as error:
        shared_client.create(TRAIN_JOBS, job, SHARED_NAMESPACE, dry_run=True)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)


def test_the_schema_answers_invalid(shared_client: Client) -> None:
    """Clients tell the schema's refusals from the webhook's."""
    with pytest.raises(Invalid):
        shared_client.create(TRAIN_JOBS, train_job(trainer={"numNodes": -1}), SHARED_NAMESPACE, dry_run=True)


def test_a_runtime_of_somebody_else_stays(shared_client: Client) -> None:
    """Where the cluster has a runtime of that name with other values, installing Muster's changes nothing."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    name = document["metadata"]["name"]
    shared_client.merge_patch(CLUSTER_TRAINING_RUNTIMES, name, {"spec": {"mlPolicy": {"numNodes": 7}}})
    try:
        install.runtimes(shared_client)
        stays = shared_client.get(CLUSTER_TRAINING_RUNTIMES, name)
        assert stays.spec.ml_policy
        assert stays.spec.ml_policy.num_nodes == 7
    finally:
        shared_client.apply(CLUSTER_TRAINING_RUNTIMES, document)


def test_a_policy_of_a_later_trainer_is_refused(shared_client: Client) -> None:
    """The API server hands it on; a TrainJob without it would run as something else."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    document |= {"kind": "TrainingRuntime", "metadata": {"name": "later"}}
    document["spec"]["mlPolicy"] = {"numNodes": 1, "ray": {"headCpu": 1}}
    with pytest.raises(Forbidden, match=r"mlPolicy\.ray: .*Muster supports only jax, mpi, torch, xgboost"):
        shared_client.create(TRAINING_RUNTIMES, document, SHARED_NAMESPACE, dry_run=True)
