"""An update is refused for what it makes wrong, and for nothing that was wrong before."""

import copy
from itertools import permutations
from typing import Any

import pytest
from webhook_world import FRAMEWORK, JSON, lookups, request, task, vcjob
from workload_kinds import KINDS, Change, annotated, ask, env, labelled, template

from webhook.validate.volcano_job import job as volcano_job

MISTAKES: dict[str, tuple[Change, str]] = {
    "a reserved variable": (env("PET_NNODES"), "spec.containers[0].env[0].name"),
    "a minimum above all pods": (annotated("min-member", "9"), "metadata.annotations[muster.dev/min-member]"),
    "no processes": (annotated("nproc-per-node", "0"), "metadata.annotations[muster.dev/nproc-per-node]"),
    "no such queue": (labelled("queue", "none"), "metadata.labels[muster.dev/queue]"),
}
# The same field, wrong before and wrong otherwise now.
OTHERWISE: dict[str, tuple[Change, Change]] = {
    "another reserved variable": (env("PET_NNODES"), env("PET_NODE_RANK")),
    "another minimum": (annotated("min-member", "9"), annotated("min-member", "10")),
    "another number of processes": (annotated("nproc-per-node", "0"), annotated("nproc-per-node", "-1")),
    "another queue": (labelled("queue", "none"), labelled("queue", "other")),
}


def made(kind: str, *changes: Change) -> JSON:
    """A workload whose template has been changed."""
    make, _ = KINDS[kind]
    pods = template()
    for change in changes:
        change(pods)
    document = make(pods)
    document["metadata"]["labels"] = {}
    return document


def paths(new: JSON, old: JSON, place: str) -> list[str]:
    """The paths of all errors, within the template."""
    return [error.path.removeprefix(f"{place}.") for error in ask(new, old).errors]


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_mistake_neither_refuses_nor_hides(kind: str) -> None:
    """Whichever two mistakes: the one that was there passes, and the one that comes is refused, alone."""
    place = KINDS[kind][1]
    for before, more in permutations(MISTAKES, 2):
        (was, _), (comes, path) = MISTAKES[before], MISTAKES[more]
        old = made(kind, was)
        assert paths(made(kind, was, comes), old, place) == [path], (before, more)
        labelled_now = copy.deepcopy(old)
        labelled_now["metadata"]["labels"] = {"mine": "1"}
        assert paths(labelled_now, old, place) == [], before
        assert paths(made(kind), made(kind, was, comes), place) == [], before
        assert paths(made(kind, comes), old, place) == [path], (before, more)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", OTHERWISE)
