"""Claims that a native PodGroup has for all its pods: they count once, however many pods share them."""

from typing import Any

import msgspec
import pytest
from devices_world import CPU, Devices, asks, claim_use, exactly, template_use
from extender_world import of
from msgspec import structs

from extender.planner.framework import decisions
from extender.planner.plugins.dynamicresources import DynamicResources
from extender.planner.plugins.proportion import Proportion
from muster.api import names
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
    """One large node with devices, and a native PodGroup, whose pods a shared kube-scheduler with the gates places.

    `own`: it is one of Muster's own, which has the gates off, unless these `arguments` of the plugin say otherwise.
    """

    def __init__(self, devices: int, *, own: bool = False, arguments: Any = None, **queue: int) -> None:
        super().__init__()
        self.own = own
        if arguments is not None:
            self.plugins[:] = [DynamicResources(arguments)]
        self.plugins.append(Proportion({}))
        self.gpus(1, devices)
        node = self.state.nodes.nodes[0]
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
        if not self.own:
            spec["containers"][0]["resources"]["limits"] = dict.fromkeys(names.MARKERS, "1")
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

    def why(self, key: str) -> str:
        """Why a gang waits, by one cycle."""
        return next(each.message for each in of(self.plan(), decisions.Unschedulable) if each.gang.key == key)

    def placed(self) -> int:
        """Pods that one cycle gives nodes."""
        return sum(place.new_slots for place in of(self.plan(), decisions.Place))


@pytest.mark.parametrize(("pods", "kube_scheduler", "placed"), [
    pytest.param(300, {"most": 2}, 300, id="shared, with the gates"),
    pytest.param(2, {"own": True}, 0, id="without the gates"),
    pytest.param(2, {"own": True, "arguments": {"groupClaims": False}}, 0, id="with the gates off"),
    pytest.param(2, {"own": True, "arguments": {"groupClaims": True}}, 2, id="with the gates on"),
])  # fmt: skip
def test_a_claim_that_all_pods_share_counts_once(pods: int, kube_scheduler: dict[str, Any], placed: int) -> None:
    """For its devices, its queue and as one user; one without the gates gives it to no pod, as the gang says then."""
    world = Groups(2, **kube_scheduler)
    world.claim("made", asks(exactly("gpu", 2)), owner_references=[OWNER])
    world.template("t", asks(exactly("gpu", 2)))
    world.group(pods, TEMPLATE)
    world.members(pods, template_use("t"), "made")
    assert (world.placed(), world.free("node-0")) == (placed, 0 if placed else 2)
    for words in () if placed else ("claim ns/made was created for all pods of a PodGroup", "resourceClaimName"):
        assert words in world.why(KEY)


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


def test_nor_does_it_know_that_a_group_is_one_user_of_a_claim() -> None:
    """Each of its pods is one, and the API has a limit of these."""
    world = Groups(1, own=True)
    world.claim("one", asks(exactly()))
    world.group(256, NAMED)
    world.members(256, claim_use("one"))
    assert world.placed() == 256
    world.group(257, NAMED)
    world.of_group(256, claim_use("one"))
    assert world.placed() == 0


@pytest.mark.parametrize("own", [True, False])
def test_a_group_waits_until_its_claim_is_made(*, own: bool) -> None:
    """By kube-controller-manager, a moment later: until then its devices would be counted for each pod."""
    world = Groups(2, own=own)
    world.template("t", asks(exactly()))
    world.group(2, TEMPLATE)
    world.members(2, template_use("t"))
    assert world.placed() == 0
    assert "has not been created for its PodGroup yet" in world.why(KEY)
    world.claim("made", asks(exactly()), owner_references=[OWNER])
    world.members(2, template_use("t"), "made")
    assert world.placed() == (0 if own else 2)


def test_a_template_that_the_group_takes_up_is_looked_at_again() -> None:
    """Its pods may have been there before."""
    world = Groups(2)
    world.template("t", asks(exactly()))
    group = world.group(2)
    world.members(2, template_use("t"))
    world.state.native.on_group(group, None)
    world.group(2, TEMPLATE)
    assert world.placed() == 0
