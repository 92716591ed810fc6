"""Kubernetes' own gangs beside Muster's, with every combination of their gates: each gang has exactly one decider."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from gang_jobs import job, lone_pod, metric
from priorities import make_classes

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS, Pod
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from musterctl.plane.state import (
    API_SERVER,
    COMPONENTS,
    CONTROLLER,
    CONTROLLER_MANAGER,
    MUSTER_SCHEDULER,
    SCHEDULER,
    WEBHOOK,
)

pytestmark = [pytest.mark.plane, pytest.mark.long]
JSON = dict[str, Any]
WaitFor = Callable[..., Any]
GATE = "--feature-gates=GenericWorkload=true"
WITH_JOBS = f"{GATE},WorkloadWithJob=true"
EVENTS: Resource[JSON] = Resource("", "v1", "events", "Event", JSON)
SERVED = "--runtime-config=scheduling.k8s.io/v1beta1=true"


class Combination(NamedTuple):
    """Arguments of parts, and what follows from them."""

    arguments: dict[str, tuple[str, ...]]
    served: bool = False
    """The API server has native PodGroups."""
    native: bool = False
    """The cluster's own kube-scheduler goes by them."""
    with_jobs: bool = False
    """The Job controller makes one for each Job."""
    shared: bool = False
    """One kube-scheduler serves all pods."""
    switched_off: bool = False
    """Gangs are not published, by the settings of webhook and controller."""

    @property
    def published(self) -> bool:
        """Gangs of Muster's have a native PodGroup."""
        return self.served and not self.shared and not self.switched_off


_SERVED = {API_SERVER: (GATE, SERVED), CONTROLLER_MANAGER: (GATE,)}
_WITH_JOBS = {API_SERVER: (WITH_JOBS, SERVED), CONTROLLER_MANAGER: (WITH_JOBS,), SCHEDULER: (GATE,)}
COMBINATIONS = {
    "none": Combination({}),
    "served only": Combination(_SERVED, served=True),
    "in the cluster's kube-scheduler": Combination({**_SERVED, SCHEDULER: (GATE,)}, served=True, native=True),
    "with Jobs": Combination(_WITH_JOBS, served=True, native=True, with_jobs=True),
    "everywhere": Combination(
        {**_WITH_JOBS, MUSTER_SCHEDULER: (GATE,)}, served=True, native=True, with_jobs=True, switched_off=True
    ),
    "in a shared kube-scheduler": Combination(_WITH_JOBS, served=True, native=True, with_jobs=True, shared=True),
}


class World(NamedTuple):
    """A plane with one combination of gates."""

    plane: Plane
    gates: Combination
    client: Client


@pytest.fixture(scope="module", params=COMBINATIONS.values(), ids=COMBINATIONS.keys())
def world(request: pytest.FixtureRequest, module_plane: Callable[..., Plane]) -> Iterator[World]:
    """A plane with one combination of gates, which ends before the next one starts."""
    gates: Combination = request.param
    parts = set(COMPONENTS) - ({MUSTER_SCHEDULER} if gates.shared else set())
    off = {key: {"nativePodGroups": False} for key in (WEBHOOK, CONTROLLER)} if gates.switched_off else {}
    plane = module_plane(parts, arguments=gates.arguments, settings=off, shared=gates.shared)
    yield World(plane, gates, plane.client())
    plane.stop()


@pytest.fixture
def namespace(world: World, wait_for: WaitFor) -> Iterator[str]:
    """A fresh namespace, which is empty afterwards: nodes are few."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    world.client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    world.client.delete(NAMESPACES, name)
    wait_for(lambda: not world.client.list(PODS, name), 60, "the pods to be gone")


def native_group(name: str, least: int) -> JSON:
    """A native PodGroup."""
    meta = {"apiVersion": NATIVE_POD_GROUPS.api_version, "kind": NATIVE_POD_GROUPS.kind, "metadata": {"name": name}}
    return {**meta, "spec": {"schedulingPolicy": {"gang": {"minCount": least}}}}


def member(name: str, namespace: str, group: str) -> JSON:
    """A pod of a native PodGroup under the cluster's own scheduler."""
    pod = lone_pod(name, namespace)
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": group}}}


def bound(world: World, namespace: str) -> list[Pod]:
    """The pods that have a node."""
    return [pod for pod in world.client.list(PODS, namespace) if pod.spec.node_name]


def gang_job(name: str, size: int) -> JSON:
    """An Indexed Job whose pods fill a node each, and start together."""
    container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"completionMode": "Indexed", "completions": size, "parallelism": size, "template": template}
    labels, annotations = {names.QUEUE: "default"}, {names.MIN_MEMBER: str(size)}
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec}


def test_a_native_group_of_another_scheduler_is_left_alone(world: World, namespace: str, wait_for: WaitFor) -> None:
    """kube-scheduler holds its pods back until they are enough, if its gate is on; Muster has no part in it."""
    client = world.client
    if world.gates.served:
        client.create(NATIVE_POD_GROUPS, native_group("theirs", 3), namespace)
    for number in range(2):
        client.create(PODS, member(f"theirs-{number}", namespace, "theirs"), namespace)
    client.create(PODS, lone_pod("later", namespace), namespace)
    wait_for(lambda: any(pod.metadata.name == "later" for pod in bound(world, namespace)), 30, "the later pod")
    if world.gates.native:
        assert [pod.metadata.name for pod in bound(world, namespace)] == ["later"]
    else:
        wait_for(lambda: len(bound(world, namespace)) == 3, 30, "each pod to be bound by itself")
    client.create(PODS, member("theirs-2", namespace, "theirs"), namespace)
    wait_for(lambda: len(bound(world, namespace)) == 4, 30, "all pods to be bound")
    for pod in client.list(PODS, namespace):
        assert not [key for key in (*pod.metadata.labels, *pod.metadata.annotations) if names.DOMAIN in key]
        assert (pod.spec.scheduling_group is not None) == (world.gates.served and pod.metadata.name != "later")
    assert not client.list(POD_GROUPS, namespace)
    assert not client.list(PLACEMENTS, namespace)


