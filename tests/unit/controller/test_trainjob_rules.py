"""What a TrainJob needs next, decided without a cluster."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from frameworks_world import train_job
from hypothesis import given
from hypothesis import strategies as st
from kept_train_jobs import COMPLETE, FAILED, INITIALIZER, JSON, NOW, PHASES, batch, compiled, made, pods, steps_of

from controller.trainjob.obstacle import foreign
from controller.trainjob.rules.children import Children, covers, intent
from controller.trainjob.rules.steps import Clear, Create, Delete, Ensure, PatchJob, SendCommand, Suspend, changes
from muster.api import names
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.meta import Condition, ObjectMeta
from muster.api.volcano.batch import Job


def test_a_new_train_job() -> None:
    """Its Job; while it is suspended, nothing that makes pods."""
    [create] = steps_of(train_job(), Children())
    assert isinstance(create, Create)
    assert create.manifest["metadata"]["labels"][names.TRAIN_JOB] == "train"
    assert not [each for each in steps_of(train_job(suspend=True), Children()) if not isinstance(each, Ensure)]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("suspend", [True, False])
def test_suspend_in_every_phase(phase: str, suspend: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """What still runs is aborted, what was aborted is resumed, what ends is left to end."""
    job = train_job(suspend=suspend)
    steps = steps_of(job, Children(made(job, phase)))
    if suspend and phase in {"", "Pending", "Running", "Restarting"}:
        assert [each.action for each in steps if isinstance(each, SendCommand)] == ["AbortJob"]
    elif not suspend and phase == "Aborted":
        assert [each.action for each in steps if isinstance(each, SendCommand)] == ["ResumeJob"]
    else:
        assert steps == []


def test_a_gang_is_resumed_as_a_whole() -> None:
    """Pods that had ended go first, and the Job is resumed when there are none: whoever failed is needed again."""
    job = train_job(trainer={"numNodes": 2})
    own = pods("Succeeded", "Failed")
    [clear] = steps_of(job, Children(made(job, "Aborted"), own))
    assert isinstance(clear, Clear)
    assert clear.pods == own
    for pod in own:
        pod.metadata.deletion_timestamp = NOW
    assert steps_of(job, Children(made(job, "Aborted"), own)) == []
    [resume] = steps_of(job, Children(made(job, "Aborted")))
    assert isinstance(resume, SendCommand)


def test_initializers_come_first() -> None:
    """One after the other, and the gang when they are complete; also if they were forgotten meanwhile."""
    job = train_job(**INITIALIZER)
    name = "train-dataset-initializer-0"
    [first] = steps_of(job, Children(), steps=True)
    assert isinstance(first, Create)
    assert first.manifest["metadata"]["name"] == name
    assert steps_of(job, Children(initializers={name: batch(name, job, active=1)}), steps=True) == []
    [then] = steps_of(job, Children(initializers={name: batch(name, job, **COMPLETE)}), steps=True)
    assert isinstance(then, Create)
    assert then.manifest["metadata"]["name"] == "train"
    remembered = {"name": "dataset-initializer", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    known = msgspec.convert({**msgspec.to_builtins(job), "status": {"jobsStatus": [remembered]}}, TrainJob)
    [again] = steps_of(known, Children(), steps=True)
    assert isinstance(again, Create)
    assert again.manifest["metadata"]["name"] == "train"


def test_initializers_are_suspended_too() -> None:
    """Those that have not ended."""
    job = train_job(suspend=True, **INITIALIZER)
    name = "train-dataset-initializer-0"
    [step] = steps_of(job, Children(initializers={name: batch(name, job)}), steps=True)
    assert isinstance(step, Suspend)
    assert step.suspend
    assert steps_of(job, Children(initializers={name: batch(name, job, **COMPLETE)}), steps=True) == []


def test_initializers_of_other_patches_go() -> None:
    """But for those that have ended, or are on their way out."""
    job = train_job(**INITIALIZER)
    name = "train-dataset-initializer-0"
    old = batch(name, job)
    old.metadata.annotations[names.TRAIN_JOB_SPEC] = "other"
    assert [type(each) for each in steps_of(job, Children(initializers={name: old}), steps=True)] == [Delete]
    old.metadata.deletion_timestamp = NOW
    assert steps_of(job, Children(initializers={name: old}), steps=True) == []
    ended = batch(name, job, **FAILED)
    ended.metadata.annotations[names.TRAIN_JOB_SPEC] = "other"
    assert steps_of(job, Children(initializers={name: ended}), steps=True) == []


def test_tasks_that_a_job_does_not_have_are_left_out_of_its_patch() -> None:
    """Somebody has made the Job with other ones."""
    job = train_job(trainer={"numNodes": 3})
    live = made(job, "Running")
    live.spec.tasks[0].name = "other"
    component = compiled(job).components[-1]
    assert changes(live, component.manifest, "") == []
    live.spec.min_available = 1
    assert [each["path"] for each in changes(live, component.manifest, "")] == ["/metadata/uid", "/spec/minAvailable"]


def test_other_patches_need_other_pods() -> None:
    """What was made for others goes; without the note nobody knows, and it stays."""
    job = train_job()
    old = made(job, "Running")
    old.metadata.annotations[names.TRAIN_JOB_SPEC] = "other"
    [step] = steps_of(job, Children(old))
    assert isinstance(step, Delete)
    del old.metadata.annotations[names.TRAIN_JOB_SPEC]
    assert steps_of(job, Children(old)) == []


def test_the_intent() -> None:
    """Times of patches, suspension and numbers of nodes don't change pods; patches do."""
    entry = {"manager": "a.io/b", "time": NOW}
    same = [train_job(), train_job(suspend=True), train_job(activeDeadlineSeconds=5)]
    assert len({intent(each) for each in same}) == 1
    later = [train_job(runtimePatches=[{**entry, "time": time}]) for time in (NOW, "2027-01-01T00:00:00Z")]
    assert len({intent(each) for each in later}) == 1
    assert intent(train_job()) != intent(later[0])
    assert intent(train_job(trainer={"numNodes": 1})) == intent(train_job(trainer={"numNodes": 2}))


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_numbers_come_back(replicas: int, least: int, total: int) -> None:
    """Whatever was written into the Job, the patch leads to what the TrainJob says, and then there is none."""
    job = train_job(trainer={"numNodes": 3})
    live = made(job, "Running")
    live.spec.tasks[0].replicas, live.spec.tasks[0].min_available, live.spec.min_available = replicas, least, total
    component = compiled(job).components[-1]
    document = msgspec.to_builtins(live)
    for operation in changes(live, component.manifest, ""):
        _apply(document, operation)
    after = msgspec.convert(document, Job)
    assert (after.spec.tasks[0].replicas, after.spec.tasks[0].min_available, after.spec.min_available) == (3, 3, 3)
    assert changes(after, component.manifest, "") == []


