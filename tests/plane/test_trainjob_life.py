"""A TrainJob from submission to its end: what clients of Kubeflow Trainer see, and what exists meanwhile."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from train_jobs import RAW_MAPS, TrainStory, make_volume, patch, runtime, train_job

from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS, INDEXED_JOBS, PODS, SECRETS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.errors import Forbidden
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]


@pytest.fixture
def story(plane: Plane, namespace: str) -> Iterator[TrainStory]:
    """Every status that the TrainJobs of the test's namespace have."""
    with contextlib.closing(plane.client()) as client, TrainStory(client, namespace) as one:
        yield one


def test_a_train_job_runs_to_its_end(story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """Active, ready, succeeded; Complete with a JobSet's reason; no condition before; pods that the SDK finds."""
    client: Client = story.client
    story.create(train_job("t", nodes=3, run_s=2))
    wait_for(lambda: story.conditions("t"), what="its end")
    [end] = story.conditions("t")
    assert (end.type, end.status, end.reason) == ("Complete", "True", "AllJobsCompleted")
    assert end.message == "jobset completed successfully"
    counts = story.counts("t", "node")
    assert counts[0] in ({"active": 1}, {"active": 1, "ready": 1})
    assert counts[-2:] == [{"active": 1, "ready": 1}, {"succeeded": 1}]
    assert all(not conditions for conditions, _ in story.statuses["t"][:-1])
    job = client.get(JOBS, "t", namespace)
    assert (job.status.state.phase, job.spec.queue, job.spec.min_available) == ("Completed", "default", 3)
    pods = client.list(PODS, namespace, label_selector="jobset.sigs.k8s.io/jobset-name=t")
    assert sorted(pod.metadata.labels[names.COMPLETION_INDEX] for pod in pods) == ["0", "1", "2"]
    assert {pod.metadata.labels[names.REPLICATED_JOB] for pod in pods} == {"node"}
    assert client.get(CONFIG_MAPS, "t-runtime-snapshot", namespace).metadata.controller
    assert story.events("AllJobsCompleted") == ["jobset completed successfully"]


@pytest.mark.alone
def test_it_says_why_it_waits_and_where_it_starts(story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """A condition while its gang finds no place, and the Events that other workloads have."""
    whole = {"resourcesPerNode": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 8}}}
    story.create(train_job("first", nodes=8, trainer=whole))
    wait_for(lambda: story.events("Bound"), 60, "the first one to start")
    story.create(train_job("second", nodes=2, trainer=whole))
    wait_for(lambda: story.held("second") == [("Waiting", "True", "Unschedulable")])
    [waiting] = story.conditions("second")
    assert waiting.message.startswith("node: room is missing for 2 pods of 8 nvidia.com/gpu each: none fits now; ")
    wait_for(lambda: story.events("Unschedulable") == [waiting.message])
    story.client.delete(TRAIN_JOBS, "first", namespace)
    wait_for(lambda: not story.held("second"), 60, "the second one to start")
    wait_for(lambda: story.events("Bound") == ["all 8 members are bound", "all 2 members are bound"])


