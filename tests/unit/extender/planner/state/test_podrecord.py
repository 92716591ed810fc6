"""Records of pods: what a pod says of itself is in its record."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import asdict

from extender.planner.state.devicetable import ClaimRef
from extender.planner.state.podclass import ClassTable
from extender.planner.state.pods import record_of
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import Slot
from muster.resources.runtime import Runtime
from muster.workloads.charges import marked

JSON = dict[str, Any]


def unschedulable(message: str, status: str = "False") -> JSON:
    """The status of a pod about which this is said."""
    return {"conditions": [{"type": "PodScheduled", "status": status, "reason": "Unschedulable", "message": message}]}


SAID: Mapping[str, tuple[JSON, JSON]] = {
    "a gang, in its namespace": ({"metadata": {"labels": {names.GANG: "train"}}}, {"gang": "ns/train"}),
    "a slot, of a task and an index": (
        {"metadata": {"annotations": {names.TASK_SPEC: "worker", names.TASK_INDEX: "3"}}}, {"slot": Slot("worker", 3)}
    ),
    "a pin": ({"metadata": {"annotations": {names.NODE: "n1", names.EPOCH: "2"}}},
              {"pin": "n1", "epoch": 2, "pinned": True}),
    "a runtime": ({"metadata": {"annotations": {names.EXPECTED_RUNTIME: "90m"}}},
                  {"runtime": Runtime(declared_s=5400.0)}),
    "a deadline": ({"spec": {"activeDeadlineSeconds": 600}}, {"runtime": Runtime(deadline_s=600.0)}),
    "our gate": ({"spec": {"schedulingGates": [{"name": names.GATE}]}}, {"gated": True}),
    "others' gate": ({"spec": {"schedulingGates": [{"name": "example.com/wait"}]}},
                     {"other_gates": ("example.com/wait",)}),
    "being deleted": ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z"}},
                      {"terminating": True, "gone_by": "2026-01-01T00:00:30Z", "waiting": False}),
    "being deleted in its own time": (
        {"metadata": {"deletionTimestamp": "2026-01-01T00:01:00Z", "deletionGracePeriodSeconds": 60},
         "spec": {"terminationGracePeriodSeconds": 90}},
        {"terminating": True, "gone_by": "2026-01-01T00:01:00Z", "waiting": False, "grace_s": 60.0},
    ),
    "a grace period": ({"spec": {"terminationGracePeriodSeconds": 90}}, {"grace_s": 90.0}),
    "a claim": ({"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}},
                {"claims": (ClaimRef("ns/mine", alone=True),)}),
    "a claim that was made": (
        {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "made", "requestMappings": []}}},
        {"extended_claim": "ns/made"},
    ),
    "refused": ({"status": unschedulable("0/3 nodes are available")}, {"refused": True}),
    "asks for nodes": ({"status": unschedulable(names.MESSAGE_PREFIX + "no room")}, {"asks": True, "says": "no room"}),
    "out of date": ({"status": unschedulable(names.MESSAGE_PREFIX + "no room", "Unknown")}, {"says": "no room"}),
    "a part of a GPU": (
        {"metadata": {"annotations": {names.GPU_FRACTION: "0.5", names.GPU_DEVICES_CHOSEN: "1"}},
         "spec": {"schedulerName": names.SCHEDULER}},
        {"devices": (1,), "scheduler_name": names.SCHEDULER, "ours": True},
    ),
    "a queue": ({"metadata": {"labels": {names.QUEUE_NAME: "q"}}}, {"queue": "q"}),
    "no victim": ({"metadata": {"annotations": {names.PREEMPTABLE: "false"}}}, {"preemptable": False}),
    "told to autoscalers": (
        {"metadata": {"annotations": dict.fromkeys((names.PODS_SAFE_TO_EVICT, names.SAFE_TO_EVICT), "true")}},
        {"evictable": "true", "evictable_by_us": True},
    ),
    "of the system": ({"spec": {"priorityClassName": "system-node-critical"}},
                      {"system": True, "priority_class": "system-node-critical"}),
    "priority": ({"spec": {"priority": 7}}, {"priority": 7}),
    "never preempts": ({"spec": {"preemptionPolicy": "Never"}}, {"preempts": False}),
    "bound": (
        {"spec": {"nodeName": "n2"},
         "status": {"phase": "Running", "startTime": "2026-01-01T00:00:05Z", "conditions": [
             {"type": "Ready", "status": "False", "message": "starting"},
             {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:04Z"}]}},
        {
            "node": "n2", "phase": "Running", "since": 1_767_225_605.0, "bound_at": 1_767_225_604.0,
            "waiting": False, "taken": True, "alive": True, "uses_node": True,
        },
    ),
    "others' words": ({"metadata": {"annotations": {"example.com/note": "x"}, "labels": {"app": "web"}}}, {}),
}  # fmt: skip
"""What a pod says → the fields of its record that are then other than those of a pod that says nothing."""


def merged(parts: list[JSON]) -> Pod:
    """A pod with all of this; where two parts say the same thing the later one counts."""
    metadata = {"namespace": "ns", "name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    pod: dict[str, Any] = {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
    for part in parts:
        for section, fields in part.items():
            for name, value in fields.items():
                both = isinstance(value, dict) and isinstance(pod[section].get(name), dict)
                pod[section][name] = {**pod[section][name], **value} if both else value
    return convert(pod, Pod)


def fields_of(pod: Pod) -> JSON:
    """The record of a pod, field by field, without its class and labels."""
    record = asdict(record_of(pod, ClassTable().of_pod(pod), ""))
    return {name: value for name, value in record.items() if name not in {"cls", "labels"}}


@pytest.mark.parametrize("what", SAID)
def test_what_a_pod_says_is_in_its_record(what: str) -> None:
    """That, and nothing else; its class and its labels are the pod's own."""
    said, expected = SAID[what]
    bare, record = fields_of(merged([])), fields_of(merged([said]))
    assert {name: value for name, value in record.items() if value != bare[name]} == expected


@pytest.mark.parametrize(("containers", "expected"), [
    ([{}], False),
    ([{"limits": {names.MEMBER_MARKER: "1"}}], False),
    ([{"limits": {names.MEMBER_MARKER: "1", names.BINDING_MARKER: "1"}}], True),
    ([{"limits": {names.MEMBER_MARKER: "1"}}, {"requests": {names.BINDING_MARKER: "1"}}], True),
])  # fmt: skip
def test_both_markers(containers: list[JSON], expected: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """Wherever in the pod they are."""
    spec = {"containers": [{"name": f"c{at}", "resources": each} for at, each in enumerate(containers)]}
    pod = merged([{"spec": spec | {"schedulerName": "theirs"}}])
    assert marked(pod.spec) is expected
    assert record_of(pod, ClassTable().of_pod(pod), "").ours is expected, "it asks the default pool"
    assert not record_of(pod, ClassTable().of_pod(pod), "", "pool").ours
