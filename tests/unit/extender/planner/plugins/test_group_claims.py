"""Claims that a native PodGroup has for all its pods: they count once, however many pods share them."""

from typing import Any

import msgspec
import pytest
from devices_world import CPU, Devices, asks, claim_use, exactly, template_use
from extender_world import of
from msgspec import structs

from extender.planner.framework import decisions
from extender.planner.plugins.proportion import Proportion
from muster.api.kubernetes.core import NodeStatus, Pod
from muster.api.kubernetes.meta import OwnerReference
from muster.api.kubernetes.scheduling import NativePodGroup

KEY = "ns/native.train"
GPUS = "deviceclass.resource.kubernetes.io/gpu"
TEMPLATE = {"name": "devices", "resourceClaimTemplateName": "t"}
NAMED = {"name": "devices", "resourceClaimName": "one"}
OWNER = OwnerReference(
    api_version="scheduling.k8s.io/v1beta1", kind="PodGroup", name="train", uid="uid-train", controller=True
)


class Groups(Devices):
    """One large node with devices, and a native PodGroup."""

    def __init__(self, devices: int, **queue: int) -> None:
        super().__init__()
        self.plugins.append(Proportion({}))
        self.gpus(1, devices)
        node = self.state.nodes.nodes[0]
        assert node is not None
        self.state.on_node(node, structs.replace(node, status=NodeStatus(allocatable={"cpu": 400, "pods": 400})))
        self.device_class()
        if queue:
            self.queue("default", capability={GPUS: str(queue["most"])})

    def group(self, least: int, *claims: dict[str, Any]) -> NativePodGroup:
        """The group, or a newer version of it."""
        spec = {"schedulingPolicy": {"gang": {"minCount": least}}, "resourceClaims": list(claims)}
        metadata = msgspec.to_builtins(self.meta("train", uid="uid-train"))
        made = msgspec.convert({"metadata": metadata, "spec": spec}, NativePodGroup)
        self.state.native.on_group(None, made)
        return made

    def of_group(
        self, index: int, use: dict[str, Any], claim: str = "", *, node: str = "", refused: bool = False
    ) -> None:
        """A pod of the group; `claim` is the one that its status names."""
        spec = self.pod_spec(CPU, schedulerName="muster", schedulingGroup={"podGroupName": "train"}, **use)
        if node:
            spec["nodeName"] = node
        status: dict[str, Any] = {"phase": "Running" if node else "Pending"}
        if claim:
            status["resourceClaimStatuses"] = [{"name": "devices", "resourceClaimName": claim}]
        if refused:
            status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        pod = msgspec.convert({"spec": spec, "status": status}, Pod)
        pod.metadata = self.meta(f"train-{index}", uid=f"uid-train-{index}")
        self.state.on_pod(None, pod)

    def members(self, count: int, use: dict[str, Any], claim: str = "") -> None:
        """So many pods."""
        for index in range(count):
            self.of_group(index, use, claim)

    def placed(self) -> int:
        """Pods that one cycle gives nodes."""
        return sum(place.new_slots for place in of(self.plan(), decisions.Place))


def test_a_claim_shared_by_300_pods_counts_once() -> None:
    """Of its devices, of its queue's, and as one user: the API has only the group in it."""
    world = Groups(2, most=2)
    world.claim("made", asks(exactly("gpu", 2)), owner_references=[OWNER])
    world.template("t", asks(exactly("gpu", 2)))
    world.group(300, TEMPLATE)
    world.members(300, template_use("t"), "made")
    assert world.placed() == 300
    assert world.free("node-0") == 0


def test_a_claim_that_the_group_names_has_no_limit_of_pods() -> None:
    """It has one while the group does not name it: then every pod is a user of it."""
    world = Groups(1)
    world.claim("one", asks(exactly()))
    world.group(300)
    world.members(300, claim_use("one"))
    assert world.placed() == 0
    group = world.group(300, NAMED)
    assert world.placed() == 300
    world.state.native.on_group(group, None)
    assert not world.state.devices.grouped


@pytest.mark.parametrize(("devices", "placed"), [(3, 2), (1, 0)])
def test_a_claim_of_a_pods_own_counts_for_each_pod(devices: int, placed: int) -> None:
    """Being in a group does not share it."""
    world = Groups(devices)
    world.template("t", asks(exactly()))
    world.group(2)
    world.members(2, template_use("t"))
    assert world.placed() == placed


def test_devices_that_the_group_has_keep_its_pods_on_their_node() -> None:
    """And count by themselves, once, when pods are on the node."""
    world = Groups(4)
    world.claim("made", asks(exactly("gpu", 3)), owner_references=[OWNER], got=(("node-0", "d0"), ("node-0", "d1")))
    world.group(2, TEMPLATE)
    world.of_group(0, template_use("t"), "made", node="node-0")
    world.of_group(1, template_use("t"), "made", node="node-0")
    assert world.free("node-0") == 2


def test_a_refusal_while_a_sibling_is_allocated_the_claim_means_nothing() -> None:
    """kube-scheduler tries again, as with other claims that pods share."""
    world = Groups(1)
    world.group(1, TEMPLATE)
    world.of_group(0, template_use("t"), "made", refused=True)
    assert world.state.pods["uid-train-0"].shares_claims
