"""Admission and node pools: schedulers and labels follow from the queue, and who contradicts it is told both."""

from typing import Any

import pytest
from webhook_world import FRAMEWORK, JSON, NamespaceWorld, QueueTree, apply, job_defaults, lookups, request, task, vcjob

from muster.api.names import NODE_POOL
from webhook.mutate import pod
from webhook.mutate import queues as mutate_queues
from webhook.validate import podgroup, queue
from webhook.validate.volcano_job.job import reviewer as validate_job


def a_queue(name: str, parent: str = "", pool: str | None = None, **status: Any) -> JSON:
    """A queue; `pool` is its label."""
    labels = {} if pool is None else {NODE_POOL: pool}
    metadata = {"name": name, "labels": labels}
    return {"metadata": metadata, "spec": {"parent": parent}, "status": {"state": "Open", **status}}


def queues_of(*queues: JSON) -> QueueTree:
    """These queues, below those that always exist."""
    return QueueTree(a_queue("root"), a_queue("default"), *queues)


QUEUES = queues_of(a_queue("team-b", pool="b"), a_queue("b1", "team-b"), a_queue("team-c", pool="c"), a_queue("plain"))


@pytest.mark.parametrize(
    ("asked", "queue_name", "expected"),
    [
        ("", "b1", "muster-b"), ("muster", "b1", "muster-b"), ("volcano", "b1", "muster-b"),
        ("muster-b", "b1", "muster-b"), ("", "plain", "volcano"), ("muster", "default", "muster"),
        ("mine", "b1", "mine"),
    ],
)  # fmt: skip
def test_a_job_gets_the_scheduler_of_its_queue(asked: str, queue_name: str, expected: str) -> None:
    """Whoever names none, or one of the default pool, gets the right one; a foreign one stays."""
    given = vcjob(task(replicas=1), queue=queue_name, schedulerName=asked)
    verdict = job_defaults(queues=QUEUES)(request(given))
    done = apply(given, verdict.patch)
    assert done["spec"]["schedulerName"] == expected
    reasons = {each["path"]: why.reason for each, why in zip(verdict.patch, verdict.reasons, strict=True)}
    by_pool = "this scheduler uses the nodes of the pool" if expected.startswith("muster-") else "left out"
    assert reasons.get("/spec/schedulerName", by_pool) == by_pool
    assert not job_defaults(queues=QUEUES)(request(done)).patch


def test_a_job_gets_the_scheduler_of_the_queue_of_its_namespace() -> None:
    """It names none itself."""
    given = vcjob(task(replicas=1))
    verdict = job_defaults(NamespaceWorld(), queues_of(a_queue("a", pool="b")))(request(given))
    spec = apply(given, verdict.patch)["spec"]
    assert (spec["queue"], spec["schedulerName"]) == ("a", "muster-b")


@pytest.mark.parametrize("again", ["", "muster", "volcano"])
def test_a_job_is_applied_again(again: str) -> None:
    """Its manifest does not name the scheduler of the pool, and the Job keeps it."""
    given = vcjob(task(replicas=1), queue="b1", schedulerName=again)
    made = apply(given, job_defaults(queues=QUEUES)(request(given)).patch)
    sent = {**given, "metadata": {**given["metadata"], "labels": {"new": "label"}}}
    assert apply(sent, job_defaults(queues=QUEUES)(request(sent, "UPDATE", made)).patch)["spec"] == made["spec"]


def test_a_job_of_another_pool_is_refused() -> None:
    """The message has both pools, for the Job and for a template."""
    given = vcjob(task(replicas=1, template={"spec": {"schedulerName": "muster-c", "containers": []}}), queue="b1")
    given["spec"]["schedulerName"] = "muster-c"
    messages = {error.path: error.message for error in validate_job(lookups(QUEUES), FRAMEWORK)(request(given)).errors}
    for path in ("spec.schedulerName", "spec.tasks[0].template.spec.schedulerName"):
        assert "node pool 'c'" in messages[path]
        assert "queue 'b1' belongs to node pool 'b'" in messages[path]
        assert "'muster-b'" in messages[path]


