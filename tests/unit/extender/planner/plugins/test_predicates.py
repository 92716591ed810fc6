"""What the node alone and the pod's volumes decide, each predicate by itself."""

from typing import Any

import msgspec
import numpy as np
import pytest
from extender_world import World, waiting, where

from extender.planner.framework.inputs import CycleInputs
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.plugins.predicates import refused as codes_of
from extender.planner.state.podclass import ClassTable
from muster.api.kubernetes.core import Node, PodSpec
from muster.api.kubernetes.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, StorageClass

GPU1 = {"cpu": 1}


def node_of(**fields: Any) -> Node:
    """A node called n1."""
    spec = {key: fields.pop(key) for key in ("taints", "unschedulable") if key in fields}
    return msgspec.convert({"metadata": {"name": "n1", "labels": fields}, "spec": spec}, Node)


def refused(node: Node, **spec: Any) -> str:
    """Why the node does not take a pod with this spec."""
    world = World(checked=False)
    world.state.on_node(None, node)
    session = Session(CycleInputs(snapshot=take_snapshot(world.state), now=0.0))
    cls = ClassTable().of_spec(msgspec.convert(spec, PodSpec))
    code = codes_of(cls, session, np.array([0]))[0]
    return str(session.causes.of[code]) if code else ""


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required node affinity with these terms."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}}


@pytest.mark.parametrize(("operator", "values", "fits"), [
    ("In", ["5", "6"], True), ("In", ["6"], False), ("NotIn", ["6"], True), ("NotIn", ["5"], False),
    ("Exists", [], True), ("DoesNotExist", [], False), ("Gt", ["4"], True), ("Gt", ["5"], False), ("Lt", ["+6"], True),
    ("Lt", ["6_0"], False), ("Gt", ["four"], False), ("Gt", [str(-(2**63) - 1)], False), ("Gt", [str(-(2**63))], True),
    ("Lt", [str(2**63 - 1)], True), ("Lt", [str(2**63)], False), ("Lt", ["0" * 255 + "6"], True),
    ("Lt", ["0" * 256 + "6"], False), ("Lt", ["6", "7"], False), ("Like", ["5"], False),
])  # fmt: skip
def test_every_operator_of_node_affinity(operator: str, values: list[str], *, fits: bool) -> None:
    """Integers are 64 bits wide and written as Go reads them."""
    requirement = {"key": "generation", "operator": operator, "values": values}
    words = refused(node_of(generation="5"), affinity=required({"matchExpressions": [requirement]}))
    assert words == ("" if fits else "does not match the node affinity")


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    """One term that matches is enough; matchFields look at the name."""
    node = node_of()
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert refused(node, affinity=required({}, here)) == ""
    assert refused(node, affinity=required({})) == "does not match the node affinity"
    assert refused(node, affinity=required()) == "does not match the node affinity"


@pytest.mark.parametrize(("toleration", "fits"), [
    ({"key": "a", "value": "x"}, True),
    ({"key": "a", "value": "y"}, False),
    ({"key": "a", "operator": "Exists"}, True),
    ({"operator": "Exists"}, True),
    ({"operator": "Exists", "effect": "NoSchedule"}, True),
    ({"operator": "Exists", "effect": "NoExecute"}, False),
    ({"key": "b", "operator": "Exists"}, False),
])  # fmt: skip
def test_taints_and_tolerations(toleration: dict[str, str], *, fits: bool) -> None:
    """PreferNoSchedule keeps nobody away."""
    node = node_of(
        taints=[{"key": "soft", "effect": "PreferNoSchedule"}, {"key": "a", "value": "x", "effect": "NoSchedule"}]
    )
    assert refused(node, tolerations=[toleration]) == ("" if fits else "has the taint a=x")


def test_a_cordon_is_tolerated_as_the_taint_that_it_is() -> None:
    """By its key, or by whoever tolerates everything."""
    node = node_of(unschedulable=True)
    assert refused(node) == "cordoned"
    assert refused(node, tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]) == ""


def world_with_claim(**claim: Any) -> World:
    """Two nodes in zones a and b, and a gang of one pod that mounts the claim `data`."""
    world = World().nodes(1, labels={"zone": "a"})
    world.node("node-1", labels={"zone": "b"})
    if claim:
        meta = {"name": "data", "namespace": "ns", "annotations": claim.pop("annotations", {}), **claim.pop("meta", {})}
        one = {"metadata": meta, "spec": claim.pop("spec", {}), "status": claim.pop("status", {})}
        world.state.on_claim(None, msgspec.convert(one, PersistentVolumeClaim))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    world.gang("a", {"worker": (1, GPU1)}, spec={"volumes": volumes})
    return world


