"""Queues among other queues, their defaults, and where PodGroups go."""

from typing import Any

import pytest
from webhook_world import JSON, DownWorld, NamespaceWorld, OwnerWorld, QueueTree, apply, request

from webhook.mutate import queues as mutate_queues
from webhook.validate import podgroup, queue

HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def a_queue(name: str, parent: str = "root", annotations: JSON | None = None, **spec: Any) -> JSON:
    """A queue."""
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {"parent": parent, **spec}}


def tree_of(*queues: JSON) -> QueueTree:
    """These queues, below those that always exist."""
    return QueueTree(a_queue("root", ""), a_queue("default"), *queues)


IN_USE = {**a_queue("busy"), "status": {"allocated": {"cpu": "1", "pods": "3"}}}
TREE = tree_of(
    a_queue("team", capability={"cpu": 10, "gpu": 8}, deserved={"cpu": 8}, guarantee={"resource": {"cpu": 4}}),
    a_queue("one", "team", capability={"cpu": 6}, deserved={"cpu": 3}, guarantee={"resource": {"cpu": 2}}),
    a_queue("deep", "one", capability={"gpu": 4}),
    a_queue("named", annotations={HIERARCHY: "root/eng/dev", WEIGHTS: "1/2/3"}),
    IN_USE,
)

WRONG = {
    "over the parent": (
        a_queue("new", "team", capability={"cpu": 11}),
        "spec.capability[cpu]",
        "ancestor's capability: spec.capability[cpu] of queue team (10000m)",
    ),
    "over a grandparent": (
        a_queue("new", "one", capability={"gpu": 9}),
        "spec.capability[gpu]",
        "spec.capability[gpu] of queue team (8)",
    ),
    "under a grandchild": (
        a_queue("one", "team", capability={"gpu": 3}),
        "spec.capability[gpu]",
        "queue deep (4), which is below and exceeds its ancestor's capability",
    ),
    "deserved of siblings": (
        a_queue("new", "team", deserved={"cpu": 6}),
        "spec.deserved[cpu]",
        "sum of children's deserved (cpu=9000m) exceeds parent's deserved limit (cpu=8000m): spec.",
    ),
    "guarantee of siblings": (
        a_queue("new", "team", deserved={"cpu": 3}, guarantee={"resource": {"cpu": 3}}),
        "spec.guarantee.resource[cpu]",
        "sum of children's guarantee (cpu=5000m) exceeds parent's guarantee limit (cpu=4000m)",
    ),
    "deserved of children": (
        a_queue("team", deserved={"cpu": 2}),
        "spec.deserved[cpu]",
        "sum of children's deserved (cpu=3000m) exceeds parent's deserved limit (cpu=2000m)",
    ),
    "parent in use": (a_queue("new", "busy"), "spec.parent", "has pods of its own"),
    "lengths": (
        a_queue("new", annotations={HIERARCHY: "root/a", WEIGHTS: "1"}),
        f"metadata.annotations[{WEIGHTS}]",
        "must have the same length",
    ),
    "weights": (
        a_queue("new", annotations={HIERARCHY: "root/a", WEIGHTS: "1/0"}),
        f"metadata.annotations[{WEIGHTS}]",
        "numbers greater than 0",
    ),
    "sub path": (
        a_queue("new", annotations={HIERARCHY: "root/eng", WEIGHTS: "1/2"}),
        f"metadata.annotations[{HIERARCHY}]",
        "sub path of that of another queue: named has root/eng/dev",
    ),
}


@pytest.mark.parametrize(("obj", "path", "words"), WRONG.values(), ids=WRONG.keys())
def test_queues_that_do_not_fit(obj: JSON, path: str, words: str) -> None:
    """Each is refused at its field, with the other queue's name and amount."""
    errors = queue.reviewer(TREE)(request(obj)).errors
    assert [error.path for error in errors] == [path]
    assert words in str(errors[0])


def test_queues_that_fit() -> None:
    """Amounts up to the limits, resources that no queue above names, and weights with a path of their own."""
    for obj in (
        a_queue("new", "team", deserved={"cpu": 5}, guarantee={"resource": {"cpu": 2}}),
        a_queue("new", "team", deserved={"memory": "1Ti"}, guarantee={"resource": {"memory": "1Gi"}}),
        a_queue("new", annotations={HIERARCHY: "root/eng/ops", WEIGHTS: "1/2/0.5"}),
        a_queue("team", capability={"cpu": 6, "gpu": 4}, deserved={"cpu": 3}, guarantee={"resource": {"cpu": 2}}),
    ):
        assert not queue.reviewer(TREE)(request(obj)).errors


def test_all_mistakes_are_told_at_once() -> None:
    """One of each kind."""
    wrong = a_queue("new", "team", capability={"cpu": 11, "x": "many"}, annotations={HIERARCHY: "root/a", WEIGHTS: "x"})
    paths = [error.path for error in queue.reviewer(TREE)(request(wrong)).errors]
    weights = f"metadata.annotations[{WEIGHTS}]"
    assert paths == ["spec.capability[x]", weights, weights, "spec.capability[cpu]"]


