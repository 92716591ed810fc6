"""Kubeflow's own SDK against Muster: nothing of Kubeflow Trainer is installed, and nothing of the SDK is changed."""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sdk_environment
from kubelets import LINES, Kubelet, kubelet, serve_all_nodes
from train_jobs import RUN, make_volume, runtime

from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
JSON = dict[str, Any]
PRINTED = LINES.decode().splitlines()
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RAW_PODS: Resource[JSON] = Resource("", "v1", "pods", "Pod", JSON)
RAW_JOBS: Resource[JSON] = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", JSON)
INITIALIZERS: Resource[JSON] = Resource("batch", "v1", "jobs", "Job", JSON)
CONVERSATION = Path(__file__).parent / "sdk" / "conversation.py"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "sdk"


def conversation(plane: Plane, namespace: str, scenario: str) -> dict[str, Any]:
    """What the SDK said in a scenario."""
    arguments = [str(sdk_environment.python()), str(CONVERSATION), str(plane.kubeconfig), namespace, scenario]
    environment = {**os.environ, "PYTHONPATH": str(EXAMPLES)}
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    answer: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    return answer


@pytest.fixture
def served(plane: Plane, tmp_path: Path) -> Iterator[Kubelet]:
    """A kubelet for all nodes, which prints the same for every container."""
    with contextlib.closing(plane.client()) as client, kubelet(tmp_path) as one, serve_all_nodes(client, one):
        yield one


