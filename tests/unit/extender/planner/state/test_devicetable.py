"""What a pod needs by its claims: amounts, nodes of devices that it has, and problems, for each kind of claim."""

from typing import Any

import msgspec
import pytest
from builders import pod as a_pod
from devices_world import CPU, Devices, asks, claim_use, device, exactly, template_use
from msgspec import structs

from extender.planner.state.devicetable import ClaimRef, PodClaims, claim_refs
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.devices import (
    MOST_PODS,
    DeviceClass,
    DeviceTaintRule,
    PodResourceClaimStatus,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from muster.api.kubernetes.meta import OwnerReference

ONE, TWO = asks(exactly()), asks(exactly(count=2))
ON_NODE = "on node"
GROUP = OwnerReference(api_version="scheduling.k8s.io/v1alpha2", kind="PodGroup", name="g", uid="g", controller=True)


@pytest.fixture
def world() -> Devices:
    """Two nodes of four devices, with a claim or template of each kind."""
    world = Devices().gpus(2, 4).device_class(extended="example.com/gpu").template("one", ONE).template("two", TWO)
    pod = world.member("ns/none", 0, template_use("one"))
    world.claim("free", ONE)
    world.claim("has", TWO, got=(("node-0", "d0"), ("node-0", "d1")))
    world.claim("going", ONE, deletion_timestamp="2026-01-01T00:00:00Z")
    world.claim("full", ONE, users=tuple(f"u{number}" for number in range(MOST_PODS)))
    world.claim("nearly", ONE, users=tuple(f"u{number}" for number in range(MOST_PODS - 1)))
    world.claim("mine", ONE, pod=pod)
    world.claim("mine-has", TWO, pod=pod, got=(("node-1", "d0"), ("node-1", "d1")))
    world.claim("groups", ONE, owner_references=[GROUP])
    return world


def ref(claim: str = "", template: str = "", **more: Any) -> ClaimRef:
    """An entry of a pod's spec."""
    return ClaimRef(f"ns/{claim}" if claim else "", f"ns/{template}" if template else "", **more)


CASES: dict[str, tuple[ClaimRef, str, tuple[int, int, int, int, str]]] = {
    "free": (ref("free"), "", (0, 1, 1, 0, "")),
    "with devices": (ref("has"), "", (0, 0, 1, 1, "")),
    "not there": (ref("none"), "", (0, 0, 0, 0, "resource claim ns/none does not exist")),
    "being deleted": (ref("going"), "", (0, 0, 0, 0, "resource claim ns/going is being deleted")),
    "full": (ref("full"), "", (0, 0, 0, 0, "is used by 256 pods, the maximum for one claim")),
    "nearly full": (ref("nearly"), "", (0, 1, 1, 0, "")),
    "a template": (ref(template="two"), "", (2, 0, 0, 0, "")),
    "no template": (ref(template="none"), "", (0, 0, 0, 0, "template ns/none does not exist")),
    "no template any more": (ref(template="none"), ON_NODE, (0, 0, 0, 0, "")),
    "made": (ref("mine", "two"), "", (1, 0, 0, 0, "")),
    "made, and not seen yet": (ref("later", "two"), "", (2, 0, 0, 0, "")),
    "made, with devices": (ref("mine-has", "two"), "", (0, 0, 0, 1, "")),
    "made, with devices, on a node": (ref("mine-has", "two"), ON_NODE, (2, 0, 0, 0, "")),
    "of a group": (ref("groups", "one", grouped=True), "", (0, 1, 1, 0, "")),
}
"""What a pod names, and where it is → devices that it takes, claims without devices that it shares, claims that it
names, node selectors, and its problem."""


@pytest.mark.parametrize("case", CASES)
def test_what_a_claim_adds(world: Devices, case: str) -> None:
    """Each kind of claim, as it is now."""
    named, where, expected = CASES[case]
    needs = world.state.devices.needs(PodClaims("pod", (named,), on_node=where == ON_NODE), {})
    devices, problems = sum(dict(needs.rows).values()), [str(each) for each in needs.problems]
    assert (devices, len(needs.shared), len(needs.named)) == expected[:3]
    assert len(needs.nodes) == expected[3]
    assert (expected[4] in problems[0]) if expected[4] else not problems
    assert bool(needs) == (any(expected))


def test_who_uses_a_full_claim_already_keeps_it(world: Devices) -> None:
    """As its status says."""
    needs = world.state.devices.needs(PodClaims("u7", (ref("full"),)), {})
    assert (needs.problems, len(needs.shared)) == ((), 1)
    other = world.state.devices.needs(PodClaims("u7", (ref("full"), ref("nearly"))), {})
    assert [each.key for each in other.shared] == [each.key for each in other.named] == ["ns/full", "ns/nearly"]
    assert needs.key != other.key


def test_extended_resources_are_devices_unless_the_pod_has_them_by_a_claim(world: Devices) -> None:
    """Its containers' own amounts count then no more."""
    world.claim("for-it", ONE, got=(("node-1", "d3"),), uid="made")
    asked = {"example.com/gpu": 2, "cpu": 1}
    devices = world.state.devices
    assert not devices.needs(PodClaims("pod"), {"cpu": 1})
    assert devices.needs(PodClaims("pod"), asked).replaced == ()
    for on_node, nodes in ((True, 0), (False, 1)):
        needs = devices.needs(PodClaims("pod", extended="ns/for-it", on_node=on_node), asked)
        assert (needs.replaced, len(needs.nodes)) == (("example.com/gpu",), nodes)
        assert bool(needs.rows) is on_node
    assert devices.needs(PodClaims("pod", extended="ns/free"), asked).replaced == ()
    assert devices.needs(PodClaims("pod", extended="ns/for-it"), {"example.com/gpu": 0}).replaced == ()


def test_an_extended_resource_that_cannot_be_counted_is_left_to_kube_scheduler(world: Devices) -> None:
    """In words that name it; the amount that containers ask for does not count then."""
    world.equip("node-1", device("d0", allowMultipleAllocations=True))
    needs = world.state.devices.needs(PodClaims("pod"), {"example.com/gpu": 2})
    assert (needs.replaced, needs.rows, needs.shown) == (("example.com/gpu",), (), ())
    assert [text.partition(":")[0] for text in needs.unseen] == ["example.com/gpu"]


def test_a_claim_has_its_devices_on_one_node(world: Devices) -> None:
    """Where the selector of its allocation says; without devices, or with unknown ones, nothing is counted."""
    devices = world.state.devices
    node, used = devices.allocated("ns/has") or ("", {})
    assert (node, [*used.values()]) == ("node-0", [2])
    world.claim("lost", ONE, got=(("node-9", "d0"),))
    assert [devices.allocated(f"ns/{name}") for name in ("free", "lost", "none")] == [None, None, None]
    assert devices.on_nodes == {"node-0": {"ns/has"}, "node-1": {"ns/mine-has"}, "node-9": {"ns/lost"}}
    world.claim("has", ONE)
    assert "node-0" not in devices.on_nodes


def test_users_of_a_claim_are_counted_once(world: Devices) -> None:
    """Those that its status names too; a member that waits has a placed slot, and counts by that."""
    world.claim("shared", ONE, users=("nobody", *(f"uid-x-worker-{rank}" for rank in range(3)), "uid-plain"))
    world.member("ns/x", 0, claim_use("shared"), node="node-0", phase="Succeeded")
    world.member("ns/x", 1, claim_use("shared"))
    world.member("ns/x", 2, claim_use("shared"), node="node-0", phase="Running")
    world.state.on_pod(None, a_pod("plain", uid="uid-plain"))
    users = ["nobody", "the one that ended", "the one that runs", "the one of no gang"]
    assert world.state.claimants.users_of("ns/shared") == len(users)
    world.member("ns/x", 3, claim_use("shared"), node="node-0", phase="Running")
    assert world.state.claimants.users_of("ns/shared") == len(users) + 1
    plain = world.state.pods["uid-plain"]
    world.state.ledger.assume(plain.uid, "default", plain.cls, node="node-0")
    assert world.state.claimants.users_of("ns/shared") == len(users), "who is being bound is counted by what it names"


def test_which_changes_matter_to_scheduling(world: Devices) -> None:
    """Claims that come, go, or have devices; slices, rules and classes that say something else; every template."""
    on, objects = world.state.claimants, world.state.device_objects
    free = objects[ResourceClaim, "free"]
    assert on.on_claim(free, free) is False
    assert on.on_claim(free, objects[ResourceClaim, "has"]) is False, "these devices are counted already"
    assert on.on_claim(objects[ResourceClaim, "has"], None) is True
    assert on.on_claim(None, objects[ResourceClaim, "has"]) is True
    world.claim("other", ONE)
    moved = structs.replace(objects[ResourceClaim, "mine-has"], metadata=objects[ResourceClaim, "other"].metadata)
    assert on.on_claim(objects[ResourceClaim, "other"], moved) is True
    known = objects[ResourceSlice, "node-0-slice"]
    assert on.on_slice(known, known) is False
    assert on.on_slice(known, None) is True
    assert on.on_class(objects[DeviceClass, "gpu"], objects[DeviceClass, "gpu"]) is False
    assert on.on_class(objects[DeviceClass, "gpu"], None) is True
    spec = {"deviceSelector": {}, "taint": {"key": "sick", "effect": "NoSchedule"}}
    rule = msgspec.convert({"spec": spec}, DeviceTaintRule)
    assert on.on_rule(None, rule) is True
    assert on.on_rule(rule, rule) is False
    one = objects[ResourceClaimTemplate, "one"]
    assert on.on_template(one, one) is True


def test_what_a_pod_names() -> None:
    """By name, by a template with what was made of it, or with nothing as none was needed; alone without a marker."""
    world = Devices()
    claims = [{"name": "a", "resourceClaimName": "c"}, {"name": "b", "resourceClaimTemplateName": "t"},
              {"name": "d", "resourceClaimTemplateName": "u"}]  # fmt: skip
    pod = world.member("ns/none", 0, {"resourceClaims": claims}, requests=CPU)
    expected = (ref("c", alone=True), ref("", "t", alone=True), ref("", "u", alone=True))
    assert claim_refs(pod.spec, "ns", pod) == claim_refs(pod.spec, "ns") == expected
    made = Pod(spec=pod.spec)
    named = PodResourceClaimStatus(name="b", resource_claim_name="t-x"), PodResourceClaimStatus(name="d")
    made.status.resource_claim_statuses = [*named]
    assert claim_refs(made.spec, "ns", made) == (ref("c", alone=True), ref("t-x", "t", alone=True))
    assert claim_refs(PodSpec(), "ns", pod) == ()
