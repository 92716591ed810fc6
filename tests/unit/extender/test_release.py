"""A pod gets its node and loses Muster's gate in one write, and what others read of its placement."""

from dataclasses import replace
from typing import Any

import pytest
from extender_world import World
from guarded_extender import process_of
from msgspec import to_builtins

from extender.planner.framework import decisions
from muster.api import names
from muster.api.kubernetes.autoscaling import ProvisioningRequest, ProvisioningRequestSpec, ProvisioningRequestStatus
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ReportedCondition
from muster.api.muster.gang import DEFAULT_POD_SET

CPU1 = {"cpu": 1}
PIN = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


def released(pod_set: str = "worker", request: ProvisioningRequest | None = None, **pod: Any) -> Pod:
    """A pod of rank 2 after its gate was lifted for node-1 by placement 3."""
    world = World().nodes(2)
    key = world.gang("a", {pod_set: (3, CPU1)})
    world.pod(key, pod_set, 2, CPU1, **pod)
    gang, session = world.view(key), world.session()
    [record] = gang.pods
    if request is not None:
        session.inputs = replace(session.inputs, provisioning={gang.uid: request})
    session.decisions = [decisions.Release(gang, record, "node-1", 3)]
    with process_of(world) as process:
        process.carry_out(session)
    found: Pod = process.api.find(PODS, record.name, "ns")
    assert world.state.pods[record.uid].pin == ("node-1" if record.gated else record.pin)
    return found


def test_a_gated_pod_is_pinned_and_loses_the_gate_of_muster_alone() -> None:
    """Somebody else's gate stays; the pin goes with its epoch."""
    pod = released(gated=True, other_gates=("theirs",))
    assert [gate.name for gate in pod.spec.scheduling_gates] == ["theirs"]
    affinity = to_builtins(pod.spec.affinity)["nodeAffinity"]
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [PIN]
    assert (pod.metadata.annotations[names.NODE], pod.metadata.annotations[names.EPOCH]) == ("node-1", "3")
    assert names.MEMBER_INDEX not in pod.metadata.annotations, "its owner has given it an index"


def test_a_pod_that_was_born_pinned_only_gets_a_newer_epoch() -> None:
    """Its node is the same: no other may be written into it."""
    pod = released(pin="node-1", epoch=2)
    assert (pod.metadata.annotations[names.EPOCH], pod.metadata.annotations[names.NODE]) == ("3", "node-1")


def test_a_member_of_no_pod_set_gets_its_rank() -> None:
    """Nobody else says it."""
    assert released(DEFAULT_POD_SET, gated=True).metadata.annotations[names.MEMBER_INDEX] == "2"


@pytest.mark.parametrize("asked", [False, True])
def test_a_pod_says_which_request_for_nodes_it_uses(*, asked: bool) -> None:
    """Autoscalers keep the nodes for it."""
    spec = ProvisioningRequestSpec(provisioning_class_name="best-effort", pod_sets=[])
    done = ProvisioningRequestStatus(conditions=[ReportedCondition(type="Provisioned", status="True")])
    request = ProvisioningRequest(metadata=World().meta("r-1"), spec=spec, status=done) if asked else None
    annotations = released(request=request, gated=True).metadata.annotations
    said = {"r-1", "best-effort"} if asked else set()
    assert {annotations.get(key) for key in (names.CONSUMED_REQUEST, names.CONSUMED_CLASS)} - {None} == said
