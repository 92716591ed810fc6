"""LeaderWorkerSets of the real controller, placed by Muster: each group is a gang, and stays one."""

from collections.abc import Callable
from typing import Any

import pytest
from beside import lws
from beside.lws import EXCLUSIVE, GROUP_LABEL, SETS, SUBGROUP_EXCLUSIVE, SUBGROUP_LABEL, worker_set
from beside.neighbour import Neighbours
from beside.scene import Scene

from muster.api import names
from muster.api.kubernetes.core import PODS, Pod
from muster.kube.errors import APIError
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
JSON = dict[str, Any]
QUEUE = {names.QUEUE: "default"}
RACK = "muster.dev/rack"


@pytest.fixture(scope="module")
def plane(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """Eight nodes of eight GPUs, and LeaderWorkerSet as it is installed by default."""
    one = module_plane(nodes=8)
    lws.start(neighbours, one)
    return one


def groups_of(pods: list[Pod]) -> dict[str, set[str]]:
    """The UIDs of the pods of each group."""
    found: dict[str, set[str]] = {}
    for pod in pods:
        found.setdefault(pod.metadata.labels[GROUP_LABEL], set()).add(pod.metadata.uid)
    return found


def test_each_group_is_a_gang(scene: Scene) -> None:
    """Two groups of four: where one has room, one runs whole and the other waits whole; then both."""
    with scene.cordoned(1):
        scene.create(SETS, worker_set("serve", groups=2, size=4))
        scene.wait_for(lambda: len(scene.pods()) == 8, 60, "all pods are made")
        scene.wait_for(lambda: len(scene.reasons()) == 1, 60, "one group to wait")
        scene.wait_for(lambda: sum(pod.status.phase == "Running" for pod in scene.pods()) == 4, 60, "the other to run")
        running = groups_of([pod for pod in scene.pods() if pod.status.phase == "Running"])
        assert [len(pods) for pods in running.values()] == [4]
        assert {name: group.spec.min_member for name, group in scene.groups().items()} == {
            "podgroup-lws-serve.0": 4,
            "podgroup-lws-serve.1": 4,
        }
    pods = scene.running(8)
    env = {pod.metadata.name: scene.env(pod) for pod in pods}
    assert {name: each["PET_NODE_RANK"] for name, each in env.items()} == {
        f"serve-{group}{f'-{rank}' if rank else ''}": str(rank) for group in (0, 1) for rank in range(4)
    }
    assert {each["PET_MASTER_ADDR"] for each in env.values()} == {"serve-0.serve", "serve-1.serve"}
    assert all(each["PET_NNODES"] == each["LWS_GROUP_SIZE"] == "4" for each in env.values())


def test_a_pod_that_is_lost_costs_its_group(scene: Scene) -> None:
    """RecreateGroupOnPodRestart: the whole group is made anew and starts whole, the other one is left alone."""
    scene.create(SETS, worker_set("serve", groups=2, size=4))
    before = groups_of(scene.running(8))
    scene.client.delete(PODS, "serve-1-2", scene.namespace)
    scene.wait_for(lambda: not before["1"] & {pod.metadata.uid for pod in scene.pods()}, 60, "the old group goes")
    after = groups_of(scene.running(8))
    assert after["0"] == before["0"]
    assert not after["1"] & before["1"]


def test_a_rolling_update(scene: Scene) -> None:
    """Group after group is made anew, each as a gang; in the end all are of the new template."""
    one = worker_set("serve", groups=2, size=3)
    scene.create(SETS, one)
    before = {pod.metadata.uid for pod in scene.running(6)}
    one["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"] = {"annotations": {"version": "2"}}
    scene.patch(SETS, "serve", leaderWorkerTemplate=one["spec"]["leaderWorkerTemplate"])

    def renewed() -> bool:
        pods = scene.pods()
        return len(pods) == 6 and all(
            pod.metadata.annotations.get("version") == "2" and pod.status.phase == "Running" for pod in pods
        )

    scene.wait_for(renewed, 180, "six new pods to run")
    assert not before & {pod.metadata.uid for pod in scene.pods()}


def test_scaled_up_and_down(scene: Scene) -> None:
    """A group more is a gang more; a group that goes gives its nodes and its PodGroup back."""
    scene.create(SETS, worker_set("serve", groups=1, size=4))
    scene.running(4)
    scene.patch(SETS, "serve", replicas=3)
    scene.wait_for(lambda: len(scene.pods()) == 12, 60, "three groups")
    scene.wait_for(lambda: len(scene.reasons()) == 1, 60, "the third to wait")
    scene.patch(SETS, "serve", replicas=1)
    scene.running(4)
    scene.wait_for(lambda: list(scene.groups()) == ["podgroup-lws-serve.0"], 60, "one PodGroup")
    scene.patch(SETS, "serve", replicas=0)
    scene.wait_for(lambda: not scene.pods() and not scene.groups(), 60, "nothing")


def test_workers_that_wait_for_their_leader(scene: Scene) -> None:
    """LeaderReady is refused for a framework, with the reason; without one leader and workers come in turn."""
    scene.expected_refusals = 1
    with pytest.raises(APIError, match=r"spec.startupPolicy: .*must be LeaderCreated for gangs"):
        scene.create(SETS, worker_set("serve", groups=1, size=3, startupPolicy="LeaderReady"))
    scene.create(SETS, worker_set("serve", groups=1, size=3, startupPolicy="LeaderReady", labels=QUEUE))
    scene.running(3)


def test_exclusive_topology_of_single_pods(scene: Scene) -> None:
    """Where pods are placed one by one, the set's own exclusive placement works: one group per rack."""
    scene.create(SETS, worker_set("ex", groups=2, size=3, labels=QUEUE, annotations={EXCLUSIVE: RACK}))
    racks = {(pod.metadata.labels[GROUP_LABEL], scene.label_of_node(pod, RACK)) for pod in scene.running(6)}
    assert len(racks) == len({rack for _, rack in racks}) == 2


def test_exclusive_topology_of_a_gang(scene: Scene) -> None:
    """It is refused, with what to write instead, and that keeps each group in one rack."""
    scene.expected_refusals = 1
    with pytest.raises(APIError, match=r"exclusive-topology\]: .* must be left out for gangs \(muster.dev/framework\)"):
        scene.create(SETS, worker_set("ex", groups=2, size=3, annotations={EXCLUSIVE: RACK}))
    scene.create(SETS, worker_set("ex", groups=2, size=3, annotations={names.TOPOLOGY_NEAR_KEYS[0]: RACK}))
    racks = {(pod.metadata.labels[GROUP_LABEL], scene.label_of_node(pod, RACK)) for pod in scene.running(6)}
    assert len(racks) == 2


def test_subgroups(scene: Scene) -> None:
    """Their labels are the controller's; for Muster the group is one gang."""
    scene.create(SETS, worker_set("sub", groups=1, size=4, template={"subGroupPolicy": {"subGroupSize": 2}}))
    pods = scene.running(4)
    assert [pod.metadata.labels[SUBGROUP_LABEL] for pod in pods] == ["0", "0", "1", "1"]
    assert {pod.metadata.name: scene.env(pod)["PET_NODE_RANK"] for pod in pods} == {
        "sub-0": "0",
        "sub-0-1": "1",
        "sub-0-2": "2",
        "sub-0-3": "3",
    }


def test_subgroups_that_are_exclusive(scene: Scene) -> None:
    """The pod affinities that the controller's webhook writes for them are kept: a rack for each subgroup."""
    template = {"subGroupPolicy": {"subGroupSize": 2}}
    scene.create(SETS, worker_set("sub", groups=1, size=4, template=template, annotations={SUBGROUP_EXCLUSIVE: RACK}))
    racks = {(pod.metadata.labels[SUBGROUP_LABEL], scene.label_of_node(pod, RACK)) for pod in scene.running(4)}
    assert len(racks) == len({rack for _, rack in racks}) == 2


def test_a_subdomain_for_each_group(scene: Scene) -> None:
    """UniquePerReplica: the address of rank 0 is in the group's own Service."""
    scene.create(SETS, worker_set("own", groups=2, size=2, networkConfig={"subdomainPolicy": "UniquePerReplica"}))
    addresses = {pod.metadata.name: scene.env(pod)["PET_MASTER_ADDR"] for pod in scene.running(4)}
    assert addresses == {
        "own-0": "own-0.own-0",
        "own-0-1": "own-0.own-0",
        "own-1": "own-1.own-1",
        "own-1-1": "own-1.own-1",
    }


@pytest.mark.parametrize("state", ["waiting", "running"])
def test_deleted_in_the_middle(scene: Scene, state: str) -> None:
    """Pods and PodGroups go with the set, and one of the same name is gangs anew."""
    one = worker_set("serve", groups=2, size=4)
    with scene.cordoned(5 if state == "waiting" else 0):
        scene.create(SETS, one)
        (scene.waiting if state == "waiting" else scene.running)(8)
        scene.client.delete(SETS, "serve", scene.namespace)
        scene.wait_for(lambda: not scene.client.list(PODS, scene.namespace), 60, "no pods")
        scene.wait_for(lambda: not scene.groups(), 60, "no PodGroups")
        scene.create(SETS, one)
    scene.running(8)


def test_evicted_and_back(scene: Scene) -> None:
    """A group that is evicted is made anew by its controller, and comes back whole when there is room."""
    scene.create(SETS, worker_set("serve", groups=2, size=4))
    scene.running(8, "serve")
    with scene.evicted(8):
        scene.wait_for(lambda: len([one for one in scene.pods() if one.spec.scheduling_gates]) == 8, 90, "eight")
    scene.running(8, "serve")
