"""TrainJobs and runtimes on the whole plane: what kubectl users and clients read when they are right and when not."""

import contextlib
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from manifests import SHARED_NAMESPACE

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.meta import parse_time
from muster.kube.client import Client
from muster.kube.errors import Forbidden, Invalid
from musterctl.plane import install
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
SHIPPED = sorted((Path(__file__).parents[2] / "charts" / "muster" / "runtimes").glob("*.yaml"))
DEPRECATED = {"trainer.kubeflow.org/support": "deprecated"}


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
    "no such runtime": (
        train_job(runtime="nowhere"),
        ["spec.runtimeRef", "nowhere", "specified clusterTrainingRuntime must be created before the TrainJob"],
    ),
    "kind of runtime": (
        train_job(runtimeRef={"name": "x", "kind": "Runtime"}),
        ["spec.runtimeRef.kind", "ClusterTrainingRuntime or TrainingRuntime"],
    ),
    "reserved env": (
        train_job(trainer={"env": [{"name": "PET_NNODES", "value": "2"}]}),
        ["spec.trainer.env", "PET_NNODES"],
    ),
    "no initializer": (
        train_job(initializer={"dataset": {"storageUri": "hf://x"}}),
        ["spec.runtimeRef", "dataset-initializer"],
    ),
    "manager": (train_job(runtimePatches=[patch("kueue")]), ["spec.runtimePatches[0].manager", "acme.io/foo"]),
    "unknown job": (train_job(runtimePatches=[patch("a.io/b", "nodes")]), ["nodes"]),
    "unknown container": (
        train_job(runtimePatches=[patch("a.io/b", containers=[{"name": "main"}])]),
        ["main"],
    ),
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
}


