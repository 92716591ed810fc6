"""An update is refused for what it makes wrong, and for nothing that was wrong before."""

import copy
from itertools import permutations
from typing import Any

import pytest
from webhook_world import FRAMEWORK, JSON, DownWorld, OwnerWorld, lookups, request, task, vcjob
from workload_kinds import KINDS, Change, annotated, ask, env, labelled, template

from webhook.validate import edits, podgroup
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


TORCH = vcjob(task(template={"metadata": {"labels": {"muster.dev/framework": "torch"}}}))
TORCH["metadata"]["name"] = "train"


def other(document: JSON, *path: str | int, value: Any) -> JSON:
    """The object with another value at this path."""
    result = node = copy.deepcopy(document)
    for part in path[:-1]:
        node = node.setdefault(part, {}) if isinstance(part, str) else node[part]
    node[path[-1]] = value
    return result


STATEFUL, JOB = made("StatefulSet"), made("Job")
SIZES: dict[str, tuple[JSON, JSON, list[str]]] = {
    "replicas": (STATEFUL, other(STATEFUL, "spec", "replicas", value=5),
        ["muster resize statefulset.apps/train --size 5"]),
    "no replicas": (STATEFUL, other(STATEFUL, "spec", "replicas", value=0), []),
    "replicas from none": (other(STATEFUL, "spec", "replicas", value=0), STATEFUL, []),
    "ranks": (JOB, other(other(JOB, "spec", "parallelism", value=5), "spec", "completions", value=5),
        ["muster resize job.batch/train --size 5"] * 2),
    "ranks of a suspended Job": (JOB, other(other(other(JOB, "spec", "parallelism", value=5), "spec", "completions",
        value=5), "spec", "suspend", value=True), []),
    "groups": (made("LeaderWorkerSet"), other(made("LeaderWorkerSet"), "spec", "replicas", value=5), []),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "ways"), SIZES.values(), ids=SIZES.keys())
def test_the_size_of_a_world_is_fixed_while_it_has_pods(old: JSON, new: JSON, ways: list[str]) -> None:
    """Each rank knows it; the message has the verb that stops them."""
    told = [str(error) for error in ask(new, old).errors]
    assert [way in error for way, error in zip(ways, told, strict=True)] == [True] * len(ways)


@pytest.mark.parametrize(("before", "after", "paths"), [(4, 5, ["spec.replicas"]), (4, 4, []), (0, 5, [])])
def test_a_scale_is_held_to_the_same(before: int, after: int, paths: list[str]) -> None:
    """Of `kubectl scale` and of autoscalers; one of a set that cannot be read, or no world, passes."""
    owner = other(STATEFUL, "metadata", "uid", value="u")
    old, new = ({"metadata": {"name": "train", "uid": "u"}, "spec": {"replicas": each}} for each in (before, after))
    for found, wanted in (
        (OwnerWorld(owner), paths),
        (OwnerWorld(), []),
        (OwnerWorld(other(owner, "spec", "template", value={"spec": {}})), []),
        (DownWorld(), []),
    ):
        verdict = edits.scale_reviewer(lookups(owners=found))(request(new, "UPDATE", old))
        assert [error.path for error in verdict.errors] == wanted


def test_a_volcano_job_of_a_framework_is_resized_while_it_is_held() -> None:
    """By Muster's own controller at any time: an elastic TrainJob needs that."""
    more = other(TORCH, "spec", "tasks", 0, "replicas", value=3)
    assert job_paths(more, TORCH) == ["spec.tasks[0].replicas"]
    beside = other(TORCH, "spec", "tasks", value=[*TORCH["spec"]["tasks"], task("watcher", 1)])
    assert job_paths(other(beside, "spec", "tasks", 1, "replicas", value=2), beside) == []
    [error] = volcano_job.reviewer(lookups(), FRAMEWORK)(request(more, "UPDATE", TORCH)).errors
    assert "--size 3 --task worker` stops them" in str(error)
    aborted = other(TORCH, "status", "state", "phase", value="Aborted")
    assert job_paths(other(more, "status", value=aborted["status"]), aborted) == []
    owned = [
        {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "t", "uid": "t", "controller": True}
    ]
    asked = request(other(more, "metadata", "ownerReferences", value=owned), "UPDATE", TORCH)
    asked.user_info.username = "system:serviceaccount:muster-system:muster-controller"
    assert not volcano_job.reviewer(lookups(), FRAMEWORK)(asked).errors


WITHOUT_EFFECT: dict[str, tuple[tuple[str, ...], str, str]] = {
    "a queue": (("metadata", "labels", "muster.dev/queue"), "fresh", "use muster move job.batch/train --queue fresh"),
    "a minimum": (
        ("metadata", "annotations", "muster.dev/min-member"),
        "2",
        "muster hold job.batch/train and muster rel",
    ),
}


@pytest.mark.parametrize(("path", "value", "way"), WITHOUT_EFFECT.values(), ids=WITHOUT_EFFECT.keys())
def test_an_edit_that_does_not_reach_the_gang(path: tuple[str, ...], value: str, way: str) -> None:
    """It is allowed, with a warning that has the verb; a suspended or ended Job has no gang that it could miss."""
    [warning] = ask(other(JOB, *path, value=value), JOB).warnings
    assert way in warning
    held = other(JOB, "spec", "suspend", value=True)
    over = other(JOB, "status", "conditions", value=[{"type": "Complete", "status": "True"}])
    for quiet in (held, over):
        assert not ask(other(quiet, *path, value=value), quiet).warnings


def test_another_queue_of_a_volcano_job_is_without_effect() -> None:
    """It cannot move, so the warning has the way that works; a Job that is held or has ended is no gang."""
    path, review = ("metadata", "labels", "muster.dev/queue"), volcano_job.reviewer(lookups(), FRAMEWORK)
    [warning] = review(request(other(TORCH, *path, value="fresh"), "UPDATE", TORCH)).warnings
    assert "does not move the existing gang; a Volcano Job stays in the queue that admitted it: delete it" in warning
    for phase in ("Aborted", "Completed"):
        quiet = other(TORCH, "status", "state", "phase", value=phase)
        assert not review(request(other(quiet, *path, value="fresh"), "UPDATE", quiet)).warnings


def test_a_queue_to_move_to_is_checked() -> None:
    """By its name in the annotation that `muster move` writes."""
    moved = other(JOB, "metadata", "annotations", "muster.dev/moved-to", value="nowhere")
    assert [error.path for error in ask(moved, JOB).errors] == ["metadata.annotations[muster.dev/moved-to]"]


def group(name: str, *, owned: bool) -> JSON:
    """A PodGroup with this class, of a batch Job or of its user."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "j", "controller": True}
    metadata = {"name": "g", "ownerReferences": [job] if owned else []}
    return {"metadata": metadata, "spec": {"minMember": 1, "queue": "default", "priorityClassName": name}}


def test_the_class_of_a_pod_group() -> None:
    """Only its user may change it; only Muster's controller copies a workload's from its pods."""
    review = podgroup.reviewer(lookups())
    assert not review(request(group("high", owned=False), "UPDATE", group("low", owned=False))).errors
    asked = request(group("high", owned=True), "UPDATE", group("low", owned=True))
    [error] = review(asked).errors
    assert "muster priority job.batch/train --class high" in str(error)
    asked.user_info.username = "system:serviceaccount:muster-system:muster-controller"
    assert not review(asked).errors
