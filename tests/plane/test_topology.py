"""Gangs that sit together, on a plane of four racks in two blocks: through churn, lost nodes and changed labels."""

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import pytest
from gang_jobs import History, Life, job, runs
from test_storm import Storm, run_storm

from muster.api.kubernetes.core import NODES, PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.api.volcano.topology import HYPER_NODES
from muster.kube.client import Client
from musterctl.plane.install import BLOCK, RACK, node_objects
from musterctl.plane.plane import Plane

REQUIRED = "muster.dev/topology-required"
CONFIG = f"""
tiers:
- plugins: [{{name: gang}}, {{name: priority}}, {{name: elastic}}, {{name: proportion}}]
- plugins: [{{name: predicates}}, {{name: minruntime}}, {{name: subgrouporder}}, {{name: taskorder}}]
- plugins:
  - name: topology
    arguments: {{levels: [{BLOCK}, {RACK}, kubernetes.io/hostname]}}
"""
NODES_OF_A_RACK = 3
pytestmark = [pytest.mark.plane, pytest.mark.alone(nodes=12, racks=4, blocks=2, planning_config=CONFIG)]


@pytest.fixture
def client(plane: Plane) -> Iterator[Client]:
    """A client; the nodes are as they were in the beginning afterwards."""
    client = plane.client()
    yield client
    there = {node.metadata.name for node in client.list(NODES)}
    for manifest in node_objects(plane.state.options):
        name, labels = manifest["metadata"]["name"], manifest["metadata"]["labels"]
        if name not in there:
            client.create(NODES, manifest)
        else:
            client.merge_patch(NODES, name, {"metadata": {"labels": labels}})
    for hyper_node in client.list(HYPER_NODES):
        client.delete(HYPER_NODES, hyper_node.metadata.name)


def asking(manifest: dict[str, Any], level: str, **spec: Any) -> dict[str, Any]:
    """The Job must be in one domain of a level."""
    metadata = {**manifest["metadata"], "annotations": {REQUIRED: level} if level else {}}
    return {**manifest, "metadata": metadata, "spec": {**manifest["spec"], **spec}}


def ended(client: Client, namespace: str, name: str) -> bool:
    """Whether the Job is over."""
    return client.get(JOBS, name, namespace).status.state.phase == "Completed"


def number(node: str) -> int:
    """The rack of a node: consecutive nodes share one."""
    return int(node.rpartition("-")[2]) // NODES_OF_A_RACK


def nodes_of(client: Client, namespace: str, gang: str) -> dict[str, str]:
    """UID → node of the gang's pods."""
    pods = (pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith(f"{gang}-"))
    return {pod.metadata.uid: pod.spec.node_name for pod in pods if not pod.metadata.deletion_timestamp}


