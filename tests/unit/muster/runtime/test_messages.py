"""Every message about a setting, a variable or a runtime: path, the offending value, and what would be right."""

import copy
from typing import Any

import frameworks_world as w
import pytest

from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime

JSON = dict[str, Any]
A = "metadata.annotations[muster.dev"

ELASTIC = "must be minNodes:maxNodes, e.g. 2:4, with 1 <= minNodes <= maxNodes"
PYTHON = "where muster.dev/torch-env is python: only torchrun"
NUMBER = "must be auto, cpu, gpu or a number of processes from 1 to 4096"
SETTINGS: dict[str, tuple[str, dict[str, str], str]] = {
    "form": ("torch", {"torch-env": "pyhton"}, "must be torchrun (the default) or python"),
    "python and elastic": ("torch", {"torch-env": "python", "elastic": "2:4"}, f"must be left out {PYTHON} is elastic"),
    "python and processes": ("torch", {"torch-env": "python", "nproc-per-node": "2"},
        f"must be 1 {PYTHON} starts several processes"),
    "elastic": ("torch", {"elastic": "4:2"}, ELASTIC),
    "elastic without a colon": ("torch", {"elastic": "4"}, ELASTIC),
    "elastic without a node": ("torch", {"elastic": "0:4"}, ELASTIC),
    "elastic without the size": ("torch", {"elastic": "1:2"}, "must include the number of pods of Job train (4)"),
    "restarts": ("torch", {"elastic": "2:4", "max-restarts": "-1"}, "must be a number of restarts of at least 0"),
    "restarts without elastic": ("torch", {"max-restarts": "1"}, "must be left out unless muster.dev/elastic is set"),
    "gpu without one": ("torch", {"nproc-per-node": "gpu"},
        "container node requests no GPU: add one to its resources, or use cpu"),
    "processes": ("torch", {"nproc-per-node": "many"}, NUMBER),
    "inject-into": ("jax", {"inject-into": "gone"}, "must name containers of spec, which has node"),
    "implementation": ("mpi", {"mpi-implementation": "MVAPICH"}, (
        "must be an MPI implementation that Muster supports (OpenMPI, Intel, MPICH): annotation "
        "muster.dev/mpi-implementation"
    )),
    "mount path": ("mpi", {"ssh-auth-mount-path": "home"},
        "must be the absolute path of a directory: annotation muster.dev/ssh-auth-mount-path"),
    "key": ("mpi", {"ssh-key": "rsa"}, "must be ed25519 (the default) or ecdsa"),
    "slots": ("mpi", {"nproc-per-node": "0"}, NUMBER),
    "slots of GPUs": ("mpi", {"nproc-per-node": "gpu"},
        "the nodes request no GPU: add one to their resources, or use cpu"),
}  # fmt: skip
"""Framework, settings, of which the last one is refused, and what would be right."""


@pytest.mark.parametrize(("framework", "settings", "message"), SETTINGS.values(), ids=SETTINGS.keys())
def test_settings_of_labelled_pods(framework: str, settings: dict[str, str], message: str) -> None:
    """They are refused for every owner, also where nobody validates the owner itself."""
    annotations = {f"muster.dev/{key}": value for key, value in settings.items()}
    *_, (key, value) = settings.items()
    for kind, owner in (("Job", w.indexed_job), ("StatefulSet", w.stateful_set)):
        result = w.shaped(owner(w.template(framework, annotations, {})))
        expected = f'{A}/{key}]: Invalid value: "{value}": {message}'.replace("Job train", f"{kind} train")
        assert [str(error) for error in result.errors] == [expected]


def test_a_setting_of_the_owner_has_the_same_path() -> None:
    """An annotation may stand on the owner."""
    group = w.indexed_job(w.template("torch", {}, w.RESOURCES["nothing"]))
    assert group.owner
    group.owner["metadata"]["annotations"] = {"muster.dev/nproc-per-node": "x"}
    [error] = w.shaped(group).errors
    assert error.path == f"{A}/nproc-per-node]"


def test_metadata_that_contradicts() -> None:
    """What Muster writes itself must not say something else."""
    key, group = "muster.dev/mpi-hostfile", w.indexed_job(w.template("mpi", {}, {}))
    group.pod["metadata"]["annotations"][key] = "localhost"
    message = 'Invalid value: "localhost": is set by Muster for framework mpi; remove it'
    assert [str(error) for error in w.shaped(group).errors] == [f"metadata.annotations[{key}]: {message}"]


