"""Kubernetes' own gangs as a way in: Jobs with `spec.scheduling` and native PodGroups under Muster's scheduler."""

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, History
from making import SERVES_NATIVE_GROUPS
from native_gates import ARGUMENTS, GATES
from native_groups import Scene
from planes import Muster, drop_queue

from extender.planner.api import defaults
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, NODES, PODS
from muster.api.kubernetes.devices import CLAIM_TEMPLATES, DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from muster.api.kubernetes.scheduling import COMPOSITE_POD_GROUPS, INITIALLY_SCHEDULED, NATIVE_POD_GROUPS, WORKLOADS
from muster.api.muster.gang import native_gang
from muster.api.muster.native import PHASE
from muster.api.volcano.scheduling import QUEUES
from musterctl.plane.install import RACK
from musterctl.plane.plane import Plane
from musterctl.plane.state import MUSTER_SCHEDULER

pytestmark = [
    pytest.mark.plane,
    pytest.mark.long,
    pytest.mark.skipif(not SERVES_NATIVE_GROUPS, reason="this Kubernetes has no scheduling.k8s.io/v1beta1"),
]
WaitFor = Callable[..., Any]
EVENTS: Resource[dict[str, Any]] = Resource("", "v1", "events", "Event", dict[str, Any])
GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {}}}
CLAIMS = "name: dynamicresources"
GROUP_CLAIMS = defaults().replace(CLAIMS, f"{CLAIMS}\n    arguments: {{groupClaims: true}}")
"""The planner's configuration where Muster's kube-scheduler has the gates."""
HALF_S = 15.0
"""The longest that a gang may be partly bound."""


@pytest.fixture(scope="module", params=[False, True], ids=["gates of the cluster", "all gates"])
def all_gates(request: pytest.FixtureRequest) -> bool:
    """Whether Muster's kube-scheduler has the gates, too."""
    return bool(request.param)


@pytest.fixture(scope="module")
def groups_plane(module_plane: Callable[..., Plane], *, all_gates: bool) -> Iterator[Plane]:
    """A plane of 8 nodes in 2 racks, which ends before the next one starts."""
    more = {MUSTER_SCHEDULER: (GATES,)} if all_gates else {}
    options = {"planning_config": GROUP_CLAIMS} if all_gates else {}
    plane = module_plane(arguments={**ARGUMENTS, **more}, **options)
    yield plane
    plane.stop()


@pytest.fixture
def scene(groups_plane: Plane, wait_for: WaitFor) -> Iterator[Scene]:
    """A fresh namespace, which is empty afterwards: nodes are few."""
    name, client = f"test-{uuid.uuid4().hex[:8]}", groups_plane.client()
    client.create(NAMESPACES, {"metadata": {"name": name}})
    yield Scene(groups_plane, client, name, wait_for)
    groups_plane.mend()
    client.delete(NAMESPACES, name)
    wait_for(lambda: not client.list(PODS, name), 60, "the pods to be gone")


def test_a_job_with_only_scheduling_and_a_queue_starts_whole(scene: Scene) -> None:
    """On eight whole nodes; the Job controller has made the only group, and says what becomes of it."""
    with History(scene.client, scene.namespace) as history:
        scene.job("train", 8, GANG)
        scene.starts(8)
        name = scene.native().metadata.name
        assert history.half_placed_s(native_gang(name), 8) < HALF_S
    assert scene.no_mirror()
    assert {pod.spec.node_name for pod in scene.bound()} == {node.metadata.name for node in scene.client.list(NODES)}
    scene.wait_for(lambda: scene.says(name, INITIALLY_SCHEDULED)[0] == "True", 30, "the group to be scheduled")
    scene.wait_for(lambda: scene.says(name, PHASE)[1] == "Running", 30, "the gang to run")
    placement = scene.placement(name)
    assert placement is not None
    assert [(owner.kind, owner.name) for owner in placement.metadata.owner_references] == [("PodGroup", name)]