@pytest.mark.parametrize("state", ["Open", "Closed", "Closing", "Unknown"])
def test_a_queue_may_be_edited_in_every_state(state: str) -> None:
    """Also while it is closing; and what is wrong since earlier times does not stand in the way of other changes."""
    old = {**a_queue("new", "team", capability={"cpu": 11}), "status": {"state": state}}
    labelled = {**old, "metadata": {"name": "new", "labels": {"a": "b"}}}
    assert not queue.reviewer(TREE)(request(labelled, "UPDATE", old)).errors
    fixed = {**old, "spec": {"parent": "team", "capability": {"cpu": 10}}}
    assert not queue.reviewer(TREE)(request(fixed, "UPDATE", old)).errors
    worse = {**old, "spec": {"parent": "team", "capability": {"cpu": 12}}}
    assert queue.reviewer(TREE)(request(worse, "UPDATE", old)).errors


def test_a_queue_stays_below_a_parent_in_use() -> None:
    """Only to go there is refused."""
    old, new = a_queue("new", "busy"), a_queue("new", "busy", capability={"cpu": 1})
    assert not queue.reviewer(TREE)(request(new, "UPDATE", old)).errors


def test_what_the_root_has_is_fixed() -> None:
    """Its amounts cannot be changed; other things can."""
    old = a_queue("root", "")
    new = a_queue("root", "", capability={"cpu": 1}, deserved={"cpu": 1}, guarantee={"resource": {"cpu": 1}}, weight=2)
    errors = queue.reviewer(TREE)(request(new, "UPDATE", old)).errors
    assert [error.path for error in errors] == ["spec.capability", "spec.deserved", "spec.guarantee.resource"]
    assert not queue.reviewer(TREE)(request(a_queue("root", "", weight=2), "UPDATE", old)).errors


@pytest.mark.parametrize(
    ("given", "spec", "annotations"),
    [
        ({}, {"weight": 1, "reclaimable": True}, {}),
        ({"spec": {"weight": 0, "reclaimable": False}}, {"weight": 1, "reclaimable": False}, {}),
        (
            {"metadata": {"annotations": {HIERARCHY: "eng/dev", WEIGHTS: "2/3"}}, "spec": {"weight": 7}},
            {"weight": 7, "reclaimable": True},
            {HIERARCHY: "root/eng/dev", WEIGHTS: "1/2/3"},
        ),
        (
            {"metadata": {"annotations": {HIERARCHY: "root/eng", WEIGHTS: "1/2"}}},
            {"weight": 1, "reclaimable": True},
            {HIERARCHY: "root/eng", WEIGHTS: "1/2"},
        ),
    ],
)
def test_defaults(given: JSON, spec: JSON, annotations: JSON) -> None:
    """Weight, reclaimable, and a path that begins at the root; a second time nothing changes."""
    result = apply(given, mutate_queues.review_queue(request(given)).patch)
    assert result["spec"] == spec
    assert result.get("metadata", {}).get("annotations", {}) == annotations
    assert not mutate_queues.review_queue(request(result)).patch


VCJOB = {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": "train", "uid": "u"}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"spec": {}}, "a"),
        ({"spec": {"queue": "default"}}, "a"),
        ({"spec": {"queue": "b"}}, "b"),
        ({"metadata": {"ownerReferences": [{**VCJOB, "apiVersion": "batch/v1", "controller": True}]}, "spec": {}}, "a"),
        ({"metadata": {"ownerReferences": [VCJOB]}, "spec": {"queue": "default"}}, "a"),
        ({"metadata": {"ownerReferences": [{**VCJOB, "controller": True}]}, "spec": {"queue": "default"}}, "default"),
    ],
)
def test_the_namespace_names_the_queue(group: JSON, expected: str) -> None:
    """Of a PodGroup that names none; that of which a Volcano Job is the controller is where its Job is."""
    verdict = mutate_queues.reviewer(NamespaceWorld(), TREE)(request(group))
    assert apply(group, verdict.patch)["spec"]["queue"] == expected


def test_a_namespace_that_cannot_be_read_changes_no_group() -> None:
    """A controller makes most of them, and a gang in the default queue runs."""
    assert mutate_queues.reviewer(DownWorld(), TREE)(request({"spec": {"queue": "default"}})).outcome == "allowed"


def test_amounts_of_a_pod_group() -> None:
    """An amount that the planner could not read is refused at its field."""
    spec = {"queue": "default", "minTaskMember": {"w": -1}, "minResources": {"requests.cpu": "500m", "memory": "much"}}
    errors = podgroup.reviewer(TREE, NamespaceWorld(), OwnerWorld())(
        request({"metadata": {"name": "g"}, "spec": spec})
    ).errors
    assert [error.path for error in errors] == ["spec.minTaskMember[w]", "spec.minResources[memory]"]