@pytest.mark.parametrize(("framework", "name", "source"), [
    ("torch", "PET_NNODES", "number of pods of Job train"),
    ("jax", "JAX_PROCESS_ID", "index of the pod in Job train"),
    ("xgboost", "DMLC_NUM_WORKER", "number of pods of Job train, one in each pod"),
    ("tensorflow", "TF_CONFIG", "all pods of Job train"),
    ("mpi", "OMPI_MCA_plm_rsh_args", "what OpenMPI reads"),
])  # fmt: skip
def test_variables_that_contradict(framework: str, name: str, source: str) -> None:
    """The variable, what Muster's value follows from, and what to do; a variable that says the same may stay."""
    group = w.indexed_job(w.template(framework, {}, {}))
    group.pod["spec"]["containers"][0]["env"] = [{"name": "A"}, {"name": name, "value": "mine"}]
    [error] = w.shaped(group).errors
    expected = f'"{name}": is set by Muster for framework {framework} ({source}); remove it'
    assert str(error) == f"spec.containers[0].env[1].name: Invalid value: {expected}"


INITIALIZER = w.replicated_job("dataset-initializer", "dataset-initializer", {"containers": [{"name": "main"}]})
ANNOTATED = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": ""}}}
R = 'spec.runtimeRef: Invalid value: "runtime": '
TRAIN_JOBS: dict[str, tuple[JSON, ClusterTrainingRuntime, str]] = {
    "empty queue": ({}, w.runtime({"torch": {}}, podGroupPolicy={"volcano": {}}),
        f"{R}must refer to a runtime whose annotation scheduling.volcano.sh/queue-name is not empty"),
    "resources without a trainer": (
        {"trainer": {"resourcesPerNode": {"limits": {"cpu": "1"}}}},
        w.runtime(None, w.replicated_job("other")),
        ('spec.trainer.resourcesPerNode: Invalid value: {"limits":{"cpu":"1"}}: must be left out: the runtime has no '
         "step trainer to which it applies"),
    ),
    "initializer without its container": ({"initializer": {"dataset": {"storageUri": "hf://x"}}},
        w.runtime({"torch": {}}, INITIALIZER, w.replicated_job("node", "trainer")),
        f"{R}must have container with name dataset-initializer in the dataset-initializer job"),
    "launcher as node": (
        {"metadata": {"annotations": {"muster.dev/mpi-launcher-as-node": "maybe"}}},
        w.mpi_runtime(),
        ('metadata.annotations[muster.dev/mpi-launcher-as-node]: Invalid value: "maybe": must be true or false: '
         "annotation muster.dev/mpi-launcher-as-node"),
    ),
    "quantities": ({}, w.runtime({"torch": {}}, w.replicated_job("node", "trainer",
        {"containers": [{"name": "node"}], "overhead": {"cpu": "much"}})),
        'spec.overhead: Invalid value: {"cpu":"much"}: must hold quantities; cpu: '),
}  # fmt: skip


@pytest.mark.parametrize(("given", "on", "message"), TRAIN_JOBS.values(), ids=TRAIN_JOBS.keys())
def test_train_jobs(given: JSON, on: ClusterTrainingRuntime, message: str) -> None:
    """What does not fit the runtime, each alone."""
    spec = copy.deepcopy(given)
    job = w.train_job(spec.pop("metadata", None), **spec)
    if "queue-name" in message:
        on.spec.template.metadata.annotations["scheduling.volcano.sh/queue-name"] = ""
    [error] = w.errors_of(w.compiled(job, on))
    assert error.startswith(message)


def test_a_long_value_is_cut() -> None:
    """A message stays readable whatever the value is."""
    result = w.shaped(w.indexed_job(w.template("torch", {"muster.dev/nproc-per-node": "9" * 5000 + "x"}, {})))
    assert "9" * 150 in str(result.errors[0])
    assert len(str(result.errors[0])) < 400


@pytest.mark.parametrize("number", ["auto", "cpu", "3", 3])
def test_processes_of_a_runtime(number: Any) -> None:
    """The background form: the runtime's policy says auto, cpu, gpu or a number; the TrainJob's own word wins."""
    on = w.runtime({"torch": {"numProcPerNode": number}}, w.replicated_job("node", "trainer"))
    plain = w.compiled(w.train_job(), on).plan
    assert plain
    [container] = plain.pod_sets[0].containers
    wanted = {"auto": "1", "cpu": "1"}.get(str(number), str(number))
    assert {each.name: each.value for each in container.env}["PET_NPROC_PER_NODE"] == wanted
    own = w.compiled(w.train_job(trainer={"numProcPerNode": 5}), on).plan
    assert own
    assert {each.name: each.value for each in own.pod_sets[0].containers[0].env}["PET_NPROC_PER_NODE"] == "5"
