"""TrainJobs that become JobSets, run by the real JobSet controller: Kubeflow's own path, from submission to its end."""

import contextlib
import json
from collections.abc import Callable, Iterator
from http.client import BAD_REQUEST
from typing import Any

import audits
import pytest
from beside import jobset
from beside.jobset import ATTEMPT_LABEL, JOB_SETS, ended
from beside.neighbour import Neighbours
from beside.scene import Scene
from test_trainjob_reports import PATH, TOLD, report, token
from train_jobs import RUN, TrainStory, patch, runtime, train_job

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS, PODS, SECRETS
from muster.api.volcano.batch import JOBS
from muster.kube.errors import APIError
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
JSON = dict[str, Any]
WHOLE = {"resourcesPerNode": {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": 8}}}


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """Six nodes of eight GPUs, JobSet, and TrainJobs that become JobSets."""
    return jobset.for_train_jobs(module_plane, neighbours)


@pytest.fixture
def train(plane: Plane, scene: Scene) -> Iterator[TrainStory]:
    """The TrainJobs of the test's namespace."""
    with contextlib.closing(plane.client()) as client, TrainStory(client, scene.namespace) as one:
        yield one


def own_runtime(scene: Scene, **jobset_spec: Any) -> None:
    """Runtime `own` of the namespace for torch, whose Jobs fail with their first pod."""
    one = runtime("own", **jobset_spec)
    one["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
    scene.client.create(TRAINING_RUNTIMES, one, scene.namespace)


def test_torch_from_submission_to_its_end(scene: Scene, train: TrainStory, plane: Plane) -> None:
    """It waits whole and says why, starts whole with its ranks, reports progress, and ends as its JobSet does."""
    with scene.cordoned(4):
        train.create(train_job("t", nodes=3, run_s=8, trainer=WHOLE))
        scene.waiting(3)
        scene.wait_for(lambda: train.held("t") == [("Waiting", "True", "Unschedulable")], 30)
        assert scene.groups()["t"].spec.min_member == 3
    pods = scene.running(3)
    assert scene.client.list(JOBS, scene.namespace) == []
    env = [scene.env(pod) for pod in pods]
    assert [each["PET_NODE_RANK"] for each in env] == ["0", "1", "2"]
    assert {each["PET_MASTER_ADDR"] for each in env} == {"t-node-0-0.t"}
    scene.wait_for(lambda: train.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 30)
    assert train.conditions("t") == []
    bearer = token(scene.client, scene.namespace, PATH.format(scene.namespace, "t"))
    told = json.dumps({"trainerStatus": TOLD}).encode()
    assert report(plane, env[0]["KUBEFLOW_TRAINER_SERVER_URL"], bearer, told)[0] == 200
    scene.wait_for(lambda: train.held("t") == [("Complete", "True", "AllJobsCompleted")], 60)
    status = train.get("t").status.trainer_status
    assert status
    assert status.progress_percentage == 45
    assert train.counts("t", "node")[-1] == {"succeeded": 1}
    scene.wait_for(lambda: scene.groups()["t"].status.phase == "Completed", 60)


def test_mpi_from_submission_to_its_end(scene: Scene, train: TrainStory) -> None:
    """The nodes start as a gang, the launcher when they are ready; when it ends, so does the TrainJob, and they go."""
    launcher = patch("tests.muster.dev/kwok-launcher", "launcher", annotations={RUN: "3"})
    train.create(train_job("m", "mpi-distributed", nodes=4, trainer=WHOLE, runtimePatches=[launcher]))
    scene.running(3, "m-node")
    scene.running(1, "m-launcher")
    for kind, name in ((SECRETS, "m-mpi-ssh-auth"), (CONFIG_MAPS, "m-mpi-hostfile")):
        assert scene.find(kind, name), name
    scene.wait_for(lambda: train.held("m") == [("Complete", "True", "AllJobsCompleted")], 60)
    scene.wait_for(lambda: not scene.pods(), 60, "the nodes go")
    assert train.counts("m", "launcher")[-1] == {"succeeded": 1}


def test_suspended_and_resumed(scene: Scene, train: TrainStory) -> None:
    """Created suspended it has no pods; let go with patches, as Kueue does, they are its pods'; and again later."""
    train.create(train_job("t", nodes=3, suspend=True, trainer=WHOLE))
    scene.wait_for(lambda: train.held("t") == [("Suspended", "True", "Suspended")], 30)
    scene.wait_for(lambda: scene.find(JOB_SETS, "t"), 30, "its JobSet")
    assert scene.pods() == []
    kueue = patch("kueue.x-k8s.io/manager", annotations={"a": "b"}, nodeSelector={"kubernetes.io/os": "linux"})
    train.change("t", suspend=False, runtimePatches=[kueue])
    pods = scene.running(3)
    assert {pod.metadata.annotations["a"] for pod in pods} == {"b"}
    assert {pod.spec.node_selector["kubernetes.io/os"] for pod in pods} == {"linux"}
    scene.wait_for(lambda: train.held("t") == [], 30, "no condition while it runs")
    train.change("t", suspend=True)
    scene.wait_for(lambda: not scene.pods(), 60, "the pods go")
    scene.wait_for(lambda: train.held("t") == [("Suspended", "True", "Suspended")], 30)
    train.create(train_job("other", nodes=6, trainer=WHOLE))
    scene.running(6, "other")
    scene.client.delete(TRAIN_JOBS, "other", scene.namespace)
    train.change("t", suspend=False)
    again = scene.running(3, "t-")
    assert not {pod.metadata.uid for pod in pods} & {pod.metadata.uid for pod in again}


def test_a_failure_ends_it(scene: Scene, train: TrainStory) -> None:
    """Without restarts, with the reason of its JobSet."""
    own_runtime(scene)
    train.create(train_job("t", "own", kind="TrainingRuntime", nodes=2, trainer=WHOLE))
    scene.ends(scene.running(2)[1])
    scene.wait_for(lambda: train.held("t") == [("Failed", "True", "FailedJobs")], 60)
    assert ended(scene.find(JOB_SETS, "t")) == "Failed: FailedJobs"
    assert train.counts("t", "node")[-1] == {"failed": 1}


def test_a_pod_that_its_job_makes_again(scene: Scene, train: TrainStory) -> None:
    """Within the backoffLimit of its Job a pod that fails is replaced alone, in the gang and in its place."""
    train.create(train_job("t", nodes=6, trainer=WHOLE))
    first = scene.running(6)
    scene.ends(first[2])
    scene.wait_for(lambda: len({pod.metadata.uid for pod in scene.seen.values()}) == 7, 60, "one pod more")
    again = scene.running(6)
    assert len({pod.metadata.uid for pod in first} & {pod.metadata.uid for pod in again}) == 5
    assert again[2].spec.node_name == first[2].spec.node_name
    assert train.conditions("t") == []


def test_restarts_take_the_whole_gang(scene: Scene, train: TrainStory) -> None:
    """One restart, in a cluster that holds the gang once; then it has failed."""
    own_runtime(scene, failurePolicy={"maxRestarts": 1})
    train.create(train_job("t", "own", kind="TrainingRuntime", nodes=6, trainer=WHOLE))
    first = scene.running(6)
    scene.ends(first[0])
    uids = {pod.metadata.uid for pod in first}
    scene.wait_for(lambda: not uids & {pod.metadata.uid for pod in scene.pods()}, 60, "the first attempt goes")
    again = scene.running(6)
    assert {pod.metadata.labels[ATTEMPT_LABEL] for pod in again} == {"1"}
    assert train.conditions("t") == []
    scene.ends(again[1])
    scene.wait_for(lambda: train.held("t") == [("Failed", "True", "ReachedMaxRestarts")], 60)
    scene.wait_for(lambda: not scene.pods(), 60, "no pods")


def test_initializers_come_first(scene: Scene, train: TrainStory) -> None:
    """A step that others wait for is no member of the gang, which waits for it without holding anything."""
    train_step = {"name": "node", "dependsOn": [{"name": "dataset-initializer", "status": "Complete"}]}
    one = runtime("own")
    [node] = one["spec"]["template"]["spec"]["replicatedJobs"]
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "dataset-initializer"}
    pods = {"spec": {"containers": [{"name": "dataset-initializer", "image": "fetch:1"}]}}
    pods["metadata"] = {"annotations": {RUN: "2"}}
    first = {"name": "dataset-initializer", "template": {"metadata": {"labels": labels}, "spec": {"template": pods}}}
    one["spec"]["template"]["spec"]["replicatedJobs"] = [first, {**node, **train_step}]
    scene.client.create(TRAINING_RUNTIMES, one, scene.namespace)
    train.create(train_job("t", "own", kind="TrainingRuntime", nodes=3, run_s=2, trainer=WHOLE))
    scene.running(1, "t-dataset-initializer")
    assert [pod.metadata.name for pod in scene.pods() if pod.metadata.name.startswith("t-node")] == []
    scene.running(3, "t-node")
    scene.wait_for(lambda: train.held("t") == [("Complete", "True", "AllJobsCompleted")], 60)
    assert train.counts("t", "dataset-initializer")[-1] == {"succeeded": 1}


def test_deleted_in_the_middle(scene: Scene, train: TrainStory) -> None:
    """A JobSet that somebody deletes is made anew; with the TrainJob all goes."""
    train.create(train_job("t", nodes=6, trainer=WHOLE))
    before = {pod.metadata.uid for pod in scene.running(6)}
    scene.client.delete(JOB_SETS, "t", scene.namespace)
    scene.wait_for(lambda: not before & {pod.metadata.uid for pod in scene.pods()}, 60, "its pods go")
    scene.running(6)
    scene.client.delete(TRAIN_JOBS, "t", scene.namespace)
    scene.wait_for(lambda: scene.find(JOB_SETS, "t") is None and not scene.groups(), 60, "nothing is left")
    scene.wait_for(lambda: not scene.client.list(PODS, scene.namespace), 60, "no pods")


def test_a_deadline(scene: Scene, train: TrainStory) -> None:
    """After it the JobSet goes, and the pods with it."""
    train.create(train_job("t", nodes=2, trainer=WHOLE, activeDeadlineSeconds=10))
    scene.running(2)
    scene.wait_for(lambda: train.held("t") == [("Failed", "True", "DeadlineExceeded")], 60)
    scene.wait_for(lambda: scene.find(JOB_SETS, "t") is None and not scene.pods(), 60, "nothing runs")


def test_parts_that_start_in_order(scene: Scene, train: TrainStory) -> None:
    """A part that starts after another is no member that the gang waits for."""
    one = runtime("own", startupPolicy={"startupPolicyOrder": "InOrder"})
    jobs = one["spec"]["template"]["spec"]["replicatedJobs"]
    pods = {"spec": {"containers": [{"name": "driver", "image": "driver:1"}]}}
    jobs.append({"name": "driver", "template": {"spec": {"template": pods}}})
    scene.client.create(TRAINING_RUNTIMES, one, scene.namespace)
    train.create(train_job("t", "own", kind="TrainingRuntime", nodes=3, run_s=4, trainer=WHOLE))
    scene.running(3, "t-node")
    scene.running(1, "t-driver")


def test_what_jobset_refuses(scene: Scene, train: TrainStory, plane: Plane) -> None:
    """The TrainJob is blocked in the words of JobSet's webhook, and tried again at its pace."""
    own_runtime(scene, failurePolicy={"restartStrategy": "InPlaceRestart"})
    train.create(train_job("t", "own", kind="TrainingRuntime", nodes=2, trainer=WHOLE))
    scene.wait_for(lambda: [each[0] for each in train.held("t")] == ["Blocked"], 30)
    assert "InPlaceRestart restart strategy cannot be set" in train.conditions("t")[0].message

    def tries() -> int:
        asked = (one for one in audits.asked(plane) if one.namespace == scene.namespace and one.code >= BAD_REQUEST)
        return sum((one.use.resource, one.use.verb) == ("jobsets", "create") for one in asked)

    scene.wait_for(lambda: tries() >= 3, 60, "three tries")
    assert len(train.events("TrainJobResourcesCreationFailed")) == 1


def test_an_exclusive_topology(scene: Scene, train: TrainStory) -> None:
    """A runtime that asks for one is refused where the TrainJob is submitted, or its JobSet waits for ever."""
    one = runtime("own")
    one["spec"]["template"]["metadata"] = {"annotations": {jobset.EXCLUSIVE: "muster.dev/rack"}}
    scene.client.create(TRAINING_RUNTIMES, one, scene.namespace)
    scene.expected_refusals = 1
    with pytest.raises(APIError, match="exclusive-topology"):
        train.create(train_job("t", "own", kind="TrainingRuntime", nodes=3, trainer=WHOLE))