def _apply(document: JSON, operation: Mapping[str, Any]) -> None:
    """One operation of a JSON patch, as far as ours go."""
    *path, last = operation["path"].removeprefix("/").split("/")
    node: Any = document
    for part in path:
        node = node[int(part)] if isinstance(node, list) else node[part]
    if operation["op"] == "test":
        assert node[last] == operation["value"]
    else:
        node[last] = operation["value"]


def test_resuming_is_noted_at_the_job() -> None:
    """As the condition that says it goes again."""
    resumed = Condition(type="Suspended", status="False", last_transition_time=NOW, reason="Resumed", message="")
    job = train_job()
    job.status.conditions.append(resumed)
    [change] = steps_of(job, Children(made(job, "Pending")))
    assert isinstance(change, PatchJob)
    assert change.operations[-1]["path"] == "/metadata/annotations/muster.dev~1resumed-at"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), _JSON, max_size=3), st.dictionaries(st.text(min_size=4), _JSON, max_size=2))
def test_what_others_add_is_no_drift(wanted: JSON, added: JSON) -> None:
    """What is wanted covers itself, whatever stands beside it; another value is a difference."""
    assert covers(wanted, {**wanted, **added})
    assert not covers({**wanted, "image": "a"}, {**wanted, "image": "b"})


def test_whose_it_is() -> None:
    """What an earlier TrainJob of the name has left is about to go; anything else is in the way."""
    owner = {"apiVersion": "v", "kind": "TrainJob", "name": "train", "uid": "old", "controller": True}
    meta = msgspec.convert({"name": "x", "ownerReferences": [owner]}, ObjectMeta)
    assert foreign("Job x", meta, train_job()).passing
    assert str(foreign("Job x", ObjectMeta(name="x"), train_job())).startswith(
        "Job x exists already and has no owner, so it is not changed"
    )
