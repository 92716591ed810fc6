"""JobSets of the real JobSet controller, placed by Muster: what is a gang, and what becomes of it."""

from collections.abc import Callable
from typing import Any

import pytest
from beside import jobset
from beside.jobset import JOB_SETS, job_set, replicated
from beside.neighbour import Neighbours
from beside.scene import Scene

from muster.api import names
from muster.api.kubernetes.core import NAMESPACES
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
JSON = dict[str, Any]
FRAMEWORK = {names.FRAMEWORK: "torch"}
QUEUE = {names.QUEUE: "default"}


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """Six nodes of eight GPUs, and JobSet as it is installed by default."""
    one = module_plane(nodes=6)
    jobset.start(neighbours, one)
    return one


@pytest.mark.parametrize("place", ["set", "template", "namespace"])
def test_a_replicated_job_waits_whole_and_starts_whole(scene: Scene, place: str) -> None:
    """All its Jobs are one gang, wherever the queue is named; its ranks follow Jobs and indexes."""
    if place == "namespace":
        scene.client.merge_patch(NAMESPACES, scene.namespace, {"metadata": {"labels": QUEUE}})
    own = {"set": (FRAMEWORK | QUEUE, {}), "template": ({}, FRAMEWORK | QUEUE), "namespace": (FRAMEWORK, {})}
    labels, template = own[place]
    with scene.cordoned(1):
        scene.create(JOB_SETS, job_set("train", replicated("node", 3, jobs=2, labels=template), labels=labels))
        waiting = scene.waiting(6)
        assert not any(pod.spec.node_name for pod in waiting)
        [group] = scene.groups().values()
        assert (group.metadata.name, group.spec.min_member) == ("podgroup-jobset-train.node", 6)
    pods = scene.running(6)
    env = [scene.env(pod) for pod in pods]
    assert [each["PET_NODE_RANK"] for each in env] == [str(rank) for rank in range(6)]
    assert {each["PET_NNODES"] for each in env} == {"6"}
    assert {each["PET_MASTER_ADDR"] for each in env} == {"train-node-0-0.train"}
    assert len({pod.spec.node_name for pod in pods}) == 6
