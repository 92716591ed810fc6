"""Gangs with claims to devices are planned on nodes that have them, and no device is counted twice."""

from typing import Any

import pytest
from devices_world import CPU, DRIVER, Devices, asks, claim_use, device, exactly, ones, template_use
from extender_world import cluster_of, of, only, waiting, where

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.plugins.proportion import Proportion
from extender.planner.state.state import PlannerState
from extender.verbs.filter import Filter
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.devices import DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from muster.api.kubernetes.extender import ExtenderArgs

NONE = claim_use("none")["resourceClaims"][0]
MODEL = f'device.attributes["{DRIVER}"].model'
MEMORY = f'device.capacity["{DRIVER}"].memory'


def gang(world: Devices, name: str, members: int, use: dict[str, Any], **more: Any) -> str:
    """A gang of pods with claims."""
    return world.gang(name, {"worker": (members, CPU)}, spec=use, **more)


def test_members_go_where_devices_are_and_no_more_than_there_are() -> None:
    """Two nodes of two: four members fit, a fifth does not, and the next gang finds nothing."""
    world = ones(2, 2)
    world.node("plain")
    gang(world, "a", 4, template_use("one"))
    gang(world, "b", 1, template_use("one"))
    assert where(world.plan()) == {"a": ["node-0", "node-0", "node-1", "node-1"]}
    assert "of 3 nodes: 3 too few devices of class gpu" in waiting(world.plan())["b"][1]
    assert world.free("node-0") == 0


def test_a_gang_that_no_empty_cluster_could_hold_is_not_let_in() -> None:
    """It is told what there would have to be."""
    world = ones(2, 2)
    gang(world, "a", 5, template_use("one"), phase="Pending")
    words = "5 pods must start together, but even an empty cluster has room for 4 of them"
    assert words in waiting(world.plan())["a"][1]