def test_another_mistake_in_the_same_field_is_new(kind: str, what: str) -> None:
    """By what is wrong, not by where."""
    was, is_now = OTHERWISE[what]
    old, place = made(kind, was), KINDS[kind][1]
    assert paths(old, old, place) == []
    assert len(paths(made(kind, is_now), old, place)) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_more_of_the_same_is_new(kind: str) -> None:
    """At its own place."""
    old = made(kind, env("PET_NNODES", "B"))
    assert paths(made(kind, env("PET_NNODES", "PET_MASTER_ADDR")), old, KINDS[kind][1]) == [
        "spec.containers[0].env[1].name"
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_warnings_are_told_when_they_are_new(kind: str) -> None:
    """A key that nobody knows is warned of once."""
    old = made(kind, annotated("nproc-per-nod", "2"))
    assert list(ask(old, old).warnings) == []
    (warning,) = ask(made(kind, annotated("nproc-per-nod", "2"), annotated("min-membr", "2")), old).warnings
    assert "min-membr" in warning


# A Volcano Job: what cannot change may be wrong since before this version, or while the webhook was away.

RESTART = {"event": "PodFailed", "action": "RestartJob"}
TWICE = {"policies": [RESTART, {"event": "PodFailed", "action": "AbortJob"}]}
UNEQUAL = {"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 3}}
OLD: dict[str, JSON] = {
    "two policies for one event": vcjob(task(replicas=4, **TWICE), minAvailable=2),
    "a minimum of partitions above all": vcjob(task(replicas=4, **UNEQUAL), task("other", 2), minAvailable=2),
    "a name that is no label": vcjob(task(replicas=4), name="Train.1", minAvailable=2),
    "two tasks of one name": vcjob(task(replicas=4), task(replicas=4), minAvailable=2),
}


def job_paths(new: JSON, old: JSON) -> list[str]:
    """The paths of all errors of an update of a Volcano Job."""
    return [error.path for error in volcano_job.reviewer(lookups(), FRAMEWORK)(request(new, "UPDATE", old)).errors]


def with_spec(document: JSON, **spec: Any) -> JSON:
    """The Job with other fields in its spec."""
    return {**copy.deepcopy(document), "spec": {**copy.deepcopy(document["spec"]), **spec}}


@pytest.mark.parametrize("what", OLD)
def test_a_volcano_job_with_an_old_mistake_is_scaled(what: str) -> None:
    """Its minimum changes, which is all that may; one that cannot be reached is refused, alone."""
    old = OLD[what]
    assert job_paths(with_spec(old, minAvailable=3), old) == []
    assert job_paths(with_spec(old, minAvailable=90), old) == ["spec.minAvailable"]


def test_a_volcano_job_whose_counts_were_wrong() -> None:
    """They may become right one by one, and none may become wrong, or wrong otherwise."""
    wrong = vcjob(task("a", 2, minAvailable=5), task("b", 2), minAvailable=2)
    better = copy.deepcopy(wrong)
    better["spec"]["tasks"][1]["replicas"] = 3
    assert job_paths(better, wrong) == []
    worse = copy.deepcopy(wrong)
    worse["spec"]["tasks"][1]["minAvailable"] = 7
    assert job_paths(worse, wrong) == ["spec.tasks[1].minAvailable"]
    otherwise = copy.deepcopy(wrong)
    otherwise["spec"]["tasks"][0]["minAvailable"] = 6
    assert job_paths(otherwise, wrong) == ["spec.tasks[0].minAvailable"]


CHANGES: dict[str, tuple[JSON, JSON, list[str]]] = {
    "replicas and minimums": (vcjob(), vcjob(task(replicas=5, minAvailable=3), minAvailable=3,
        priorityClassName="high"), []),
    "minimum over replicas": (vcjob(), vcjob(task(replicas=1, minAvailable=2)), ["spec.tasks[0].minAvailable"]),
    "minimum over all": (vcjob(), vcjob(minAvailable=7), ["spec.minAvailable"]),
    "another task": (vcjob(), vcjob(task(), task("b")), ["spec.tasks"]),
    "image": (vcjob(), vcjob(task(template={"spec": {"containers": [{"name": "main", "image": "new"}]}})),
        ["spec.tasks[0].template.spec.containers[0].image"]),
    "another container": (vcjob(), vcjob(task(template={"spec": {"containers": [{"name": "main"}, {"name": "side"}]}})),
        ["spec.tasks[0].template.spec.containers"]),
    "label": (vcjob(task(template={"metadata": {"labels": {"muster.dev/framework": "torch"}}})),
        vcjob(task(template={"metadata": {"labels": {"muster.dev/framework": "jax"}}})),
        ["spec.tasks[0].template.metadata.labels[muster.dev/framework]"]),
    "queue and plugins": (vcjob(plugins={"svc": []}), vcjob(queue="fresh", plugins={"env": [], "svc": ["--x"]}),
        ["spec.plugins[env]", "spec.plugins[svc]", "spec.queue"]),
    "the same in other words": (vcjob(task(maxRetry=3), policies=[{**RESTART, "timeout": "1h"}]),
        vcjob(task(maxRetry=3, topologyPolicy=""), policies=[{**RESTART, "timeout": "1h0m0s"}]), []),
    "claim name where one was made up": (vcjob(volumes=[{"mountPath": "/a", "volumeClaim": {}}]),
        vcjob(volumes=[{"mountPath": "/a", "volumeClaim": {}, "volumeClaimName": "train-pvc-1"}]),
        ["spec.volumes[0].volumeClaimName"]),
    "claim name changed": (vcjob(volumes=[{"mountPath": "/a", "volumeClaimName": "x"}]),
        vcjob(volumes=[{"mountPath": "/a", "volumeClaimName": "y"}]), ["spec.volumes[0].volumeClaimName"]),
    "invalid before, only metadata changes": (vcjob(minAvailable=9), vcjob(minAvailable=9), []),
    "scaled beyond the longest name": (vcjob(name="x" * 52), vcjob(task(replicas=1001), name="x" * 52),
        ["spec.tasks[0].name"]),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "paths"), CHANGES.values(), ids=CHANGES.keys())
def test_updates(old: JSON, new: JSON, paths: list[str]) -> None:
    """Counts and priority may change, nothing else; each refused field is named."""
    assert job_paths(new, old) == paths


def test_a_job_that_goes_away_is_not_checked() -> None:
    """Nothing stands in the way of a deletion."""
    new = vcjob(queue="other")
    new["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert job_paths(new, vcjob()) == []