def test_a_gang_starts_whole_by_musters_word(world: World, namespace: str, wait_for: WaitFor) -> None:
    """Of a Job and of a Volcano Job: each pod goes where Muster's plan says, and the barrier binds them together."""
    client, line = world.client, 'muster_barrier_total{outcome="released"}'
    before = metric(world.plane, "extender", line)
    client.create(INDEXED_JOBS, gang_job("train", 4), namespace)
    client.create(JOBS, job("volcano", namespace, replicas=4, gpus=8), namespace)
    wait_for(lambda: len(bound(world, namespace)) == 8, 60, "both gangs to be bound")
    assert all(pod.metadata.annotations[names.NODE] == pod.spec.node_name for pod in bound(world, namespace))
    assert metric(world.plane, "extender", line) == before + 2


def test_a_gang_that_does_not_fit_starts_with_no_pod(world: World, namespace: str, wait_for: WaitFor) -> None:
    """There are eight nodes for nine pods; it says why, and one pod less starts."""
    client = world.client
    client.create(JOBS, job("large", namespace, replicas=9, gpus=8), namespace)
    wait_for(lambda: any(group.why_waiting for group in client.list(POD_GROUPS, namespace)), 30, "a reason")
    assert not bound(world, namespace)
    client.delete(JOBS, "large", namespace)
    client.create(JOBS, job("whole", namespace, replicas=8, gpus=8), namespace)
    wait_for(lambda: len(bound(world, namespace)) == 8, 60, "the smaller gang")


def test_pods_beyond_the_room_hold_back_none_that_have_places(world: World, namespace: str, wait_for: WaitFor) -> None:
    """Of a Job of twelve on eight nodes, whose pods start alone, and of one that needs four of them to start."""
    for name, least in (("alone", 1), ("elastic", 4)):
        asked = gang_job(name, 12)
        asked["metadata"]["annotations"] = {names.MIN_MEMBER: str(least)} if least > 1 else {}
        world.client.create(INDEXED_JOBS, asked, namespace)
        wait_for(lambda: len(bound(world, namespace)) == 8, 60, f"as many pods of {name} as there are nodes")
        world.client.delete(INDEXED_JOBS, name, namespace, propagation="Background")
        wait_for(lambda: not world.client.list(PODS, namespace), 60, "its pods to be gone")


def test_gangs_are_published_where_somebody_goes_by_it(world: World, namespace: str, wait_for: WaitFor) -> None:
    """Once each, whole, and with the gang's pods, also where Kubernetes makes a PodGroup for each Job."""
    client = world.client
    client.create(INDEXED_JOBS, gang_job("train", 4), namespace)
    client.create(JOBS, job("volcano", namespace, replicas=4, gpus=8), namespace)
    wait_for(lambda: len(bound(world, namespace)) == 8, 60, "both gangs to be bound")
    named = {pod.metadata.name: pod.spec.scheduling_group for pod in client.list(PODS, namespace)}
    if not world.gates.served:
        assert set(named.values()) == {None}
        return
    gangs = {group.metadata.name: group for group in client.list(POD_GROUPS, namespace)}
    for name, group in named.items():
        ours = (group.pod_group_name if group else None) in gangs
        assert ours == world.gates.published, name
    made = {name: each for each in client.list(NATIVE_POD_GROUPS, namespace) if (name := each.metadata.name) in gangs}
    assert len(made) == (2 if world.gates.published else 0)
    for name, each in made.items():
        assert each.spec.scheduling_policy.gang
        assert each.spec.scheduling_policy.gang.min_count == 4
        assert each.spec.disruption_mode
        assert each.spec.disruption_mode.all
        assert [owner.uid for owner in each.metadata.owner_references] == [gangs[name].metadata.uid]
        wait_for(lambda name=name: client.get(NATIVE_POD_GROUPS, name, namespace).status.conditions, 30, "a condition")
    client.delete(JOBS, "volcano", namespace)
    client.delete(INDEXED_JOBS, "train", namespace, propagation="Background")
    wait_for(lambda: not client.list(NATIVE_POD_GROUPS, namespace), 60, "the native PodGroups to go with their gangs")


def test_preemption_by_another_scheduler_ends_a_gang_whole(world: World, namespace: str, wait_for: WaitFor) -> None:
    """A pod that needs one node takes one member where gangs are not published or not looked at, and else all eight."""
    client = world.client
    make_classes(client)
    gang = job("low", namespace, replicas=8, gpus=8)
    gang["spec"]["priorityClassName"] = "low"
    client.create(JOBS, gang, namespace)
    wait_for(lambda: len(bound(world, namespace)) == 8, 60, "the gang to be bound")
    urgent = lone_pod("urgent", namespace)
    urgent["spec"]["priorityClassName"] = "high"
    urgent["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}}
    client.create(PODS, urgent, namespace)

    def preempted() -> set[str]:
        """The pods that kube-scheduler says it has ended for another one."""
        return {one["involvedObject"]["name"] for one in client.list(EVENTS, namespace) if one["reason"] == "Preempted"}

    wait_for(lambda: any(pod.metadata.name == "urgent" for pod in bound(world, namespace)), 60, "the urgent pod")
    whole = world.gates.native and world.gates.published
    wait_for(lambda: len(preempted()) == (8 if whole else 1), 30, "the victims")