@pytest.mark.parametrize(("job", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_the_webhook(shared_client: Client, job: JSON, words: list[str]) -> None:
    """What does not fit the runtime is Forbidden, with path, value and what is right."""
    with pytest.raises(Forbidden) as error:
        shared_client.create(TRAIN_JOBS, job, SHARED_NAMESPACE, dry_run=True)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)


def test_all_errors_at_once(shared_client: Client) -> None:
    """One refusal names all that is wrong."""
    job = train_job(
        trainer={"env": [{"name": "PET_NNODES", "value": "2"}]},
        runtimePatches=[patch("kueue", "nodes")],
        initializer={"model": {"storageUri": "hf://x"}},
    )
    with pytest.raises(Forbidden) as error:
        shared_client.create(TRAIN_JOBS, job, SHARED_NAMESPACE, dry_run=True)
    for word in ("spec.trainer.env", "spec.runtimePatches[0].manager", "nodes", "model-initializer"):
        assert word in str(error.value)


def test_the_schema_answers_invalid(shared_client: Client) -> None:
    """Clients tell the schema's refusals from the webhook's."""
    with pytest.raises(Invalid):
        shared_client.create(TRAIN_JOBS, train_job(trainer={"numNodes": -1}), SHARED_NAMESPACE, dry_run=True)


def test_times_of_patches(shared_client: Client, namespace: str) -> None:
    """Stamped when new, kept while unchanged, renewed on change even against the user's wish."""
    given = "2020-01-01T00:00:00Z"
    first = patch("a.io/new")
    second = {**patch("b.io/given"), "time": given}
    made = shared_client.create(TRAIN_JOBS, train_job(runtimePatches=[first, second]), namespace)
    stamps = {each.manager: each.time for each in made.spec.runtime_patches}
    assert stamps["b.io/given"] == given
    assert parse_time(stamps["a.io/new"])
    third = {**patch("c.io/later"), "time": given}
    changed = {**patch("b.io/given", nodeSelector={"a": "b"}), "time": given}
    entries = [{**first, "time": given}, changed, third]
    after = shared_client.merge_patch(TRAIN_JOBS, "train", {"spec": {"runtimePatches": entries}}, namespace)
    again = {each.manager: each.time for each in after.spec.runtime_patches}
    assert again["a.io/new"] == stamps["a.io/new"]
    assert again["b.io/given"] != given
    assert again["c.io/later"] == given


def test_patches_only_change_while_suspended(shared_client: Client, namespace: str) -> None:
    """A running job keeps its template; suspending it, and patching in the same request, is fine."""
    shared_client.create(TRAIN_JOBS, train_job(managedBy="kueue.x-k8s.io/multikueue", suspend=False), namespace)
    change = {"spec": {"runtimePatches": [patch("a.io/b", nodeSelector={"a": "b"})]}}
    with pytest.raises(Forbidden, match="can only be modified while the TrainJob is suspended"):
        shared_client.merge_patch(TRAIN_JOBS, "train", change, namespace)
    counts = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    shared_client.merge_patch(
        TRAIN_JOBS, "train", {"status": {"jobsStatus": [counts]}}, namespace, subresource="status"
    )
    change["spec"]["suspend"] = True  # type: ignore[assignment] # one of several types
    with pytest.raises(Forbidden, match="replicated job node is still active"):
        shared_client.merge_patch(TRAIN_JOBS, "train", change, namespace)
    counts["active"] = 0
    shared_client.merge_patch(
        TRAIN_JOBS, "train", {"status": {"jobsStatus": [counts]}}, namespace, subresource="status"
    )
    assert shared_client.merge_patch(TRAIN_JOBS, "train", change, namespace).spec.suspend


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


def test_a_runtime_may_go_away(shared_client: Client, namespace: str) -> None:
    """A job can be suspended although its runtime is gone; a namespaced runtime is found in its namespace only."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    document |= {"kind": "TrainingRuntime", "metadata": {"name": "mine"}}
    shared_client.create(TRAINING_RUNTIMES, document, namespace)
    reference = {"name": "mine", "kind": "TrainingRuntime"}
    shared_client.create(TRAIN_JOBS, train_job(runtimeRef=reference), namespace)
    with pytest.raises(Forbidden, match="specified trainingRuntime must be created"):
        shared_client.create(TRAIN_JOBS, train_job(runtimeRef=reference), "default")
    shared_client.delete(TRAINING_RUNTIMES, "mine", namespace)
    assert not shared_client.merge_patch(TRAIN_JOBS, "train", {"spec": {"suspend": False}}, namespace).spec.suspend


def test_warnings_of_deprecated_runtimes(shared_plane: Plane) -> None:
    """Whoever creates such a runtime, or uses it, reads a warning."""
    plain = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    name = f"old-{uuid.uuid4().hex[:8]}"
    said: list[str] = []
    with contextlib.closing(Client.load(shared_plane.kubeconfig, on_warning=said.append)) as client:
        client.create(CLUSTER_TRAINING_RUNTIMES, {**plain, "metadata": {"name": name, "labels": DEPRECATED}})
        try:
            assert "is deprecated" in said.pop()
            client.create(TRAIN_JOBS, train_job(runtime=name), SHARED_NAMESPACE, dry_run=True)
            assert "is deprecated" in said.pop()
        finally:
            client.delete(CLUSTER_TRAINING_RUNTIMES, name)


BROKEN: dict[str, tuple[Callable[[JSON], None], list[str]]] = {
    "replicas": (lambda job: job.update(replicas=2), ["replicatedJobs[0].replicas", "always must be 1"]),
    "container": (
        lambda job: job["template"]["spec"]["template"]["spec"]["containers"][0].update(name="main"),
        ["must contain the required container for the ancestor: trainer", "main"],
    ),
    "order": (
        lambda job: job.update(dependsOn=[{"name": "later", "status": "Ready"}]),
        ["replicatedJobs[0].dependsOn[0].name", "later"],
    ),
}


@pytest.mark.parametrize(("spoil", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_refused_runtimes(shared_client: Client, spoil: Callable[[JSON], None], words: list[str]) -> None:
    """A runtime that no TrainJob could use is refused; with the label for it, it is not looked at."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    document |= {"kind": "TrainingRuntime", "metadata": {"name": "broken"}}
    spoil(document["spec"]["template"]["spec"]["replicatedJobs"][0])
    with pytest.raises(Forbidden) as error:
        shared_client.create(TRAINING_RUNTIMES, document, SHARED_NAMESPACE, dry_run=True)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)
    unchecked = {"name": "broken", "labels": {"trainer.kubeflow.org/webhook-validation": "disabled"}}
    shared_client.create(TRAINING_RUNTIMES, {**document, "metadata": unchecked}, SHARED_NAMESPACE, dry_run=True)


def test_a_policy_of_a_later_trainer_is_refused(shared_client: Client) -> None:
    """The API server hands it on; a TrainJob without it would run as something else."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    document |= {"kind": "TrainingRuntime", "metadata": {"name": "later"}}
    document["spec"]["mlPolicy"] = {"numNodes": 1, "ray": {"headCpu": 1}}
    with pytest.raises(Forbidden, match=r"mlPolicy\.ray: .*Muster knows jax, mpi, torch, xgboost, and runs no other"):
        shared_client.create(TRAINING_RUNTIMES, document, SHARED_NAMESPACE, dry_run=True)
