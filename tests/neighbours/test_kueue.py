"""Kueue, real, in one cluster with Muster: each by itself, and Jobs that Kueue admits and Muster places."""

from collections.abc import Callable
from typing import Any

import pytest
from beside import jobset, kueue, kueue_objects, writes
from beside.kueue_objects import JSON, holds, make_local_queue, make_quota, workload_of
from beside.neighbour import Neighbours
from beside.scene import Scene

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
WaitFor = Callable[..., Any]
JOBS: Resource[JSON] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
RAW_PODS: Resource[JSON] = Resource("", "v1", "pods", "Pod", dict[str, Any])
PRIORITIES = kueue_objects.cluster_kind("workloadpriorityclasses", "WorkloadPriorityClass")
BOTH = {kueue_objects.QUEUE: "team", names.QUEUE: "default"}
KUEUE_ONLY = {kueue_objects.QUEUE: "team"}
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours, wait_for: WaitFor) -> Plane:
    """Six nodes of eight GPUs in two racks, of which Kueue admits work for four."""
    one = module_plane(nodes=6)
    kueue.start(one, neighbours, wait_for)
    jobset.start(neighbours, one)
    client = one.client()
    make_quota(client, "shared", {"cpu": "100", GPU: "32"}, preemption={"withinClusterQueue": "LowerPriority"})
    client.create(PRIORITIES, {"metadata": {"name": "urgent"}, "value": 1000})
    return one


@pytest.fixture
def team(scene: Scene) -> Scene:
    """A namespace whose LocalQueue `team` leads to the quota."""
    make_local_queue(scene.client, scene.namespace, "team", "shared")
    return scene


def job(name: str, pods: int, labels: dict[str, str], *, run_s: float | None = None, **annotations: str) -> JSON:
    """An Indexed Job whose pods take a node each and end after `run_s`, or never; where Muster places it, one gang."""
    if run_s is not None:
        annotations["kwok.muster.dev/run-seconds"] = str(run_s)
    resources = {"requests": {"cpu": "1"}, "limits": {GPU: 8}}
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none", "resources": resources}]},
    }
    spec = {"completionMode": "Indexed", "completions": pods, "parallelism": pods, "template": template}
    whole = {names.MIN_MEMBER: str(pods)} if names.QUEUE in labels else {}
    return {"metadata": {"name": name, "labels": labels, "annotations": whole}, "spec": spec}


def suspended(scene: Scene, name: str) -> bool:
    """Whether Kueue holds a Job back."""
    return bool(scene.client.get(JOBS, name, scene.namespace)["spec"]["suspend"])


def admitted(scene: Scene, name: str) -> bool:
    """Whether Kueue has admitted a workload."""
    return holds(workload_of(scene.client, scene.namespace, name), "Admitted")


def over(client: Client, namespace: str, name: str) -> bool:
    """Whether a Job is complete."""
    conditions = client.get(JOBS, name, namespace)["status"].get("conditions") or ()
    return any((each["type"], each["status"]) == ("Complete", "True") for each in conditions)


def writers(client: Client, resource: Resource[JSON], namespace: str) -> set[str]:
    """Who has written to the objects of a namespace."""
    found = client.list(resource, namespace)
    return {field["manager"] for each in found for field in each["metadata"].get("managedFields", ())}


def test_kueue_admits_and_muster_places(team: Scene) -> None:
    """A Job with both labels is suspended until there is quota, then a whole gang of Muster's; the next one waits."""
    team.create(JOBS, job("first", 3, BOTH, run_s=20))
    team.running(3, "first-")
    assert admitted(team, "first")
    team.create(JOBS, job("second", 3, BOTH, run_s=1))
    team.wait_for(lambda: workload_of(team.client, team.namespace, "second"), 30, "Kueue to see the second Job")
    assert suspended(team, "second")
    assert not [pod for pod in team.pods() if pod.metadata.name.startswith("second-")]
    team.wait_for(lambda: all(over(team.client, team.namespace, each) for each in ("first", "second")), 120, "both")