def pods_of(made: JSON) -> JSON:
    """The pod template of the first replicated job of a runtime."""
    template: JSON = made["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    return template


def node_of(pod: JSON) -> JSON:
    """The container that trains."""
    [container] = [each for each in pod["spec"]["containers"] if each["name"] == "node"]
    found: JSON = container
    return found


@pytest.mark.slow
def test_runtimes(plane: Plane, namespace: str) -> None:
    """All that are shipped are listed, and one can be asked for."""
    answer = conversation(plane, namespace, "runtimes")
    assert {"torch-distributed", "mpi-distributed", "plain", "jax-distributed"} <= set(answer["names"])
    assert (answer["framework"], answer["nodes"]) == ("torch", 1)


def test_a_function_from_submission_to_deletion(plane: Plane, namespace: str) -> None:
    """train, wait for Running and Complete, get, list, events, delete."""
    answer = conversation(plane, namespace, "function")
    assert answer["seen"][-1] == "Running"
    assert answer["running"]["steps"] == [["node-0", "Running", "1"], ["node-1", "Running", "1"]]
    assert answer["complete"]["status"] == "Complete"
    assert [step[1] for step in answer["complete"]["steps"]] == ["Succeeded", "Succeeded"]
    assert answer["complete"]["nodes"] == 2
    assert answer["listed"]
    assert ["TrainJob", "AllJobsCompleted"] in answer["events"]
    assert answer["gone"]


@pytest.mark.slow
def test_a_failure(plane: Plane, namespace: str) -> None:
    """The SDK raises as soon as a pod has failed."""
    answer = conversation(plane, namespace, "failure")
    assert "is Failed" in answer["error"]
    assert answer["status"] == "Failed"


@pytest.mark.slow
def test_mpi(plane: Plane, namespace: str) -> None:
    """Running while the launcher and the nodes run; Complete with the launcher."""
    answer = conversation(plane, namespace, "mpi")
    assert answer["running"]["runtime"] == "mpi-distributed"
    assert [step[0] for step in answer["running"]["steps"]] == ["node-0", "node-1"], "the launcher is one of two"
    assert answer["complete"]["status"] == "Complete"


@pytest.mark.alone  # its kubelet serves all nodes of the plane
def test_logs(plane: Plane, namespace: str, served: Kubelet) -> None:
    """What the container `node` of the first step has printed, read from its node, and followed."""
    assert conversation(plane, namespace, "logs") == {"lines": PRINTED, "followed": PRINTED}
    [path] = {path.partition("?")[0] for path in served.asked}
    assert path.startswith(f"/containerLogs/{namespace}/")
    assert path.endswith("/node")


@pytest.mark.slow
@pytest.mark.alone  # its kubelet serves all nodes of the plane
def test_packages_of_a_runtime(plane: Plane, namespace: str, served: Kubelet) -> None:
    """The SDK runs a TrainJob of its own, prints what it says, and deletes it."""
    short = runtime("short")
    pods_of(short)["metadata"] = {"annotations": {RUN: "0.5"}}
    with contextlib.closing(plane.client()) as client:
        client.create(TRAINING_RUNTIMES, short, namespace)
    assert conversation(plane, namespace, "packages") == {"said": PRINTED, "left": 0}
    assert served.asked


@pytest.mark.slow
def test_own_runtimes(plane: Plane, namespace: str) -> None:
    """A runtime of the namespace hides the cluster's of that name, and jobs are listed by their runtime."""
    with contextlib.closing(plane.client()) as client:
        client.create(TRAINING_RUNTIMES, runtime("torch-distributed", image="ours:1"), namespace)
    answer = conversation(plane, namespace, "own_runtime")
    kinds = {name: answer["kinds"][name] for name in ("torch-distributed", "plain")}
    assert kinds == {"torch-distributed": "TrainingRuntime", "plain": "ClusterTrainingRuntime"}
    assert (answer["image"], answer["listed"], answer["others"]) == ("ours:1", True, [])


@pytest.mark.slow
def test_what_is_not_there(plane: Plane, namespace: str) -> None:
    """Each call says so; a refusal of admission arrives with its reason."""
    answer = conversation(plane, namespace, "absent")
    calls = {"get", "runtime", "train", "delete", "logs", "events", "wait", "refused"}
    assert set(answer) == calls
    assert [name for name in calls - {"train", "refused"} if "not found" not in answer[name].lower()] == []
    assert "PET_NNODES" in answer["refused"]


@pytest.mark.slow
def test_every_option(plane: Plane, namespace: str) -> None:
    """Name, labels, annotations, patches, command, arguments and deadline."""
    answer = conversation(plane, namespace, "options")
    assert (answer["name"], answer["status"]) == ("named", "Complete")
    with contextlib.closing(plane.client()) as client:
        made = client.get(TRAIN_JOBS, "named", namespace)
        [pod] = client.list(RAW_PODS, namespace)
    assert (made.metadata.labels["muster.dev/queue"], made.metadata.annotations["team"]) == ("default", "a")
    assert made.spec.active_deadline_seconds == 600
    container = node_of(pod)
    assert (container["image"], container["command"], container["args"]) == ("train:1", ["python"], ["-c", "pass"])
    assert container["resources"]["limits"] == {"cpu": "2", "nvidia.com/gpu": "4"}


def test_every_part_of_a_function(plane: Plane, namespace: str) -> None:
    """Arguments, packages, image, variables and resources arrive in the pod."""
    assert conversation(plane, namespace, "function_with_all")["status"] == "Complete"
    with contextlib.closing(plane.client()) as client:
        [pod] = client.list(RAW_PODS, namespace)
    container = node_of(pod)
    assert container["command"][:2] == ["bash", "-c"]
    script = container["command"][2]
    assert "PACKAGES=(einops)" in script
    assert script.rstrip().endswith('torchrun "wishes.py"')
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert (container["image"], variables["MINE"], variables["PET_NNODES"]) == ("mine:1", "1", "1")
    assert variables["PET_NPROC_PER_NODE"] == "auto", "torchrun counts the GPUs"
    assert container["resources"]["requests"] == {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}


@pytest.mark.slow
def test_nothing_said(plane: Plane, namespace: str) -> None:
    """Without trainer and runtime the default runtime runs as it is."""
    answer = conversation(plane, namespace, "nothing_said")
    assert (answer["status"], answer["runtime"], answer["nodes"]) == ("Complete", "torch-distributed", 1)


@pytest.mark.slow
def test_a_deadline(plane: Plane, namespace: str) -> None:
    """A training that takes too long is Failed for the SDK, and an event says why."""
    answer = conversation(plane, namespace, "deadline")
    assert (answer["status"], "DeadlineExceeded" in answer["events"]) == ("Failed", True)


@pytest.mark.slow
def test_every_patch(plane: Plane, namespace: str, wait_for: Callable[..., Any]) -> None:
    """Whatever the SDK's patch can say of pods is in the pods; those that wait have no logs."""
    patched = runtime("patched")
    pods_of(patched)["spec"]["initContainers"] = [{"name": "prepare", "image": "prepare:1"}]
    with contextlib.closing(plane.client()) as client:
        client.create(TRAINING_RUNTIMES, patched, namespace)
        assert conversation(plane, namespace, "patches") == {"name": "patched", "logs": []}
        pod = wait_for(lambda: next(iter(client.list(RAW_PODS, namespace)), None), 30, "its pod")
        job = client.get(RAW_JOBS, "patched", namespace)
    spec, container = pod["spec"], node_of(pod)
    assert job["metadata"]["labels"]["of"] == "jobset"
    assert (pod["metadata"]["labels"]["of"], pod["metadata"]["annotations"]["of"]) == ("pod", "pod")
    assert (spec["serviceAccountName"], spec["securityContext"]) == ("default", {"fsGroup": 1000})
    assert {"name": "scratch", "emptyDir": {}} in spec["volumes"]
    assert {"name": "scratch", "mountPath": "/scratch"} in container["volumeMounts"]
    assert container["securityContext"] == {"runAsUser": 1000}
    assert {"name": "MINE", "value": "1"} in spec["initContainers"][0]["env"]
    assert (spec["imagePullSecrets"], spec["nodeSelector"]) == ([{"name": "registry"}], {"disk": "fast"})
    assert [each["topologyKey"] for each in spec["affinity"]["podAntiAffinity"][REQUIRED]] == ["kubernetes.io/hostname"]
    assert {"key": "spot", "operator": "Exists"} in spec["tolerations"]
    assert {"name": "example.com/mine"} in spec["schedulingGates"]


@pytest.mark.slow
@pytest.mark.alone  # its kubelet serves all nodes of the plane
def test_torchtune_with_initializers(plane: Plane, namespace: str, served: Kubelet) -> None:
    """Dataset and model are fetched first; all three are steps, and each has logs."""
    with contextlib.closing(plane.client()) as client:
        make_volume(client, namespace, "20Gi")
    answer = conversation(plane, namespace, "torchtune")
    assert (answer["kind"], answer["status"], answer["fetched"]) == ("BuiltinTrainer", "Complete", PRINTED)
    assert [step[0] for step in answer["steps"]] == ["dataset-initializer", "model-initializer", "node-0"]
    assert served.asked


@pytest.mark.slow
def test_all_that_torchtune_can_be_told(plane: Plane, namespace: str, wait_for: Callable[..., Any]) -> None:
    """LoRA, dataset and loss are arguments of the trainer; keys of S3 are variables of the initializers."""
    with contextlib.closing(plane.client()) as client:
        make_volume(client, namespace, "20Gi")  # else its claim takes that of another test
        name = conversation(plane, namespace, "full_torchtune")["name"]
        [job] = wait_for(lambda: client.list(INITIALIZERS, namespace), 30, "its initializer")
        made = client.get(TRAIN_JOBS, name, namespace)
    [fetcher] = job["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in fetcher["env"]}
    assert variables["STORAGE_URI"] == "s3://bucket/alpaca/data.parquet"
    assert {"ENDPOINT", "REGION", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"} <= set(variables)
    assert made.spec.trainer is not None
    assert {"batch_size=8", "epochs=3", "dtype=bf16", "model.lora_rank=8"} <= set(made.spec.trainer.args)