@pytest.mark.parametrize(("spec", "nodes"), [
    pytest.param(asks(exactly("gpu", 1, f'{MODEL} == "h100"')), ["node-1", "node-1"], id="attribute"),
    pytest.param(asks(exactly("gpu", 1, f'{MEMORY}.compareTo(quantity("60Gi")) >= 0')), ["node-1"] * 2, id="capacity"),
    pytest.param(asks(exactly("gpu", 2)), ["node-0", "node-1"], id="count"),
    pytest.param(asks(exactly(), exactly()), ["node-0", "node-1"], id="two requests"),
    pytest.param(asks(exactly(), exactly("gpu", 1, f'{MODEL} == "h100"')), ["node-1"], id="both kinds"),
    pytest.param(asks(exactly("gpu", 0, allocationMode="All")), ["node-0", "node-1"], id="all"),
    pytest.param(asks(exactly("gpu", 1, adminAccess=True)), ["node-0"] * 2, id="beside others"),
    pytest.param(
        asks({"firstAvailable": [
            {"name": "a", "deviceClassName": "none"},
            {"name": "b", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": f'{MODEL} == "h100"'}}]},
        ]}), ["node-1", "node-1"], id="alternatives",
    ),
    pytest.param(asks(exactly("gpu", 2), constraints=[{"matchAttribute": f"{DRIVER}/model"}]), ["node-0", "node-1"],
                 id="alike on every node"),
])  # fmt: skip
def test_what_a_claim_asks_for_decides_where_it_can_be(spec: dict[str, Any], nodes: list[str]) -> None:
    """Two a100 with 40Gi on node-0, two h100 with 80Gi on node-1; as many members as the case has nodes."""
    world = Devices()
    for number, (model, memory) in enumerate((("a100", "40Gi"), ("h100", "80Gi"))):
        world.node(f"node-{number}")
        world.equip(f"node-{number}", *(device(f"d{index}", model, memory) for index in range(2)))
    world.device_class()
    world.template("t", spec)
    gang(world, "a", len(nodes), template_use("t"))
    assert where(world.plan()) == {"a": nodes}


def small_and_large() -> Devices:
    """A node with a small and a large device, and templates for any and for a large one."""
    world = Devices().nodes(1)
    world.equip("node-0", device("d0", memory="40Gi"), device("d1", memory="80Gi"))
    large = asks(exactly("gpu", 1, f'{MEMORY}.isGreaterThan(quantity("60Gi"))'))
    return world.device_class().template("any", asks(exactly())).template("large", large)


def test_kinds_that_overlap_share_their_devices() -> None:
    """One large and one small GPU: one member wants any, one a large one; two that want a large one do not fit."""
    world = small_and_large()
    gang(world, "a", 1, template_use("large"))
    gang(world, "b", 1, template_use("any"))
    gang(world, "c", 1, template_use("any"))
    assert where(world.plan()).keys() == {"a", "b"}
    gang(world, "d", 1, template_use("large"))
    assert "too few devices of class gpu" in waiting(world.plan())["d"][1]


def test_a_device_counts_once_from_the_plan_to_the_end_of_its_pod() -> None:
    """Held by the placement, allocated before the pod is bound, used by the pod, left behind by a pod that ended."""
    world = ones(1, 3)
    key = gang(world, "a", 1, template_use("one"))
    free = [world.free("node-0")]

    def then(_: object) -> None:
        free.append(world.free("node-0"))

    then(world.plan())
    pod = world.member(key, 0, template_use("one"), claim="a-claim")
    then(pod)
    then(world.claim("a-claim", asks(exactly()), pod=pod))
    then(world.claim("a-claim", asks(exactly()), pod=pod, got=(("node-0", "d1"),), users=(pod.metadata.uid,)))
    then(world.state.assume(pod.metadata.uid, "node-0"))
    for phase in ("Running", "Succeeded"):
        then(world.member(key, 0, template_use("one"), claim="a-claim", node="node-0", phase=phase))
    then(world.claim("a-claim", asks(exactly()), pod=pod))
    assert free == [3, 2, 2, 2, 2, 2, 2, 2, 3]
    world.session()  # compares the state with one made from the objects


def test_devices_of_a_pod_that_could_not_be_bound_stay_taken() -> None:
    """kube-scheduler leaves them allocated; the pod itself must go where they are."""
    world = ones(2, 1)
    pod = world.member(gang(world, "a", 1, template_use("one")), 0, template_use("one"), claim="a-claim")
    world.claim("a-claim", asks(exactly()), pod=pod, got=(("node-1", "d0"),))
    gang(world, "b", 2, template_use("one"))
    assert where(world.plan()) == {"a": ["node-1"]}
    assert "1 too few devices of class gpu" in waiting(world.plan())["b"][1]
    world.gone(ResourceClaim, world.state.claimants.on_claim, "a-claim")


def test_an_allocated_device_counts_for_each_kind_that_it_is_of() -> None:
    """A pod that wanted any GPU has got the only large one."""
    world = small_and_large()
    key = gang(world, "a", 1, template_use("any"), phase="Running")
    pod = world.member(key, 0, template_use("any"), claim="c", node="node-0", phase="Running")
    gang(world, "b", 1, template_use("large"))
    world.claim("c", asks(exactly()), pod=pod, got=(("node-0", "d1"),))
    assert "too few devices of class gpu" in waiting(world.plan())["b"][1]
    world.claim("c", asks(exactly()), pod=pod, got=(("node-0", "d0"),))
    assert where(world.plan()) == {"b": ["node-0"]}


def test_admin_access_takes_nothing() -> None:
    """Neither planned nor allocated."""
    world = ones(1, 1)
    world.claim("watch", asks(exactly(adminAccess=True)), got=(("node-0", "d0"),), admin=True)
    gang(world, "a", 1, template_use("one"))
    assert where(world.plan()) == {"a": ["node-0"]}


@pytest.mark.parametrize(("use", "words"), [
    (claim_use("none"), "resource claim ns/none does not exist"),
    (claim_use("going"), "resource claim ns/going is being deleted"),
    (claim_use("full"), "resource claim ns/full is used by 256 pods"),
    (template_use("none"), "resource claim template ns/none does not exist"),
    ({"resourceClaims": [NONE, {"name": "b", "resourceClaimName": "going"}]}, "resource claim ns/none does not exist"),
    (template_use("odd"), "device class odd does not exist"),
])  # fmt: skip
def test_what_is_missing_is_named(use: dict[str, Any], words: str) -> None:
    """The pods could not start, so that the gang is not planned."""
    world = Devices().gpus(1, 4).device_class()
    world.claim("going", asks(exactly()), deletion_timestamp="2027-01-15T08:00:10Z")
    world.claim("full", asks(exactly()), users=tuple(f"uid-{number}" for number in range(256)))
    world.template("odd", asks(exactly("odd")))
    gang(world, "a", 1, use)
    assert words in waiting(world.plan())["a"][1]


SLICED = {"consumesCounters": [{"counterSet": "c", "counters": {"x": {"value": "1"}}}]}


@pytest.mark.parametrize(("spec", "devices", "words"), [
    (asks(exactly()), [device("d0", **SLICED)], "parts of other devices, shared"),
    (asks(exactly()), [device("d0", allowMultipleAllocations=True)], "parts of other devices, shared"),
    (asks(exactly(capacity={"requests": {"memory": "1Gi"}})), [device("d0")], "the request is for a part of a device"),
    (asks(exactly("gpu", 1, "sets.contains([1], [1])")), [device("d0")], "cannot be evaluated"),
    (asks({"firstAvailable": [{"name": str(n), "deviceClassName": "gpu", "count": n} for n in (2, 1)]}), [device("d0")],
     "alternatives request more than one device"),
    (asks(exactly("gpu", 2), constraints=[{"matchAttribute": f"{DRIVER}/model"}]),
     [device("d0", "a100"), device("d1", "h100")], f"devices with the same {DRIVER}/model"),
])  # fmt: skip
def test_what_cannot_be_counted_is_left_to_kube_scheduler_and_told(
    spec: dict[str, Any], devices: list[dict[str, Any]], words: str
) -> None:
    """The gang is planned by all else; one that waits says what is not counted."""
    world = Devices().nodes(1)
    world.equip("node-0", *devices)
    world.device_class()
    world.template("t", spec)
    gang(world, "a", 1, template_use("t"))
    gang(world, "b", 1, {**template_use("t"), "nodeSelector": {"there": "is-none"}})
    session = world.plan()
    assert where(session).keys() == {"a"}
    message = waiting(session)["b"][1]
    assert "kube-scheduler decides, not counted: " in message
    assert words in message


def test_taints_keep_devices_from_requests_that_do_not_tolerate_them() -> None:
    """NoSchedule and NoExecute do, None does not."""
    world = Devices().nodes(1)
    taint = {"key": "sick", "effect": "NoSchedule"}
    world.equip("node-0", device("d0", taints=[taint]), device("d1", taints=[{"key": "odd", "effect": "None"}]))
    world.device_class()
    world.template("healthy", asks(exactly()))
    world.template("any", asks(exactly(tolerations=[{"key": "sick", "operator": "Exists"}])))
    gang(world, "a", 2, template_use("healthy"))
    gang(world, "b", 2, template_use("any"))
    assert where(world.plan()) == {"b": ["node-0", "node-0"]}


def test_rules_taint_devices_as_slices_do() -> None:
    """From when a rule comes, whatever it selects by, until it goes; who tolerates its taint is planned there."""
    world = Devices().gpus(2, 2).device_class()
    world.taint_rule("node", pool="node-0")
    world.taint_rule("device", driver=DRIVER, pool="node-1", device="d1")
    world.template("healthy", asks(exactly()))
    world.template("any", asks(exactly(tolerations=[{"key": "sick", "operator": "Exists"}])))
    gang(world, "a", 2, template_use("healthy"))
    assert "1 fits now" in waiting(world.plan())["a"][1]
    world.gone(DeviceTaintRule, world.state.claimants.on_rule, "device")
    assert where(world.plan()) == {"a": ["node-1", "node-1"]}
    gang(world, "b", 1, template_use("healthy"))
    gang(world, "c", 1, template_use("any"))
    assert where(world.plan()) == {"c": ["node-0"]}
    world.taint_rule("node", effect="None", pool="node-0")
    assert where(world.plan()) == {"b": ["node-0"]}
    assert world.state.differences() == []


def test_an_incomplete_pool_has_nothing_to_give() -> None:
    """As kube-scheduler has it; neither has one that an older generation describes."""
    world = Devices().nodes(1)
    world.equip("node-0", device("d0"), pool={"name": "node-0", "generation": 2, "resourceSliceCount": 2})
    world.device_class()
    world.template("one", asks(exactly()))
    gang(world, "a", 1, template_use("one"))
    assert "a" in waiting(world.plan())
    world.equip("node-0", device("d0"), pool={"name": "node-0", "generation": 3, "resourceSliceCount": 1})
    assert where(world.plan()) == {"a": ["node-0"]}


def test_devices_that_come_and_go_are_followed() -> None:
    """A slice, the class and the template, each of which may be last."""
    world = Devices().nodes(1)
    gang(world, "a", 1, template_use("one"))
    assert "does not exist" in waiting(world.plan())["a"][1]
    world.template("one", asks(exactly()))
    assert "device class gpu does not exist" in waiting(world.plan())["a"][1]
    world.device_class()
    assert "too few devices" in waiting(world.plan())["a"][1]
    world.equip("node-0", device("d0"))
    world.gone(ResourceSlice, world.state.claimants.on_slice, "node-0-slice")
    assert "too few devices" in waiting(world.plan())["a"][1]
    world.equip("node-0", device("d0"))
    assert where(world.plan()) == {"a": ["node-0"]}
    world.gone(ResourceClaimTemplate, world.state.claimants.on_template, "one")
    assert world.state.differences() == []


@pytest.mark.parametrize("asked", ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_extended_resources_can_be_devices(asked: str) -> None:
    """On a node whose driver publishes devices, and on one with a device plugin, by the class's name for it."""
    world = Devices().gpus(1, 2).device_class("gpu", extended="example.com/gpu")
    world.gang("a", {"worker": (2, {asked: 1})})
    assert where(world.plan()) == {"a": ["node-0", "node-0"]}
    pod = world.member("ns/a", 0, {}, node="node-0", phase="Running", requests={asked: 1}, extended_claim="x")
    world.claim("x", asks(exactly()), pod=pod, got=(("node-0", "d1"),))
    assert world.free("node-0", "example.com/gpu") == 0
    world.template("one", asks(exactly()))
    gang(world, "b", 1, template_use("one"))
    assert "too few" in waiting(world.plan())["b"][1] or "too little" in waiting(world.plan())["b"][1]


def test_an_amount_of_a_device_plugin_stays_what_the_node_says() -> None:
    """Where a node offers the extended resource itself, claims find nothing and requests find that."""
    world = Devices().nodes(1, gpus=4).device_class("gpu", extended="nvidia.com/gpu")
    world.node("node-1", gpus=0)
    world.equip("node-1", device("d0"))
    world.gang("a", {"worker": (5, {"nvidia.com/gpu": 1})})
    assert where(world.plan()) == {"a": ["node-0"] * 4 + ["node-1"]}
    world.template("one", asks(exactly()))
    gang(world, "b", 1, template_use("one"))
    assert "b" in waiting(world.plan())


def test_a_cluster_without_devices_knows_nothing_of_them() -> None:
    """No resource more, and no needs."""
    world = Devices().nodes(1)
    world.gang("a", {"worker": (1, {"nvidia.com/gpu": 1})})
    assert where(world.plan()) == {"a": ["node-0"]}
    assert set(world.state.nodes.axis) == {"cpu", "memory", "pods", "nvidia.com/gpu"}
    assert isinstance(world.state, PlannerState)


def running(world: Devices, name: str, members: int, **more: Any) -> str:
    """A gang that runs on node-0 with a device each, from the first on."""
    key = gang(world, name, members, template_use("one"), phase="Running", **more)
    for rank in range(members):
        pod = world.member(key, rank, template_use("one"), claim=f"{name}-{rank}", node="node-0", phase="Running")
        world.claim(f"{name}-{rank}", asks(exactly()), pod=pod, got=(("node-0", f"d{rank}"),))
    return key


def test_devices_are_a_reason_to_preempt() -> None:
    """A gang of higher priority gets those of a lower one, whose pods are the victims."""
    world = ones(1, 2)
    for name, value in (("low", 1), ("high", 10)):
        world.state.on_priority_class(None, PriorityClass(metadata=world.meta(name, namespace=""), value=value))
    running(world, "low", 2, priority_class="low")
    gang(world, "high", 2, template_use("one"), priority_class="high")
    session = world.session(world.progress, Enqueue(), Allocate(), Preempt())
    assert [place.gang.key for place in of(session, decisions.Place)] == ["ns/high"]
    assert {pod.name for _, pod in only(session, decisions.MakeRoom).victims} == {"low-worker-0", "low-worker-1"}


def test_a_queue_may_have_a_limit_of_devices() -> None:
    """By the name that Kubernetes has for the devices of a class."""
    world = ones(1, 4)
    world.plugins.append(Proportion({}))
    world.queue("default", capability={"deviceclass.resource.kubernetes.io/gpu": "3"})
    running(world, "a", 2)
    gang(world, "b", 1, template_use("one"))
    gang(world, "c", 1, template_use("one"))
    session = world.plan()
    assert where(session).keys() == {"b"}
    assert "deviceclass.resource.kubernetes.io/gpu" in waiting(session)["c"][1]


def test_a_pod_without_a_gang_is_kept_off_devices_that_a_gang_holds() -> None:
    """kube-scheduler would give them away; a node whose devices nobody holds, or that we do not know, passes."""
    world = ones(2, 1)
    world.node("node-2")
    gang(world, "a", 1, template_use("one"))
    assert where(world.plan()) == {"a": ["node-0"]}
    pod = world.member("ns/none", 0, template_use("one"))
    pod = world.change(pod, annotations={})
    call = ExtenderArgs(pod=pod, node_names=["node-0", "node-1", "node-2"])
    assert Filter(cluster_of(world), active=lambda: True)(call).node_names == ["node-1", "node-2"]