def test_a_jobset_is_admitted_and_placed_as_one(team: Scene) -> None:
    """All Jobs of a JobSet are one Workload of Kueue's and one gang of Muster's: suspended, then all running."""
    team.create(JOBS, job("before", 2, BOTH, run_s=15))
    team.running(2, "before-")
    parts = jobset.replicated("node", 2, jobs=2)
    team.create(jobset.JOB_SETS, jobset.job_set("set", parts, labels=jobset.TORCH | KUEUE_ONLY))
    team.wait_for(lambda: workload_of(team.client, team.namespace, "set"), 30, "Kueue to see the JobSet")
    assert team.client.get(jobset.JOB_SETS, "set", team.namespace)["spec"]["suspend"]
    team.running(4, "set-")
    assert admitted(team, "set")
    assert [group.spec.min_member for group in team.groups().values() if "set" in group.metadata.name] == [4]
    team.client.delete(jobset.JOB_SETS, "set", team.namespace)
    team.wait_for(lambda: not team.pods(), 60, "its pods to go")


def test_admitted_but_without_room(team: Scene) -> None:
    """What Kueue has admitted and no nodes can take waits as a whole, and Muster says why; then it starts whole."""
    with team.cordoned(4):
        team.create(JOBS, job("train", 3, BOTH))
        waiting = team.waiting(3)
        assert admitted(team, "train")
        assert not any(pod.spec.node_name for pod in waiting)
    team.running(3)
    team.client.delete(JOBS, "train", team.namespace, propagation="Background")
    team.wait_for(lambda: not team.pods(), 60, "its pods to go")


def test_an_eviction_gives_the_gang_back(team: Scene) -> None:
    """Kueue preempts a gang for an urgent one: all its pods go, the other starts whole, later the first one again."""
    team.create(JOBS, job("low", 4, BOTH))
    before = {pod.metadata.uid for pod in team.running(4, "low-")}
    team.create(JOBS, job("high", 4, BOTH | {"kueue.x-k8s.io/priority-class": "urgent"}, run_s=10))
    team.running(4, "high-")
    assert suspended(team, "low")
    assert not [pod for pod in team.pods() if pod.metadata.uid in before]
    team.wait_for(lambda: over(team.client, team.namespace, "high"), 60, "the urgent Job to complete")
    assert not before & {pod.metadata.uid for pod in team.running(4, "low-")}
    team.client.delete(JOBS, "low", team.namespace, propagation="Background")
    team.wait_for(lambda: not team.pods(), 30, "its pods to go")


def test_each_in_its_namespace(team: Scene, kubectl: Any) -> None:
    """A namespace of Kueue's and one of Muster's: neither writes anything in that of the other."""
    other = f"{team.namespace}-muster"
    team.client.create(NAMESPACES, {"metadata": {"name": other, "labels": {names.QUEUE: "default"}}})
    team.create(JOBS, job("of-kueue", 2, KUEUE_ONLY, run_s=3))
    team.client.create(JOBS, job("of-muster", 2, {}, run_s=3), other)
    lone = {"metadata": {"name": "lone", "labels": KUEUE_ONLY}, "spec": job("x", 1, {})["spec"]["template"]["spec"]}
    team.create(PODS, lone)
    team.wait_for(lambda: over(team.client, team.namespace, "of-kueue"), 60, "Kueue's Job to complete")
    team.wait_for(lambda: over(team.client, other, "of-muster"), 60, "Muster's Job to complete")
    team.wait_for(lambda: team.client.get(PODS, "lone", team.namespace).status.phase == "Running", 30, "Kueue's pod")
    assert not team.client.list(POD_GROUPS, team.namespace)
    assert not team.client.list(kueue_objects.WORKLOADS, other)
    assert not [each for each in writes.most_in_a_minute(team.plane) if each.namespace == team.namespace]
    for resource in (JOBS, RAW_PODS):
        assert not {each for each in writers(team.client, resource, other) if "kueue" in each}
    kubectl("delete", "namespace", other, "--wait=false")