def test_a_job_that_does_not_fit_waits_as_a_whole_and_says_why(scene: Scene) -> None:
    """In the condition of its native PodGroup, in an Event on it and the Job, in `muster explain` and `muster ps`."""
    with History(scene.client, scene.namespace) as history:
        scene.job("large", 9, GANG)
        name = scene.wait_for(
            lambda: next((each.metadata.name for each in scene.client.list(NATIVE_POD_GROUPS, scene.namespace)), ""),
            30, "the group",
        )  # fmt: skip
        waits = scene.wait_for(lambda: scene.says(name, INITIALLY_SCHEDULED), 30, "the group to say why")
        scene.wait_for(lambda: scene.says(name, INITIALLY_SCHEDULED)[0] == "False", 30, "the group to say why")
        scene.wait_for(lambda: len(scene.pods()) == 9, 30, "its pods")
        scene.wait_for(lambda: "nvidia.com/gpu" in scene.says(name, INITIALLY_SCHEDULED)[2], 30, f"GPUs in {waits}")
        assert [life.node for life in history.of(native_gang(name))] == [""] * 9

    def told() -> set[str]:
        events = scene.client.list(EVENTS, scene.namespace)
        return {each["involvedObject"]["kind"] for each in events if each["reason"] == "Unschedulable"}

    scene.wait_for(lambda: told() == {"PodGroup", "Job"}, 30, "Events on the group and the Job")
    for typed in (["explain", "job", "large"], ["explain", "gang", name], ["ps"]):
        assert "large" in scene.muster(*typed)
    assert "nvidia.com/gpu" in scene.muster("explain", "gang", name)


def test_a_bare_group_starts_with_its_last_member(scene: Scene) -> None:
    """Members without a queue are held, too; those of the group's queue are charged to it."""
    scene.client.create(QUEUES, {"metadata": {"name": scene.namespace}, "spec": {}})
    try:
        scene.group("bare", 4, queue=scene.namespace)
        scene.members("bare", range(3))
        scene.wait_for(lambda: scene.says("bare", INITIALLY_SCHEDULED)[0] == "False", 30, "the group to wait")
        assert not scene.bound()
        scene.members("bare", [3])
        scene.starts(4)
        assert {pod.metadata.annotations[names.VOLCANO_QUEUE] for pod in scene.pods()} == {scene.namespace}

        def used() -> Any:
            return scene.client.get(QUEUES, scene.namespace).status.allocated.get("nvidia.com/gpu")

        scene.wait_for(lambda: used() in {"32", 32}, 30, "the queue to be charged")
        scene.wait_for(lambda: scene.client.get(QUEUES, scene.namespace).status.running == 1, 30, "it to be counted")
        Muster(scene.plane.kubeconfig)("topo", "--gang", f"{scene.namespace}/bare")
    finally:
        for pod in scene.pods():
            scene.client.delete(PODS, pod.metadata.name, scene.namespace)
        scene.wait_for(lambda: not scene.pods(), 60, "the pods to be gone")
        scene.client.delete(NATIVE_POD_GROUPS, "bare", scene.namespace)
        drop_queue(scene.client, scene.namespace)


@pytest.fixture
def apart(*, all_gates: bool) -> None:
    """Pods of a group are placed without its others: a kube-scheduler with the gates queues them as one."""
    if all_gates:
        pytest.skip("a kube-scheduler with the gates holds the members of a group until none of them is gated")


@pytest.mark.usefixtures("apart")
def test_a_smaller_minimum_lets_a_gang_start(scene: Scene) -> None:
    """It is the one field that can change."""
    scene.group("shrinks", 9)
    scene.members("shrinks", range(9))
    scene.wait_for(lambda: scene.says("shrinks", INITIALLY_SCHEDULED)[0] == "False", 30, "the group to wait")
    assert not scene.bound()
    change = {"spec": {"schedulingPolicy": {"gang": {"minCount": 8}}}}
    scene.client.merge_patch(NATIVE_POD_GROUPS, "shrinks", change, scene.namespace)
    scene.starts(8)


def test_a_topology_key_keeps_a_gang_in_one_rack(scene: Scene) -> None:
    """Four nodes are a rack; five pods of a node each never start there."""
    near = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
    scene.job("near", 4, {**GANG, **near})
    scene.starts(4)
    racks = {node.metadata.name: node.metadata.labels[RACK] for node in scene.client.list(NODES)}
    assert len({racks[pod.spec.node_name] for pod in scene.bound()}) == 1
    scene.group("wide", 5, **near)
    scene.members("wide", range(5), gpus=0, nodeSelector={"no": "such"})
    scene.wait_for(lambda: scene.says("wide", INITIALLY_SCHEDULED)[0] == "False", 30, "the wide group to wait")


