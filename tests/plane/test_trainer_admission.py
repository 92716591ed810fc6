"""TrainJobs and runtimes on the whole plane: what kubectl users and clients read when they are right and when not."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

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
OTHER: JSON = {"metadata": {"name": "somebody-elses", "labels": {"trainer.kubeflow.org/support": "deprecated"}}}


@pytest.fixture(scope="module")
def client(plane: Plane) -> Iterator[Client]:
    """A client of a plane that has the shipped runtimes, as `muster up` leaves it."""
    with contextlib.closing(plane.client()) as client:
        yield client


def train_job(name: str = "train", runtime: str = "torch-distributed", **spec: Any) -> JSON:
    """A TrainJob as the Python SDK sends it."""
    reference = {"name": runtime, "kind": "ClusterTrainingRuntime"}
    # Suspended, so that nothing runs for it.
    return {"metadata": {"name": name}, "spec": {"runtimeRef": reference, "suspend": True, **spec}}


def patch(manager: str, job: str = "node", **spec: Any) -> JSON:
    """One manager's patch of the pods of a replicated job."""
    entry = {"name": job, "template": {"spec": {"template": {"spec": spec}}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [entry]}}}}


def test_shipped_runtimes_are_accepted_again_and_again(client: Client) -> None:
    """Applying them twice changes nothing."""
    for path in SHIPPED:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        before = client.get(CLUSTER_TRAINING_RUNTIMES, document["metadata"]["name"]).metadata.resource_version
        assert client.apply(CLUSTER_TRAINING_RUNTIMES, document).metadata.resource_version == before
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
def test_a_train_job_of_each_shipped_runtime(client: Client, namespace: str, path: Path) -> None:
    """A few lines are enough."""
    command = ["tune", "run"] if path.stem.startswith("torchtune") else ["true"]
    job = train_job("a", path.stem, trainer={"numNodes": 1, "command": command})
    client.create(TRAIN_JOBS, job, namespace)


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
    "host name too long": (train_job("x" * 60, trainer={"numNodes": 20}), ["metadata.name", "is too long"]),
}