@pytest.mark.slow
def test_gangs_of_three_levels_come_and_go(client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """Each ends whole in one domain of its level; on its way there it may have been moved to make room for another.

    A member may have ended just then: it is not run again, and those who are moved without it never meet it.
    """
    sizes = {"kubernetes.io/hostname": (2, 4), RACK: (3, 8), BLOCK: (4, 8), "": (5, 3)}
    with History(client, namespace) as history:
        asked = [(f"g{turn}-{place}", level) for turn in range(4) for place, level in enumerate(sizes)]
        for name, level in asked:
            replicas, gpus = sizes[level]
            manifest = job(name, namespace, replicas=replicas, gpus=gpus, run_s=0.5)
            client.create(JOBS, asking(manifest, level), namespace)
        for name, _ in asked:
            wait_for(lambda name=name: client.get(JOBS, name, namespace).status.state.phase == "Completed", 90, name)
        for name, level in asked:
            done = [life for life in history.of(f"{name}-") if life.slot and "Succeeded" in life.phases]
            last = [*{life.slot: life for life in sorted(done, key=lambda life: life.bound or 0.0)}.values()]
            found = [life.node for life in last]
            assert len(found) == sizes[level][0], f"{name} ended on {found}"
            width = {"kubernetes.io/hostname": 1, RACK: NODES_OF_A_RACK, BLOCK: 2 * NODES_OF_A_RACK, "": 99}[level]
            moved = len(history.of(f"{name}-")) > len(last)
            for one, other in combinations(last, 2):
                together = int(one.node[-4:]) // width == int(other.node[-4:]) // width
                assert together or (moved and not one.met(other)), f"{name} ended on {found}"


@pytest.mark.long
def test_who_lost_a_node_comes_back_to_the_rack(client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """Two of three nodes of a rack are in use; one of them goes, and its member moves to the third."""
    restart = [{"event": "PodEvicted", "action": "RestartPod"}, {"event": "PodFailed", "action": "RestartPod"}]
    client.create(JOBS, asking(job("a", namespace, replicas=2), RACK, policies=restart), namespace)
    wait_for(lambda: runs(client, namespace, "a", 2), 60, "the gang to run")
    lost = min(nodes_of(client, namespace, "a").values())
    client.delete(NODES, lost)

    def whole_again() -> bool:
        now = nodes_of(client, namespace, "a")
        return len(now) == 2 and lost not in now.values() and all(now.values()) and runs(client, namespace, "a", 2)

    wait_for(whole_again, 120, "the gang to be whole again")
    assert {number(node) for node in nodes_of(client, namespace, "a").values()} == {number(lost)}


def test_changes_leave_running_gangs_alone(client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """Who runs stays, on the same nodes; who comes later follows what is said then."""
    network = {"mode": "hard", "highestTierAllowed": 1}
    for leaf, first in (("left", 0), ("right", 6)):
        members = [
            {"type": "Node", "selector": {"exactMatch": {"name": f"node-{first + place:04}"}}} for place in range(6)
        ]
        manifest = {
            "apiVersion": HYPER_NODES.api_version, "kind": "HyperNode", "metadata": {"name": leaf},
            "spec": {"tier": 1, "members": members},
        }  # fmt: skip
        client.create(HYPER_NODES, manifest)
    client.create(JOBS, asking(job("labels", namespace, replicas=2), RACK), namespace)
    client.create(JOBS, asking(job("tiers", namespace, replicas=4), "", networkTopology=network), namespace)
    for name, replicas in (("labels", 2), ("tiers", 4)):
        wait_for(lambda name=name, replicas=replicas: runs(client, namespace, name, replicas), 60, f"{name} to run")
    before = {name: nodes_of(client, namespace, name) for name in ("labels", "tiers")}
    assert len({int(node.rpartition("-")[2]) // 6 for node in before["tiers"].values()}) == 1
    taken = {node for found in before.values() for node in found.values()}
    free = [node.metadata.name for node in client.list(NODES) if node.metadata.name not in taken]
    for name in sorted(taken)[:1]:
        client.merge_patch(NODES, name, {"metadata": {"labels": {RACK: "elsewhere"}}})
    for name in free[:3]:
        client.merge_patch(NODES, name, {"metadata": {"labels": {RACK: "new", BLOCK: "new"}}})
    for leaf in ("left", "right"):
        client.delete(HYPER_NODES, leaf)
    members = [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in free[3:6]]
    spec = {"tier": 1, "members": members}
    manifest = {
        "apiVersion": HYPER_NODES.api_version, "kind": "HyperNode", "metadata": {"name": "other"}, "spec": spec
    }  # fmt: skip
    client.create(HYPER_NODES, manifest)
    client.create(JOBS, asking(job("later", namespace, replicas=3), RACK), namespace)
    client.create(JOBS, asking(job("lower", namespace, replicas=3), "", networkTopology=network), namespace)
    for name in ("later", "lower"):
        wait_for(lambda name=name: runs(client, namespace, name, 3), 60, f"{name} to run")
    assert set(nodes_of(client, namespace, "later").values()) == set(free[:3])
    assert set(nodes_of(client, namespace, "lower").values()) == set(free[3:6])
    for name, found in before.items():
        assert nodes_of(client, namespace, name) == found


def test_a_gang_that_fits_nowhere_says_so(client: Client, namespace: str, wait_for: Callable[..., Any]) -> None:
    """In the condition of its PodGroup, before any pod is made."""
    client.create(JOBS, asking(job("a", namespace, replicas=4), RACK), namespace)

    def reason() -> str:
        groups = client.list(POD_GROUPS, namespace)
        return next((c.message for group in groups for c in group.status.conditions if c.type == "Unschedulable"), "")

    wait_for(reason, 30, "the condition")
    assert f"4 pods must be in one domain of level {RACK}" in reason()
    assert "has room for 3: 1 short; even if all nodes were empty" in reason()
    assert not client.list(PODS, namespace)


class NearStorm(Storm):
    """Half of the gangs must be in one rack, those that are small enough; others prefer one."""

    def asking(self, manifest: dict[str, Any], size: int) -> dict[str, Any]:
        """By its size: at most two thirds of a rack, so that each fits one that never loses a node."""
        small = size <= 2 * NODES_OF_A_RACK * 8 // 3
        key = REQUIRED if small else "muster.dev/topology-preferred"
        self.near = {*getattr(self, "near", ()), *([manifest["metadata"]["name"]] if small else [])}
        return {**manifest, "metadata": {**manifest["metadata"], "annotations": {key: RACK}}}

    def checked(self, name: str, done: list[Life]) -> None:
        """In one rack, all members that ended; a node that went away took its members' rack with it."""
        found = {life.node for life in done}
        if name in self.near and not found & self.lost:
            assert len({number(node) for node in found}) == 1, f"{name} was on {sorted(found)}"


@pytest.mark.long
def test_a_short_storm_of_gangs_that_sit_together(plane: Plane, namespace: str, seed: int) -> None:
    """Twenty gangs, two kills: the same invariants, and each in its rack."""
    try:
        run_storm(plane, namespace, gangs=20, kills=2, seed=seed, of=NearStorm)
    finally:
        plane.start()


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_a_long_storm_of_gangs_that_sit_together(fresh_plane: Callable[..., Plane], seed: int) -> None:
    """Two hundred gangs, twenty kills, a plane of its own."""
    plane = fresh_plane(nodes=12, racks=4, blocks=2, planning_config=CONFIG)
    run_storm(plane, "default", gangs=200, kills=20, seed=seed, of=NearStorm)
