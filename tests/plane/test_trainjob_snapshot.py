"""A snapshot of a runtime that somebody else has written is not used, whoever he is and whatever it holds."""

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from train_jobs import RAW_MAPS, TrainStory, runtime, train_job

from controller.trainjob.obstacle import Obstacle
from controller.trainjob.runtimes import RuntimeFinder
from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS, WEBHOOK_VALIDATION, TrainJob
from muster.api.kubeflow.trainingruntime import TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS, PODS
from muster.kube.errors import Forbidden
from muster.kube.events import EventWriter
from muster.kube.store import ObjectStore
from muster.workloads.adapter import Owner
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.alone]
WaitFor = Callable[..., Any]
SNAPSHOT = "t-runtime-snapshot"
BOMB = "".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"] + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)]
)
"""YAML of some 500 bytes that aliases make a list of a thousand million entries."""


@pytest.fixture
def story(plane: Plane, namespace: str) -> Iterator[TrainStory]:
    """Every status that the TrainJobs of the test's namespace have."""
    with contextlib.closing(plane.client()) as client, TrainStory(client, namespace) as one:
        yield one


def forged(story: TrainStory, text: str) -> dict[str, Any]:
    """A ConfigMap as the controller would make it, but for its content."""
    meta = story.get("t").metadata
    metadata = {
        "name": SNAPSHOT,
        "labels": {names.TRAIN_JOB: "t"},
        "ownerReferences": [Owner.from_meta(TRAIN_JOBS, meta).reference()],
    }
    return {"metadata": metadata, "immutable": True, "data": {"runtime": text}}


def privileged(name: str) -> str:
    """A runtime that asks for the node's processes."""
    document = runtime(name)
    job = document["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["spec"]["hostPID"] = True
    return json.dumps(document)


@pytest.mark.parametrize("content", ["privileged", "bomb"])
def test_one_made_too_early(story: TrainStory, plane: Plane, namespace: str, wait_for: WaitFor, content: str) -> None:
    """The controller replaces it, and the TrainJob runs with the runtime that admission saw."""
    client = story.client
    client.create(TRAINING_RUNTIMES, runtime("mine"), namespace)
    plane.part("controller").stop()
    try:
        story.create(train_job("t", "mine", run_s=1, kind="TrainingRuntime"))
        text = privileged("mine") if content == "privileged" else BOMB
        client.create(CONFIG_MAPS, forged(story, text), namespace)
    finally:
        plane.mend()
    wait_for(lambda: story.held("t") == [("Complete", "True", "AllJobsCompleted")], 60)
    [pod] = client.list(PODS, namespace)
    assert "hostPID" not in plane.kubectl("get", "pod", pod.metadata.name, f"-n={namespace}", "-o=json").stdout
    assert "hostPID" not in client.get(RAW_MAPS, SNAPSHOT, namespace)["data"]["runtime"]
    assert story.get("t").status.runtime_digest.startswith("sha256:")


@pytest.mark.parametrize("content", ["privileged", "bomb"])
def test_one_made_meanwhile(story: TrainStory, plane: Plane, namespace: str, wait_for: WaitFor, content: str) -> None:
    """A controller that starts anew does not use it, says so, and goes on when it is deleted."""
    client = story.client
    client.create(TRAINING_RUNTIMES, runtime("mine"), namespace)
    story.create(train_job("t", "mine", kind="TrainingRuntime"))
    wait_for(lambda: story.counts("t", "node")[-1:] == [{"active": 1, "ready": 1}], 60)
    before = {pod.metadata.uid for pod in client.list(PODS, namespace)}
    plane.part("controller").stop()
    try:
        client.delete(CONFIG_MAPS, SNAPSHOT, namespace)
        client.create(CONFIG_MAPS, forged(story, privileged("mine") if content == "privileged" else BOMB), namespace)
    finally:
        plane.mend()
    wait_for(lambda: story.held("t") == [("Blocked", "True", "TrainJobResourcesCreationFailed")], 60)
    assert story.conditions("t")[0].message == (
        f"ConfigMap {SNAPSHOT} was changed: its digest differs from this TrainJob's status.runtimeDigest; "
        "delete the ConfigMap, and the runtime will be read again"
    )
    client.delete(CONFIG_MAPS, SNAPSHOT, namespace)
    wait_for(lambda: story.held("t") == [], 60)
    assert {pod.metadata.uid for pod in client.list(PODS, namespace)} == before, "the same pods"


def test_a_runtime_that_admission_did_not_check(story: TrainStory, namespace: str) -> None:
    """A label switches its validation off; a TrainJob that refers to it is refused, by the controller too."""
    client = story.client
    wrong = runtime("wrong")
    wrong["metadata"]["labels"][WEBHOOK_VALIDATION] = "disabled"
    wrong["spec"]["template"]["spec"]["replicatedJobs"][0]["replicas"] = 2
    client.create(TRAINING_RUNTIMES, wrong, namespace)
    manifest = train_job("t", "wrong", kind="TrainingRuntime")
    why = r"TrainingRuntime wrong is .*spec\.template\.spec\.replicatedJobs\[0\]\.replicas.*always must be 1"
    with pytest.raises(Forbidden, match=rf"spec\.runtimeRef.*{why}"):
        story.create(manifest)
    manifest["metadata"] |= {"namespace": namespace, "uid": "of-none"}
    runtimes = RuntimeFinder(client, EventWriter(client, "test"), ObjectStore())
    with pytest.raises(Obstacle, match=why):
        runtimes.runtime_of(msgspec.convert(manifest, TrainJob))