BOUND = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}, "spec": {"volumeName": "pv-1"}}


def volume(zone: str | None, **labels: str) -> PersistentVolume:
    """The volume pv-1, reachable from one zone."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}
    spec = {"nodeAffinity": {"required": terms}} if zone else {}
    return msgspec.convert({"metadata": {"name": "pv-1", "labels": labels}, "spec": spec}, PersistentVolume)


def test_a_pod_goes_where_its_bound_volume_can_be_reached_and_follows_it() -> None:
    """The plan is made again when the volume says something else."""
    world = world_with_claim(**BOUND)
    assert "2 volume pv-1 of claim ns/data does not exist" in waiting(world.plan())["a"][1]
    world.state.on_volume(None, volume("b"))
    assert world.causes_of("ns/a", 2) == ["volume pv-1 is elsewhere", "fits"]
    world.state.on_volume(None, volume("a"))
    assert where(world.plan()) == {"a": ["node-0"]}


BETA, TODAY = "failure-domain.beta.kubernetes.io/", "topology.kubernetes.io/"


@pytest.mark.parametrize(("of_volume", "of_node", "same"), [
    ({f"{BETA}zone": "x__y"}, {f"{TODAY}zone": "y"}, True),
    ({f"{BETA}zone": "x__y"}, {f"{TODAY}zone": "z"}, False),
    ({f"{BETA}zone": "x__y"}, {f"{BETA}zone": "x", f"{TODAY}zone": "z"}, True),
    ({f"{TODAY}zone": "x"}, {f"{TODAY}zone": "x"}, True),
    ({f"{TODAY}zone": "x"}, {f"{TODAY}region": "x"}, False),
    ({f"{TODAY}zone": "x"}, {f"{BETA}zone": "x"}, False),
    ({f"{TODAY}zone": "x"}, {"zone": "y"}, True),
    ({f"{TODAY}zone": "x", f"{TODAY}region": "r"}, {f"{TODAY}zone": "x", f"{TODAY}region": "s"}, False),
    ({f"{BETA}region": "r"}, {f"{TODAY}region": "r"}, True),
    ({"place": "x"}, {f"{TODAY}zone": "y"}, True),
])  # fmt: skip
def test_the_zone_labels_of_a_volume_count_on_nodes_that_have_some(
    of_volume: dict[str, str], of_node: dict[str, str], *, same: bool
) -> None:
    """The old name on a volume means the new one on a node; several zones are written with __ between them."""
    world = world_with_claim(**BOUND)
    world.state.on_volume(None, volume(None, **of_volume))
    world.node("node-0", labels=of_node)
    world.node("node-1", labels={f"{TODAY}zone": "else", f"{TODAY}region": "where"}, unschedulable=True)
    session = world.plan()
    assert bool(where(session)) == same
    assert same or "1 volume pv-1 is in another zone" in waiting(session)["a"][1]


@pytest.mark.parametrize(("claim", "cause"), [
    ({}, "claim ns/data does not exist"),
    ({"status": {"phase": "Lost"}}, "claim ns/data has lost its volume"),
    ({"spec": {"volumeName": "pv-1"}}, "claim ns/data is not bound yet"),
    ({"spec": {"accessModes": []}}, "claim ns/data has neither a volume nor a storage class"),
    ({"spec": {"storageClassName": "now"}}, "claim ns/data is not bound yet"),
    ({"spec": {"storageClassName": "none"}}, "storage class none of claim ns/data does not exist"),
    ({"spec": {"storageClassName": "later"}}, ""),
    ({"meta": {"deletionTimestamp": "2027-01-15T08:00:00Z"}}, "claim ns/data is being deleted"),
    ({"annotations": {SELECTED_NODE: "node-9"}, "spec": {"storageClassName": "later"}},
     "the volume of claim ns/data is being provisioned elsewhere"),
    ({"annotations": {SELECTED_NODE: "node-1"}, "spec": {"storageClassName": "later"}}, ""),
])  # fmt: skip
def test_a_claim_that_is_not_bound(claim: dict[str, Any], cause: str) -> None:
    """Only a class that waits for the first consumer lets the pod go first."""
    world = world_with_claim(**claim)
    for name, mode in (("now", "Immediate"), ("later", "WaitForFirstConsumer")):
        one = {"metadata": {"name": name}, "volumeBindingMode": mode}
        world.state.on_storage_class(None, msgspec.convert(one, StorageClass))
    session = world.plan()
    assert bool(where(session)) != bool(cause)
    assert f"2 {cause}" in waiting(session).get("a", ("", "2 "))[1]
