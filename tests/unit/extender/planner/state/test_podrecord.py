"""Records of pods: those of plain pods are made the short way, and are what the whole way makes of them."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from msgspec.structs import asdict, replace

from extender.planner.state.podclass import ClassTable
from extender.planner.state.podrecord import PodRecord, is_plain, record_of, rest_of_record
from extender.planner.state.podshape import marked
from muster.api import names
from muster.api.kubernetes.core import Pod

JSON = dict[str, Any]


def unschedulable(message: str, status: str = "False") -> JSON:
    """The status of a pod about which this is said."""
    return {"conditions": [{"type": "PodScheduled", "status": status, "reason": "Unschedulable", "message": message}]}


UNUSUAL: Mapping[str, JSON] = {
    "a gang": {"metadata": {"labels": {names.GANG: "train"}}},
    "a seat": {"metadata": {"annotations": {names.TASK_SPEC: "worker", names.TASK_INDEX: "3"}}},
    "a pin": {"metadata": {"annotations": {names.NODE: "n1", names.EPOCH: "2"}}},
    "a runtime": {"metadata": {"annotations": {names.EXPECTED_RUNTIME: "90m"}}},
    "a deadline": {"spec": {"activeDeadlineSeconds": 600}},
    "our gate": {"spec": {"schedulingGates": [{"name": names.GATE}]}},
    "others' gate": {"spec": {"schedulingGates": [{"name": "example.com/wait"}]}},
    "being deleted": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z"}},
    "a claim": {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]}},
    "a claim that was made": {
        "status": {"extendedResourceClaimStatus": {"resourceClaimName": "made", "requestMappings": []}}
    },
    "refused": {"status": unschedulable("0/3 nodes are available")},
    "asks for nodes": {"status": unschedulable(names.SAYS + "no room")},
    "our words, out of date": {"status": unschedulable(names.SAYS + "no room", status="Unknown")},
    "a part of a GPU": {
        "metadata": {"annotations": {names.GPU_FRACTION: "0.5", names.GPU_DEVICES_CHOSEN: "1"}},
        "spec": {"schedulerName": names.SCHEDULER},
    },
}
"""What brings a record more than the fields that every record needs."""
USUAL: Mapping[str, JSON] = {
    "bound": {
        "spec": {"nodeName": "n2"},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:05Z",
            "conditions": [
                {"type": "Ready", "status": "False", "message": "starting"},
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:04Z"},
            ],
        },
    },
    "of the system": {"spec": {"priorityClassName": "system-node-critical"}},
    "others' words": {"metadata": {"annotations": {"example.com/note": "x"}, "labels": {"app": "web"}}},
}


def merged(parts: list[JSON]) -> Pod:
    """A pod with all of this; where two parts say the same thing the later one counts."""
    pod: dict[str, Any] = {
        "metadata": {"namespace": "ns", "name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": "Pending"},
    }
    for part in parts:
        for section, fields in part.items():
            for name, value in fields.items():
                both = isinstance(value, dict) and isinstance(pod[section].get(name), dict)
                pod[section][name] = {**pod[section][name], **value} if both else value
    return convert(pod, Pod)


def both_ways(pod: Pod) -> tuple[PodRecord, PodRecord, bool]:
    """The record of a pod, the same with all fields asked for, and whether the pod is plain."""
    cls = ClassTable().of_pod(pod)
    record = record_of(pod, cls, "")
    scheduled = pod.status.condition("PodScheduled")
    return record, replace(record, **rest_of_record(pod, cls, scheduled)), is_plain(pod, cls, scheduled)


@given(st.lists(st.sampled_from([*UNUSUAL.values(), *USUAL.values()]), max_size=6))
def test_the_short_way_leaves_nothing_out(parts: list[JSON]) -> None:
    """Whatever a pod has."""
    record, whole, _ = both_ways(merged(parts))
    assert asdict(record) == asdict(whole)


@pytest.mark.parametrize("what", UNUSUAL)
def test_each_of_these_is_asked_for(what: str) -> None:
    """A record without it would not tell."""
    record, whole, plain = both_ways(merged([UNUSUAL[what]]))
    bare, _, _ = both_ways(merged([]))
    assert not plain
    assert asdict(record) == asdict(whole)
    told = {name for name, value in asdict(record).items() if value != asdict(bare)[name]}
    assert told - {"cls", "labels", "scheduler_name", "ours", "created"}


@pytest.mark.parametrize("what", USUAL)
def test_plain_pods(what: str) -> None:
    """Most pods of a cluster are made the short way."""
    _, _, plain = both_ways(merged([USUAL[what]]))
    assert plain


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], False),
        ([{"limits": {names.MEMBER_MARKER: "1"}}], False),
        ([{"limits": {names.MEMBER_MARKER: "1", names.BINDING_MARKER: "1"}}], True),
        ([{"limits": {names.MEMBER_MARKER: "1"}}, {"requests": {names.BINDING_MARKER: "1"}}], True),
    ],
)
def test_both_markers(containers: list[JSON], expected: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """Wherever in the pod they are."""
    spec = {"containers": [{"name": f"c{at}", "resources": each} for at, each in enumerate(containers)]}
    assert marked(merged([{"spec": spec}]).spec) is expected