@pytest.mark.usefixtures("apart")
def test_pods_of_a_basic_group_start_one_by_one(scene: Scene) -> None:
    """Eight of nine find a node."""
    scene.group("loose", None)
    scene.members("loose", range(9))
    scene.starts(8)


def composite(scene: Scene, name: str, least: int, *parts: str) -> None:
    """A group of groups that needs so many of its parts, each of two pods, with the Workload that describes it."""
    policies = {name: {"gang": {"minGroupCount": least}}, **{part: {"gang": {"minCount": 2}} for part in parts}}
    templates = [{"name": part, "schedulingPolicy": policies[part]} for part in parts]
    top = {"name": name, "schedulingPolicy": policies[name], "podGroupTemplates": templates}
    scene.create(WORKLOADS, f"of-{name}", compositePodGroupTemplates=[top])
    of = {each: {"workloadRef": {"workloadName": f"of-{name}", "templateName": each}} for each in policies}
    scene.create(COMPOSITE_POD_GROUPS, name, schedulingPolicy=policies[name], **of[name])
    for part in parts:
        scene.group(part, 2, parentCompositePodGroupName=name, **of[part])
        scene.members(part, range(2))


def test_a_part_of_groups_that_start_together_is_set_aside_and_says_so(scene: Scene) -> None:
    """In its condition, in an Event and in `muster explain`; where one part is enough, each is a gang of its own."""
    parts = ("one", "two")
    composite(scene, "both", 2, *parts)
    composite(scene, "either", 1, "left", "right")
    scene.starts(4)
    for part in parts:
        scene.wait_for(lambda part=part: "CompositePodGroup both" in scene.says(part, INITIALLY_SCHEDULED)[2], 30, part)
        assert scene.says(part, f"{names.DOMAIN}/Unschedulable")[:2] == ("True", "SetAside")
        scene.wait_for(
            lambda part=part: any(
                each["involvedObject"]["name"] == part and "CompositePodGroup both" in each["message"]
                for each in scene.client.list(EVENTS, scene.namespace)
            ),
            30, f"an Event on {part}",
        )  # fmt: skip
        assert "CompositePodGroup both" in scene.muster("explain", "gang", part)
    assert {pod.metadata.name.partition("-")[0] for pod in scene.bound()} == {"left", "right"}


