"""What an autoscaler answered is explained, also from a file."""

from explain_world import ExplainWorld
from extender_world import of

from extender.explain.clusterdump import ClusterDump, load, save
from extender.explain.whatif import WhatIf
from extender.planner.framework.decisions import RequestNodes, Unschedulable
from muster.api.kubernetes.autoscaling import (
    PROVISIONING_REQUESTS,
    ProvisioningRequest,
    ProvisioningRequestSpec,
    ProvisioningRequestStatus,
)
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference, ReportedCondition, format_time

GPU = {"nvidia.com/gpu": 8}


def waiting() -> tuple[ExplainWorld, str]:
    """A gang of two nodes, of which there is one, in a queue that asks an autoscaler; the UID of the gang."""
    world = ExplainWorld().nodes(1).queue("auto", **{"scale-up": "provisioning-request"})
    key = world.gang("a", {"worker": (2, GPU)}, queue="auto")
    world.members(key, 2, GPU, gated=True)
    return world, world.state.groups[key].metadata.uid


def refusal(dump: ClusterDump) -> tuple[str, str]:
    """Reason and message of the gang."""
    [waits] = of(WhatIf(dump).cycle(), Unschedulable)
    return waits.reason, waits.message


def test_an_autoscalers_refusal_is_told() -> None:
    """Read from the cluster, and from a file."""
    world, uid = waiting()
    dump = world.dump()
    dump.add_objects(PROVISIONING_REQUESTS, [])
    assert refusal(dump)[0] == "NotEnoughResources"
    [asked] = of(WhatIf(dump).cycle(), RequestNodes)
    owner = OwnerReference(api_version="v1", kind="PodGroup", name="a", uid=uid)
    at = format_time(world.now - 10)
    meta = ObjectMeta(name=asked.name, namespace="ns", uid="r", creation_timestamp=at, owner_references=[owner])
    failed = ReportedCondition(
        type="Failed", status="True", reason="NoQuota", message="no quota left", last_transition_time=at
    )
    spec = ProvisioningRequestSpec(provisioning_class_name=asked.provisioning_class)
    request = ProvisioningRequest(metadata=meta, spec=spec, status=ProvisioningRequestStatus(conditions=[failed]))
    dump.add_objects(PROVISIONING_REQUESTS, [request])
    assert refusal(dump)[0] == "ProvisioningFailed"
    assert "no quota left" in refusal(dump)[1]
    assert refusal(load(save(dump))) == refusal(dump)
