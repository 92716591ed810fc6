"""What a workload wants of autoscalers, and for faults of nodes, reaches its PodGroup, where the planner reads it."""

import pytest

from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.names import (
    FAULT_KEYS,
    FRAMEWORK,
    INDEPENDENT,
    MIN_MEMBER,
    ON_NODE_FAULT,
    SCALE_UP,
    SCALE_UP_CLASS,
    VOLCANO_GROUP_MIN_MEMBER,
)
from muster.workloads.podgroup import pod_group


@pytest.mark.parametrize(("owner", "pod", "expected"), [
    ({}, {}, {}),
    ({"annotations": {SCALE_UP: "condition", SCALE_UP_CLASS: "c"}}, {}, {SCALE_UP: "condition", SCALE_UP_CLASS: "c"}),
    ({"annotations": dict.fromkeys(FAULT_KEYS, "1m")}, {"annotations": {ON_NODE_FAULT: "restart"}},
        {**dict.fromkeys(FAULT_KEYS, "1m"), ON_NODE_FAULT: "restart"}),
    ({"labels": {SCALE_UP: "condition"}}, {}, {SCALE_UP: "condition"}),
    ({"annotations": {SCALE_UP: "condition"}}, {"labels": {SCALE_UP: "none"}}, {SCALE_UP: "none"}),
])  # fmt: skip
def test_labels_and_annotations_become_annotations_of_the_group(
    owner: dict[str, dict[str, str]], pod: dict[str, dict[str, str]], expected: dict[str, str]
) -> None:
    """What the pod says wins, as with its other parameters."""
    made = pod_group(Pod(metadata=ObjectMeta(name="p", **pod)), Object(metadata=ObjectMeta(name="o", uid="u", **owner)))
    assert made.metadata.annotations == {INDEPENDENT: "true", **expected}


@pytest.mark.parametrize("what", ["a minimum", "a framework", "a minimum of one pod"])
def test_pods_that_something_ties_together_are_not_independent(what: str) -> None:
    """Whether their owner says so or they do."""
    said = {
        "a minimum": {"annotations": {MIN_MEMBER: "2"}},
        "a framework": {"labels": {FRAMEWORK: "torch"}},
        "a minimum of one pod": {"annotations": {VOLCANO_GROUP_MIN_MEMBER: "1"}},
    }[what]
    owner, pod = Object(metadata=ObjectMeta(name="o", uid="u", **said)), Pod(metadata=ObjectMeta(name="p"))
    assert INDEPENDENT not in pod_group(pod, owner).metadata.annotations
    assert INDEPENDENT not in pod_group(Pod(metadata=ObjectMeta(name="p", **said)), None).metadata.annotations
