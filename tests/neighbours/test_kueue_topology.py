"""Kueue's topology-aware scheduling and its gates on pods, real, together with Muster's pins and gates."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import gang_jobs
import pytest
from beside import kueue, kueue_objects
from beside.kueue_objects import JSON, TOPOLOGIES, make_local_queue, make_quota
from beside.neighbour import Neighbours
from beside.scene import Scene
from planes import Kubectl

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS
from muster.api.volcano.batch import JOBS as VOLCANO_JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from musterctl.plane.install import RACK
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
WaitFor = Callable[..., Any]
JOBS: Resource[JSON] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
GPU = "nvidia.com/gpu"
REQUIRED = {names.KUEUE_REQUIRED: RACK}
KUEUE_GATE = "kueue.x-k8s.io/admission"
GROUP_NAME, GROUP_COUNT = "kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours, wait_for: WaitFor) -> Plane:
    """Six nodes of eight GPUs in two racks, which Kueue knows as a topology; its quota is all of them."""
    one = module_plane(nodes=6)
    kueue.start(one, neighbours, wait_for)
    client = one.client()
    levels = [{"nodeLabel": RACK}, {"nodeLabel": names.HOSTNAME}]
    client.create(TOPOLOGIES, {"metadata": {"name": "network"}, "spec": {"levels": levels}})
    make_quota(client, "near", {"cpu": "100", GPU: "48"}, topology="network")
    make_quota(client, "plain", {"cpu": "100", GPU: "24"})
    return one


@pytest.fixture
def team(scene: Scene, kubectl: Kubectl) -> Iterator[Scene]:
    """A namespace with LocalQueues to both quotas, which are free again afterwards."""
    for name in ("near", "plain"):
        make_local_queue(scene.client, scene.namespace, name, name)
    yield scene
    kubectl("delete", "jobs.batch,vcjob,pods", "--all", f"--namespace={scene.namespace}", "--wait=false")
    scene.wait_for(lambda: not scene.pods(), 60, "the pods to go")


def template(**annotations: str) -> JSON:
    """A pod that takes a node."""
    containers = [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}, "limits": {GPU: 8}}}]
    return {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": containers}}


def job(name: str, pods: int, labels: dict[str, str], **annotations: str) -> JSON:
    """An Indexed Job that is one gang of Muster's."""
    spec = {"completionMode": "Indexed", "completions": pods, "parallelism": pods, "template": template(**annotations)}
    whole = {names.MIN_MEMBER: str(pods)}
    labels = {names.QUEUE: "default", **labels}
    return {"metadata": {"name": name, "labels": labels, "annotations": whole}, "spec": spec}


def racks(team: Scene, prefix: str, count: int) -> Counter[str]:
    """The racks of the pods of a Job once all run, which are on the nodes that Kueue has chosen for them."""
    pods = team.running(count, prefix)
    for pod in pods:
        assert pod.spec.node_selector[names.HOSTNAME] == pod.spec.node_name
    return Counter(str(team.client.get(NODES, pod.spec.node_name).metadata.labels[RACK]) for pod in pods)


def test_kueue_chooses_nodes_and_muster_starts_them_together(team: Scene) -> None:
    """Two Jobs that each need a rack get one each from Kueue; Muster pins every rank to the node chosen for it."""
    near = {kueue_objects.QUEUE: "near"}
    team.create(JOBS, job("first", 3, near, **REQUIRED))
    team.create(JOBS, job("second", 3, near, **REQUIRED))
    first, second = racks(team, "first-", 3), racks(team, "second-", 3)
    assert set(first.values()) == {3}
    assert set(second.values()) == {3}
    assert first.keys() != second.keys()


def test_kueue_counts_what_muster_has_bound(team: Scene) -> None:
    """A gang of Muster's alone takes a node of each rack; a rack of three is then nowhere, two nodes of one are."""
    for rack in range(2):
        alone = job(f"alone-{rack}", 1, {})
        alone["spec"]["template"]["spec"]["nodeSelector"] = {RACK: f"rack-{rack}"}
        team.create(JOBS, alone)
    team.running(2, "alone-")
    team.create(JOBS, job("large", 3, {kueue_objects.QUEUE: "near"}, **REQUIRED))
    team.create(JOBS, job("small", 2, {kueue_objects.QUEUE: "near"}, **REQUIRED))
    assert set(racks(team, "small-", 2).values()) == {2}
    assert team.client.get(JOBS, "large", team.namespace)["spec"]["suspend"]


def ended(team: Scene, workload: str) -> bool:
    """Whether a Workload of this name has finished."""
    return kueue_objects.holds(team.find(kueue_objects.WORKLOADS, workload), "Finished")


def test_pods_wait_for_both(team: Scene) -> None:
    """A group of plain pods waits for Kueue's quota at Kueue's gate and at Muster's, and then starts whole.

    Its pods end: a group whose pods are only deleted keeps its quota, as Kueue waits for others in their place.
    """
    team.create(JOBS, job("before", 2, {kueue_objects.QUEUE: "plain"}))
    team.running(2, "before-")
    team.create(POD_GROUPS, {"metadata": {"name": "group"}, "spec": {"minMember": 3, "queue": "default"}})
    for index in range(3):
        one = template(**{names.GROUP_NAME: "group", GROUP_COUNT: "3", "kwok.muster.dev/run-seconds": "10"})
        one["metadata"]["name"] = f"group-{index}"
        one["metadata"]["labels"] = {kueue_objects.QUEUE: "plain", names.QUEUE: "default", GROUP_NAME: "group"}
        team.create(PODS, one)
    assert all(KUEUE_GATE in {each.name for each in pod.spec.scheduling_gates} for pod in team.waiting(3, "group-"))
    team.client.delete(JOBS, "before", team.namespace, propagation="Background")
    team.running(3, "group-")
    team.wait_for(lambda: ended(team, "group"), 90, "the group to finish")


def volcano_job(team: Scene, pods: int) -> JSON:
    """A Volcano Job whose pods are Kueue's, too: each by itself, as Kueue knows no Volcano Jobs."""
    manifest = gang_jobs.job("train", team.namespace, replicas=pods)
    manifest["spec"]["tasks"][0]["template"]["metadata"]["labels"] = {kueue_objects.QUEUE: "plain"}
    return manifest


def test_a_volcano_job_waits_for_all_its_pods(team: Scene) -> None:
    """Kueue has quota for three of four pods and lets these go: none starts, and nothing is written in a loop."""
    team.create(VOLCANO_JOBS, volcano_job(team, 4))
    team.wait_for(lambda: len(team.pods()) == 4, 60, "its pods")

    def let_go() -> int:
        return sum(KUEUE_GATE not in {each.name for each in pod.spec.scheduling_gates} for pod in team.pods())

    team.wait_for(lambda: let_go() == 3, 90, "Kueue to let three of its pods go")
    team.wait_for(lambda: any(KUEUE_GATE in each for each in team.reasons().values()), 60, "the reason")
    assert not any(pod.spec.node_name for pod in team.pods())


def test_a_volcano_job_starts_when_all_its_pods_may(team: Scene) -> None:
    """Kueue has quota for all pods, and lets them go one by one: the gang starts whole.

    The first pods were pinned before Kueue's gate was known, and are made again with Muster's gate.
    """
    team.create(VOLCANO_JOBS, volcano_job(team, 3))
    team.running(3)