def test_a_watch_shows_what_becomes_of_a_native_gang(scene: Scene) -> None:
    """No other PodGroup of the namespace changes with it."""
    program = str(Path(sys.executable).with_name("muster"))
    command = [program, "ps", "-w", f"--namespace={scene.namespace}", f"--kubeconfig={scene.plane.kubeconfig}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        late = Timer(RECOVERY_S, process.kill)
        late.start()
        try:
            lines = iter(process.stdout.readline, "")
            scene.group("watched", 1)
            scene.members("watched", [0], gpus=0)
            assert any(line.startswith("PodGroup watched") and " Running " in line for line in lines)
        finally:
            late.cancel()
            process.kill()


def test_a_job_without_scheduling_is_as_ever(scene: Scene) -> None:
    """Its group of the Job controller is none of Muster's; its PodGroup is."""
    scene.job("plain", 4, None, min_member="4")
    scene.starts(4)
    assert not scene.no_mirror()
    groups = scene.client.list(NATIVE_POD_GROUPS, scene.namespace)
    assert groups
    assert all(scene.placement(group.metadata.name) is None for group in groups)
    assert not any(condition.type == PHASE for group in groups for condition in group.status.conditions)


@pytest.mark.parametrize("part", ["extender", "controller", "webhook", MUSTER_SCHEDULER])
def test_a_gang_starts_whole_whoever_is_killed_in_between(scene: Scene, part: str) -> None:
    """As soon as its first pod exists, and never partly bound for long."""
    with History(scene.client, scene.namespace) as history:
        scene.job("killed", 8, GANG)
        scene.wait_for(scene.pods, 30, "the first pod")
        scene.plane.part(part).kill()
        scene.plane.mend()
        scene.starts(8, 2 * RECOVERY_S)
        assert history.half_placed_s(native_gang(scene.native().metadata.name), 8) < HALF_S


def test_a_gang_that_was_placed_is_known_to_the_next_planner(scene: Scene) -> None:
    """It goes by the conditions and the Placement, and places nothing again."""
    scene.job("lasts", 8, GANG)
    scene.starts(8)
    name = scene.native().metadata.name
    scene.wait_for(lambda: scene.says(name, PHASE)[1] == "Running", 30, "the gang to run")
    before = scene.placement(name)
    scene.plane.part("extender").kill()
    scene.plane.mend()
    scene.group("next", 1)
    scene.members("next", [0], gpus=0)
    scene.starts(9, RECOVERY_S)
    after = scene.placement(name)
    assert before is not None
    assert after is not None
    assert (after.spec, after.status.phase) == (before.spec, "Bound")


@pytest.fixture
def driver(scene: Scene) -> Iterator[str]:
    """The driver of one device on a node for 400 pods, and its class of the same name."""
    name = f"{scene.namespace}.example.com"
    made = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": name}}
    selectors = [{"cel": {"expression": f'device.driver == "{name}"'}}]
    scene.client.create(DEVICE_CLASSES, {**made, "kind": "DeviceClass", "spec": {"selectors": selectors}})
    node = scene.client.list(NODES)[0].metadata.name
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = {"driver": name, "pool": pool, "nodeName": node, "devices": [{"name": "d0"}]}
    scene.client.create(RESOURCE_SLICES, {**made, "kind": "ResourceSlice", "spec": devices})
    more = {key: {"pods": "400"} for key in ("capacity", "allocatable")}
    scene.client.merge_patch(NODES, node, {"status": more}, subresource="status")
    yield name
    scene.client.delete(RESOURCE_SLICES, name)
    scene.client.delete(DEVICE_CLASSES, name)


def claim_of(driver: str) -> dict[str, Any]:
    """The spec of a claim for the device."""
    return {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": driver, "count": 1}}]}}


def test_a_claim_of_the_group_is_shared_by_300_pods(scene: Scene, driver: str, *, all_gates: bool) -> None:
    """It is made once from the template, and has the group as its one user; kube-scheduler needs the gates for this."""
    if not all_gates:
        pytest.skip("a kube-scheduler without the gates gives a pod no claim that was made for its group")
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}}
    scene.client.create(CLAIM_TEMPLATES, {**made, "spec": {"spec": claim_of(driver)}}, scene.namespace)
    claim = {"name": "link", "resourceClaimTemplateName": "t"}
    scene.group("shares", 300, resourceClaims=[claim])
    scene.members("shares", range(300), gpus=0, resourceClaims=[claim])
    scene.starts(300, 180)
    [found] = scene.client.list(RESOURCE_CLAIMS, scene.namespace)
    assert [each.resource for each in found.status.reserved_for] == ["podgroups"]


def test_a_claim_of_the_group_that_no_pod_would_get_is_named(scene: Scene, driver: str, *, all_gates: bool) -> None:
    """kube-scheduler without the gates refuses the pods; the gang holds no node for that, and says what to write."""
    if all_gates:
        pytest.skip("a kube-scheduler with the gates gives pods the claim that was made for their group")
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "t"}}
    scene.client.create(CLAIM_TEMPLATES, {**made, "spec": {"spec": claim_of(driver)}}, scene.namespace)
    claim = {"name": "link", "resourceClaimTemplateName": "t"}
    scene.group("shares", 2, resourceClaims=[claim])
    scene.members("shares", range(2), gpus=0, resourceClaims=[claim])
    scene.wait_for(lambda: "resourceClaimName" in scene.says("shares", INITIALLY_SCHEDULED)[2], 30, "the reason")
    assert scene.placement("shares") is None
    assert not scene.bound()
    assert "was created for all pods of a PodGroup" in scene.muster("explain", "gang", "shares")


def test_a_claim_that_the_group_names_is_shared(scene: Scene, driver: str) -> None:
    """Each pod is a user of it where kube-scheduler does not know groups."""
    made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "one"}}
    scene.client.create(RESOURCE_CLAIMS, {**made, "spec": claim_of(driver)}, scene.namespace)
    claim = {"name": "link", "resourceClaimName": "one"}
    scene.group("shares", 20, resourceClaims=[claim])
    scene.members("shares", range(20), gpus=0, resourceClaims=[claim])
    scene.starts(20)
    assert scene.client.get(RESOURCE_CLAIMS, "one", scene.namespace).status.allocation
