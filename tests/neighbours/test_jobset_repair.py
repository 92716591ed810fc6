"""Repairs of JobSets that the real JobSet controller runs, and of TrainJobs that become such."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator

import pytest
from beside import jobset
from beside.jobset import JOB_SETS, ended, job_set, replicated
from beside.neighbour import Neighbours
from beside.scene import Scene
from node_faults import REPAIR_S, XID, says
from test_trainjob_reports import PATH, report, token
from train_jobs import TrainStory, train_job

from muster.api import names
from muster.api.kubernetes.core import NODES, Pod
from muster.api.kubernetes.meta import format_time
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.neighbour, pytest.mark.long]
WHOLE = {"resourcesPerNode": {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": 8}}}
BACK_S = 150.0
"""The Job controller waits 40 s after three evictions before it makes the pods again."""


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """Six nodes of eight GPUs, JobSet, and TrainJobs that become JobSets."""
    return jobset.for_train_jobs(module_plane, neighbours)


@pytest.fixture(autouse=True)
def healthy(scene: Scene) -> Iterator[None]:
    """Afterwards all nodes are."""
    yield
    for node in scene.client.list(NODES):
        says(scene.client, node.metadata.name, XID, "False")


def homes(pods: list[Pod]) -> list[str]:
    """The nodes of pods, by rank."""
    return [pod.spec.node_name for pod in pods]


def uids(pods: list[Pod]) -> list[str]:
    """Their UIDs, by rank."""
    return [pod.metadata.uid for pod in pods]


def new(scene: Scene, before: list[Pod], *ranks: int) -> list[Pod]:
    """Waits until these ranks have other pods, and all run; returns them."""

    def found() -> list[Pod]:
        now = [pod for pod in scene.pods() if pod.status.phase == "Running"]
        known = {pod.metadata.labels[names.COMPLETION_INDEX]: pod.metadata.uid for pod in before}
        changed = {
            int(index)
            for pod in now
            if known.get(index := pod.metadata.labels[names.COMPLETION_INDEX]) != pod.metadata.uid
        }
        return now if len(now) == len(before) and changed == set(ranks) else []

    pods: list[Pod] = scene.wait_for(found, BACK_S, f"new pods of ranks {ranks}")
    return pods


@pytest.mark.parametrize(("policy", "ranks"), [("replace", [1]), ("restart", [0, 1, 2])])
def test_a_jobset_is_repaired(scene: Scene, policy: str, ranks: list[int]) -> None:
    """The others run on or begin again on their nodes, held as long as the Job waits; no Job or JobSet has failed."""
    scene.create(JOB_SETS, job_set("train", replicated("node", 3), annotations={names.ON_NODE_FAULT: policy}))
    before = scene.running(3)
    says(scene.client, homes(before)[1], XID, "True")
    after = new(scene, before, *ranks)
    assert [homes(after)[rank] == homes(before)[rank] for rank in range(3)] == [True, False, True]
    found = scene.find(JOB_SETS, "train")
    assert (ended(found), found["status"]["restarts"]) == ("", 0)


@pytest.mark.parametrize("policy", ["replace", "restart"])
def test_a_train_job_that_became_a_jobset_is_asked_and_repaired(scene: Scene, plane: Plane, policy: str) -> None:
    """Its annotations are those of its gang; where it restarts, its report answers the notice."""
    scene.repairs = 1
    with contextlib.closing(plane.client()) as client, TrainStory(client, scene.namespace) as train:
        manifest = train_job("t", nodes=3, trainer=WHOLE)
        said = {names.ON_NODE_FAULT: policy, names.EVICT_NOTICE: "10m"}
        manifest["metadata"]["annotations"] = said
        train.create(manifest)
        before = scene.running(3)
        assert said.items() <= scene.groups()["t"].metadata.annotations.items()
        says(scene.client, homes(before)[1], XID, "True")
        if policy == "restart":
            scene.wait_for(
                lambda: all(names.EVICT_AT in pod.metadata.annotations for pod in scene.pods()), REPAIR_S, "the notice"
            )
            assert uids(scene.pods()) == uids(before)
            bearer = token(scene.client, scene.namespace, PATH.format(scene.namespace, "t"))
            metric = {"name": names.CHECKPOINT, "value": f"step=7,at={format_time(time.time())}"}
            told = {"trainerStatus": {"metrics": [metric], "lastUpdatedTime": format_time(time.time())}}
            url = scene.env(before[0])["KUBEFLOW_TRAINER_SERVER_URL"]
            assert report(plane, url, bearer, json.dumps(told).encode())[0] == 200
        after = new(scene, before, *([1] if policy == "replace" else [0, 1, 2]))
        assert [homes(after)[rank] == homes(before)[rank] for rank in range(3)] == [True, False, True]
        assert train.conditions("t") == []