@pytest.mark.parametrize(("job", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_by_the_webhook(client: Client, namespace: str, job: JSON, words: list[str]) -> None:
    """What does not fit the runtime is Forbidden, with path, value and what is right."""
    with pytest.raises(Forbidden) as error:
        client.create(TRAIN_JOBS, job, namespace)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)


def test_all_errors_at_once(client: Client, namespace: str) -> None:
    """One refusal names all that is wrong."""
    job = train_job(
        trainer={"env": [{"name": "PET_NNODES", "value": "2"}]},
        runtimePatches=[patch("kueue", "nodes")],
        initializer={"model": {"storageUri": "hf://x"}},
    )
    with pytest.raises(Forbidden) as error:
        client.create(TRAIN_JOBS, job, namespace)
    for word in ("spec.trainer.env", "spec.runtimePatches[0].manager", "nodes", "model-initializer"):
        assert word in str(error.value)


def test_the_schema_answers_invalid(client: Client, namespace: str) -> None:
    """Clients tell the schema's refusals from the webhook's."""
    with pytest.raises(Invalid):
        client.create(TRAIN_JOBS, train_job(trainer={"numNodes": -1}), namespace)


def test_times_of_patches(client: Client, namespace: str) -> None:
    """Stamped when new, kept while unchanged, renewed on change even against the user's wish."""
    given = "2020-01-01T00:00:00Z"
    first = patch("a.io/new")
    second = {**patch("b.io/given"), "time": given}
    made = client.create(TRAIN_JOBS, train_job(runtimePatches=[first, second]), namespace)
    stamps = {each.manager: each.time for each in made.spec.runtime_patches}
    assert stamps["b.io/given"] == given
    assert parse_time(stamps["a.io/new"])
    third = {**patch("c.io/later"), "time": given}
    changed = {**patch("b.io/given", nodeSelector={"a": "b"}), "time": given}
    entries = [{**first, "time": given}, changed, third]
    after = client.merge_patch(TRAIN_JOBS, "train", {"spec": {"runtimePatches": entries}}, namespace)
    again = {each.manager: each.time for each in after.spec.runtime_patches}
    assert again["a.io/new"] == stamps["a.io/new"]
    assert again["b.io/given"] != given
    assert again["c.io/later"] == given


def test_patches_only_change_while_suspended(client: Client, namespace: str) -> None:
    """A running job keeps its template; suspending it, and patching in the same request, is fine."""
    client.create(TRAIN_JOBS, train_job(managedBy="kueue.x-k8s.io/multikueue", suspend=False), namespace)
    change = {"spec": {"runtimePatches": [patch("a.io/b", nodeSelector={"a": "b"})]}}
    with pytest.raises(Forbidden, match="can only be modified while the TrainJob is suspended"):
        client.merge_patch(TRAIN_JOBS, "train", change, namespace)
    counts = {"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}
    client.merge_patch(TRAIN_JOBS, "train", {"status": {"jobsStatus": [counts]}}, namespace, subresource="status")
    change["spec"]["suspend"] = True  # type: ignore[assignment] # one of several types
    with pytest.raises(Forbidden, match="replicated job node is still active"):
        client.merge_patch(TRAIN_JOBS, "train", change, namespace)
    counts["active"] = 0
    client.merge_patch(TRAIN_JOBS, "train", {"status": {"jobsStatus": [counts]}}, namespace, subresource="status")
    assert client.merge_patch(TRAIN_JOBS, "train", change, namespace).spec.suspend


def test_a_runtime_of_somebody_else_stays(client: Client) -> None:
    """Where the cluster has a runtime of that name with other values, installing Muster's changes nothing."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    name = document["metadata"]["name"]
    client.merge_patch(CLUSTER_TRAINING_RUNTIMES, name, {"spec": {"mlPolicy": {"numNodes": 7}}})
    try:
        install.runtimes(client)
        stays = client.get(CLUSTER_TRAINING_RUNTIMES, name)
        assert stays.spec.ml_policy
        assert stays.spec.ml_policy.num_nodes == 7
    finally:
        client.apply(CLUSTER_TRAINING_RUNTIMES, document)


def test_a_runtime_may_go_away(client: Client, namespace: str) -> None:
    """A job can be suspended although its runtime is gone; a namespaced runtime is found in its namespace only."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    document |= {"kind": "TrainingRuntime", "metadata": {"name": "mine"}}
    client.create(TRAINING_RUNTIMES, document, namespace)
    reference = {"name": "mine", "kind": "TrainingRuntime"}
    client.create(TRAIN_JOBS, train_job(runtimeRef=reference), namespace)
    with pytest.raises(Forbidden, match="specified trainingRuntime must be created"):
        client.create(TRAIN_JOBS, train_job(runtimeRef=reference), "default")
    client.delete(TRAINING_RUNTIMES, "mine", namespace)
    assert not client.merge_patch(TRAIN_JOBS, "train", {"spec": {"suspend": False}}, namespace).spec.suspend


def test_warnings_of_deprecated_runtimes(kubectl: Any, namespace: str, plane: Plane) -> None:
    """Whoever creates such a runtime, or uses it, reads a warning."""
    plain = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    old = {**plain, "metadata": {**OTHER["metadata"], "name": f"old-{namespace}"}}
    kubectl("create", "--filename=-", stdin=old)
    job = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", **train_job(runtime=f"old-{namespace}")}
    result = plane.kubectl("create", f"--namespace={namespace}", "--filename=-", stdin=yaml.safe_dump(job))
    assert "is deprecated" in result.stderr
    kubectl("delete", "clustertrainingruntimes", f"old-{namespace}")


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
def test_refused_runtimes(client: Client, namespace: str, spoil: Callable[[JSON], None], words: list[str]) -> None:
    """A runtime that no TrainJob could use is refused; with the label for it, it is not looked at."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    document |= {"kind": "TrainingRuntime", "metadata": {"name": "broken"}}
    spoil(document["spec"]["template"]["spec"]["replicatedJobs"][0])
    with pytest.raises(Forbidden) as error:
        client.create(TRAINING_RUNTIMES, document, namespace)
    assert [word for word in words if word not in str(error.value)] == [], str(error.value)
    unchecked = {"name": "broken", "labels": {"trainer.kubeflow.org/webhook-validation": "disabled"}}
    client.create(TRAINING_RUNTIMES, {**document, "metadata": unchecked}, namespace, dry_run=True)


def test_a_policy_of_a_later_trainer_is_refused(client: Client, namespace: str) -> None:
    """The API server hands it on; a TrainJob without it would run as something else."""
    document = yaml.safe_load(SHIPPED[2].read_text(encoding="utf-8"))
    document |= {"kind": "TrainingRuntime", "metadata": {"name": "later"}}
    document["spec"]["mlPolicy"] = {"numNodes": 1, "ray": {"headCpu": 1}}
    with pytest.raises(Forbidden, match=r"mlPolicy\.ray: .*Muster knows jax, mpi, torch, xgboost, and runs no other"):
        client.create(TRAINING_RUNTIMES, document, namespace)