def test_suspended_and_resumed(story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """The pods go and come; Job, keys and hostfile stay the same; Resumed is told until the pods run."""
    client = story.client
    story.create(train_job("t", "mpi-distributed", nodes=3))
    wait_for(lambda: story.counts("t", "launcher")[-1:] == [{"active": 1, "ready": 1}], 60)
    before = [
        client.get(kind, name, namespace).metadata.uid
        for kind, name in ((JOBS, "t"), (SECRETS, "t-mpi-ssh-auth"), (CONFIG_MAPS, "t-mpi-hostfile"))
    ]
    pods = {pod.metadata.uid for pod in client.list(PODS, namespace)}
    story.change("t", suspend=True)
    wait_for(lambda: story.held("t") == [("Suspended", "True", "Suspended")])
    wait_for(lambda: not client.list(PODS, namespace), what="the pods go")
    wait_for(lambda: story.counts("t", "node")[-1] == {"suspended": 1})
    story.change("t", suspend=False)
    wait_for(lambda: story.counts("t", "launcher")[-1] == {"active": 1, "ready": 1}, 60)
    wait_for(lambda: story.held("t") == [], what="clients see it run again")
    assert [("Suspended", "False", "Resumed")] in story.all_held("t")
    after = [
        client.get(kind, name, namespace).metadata.uid
        for kind, name in ((JOBS, "t"), (SECRETS, "t-mpi-ssh-auth"), (CONFIG_MAPS, "t-mpi-hostfile"))
    ]
    assert after == before
    assert not pods & {pod.metadata.uid for pod in client.list(PODS, namespace)}
    wait_for(lambda: story.events("Resumed") == ["TrainJob is resumed"])


def test_patched_while_suspended(story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """As Kueue does it: created suspended, and let go with a node selector; later pods follow a later patch."""
    selector = {"kubernetes.io/os": "linux"}
    story.create(train_job("t", suspend=True))
    wait_for(lambda: story.held("t") == [("Suspended", "True", "Suspended")])
    assert story.counts("t", "node")[-1] == {"suspended": 1}
    assert not story.client.list(JOBS, namespace)
    story.change("t", suspend=False, runtimePatches=[patch("kueue.x-k8s.io/manager", nodeSelector=selector)])
    wait_for(lambda: story.counts("t", "node")[-1] == {"active": 1, "ready": 1}, 60)
    [pod] = story.client.list(PODS, namespace)
    assert pod.spec.node_selector == selector
    story.change("t", suspend=True)
    wait_for(lambda: story.counts("t", "node")[-1] == {"suspended": 1})
    other = {**selector, "muster.dev/rack": "rack-0"}
    story.change("t", suspend=False, runtimePatches=[patch("kueue.x-k8s.io/manager", nodeSelector=other)])
    wait_for(lambda: [pod.spec.node_selector for pod in story.client.list(PODS, namespace)] == [other], 60)


def test_what_is_taken_away_comes_back(story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """A hostfile that was changed, numbers of the Job that were, and the Job itself."""
    client = story.client
    story.create(train_job("t", "mpi-distributed", nodes=3))
    wait_for(lambda: story.counts("t", "launcher")[-1:] == [{"active": 1, "ready": 1}], 60)
    hosts = client.get(RAW_MAPS, "t-mpi-hostfile", namespace)["data"]
    client.merge_patch(CONFIG_MAPS, "t-mpi-hostfile", {"data": {"hostfile": "none"}}, namespace)
    wait_for(lambda: client.get(RAW_MAPS, "t-mpi-hostfile", namespace)["data"] == hosts)
    smaller = [{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 1}]
    smaller.append({"op": "replace", "path": "/spec/tasks/0/minAvailable", "value": 1})
    client.json_patch(JOBS, "t", [*smaller, {"op": "replace", "path": "/spec/minAvailable", "value": 1}], namespace)
    wait_for(lambda: [task.replicas for task in client.get(JOBS, "t", namespace).spec.tasks] == [2, 1])
    uid = client.get(JOBS, "t", namespace).metadata.uid
    client.delete(JOBS, "t", namespace)
    wait_for(lambda: [j.metadata.uid for j in client.list(JOBS, namespace) if j.metadata.uid != uid], what="a new Job")


@pytest.mark.alone
def test_the_runtime_that_admission_saw(story: TrainStory, plane: Plane, namespace: str, wait_for: WaitFor) -> None:
    """The runtime changes, and goes, before the first pass: the TrainJob runs with what it was admitted with."""
    client = story.client
    for name in ("changed", "gone"):
        client.create(TRAINING_RUNTIMES, runtime(name, image="first:1"), namespace)
    plane.part("controller").stop()
    try:
        for name in ("changed", "gone"):
            story.create(train_job(name, name, run_s=1, kind="TrainingRuntime"))
        client.apply(TRAINING_RUNTIMES, runtime("changed", image="second:2"), namespace=namespace)
        client.delete(TRAINING_RUNTIMES, "gone", namespace)
    finally:
        plane.mend()
    for name in ("changed", "gone"):
        wait_for(lambda name=name: story.held(name) == [("Complete", "True", "AllJobsCompleted")], 60)
        kept = yaml.safe_load(client.get(RAW_MAPS, f"{name}-runtime-snapshot", namespace)["data"]["runtime"])
        [job] = kept["spec"]["template"]["spec"]["replicatedJobs"]
        assert job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] == "first:1"
        [pod] = client.list(PODS, namespace, label_selector=f"jobset.sigs.k8s.io/jobset-name={name}")
        assert pod.spec.containers[0].image == "first:1"


@pytest.mark.slow
def test_initializers_come_first(story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """Dataset, model, training, on one volume; the gang counts the training only; each waits in the queue."""
    client = story.client
    make_volume(client, namespace, "20Gi")
    runs = {"kwok.muster.dev/run-seconds": "1"}
    patches = [patch(f"tests.muster.dev/{job}", job, runs) for job in ("dataset-initializer", "model-initializer")]
    story.create(train_job("t", "torchtune-llama3.2-1b", trainer={"command": ["tune", "run"]}, runtimePatches=patches))
    wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 90)
    assert story.client.get(JOBS, "t", namespace).spec.min_available == 1
    assert story.counts("t", "dataset-initializer")[-1] == {"succeeded": 1}
    assert story.counts("t", "model-initializer")[-1] == {"succeeded": 1}
    pods = client.list(PODS, namespace)
    assert {pod.spec.scheduler_name for pod in pods} == {"muster"}
    started = {pod.metadata.labels[names.REPLICATED_JOB]: pod.metadata.creation_timestamp for pod in pods}
    assert started["dataset-initializer"] <= started["model-initializer"] <= started["node"]
    claims = {volume["persistentVolumeClaim"]["claimName"] for pod in pods for volume in pod.spec.volumes
              if "persistentVolumeClaim" in volume}  # fmt: skip
    assert claims == {"initializer-t"}
    story.change("t", suspend=True)
    wait_for(lambda: story.counts("t", "node")[-1] == {"suspended": 1})
    story.change("t", suspend=False)
    wait_for(lambda: story.counts("t", "node")[-1] == {"active": 1, "ready": 1}, 60)
    assert len([pod for pod in client.list(PODS, namespace) if "initializer" in pod.metadata.name]) == 2, "not again"


def test_elastic(story: TrainStory, namespace: str, wait_for: WaitFor) -> None:
    """More nodes and fewer while it runs: pods come and go, those that stay are the same; the minimum stays."""
    document = runtime("elastic")
    document["spec"]["mlPolicy"]["torch"] = {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}
    story.client.create(TRAINING_RUNTIMES, document, namespace)
    story.create(train_job("t", "elastic", nodes=3, kind="TrainingRuntime"))
    wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 60)
    first = {pod.metadata.name: pod.metadata.uid for pod in story.client.list(PODS, namespace)}
    assert story.client.get(JOBS, "t", namespace).spec.min_available == 2

    def resize(nodes: int) -> dict[str, str]:
        annotations = {"metadata": {"annotations": {names.NUM_NODES: str(nodes)}}}
        story.client.merge_patch(TRAIN_JOBS, "t", annotations, namespace)
        alive = lambda: [  # noqa: E731 - read again and again
            pod for pod in story.client.list(PODS, namespace)
            if pod.status.phase == "Running" and not pod.metadata.deletion_timestamp
        ]  # fmt: skip
        wait_for(lambda: len(alive()) == nodes, 60)
        return {pod.metadata.name: pod.metadata.uid for pod in alive()}

    more = resize(4)
    assert first.items() <= more.items()
    assert resize(2).items() <= first.items()
    with pytest.raises(Forbidden, match="within 2:4"):
        resize(5)


@pytest.mark.parametrize("moment", ["new", "running", "suspended", "complete"])
def test_deletion_in_every_phase(story: TrainStory, namespace: str, wait_for: WaitFor, moment: str) -> None:
    """Everything goes with it, and nothing comes back; no finalizer holds it up."""
    story.create(train_job("t", "mpi-distributed", nodes=2, suspend=moment == "suspended"))
    ends = patch("tests.muster.dev/kwok", "launcher", {"kwok.muster.dev/run-seconds": "1"})
    if moment == "running":
        wait_for(lambda: story.counts("t", "launcher")[-1:] == [{"active": 1, "ready": 1}], 60)
    elif moment == "suspended":
        wait_for(lambda: story.held("t"))
    elif moment == "complete":
        story.change("t", suspend=True)
        wait_for(lambda: story.counts("t", "launcher")[-1:] == [{"suspended": 1}])
        story.change("t", suspend=False, runtimePatches=[ends])
        wait_for(lambda: [each[0] for each in story.held("t")][-1:] == ["Complete"], 60)
    story.client.delete(TRAIN_JOBS, "t", namespace)
    kinds = (TRAIN_JOBS, JOBS, INDEXED_JOBS, SECRETS, CONFIG_MAPS, PODS)

    def left() -> list[str]:
        return [
            each.metadata.name
            for kind in kinds
            for each in story.client.list(kind, namespace)
            if each.metadata.name != "kube-root-ca.crt"
        ]

    wait_for(lambda: not left(), 60, what="nothing is left")
