"""Kueue, real, in front of TrainJobs that Muster runs: admission, eviction, and what its quota counts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from beside import kueue, kueue_objects, multikueue
from beside.kueue_objects import JSON, WORKLOADS, holds, make_local_queue, make_quota, workload_of
from beside.neighbour import Neighbours
from beside.scene import Scene
from train_jobs import train_job

from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.volcano.batch import JOBS as VOLCANO_JOBS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
OWNERS = Path(__file__).parents[2] / "examples" / "kueue-owners.yaml"
WaitFor = Callable[..., Any]
PRIORITIES = kueue_objects.cluster_kind("workloadpriorityclasses", "WorkloadPriorityClass")
GPU = "nvidia.com/gpu"
RESOURCES = {"resourcesPerNode": {"requests": {"cpu": "1"}, "limits": {GPU: 8}}}


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours, wait_for: WaitFor) -> Plane:
    """Four nodes of eight GPUs, for all of which Kueue admits work; it knows that Volcano Jobs have owners."""
    one = module_plane(nodes=4)
    known = {"frameworks": [*multikueue.FRAMEWORKS, "pod"], "externalFrameworks": ["Job.v1alpha1.batch.volcano.sh"]}
    applied = one.kubectl("apply", f"--filename={OWNERS}")
    assert not applied.returncode, applied.stderr
    kueue.start(one, neighbours, wait_for, settings={"integrations": known})
    client = one.client()
    make_quota(client, "train", {"cpu": "100", GPU: "32"}, preemption={"withinClusterQueue": "LowerPriority"})
    client.create(PRIORITIES, {"metadata": {"name": "urgent"}, "value": 1000})
    return one


@pytest.fixture
def team(scene: Scene) -> Scene:
    """A namespace whose LocalQueue leads to the quota; it is called `default`, so it takes what names no queue."""
    make_local_queue(scene.client, scene.namespace, "default", "train")
    return scene


def train(team: Scene, name: str, nodes: int, *, run_s: float | None = None, **labels: str) -> None:
    """Submits a TrainJob that takes whole nodes, to Kueue and to Muster."""
    manifest = train_job(name, nodes=nodes, run_s=run_s, trainer=RESOURCES)
    manifest["metadata"]["labels"] = {kueue_objects.QUEUE: "default", names.QUEUE: "default", **labels}
    team.create(TRAIN_JOBS, manifest)


def ended(team: Scene, name: str) -> bool:
    """Whether a TrainJob is complete."""
    found = team.client.get(TRAIN_JOBS, name, team.namespace).status.conditions
    return any((each.type, each.status) == ("Complete", "True") for each in found)


def test_a_train_job_is_admitted_once(team: Scene) -> None:
    """A TrainJob is one Workload of Kueue's, and its pods are none; it carries the flavor's labels to its pods."""
    train(team, "train", 4, run_s=5)
    pods = team.running(4)
    found = team.client.list(WORKLOADS, team.namespace)
    assert [each["metadata"]["ownerReferences"][0]["kind"] for each in found] == ["TrainJob"]
    assert {pod.spec.node_selector.get("kubernetes.io/os") for pod in pods} == {"linux"}
    team.wait_for(lambda: ended(team, "train"), 60, "the TrainJob to complete")
    team.wait_for(lambda: holds(workload_of(team.client, team.namespace, "train"), "Finished"), 30, "its end")


def test_an_evicted_train_job_comes_back_whole(team: Scene) -> None:
    """An urgent TrainJob evicts another one: no pod of that stays, and after the end of the first it runs again.

    It runs for a minute: what is written in both lives of the other one is not one loop of writes.
    """
    train(team, "low", 4)
    before = {pod.metadata.uid for pod in team.running(4, "low-")}
    train(team, "high", 4, run_s=60, **{"kueue.x-k8s.io/priority-class": "urgent"})
    team.running(4, "high-")
    assert not [pod for pod in team.pods() if pod.metadata.uid in before]
    assert team.client.get(TRAIN_JOBS, "low", team.namespace).spec.suspend
    team.wait_for(lambda: ended(team, "high"), 120, "the urgent TrainJob to complete")
    assert not before & {pod.metadata.uid for pod in team.running(4, "low-")}
    team.client.delete(TRAIN_JOBS, "low", team.namespace)
    team.wait_for(lambda: not team.pods(), 60, "its pods to go")


def test_without_quota_nothing_is_made(team: Scene) -> None:
    """A TrainJob larger than the quota stays suspended: no Job, no pods, and Kueue's Workload says why."""
    train(team, "large", 5)
    workload = team.wait_for(lambda: workload_of(team.client, team.namespace, "large"), 30, "its Workload")
    name = workload["metadata"]["name"]

    def told() -> JSON | None:
        found = team.client.get(WORKLOADS, name, team.namespace).get("status", {}).get("conditions", ())
        return next((each for each in found if each["type"] == "QuotaReserved"), None)

    assert "insufficient quota" in team.wait_for(told, 30, "its reason")["message"]
    assert not team.client.list(VOLCANO_JOBS, team.namespace)
    assert not team.pods()
