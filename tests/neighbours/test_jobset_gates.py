"""JobSets with what JobSet has behind feature gates: restarts of single Jobs, and sizes that change."""

from collections.abc import Callable
from typing import Any

import pytest
from beside import jobset
from beside.jobset import JOB_SETS, ended, job_set, replicated
from beside.neighbour import Neighbours
from beside.scene import Scene

from muster.api import names
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
JSON = dict[str, Any]


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """Six nodes of eight GPUs, and JobSet with its gates open."""
    one = module_plane(nodes=6)
    jobset.start(neighbours, one, featureGates={"RestartJob": True, "ElasticJobSet": True})
    return one


def test_a_job_that_restarts_alone(scene: Scene) -> None:
    """Its pods come back to the gang, to their ranks and nodes; those of the other Jobs run on."""
    policy = {"maxRestarts": 2, "rules": [{"name": "alone", "action": "RestartJob"}]}
    scene.create(JOB_SETS, job_set("train", replicated("node", 2, jobs=3), failurePolicy=policy))
    first = scene.running(6)
    scene.ends(first[2])
    of_the_job = {pod.metadata.uid for pod in first[2:4]}
    scene.wait_for(lambda: not of_the_job & {pod.metadata.uid for pod in scene.pods()}, 60, "the Job's pods go")
    again = scene.running(6)
    assert [pod.metadata.uid for pod in again[:2] + again[4:]] == [pod.metadata.uid for pod in first[:2] + first[4:]]
    assert [scene.env(pod)["PET_NODE_RANK"] for pod in again] == [str(rank) for rank in range(6)]
    assert {pod.spec.node_name for pod in again} == {pod.spec.node_name for pod in first}
    assert ended(scene.find(JOB_SETS, "train")) == ""


def test_a_size_that_changes(scene: Scene) -> None:
    """Without a framework more pods are growth of the Job's gang, and fewer give their nodes back."""
    labels, least = {names.QUEUE: "default"}, {names.MIN_MEMBER: "2"}
    scene.create(JOB_SETS, job_set("grow", replicated("node", 2), labels=labels, annotations=least))
    before = {pod.metadata.uid for pod in scene.running(2)}
    for pods in (4, 2):
        [part] = scene.find(JOB_SETS, "grow")["spec"]["replicatedJobs"]
        part["template"]["spec"] |= {"parallelism": pods, "completions": pods}
        scene.patch(JOB_SETS, "grow", replicatedJobs=[part])
        assert before <= {pod.metadata.uid for pod in scene.running(pods)}