def a_pod(queue_name: str, **spec: Any) -> JSON:
    """A pod in a queue."""
    metadata = {"name": "p", "labels": {"muster.dev/queue": queue_name}}
    containers = [{"name": "main", "image": "none"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


@pytest.mark.parametrize(
    ("spec", "queue_name", "expected"),
    [
        ({}, "b1", "muster-b"), ({"schedulerName": "muster"}, "b1", "muster-b"),
        ({"schedulerName": "volcano"}, "b1", "muster-b"), ({}, "plain", "muster"),
        ({"schedulerName": "volcano"}, "plain", "volcano"),
    ],
)  # fmt: skip
def test_a_pod_gets_the_scheduler_of_its_queue(spec: JSON, queue_name: str, expected: str) -> None:
    """As a Job does."""
    given = a_pod(queue_name, **spec)
    verdict = pod.reviewer(lookups(QUEUES), FRAMEWORK)(request(given))
    assert apply(given, verdict.patch)["spec"]["schedulerName"] == expected


def test_a_pod_of_another_pool_is_refused() -> None:
    """Also one that names a pool in a queue of the default one."""
    for queue_name, said in (("b1", "node pool 'b'"), ("plain", "the default node pool")):
        verdict = pod.reviewer(lookups(QUEUES), FRAMEWORK)(request(a_pod(queue_name, schedulerName="muster-c")))
        (error,) = verdict.errors
        assert error.path == "spec.schedulerName"
        assert said in error.message
        assert "node pool 'c'" in error.message


def a_group(queue_name: str, pool: str | None = None) -> JSON:
    """A PodGroup."""
    labels = {} if pool is None else {NODE_POOL: pool}
    return {"metadata": {"name": "g", "labels": labels}, "spec": {"minMember": 1, "queue": queue_name}}


def test_a_pod_group_gets_the_label_of_its_queue() -> None:
    """In the default pool there is none."""
    reviewer = mutate_queues.reviewer(lookups(QUEUES))
    assert apply(a_group("b1"), reviewer(request(a_group("b1"))).patch)["metadata"]["labels"] == {NODE_POOL: "b"}
    assert not reviewer(request(a_group("plain"))).patch
    assert not reviewer(request(a_group("b1", "b"))).patch


def test_a_pod_group_stays_in_its_pool() -> None:
    """Neither its label nor its queue can take it to another one."""
    review = podgroup.reviewer(lookups(QUEUES))
    assert not review(request(a_group("b1", "b"))).errors
    assert not review(request(a_group("plain"))).errors
    (error,) = review(request(a_group("b1", "c"))).errors
    assert "'c'" in error.message
    assert "'b'" in error.message
    assert review(request(a_group("plain", "b"))).errors
    assert review(request(a_group("b1"))).errors
    assert review(request(a_group("plain"), "UPDATE", a_group("b1", "b"))).errors
    (error,) = review(request(a_group("plain", "b"), "UPDATE", a_group("b1", "b"))).errors
    assert "the default node pool" in error.message
    assert review(request(a_group("b1", "c"), "UPDATE", a_group("b1", "b"))).errors


WRONG = {
    "on a child": (a_queue("new", "team-b", "c"), "root queue 'team-b' belongs to node pool 'b'"),
    "on a child of the default pool": (a_queue("new", "plain", "b"),
        "root queue 'plain' belongs to the default node pool"),
    "on default": (a_queue("default", pool="b"), "always belongs to the default node pool"),
    "on root": (a_queue("root", pool="b"), "always belongs to the default node pool"),
    "no name": (a_queue("new", pool="B.c"), "lower-case letters"),
    "empty": (a_queue("new", pool=""), "lower-case letters"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_labels_of_queues(name: str) -> None:
    """They are refused when the queue is made, and when they are added."""
    given, said = WRONG[name]
    if given["metadata"]["name"] == "new":
        verdict = queue.reviewer(QUEUES)(request(given))
        assert [error for error in verdict.errors if said in error.message]
    bare = {**given, "metadata": {"name": given["metadata"]["name"]}}
    verdict = queue.reviewer(QUEUES)(request(given, "UPDATE", bare))
    assert [error for error in verdict.errors if said in error.message]


def test_right_labels_of_queues() -> None:
    """On a root queue, and the same again below it."""
    for given in (a_queue("new", pool="b"), a_queue("new", "team-b", "b"), a_queue("new", "root", "c")):
        assert not queue.reviewer(QUEUES)(request(given)).errors


@pytest.mark.parametrize("where", ["team", "one"])
@pytest.mark.parametrize("count", ["pending", "running", "completed"])
def test_a_tree_with_gangs_keeps_its_pool(where: str, count: str) -> None:
    """By the label of its root queue, in whichever queue the gangs are; without gangs it can change."""
    used = {"team": a_queue("team"), "one": a_queue("one", "team")}
    used[where]["status"][count] = 1
    for busy, tree in ((True, used), (False, {"team": a_queue("team"), "one": a_queue("one", "team")})):
        review = queue.reviewer(queues_of(*tree.values()))
        new = {**tree["team"], "metadata": {"name": "team", "labels": {NODE_POOL: "b"}}}
        errors = review(request(new, "UPDATE", tree["team"])).errors
        assert bool(errors) is busy
        if busy:
            assert f"gangs in {where}" in errors[0].message
            assert "from the default node pool to node pool 'b'" in errors[0].message


def test_a_queue_with_gangs_does_not_move_to_another_pool() -> None:
    """By its parent; a move within a pool is nobody's business here."""
    moved = a_queue("one", "team-b", running=1)
    review = queue.reviewer(
        queues_of(a_queue("team-b", pool="b"), a_queue("plain"), a_queue("one", "plain", running=1))
    )
    (error,) = review(request(moved, "UPDATE", a_queue("one", "plain", running=1))).errors
    assert error.path == "spec.parent"
    assert "node pool 'b'" in error.message
    assert not review(request(a_queue("one", "", running=1), "UPDATE", a_queue("one", "plain", running=1))).errors


def test_labels_below_hold_a_change_up() -> None:
    """A child that says the former pool would contradict its root queue."""
    review = queue.reviewer(queues_of(a_queue("team", pool="b"), a_queue("one", "team", "b")))
    (error,) = review(request(a_queue("team", pool="c"), "UPDATE", a_queue("team", pool="b"))).errors
    assert "child queues name another pool: one" in error.message
