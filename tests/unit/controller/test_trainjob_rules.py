"""What a TrainJob needs next and what its status is, decided without a cluster."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from builders import pod as a_pod
from frameworks_world import FRAMEWORK, replicated_job, runtime, train_job
from hypothesis import given
from hypothesis import strategies as st

from controller.caches import Caches
from controller.kit import Kit
from controller.trainjob.controller import TrainJobs
from controller.trainjob.obstacle import foreign
from controller.trainjob.rules.children import Children, covers, intent, job_manifest
from controller.trainjob.rules.outcome import expires_s, left_s, outcome
from controller.trainjob.rules.status import conditions, jobs_status, trains, why_waiting
from controller.trainjob.rules.steps import (
    Change,
    Clear,
    Command,
    Create,
    Delete,
    Ensure,
    Step,
    Suspend,
    changes,
    decide,
)
from muster.api import names
from muster.api.kubeflow.jobset import JobSet
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.api.kubernetes.meta import Condition, ObjectMeta
from muster.api.volcano.batch import JOBS, Job, JobState, Phase
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus
from muster.runtime.plan import Compiled
from muster.runtime.train_job import compile_train_job

JSON = dict[str, Any]
PHASES = ["", "Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Completed", "Terminating",
          "Terminated", "Failed"]  # fmt: skip
INITIALIZER = {"initializer": {"dataset": {"storageUri": "hf://x"}}}
NOW = "2026-01-01T00:00:00Z"


def compiled(job: TrainJob, *, steps: bool = False, replicas: int = 1, **jobset: Any) -> Compiled:
    """The TrainJob on a runtime for torch, with an initializer before the training if asked for."""
    node = replicated_job("node", "trainer")
    jobs = [node]
    if steps:
        pod = {"containers": [{"name": "dataset-initializer", "image": "fetch"}]}
        first = replicated_job("dataset-initializer", "dataset-initializer", pod)
        node["dependsOn"] = [{"name": "dataset-initializer", "status": "Complete"}]
        jobs = [first, node]
    if replicas > 1:
        jobs.append({**replicated_job("other"), "replicas": replicas})
    result = compile_train_job(job, runtime({"torch": {}}, *jobs, jobset=jobset), FRAMEWORK)
    assert not result.errors
    return result


def steps_of(job: TrainJob, children: Children, **more: Any) -> list[Step]:
    """The steps that are to be taken."""
    found = compiled(job, **more)
    assert found.plan
    return decide(job, found.plan, found.components, children)


def made(job: TrainJob, phase: str = "", **more: Any) -> Job:
    """The Job that was made for a TrainJob, in some phase."""
    component = next(
        each for each in compiled(job, **more).components if each.manifest["apiVersion"] == JOBS.api_version
    )
    manifest = job_manifest(component.manifest, job, "")
    manifest["metadata"] |= {"uid": "job", "resourceVersion": "1"}
    return msgspec.convert({**manifest, "status": {"state": {"phase": phase, "reason": "", "message": "so"}}}, Job)


def pods(*phases: str, pod_set: str = "node", ready: bool = True) -> list[Pod]:
    """Pods of a pod set, in index order."""
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return [
        a_pod(f"train-{pod_set}-{index}", labels={names.TASK_INDEX: str(index), names.REPLICATED_JOB: pod_set},
              phase=phase, status=status)
        for index, phase in enumerate(phases)
    ]  # fmt: skip


def batch(name: str, job: TrainJob, *, suspend: bool = False, **status: Any) -> IndexedJob:
    """A batch/v1 Job of a TrainJob."""
    metadata = {"name": name, "uid": name, "annotations": {names.TRAIN_JOB_SPEC: intent(job)}}
    spec = {"completions": 1, "suspend": suspend}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, IndexedJob)


COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FAILED = {"conditions": [{"type": "Failed", "status": "True", "message": "backoff limit"}]}


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
        assert [each.action for each in steps if isinstance(each, Command)] == ["AbortJob"]
    elif not suspend and phase == "Aborted":
        assert [each.action for each in steps if isinstance(each, Command)] == ["ResumeJob"]
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
    assert isinstance(resume, Command)


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
    assert isinstance(change, Change)
    assert change.operations[-1]["path"] == "/metadata/annotations/muster.dev~1resumed-at"


COUNTS: dict[str, tuple[str, list[str], JSON]] = {
    "no pods": ("Pending", [], {}),
    "some wait": ("Pending", ["Running", "Pending"], {"active": 1}),
    "all run": ("Running", ["Running", "Running"], {"active": 1, "ready": 1}),
    "one has ended": ("Running", ["Succeeded", "Running"], {"active": 1, "ready": 1}),
    "all have ended": ("Running", ["Succeeded", "Succeeded"], {"succeeded": 1}),
    "failed": ("Terminated", ["Failed", "Succeeded"], {"failed": 1}),
    "stopped": ("Completed", ["Running", "Pending"], {}),
}


@pytest.mark.parametrize(("phase", "phases", "wanted"), COUNTS.values(), ids=COUNTS.keys())
def test_counts(phase: str, phases: list[str], wanted: JSON) -> None:
    """A step is one Job, as a JobSet counts."""
    job = train_job(trainer={"numNodes": 2})
    found = compiled(job)
    assert found.plan
    [status] = jobs_status(job, found.plan, Children(made(job, phase), pods(*phases)))
    counts = msgspec.to_builtins(status)
    assert {key: value for key, value in counts.items() if value and key != "name"} == wanted
    assert set(counts) == {"name", "ready", "succeeded", "failed", "active", "suspended"}, "clients want all of them"
    assert trains([status], found.plan) == bool({"ready", "succeeded", "failed"} & wanted.keys())


@given(
    st.sampled_from(PHASES),
    st.lists(st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]), max_size=12),
    st.integers(1, 4),
    st.booleans(),
    st.booleans(),
)
def test_counts_add_up(phase: str, phases: list[str], replicas: int, suspend: bool, ready: bool) -> None:  # noqa: FBT001 - drawn
    """No Job counts twice: as ended, as on its way, or not at all; ready ones that are on their way are active."""
    job = train_job(suspend=suspend)
    found = compiled(job, replicas=replicas)
    assert found.plan
    own = pods(*phases, pod_set="other", ready=ready)
    for status in jobs_status(job, found.plan, Children(made(job, phase, replicas=replicas), own)):
        jobs = replicas if status.name == "other" and replicas > 1 else 1
        assert status.succeeded + status.failed + max(status.active, status.ready) <= jobs
        assert status.suspended <= jobs - status.succeeded - status.failed


def test_how_it_ends() -> None:
    """The reasons of a JobSet, and which pod it was."""
    job = train_job()
    assert outcome(Children()) is None
    assert outcome(Children(made(job, "Running"))) is None
    complete = outcome(Children(made(job, "Completed")))
    assert complete
    assert complete[:2] == ("Complete", "AllJobsCompleted")
    failed = outcome(Children(made(job, "Terminated"), pods("Succeeded", "Failed")))
    assert failed
    assert failed[1:] == (
        "FailedJobs",
        "jobset failed due to one or more job failures: pod train-node-1 failed",
    )
    spent = made(job, "Failed")
    spent.status.state.reason = "MaxRetryReached"
    over = outcome(Children(spent))
    assert over
    assert over.reason == "ReachedMaxRestarts"
    before = outcome(Children(initializers={"i": batch("i", job, **FAILED)}))
    assert before
    assert before.message.endswith("initializer i: backoff limit")


def test_conditions() -> None:
    """None on its way; Resumed until the pods run; times that only move with the status."""
    job = train_job()
    assert conditions(job, now=NOW) == []
    job = train_job(suspend=True)
    job.status.conditions[:] = conditions(job, now=NOW)
    assert [(each.type, each.status) for each in job.status.conditions] == [("Suspended", "True")]
    assert conditions(job, now="later") == job.status.conditions
    job.spec.suspend = False
    job.status.conditions[:] = conditions(job, now="later", trains=True)
    [resumed] = job.status.conditions
    assert (resumed.status, resumed.reason, resumed.last_transition_time) == ("False", "Resumed", "later")
    assert conditions(job, now="after") == [resumed]
    assert conditions(job, now="after", trains=True) == []
    [_, blocked] = conditions(job, now="after", obstacle="x" * 2000)
    assert (blocked.type, len(blocked.message)) == ("Blocked", 1024)


def test_a_train_job_says_why_its_gang_waits() -> None:
    """Only while it does: the SDK calls a TrainJob with a condition Created, which it is then."""
    job = train_job()
    [waiting] = conditions(job, now=NOW, waits="no room")
    assert (waiting.type, waiting.status, waiting.reason, waiting.message) == (
        "Waiting", "True", "Unschedulable", "no room"
    )  # fmt: skip
    job.status.conditions[:] = [waiting]
    [again] = conditions(job, now="later", waits="less room")
    assert (again.message, again.last_transition_time) == ("less room", NOW)
    assert conditions(job, now="later") == []
    [blocked] = conditions(job, now="later", waits="no room", obstacle="no right")
    assert blocked.type == "Blocked"
    job.spec.suspend = True
    assert [each.type for each in conditions(job, now="later", waits="no room")] == ["Suspended"]


@pytest.mark.parametrize(
    ("phase", "reason", "told"),
    [("Pending", "Unschedulable", "no room"), ("Running", "Unschedulable", ""), ("Pending", "Starting", "")],
)
def test_a_job_waits_while_it_is_pending_and_unschedulable(phase: Phase, reason: str, told: str) -> None:
    """Other reasons of a Job are steps of its start."""
    job = Job()
    job.status.state = JobState(phase=phase, reason=reason, message="no room")
    assert why_waiting(Children(job)) == told
    assert why_waiting(Children()) == ""


@pytest.mark.parametrize(
    ("phase", "reason", "told"),
    [
        ("Inqueue", "NoRoom", "no room"),
        ("Pending", "QueueFull", "no room"),
        ("Inqueue", "NotEnoughPods", ""),
        ("Running", "NoRoom", ""),
    ],
)
def test_a_job_set_waits_as_its_gang_does(phase: PodGroupPhase, reason: str, told: str) -> None:
    """But not while its pods are still being made, as at each start."""
    group = PodGroup()
    condition = PodGroupCondition(type="Unschedulable", status="True", reason=reason, message="no room")
    group.status = PodGroupStatus(phase=phase, conditions=[condition])
    assert why_waiting(Children(job_set=JobSet(), group=group)) == told
    assert why_waiting(Children(job_set=JobSet())) == ""


def test_the_deadline() -> None:
    """From creation or from being resumed; not while suspended."""
    job = train_job(activeDeadlineSeconds=60)
    job.metadata.creation_timestamp = "1970-01-01T00:00:10Z"
    assert left_s(job, Children(), 20.0) == 50.0
    noted = made(job, "Running")
    noted.metadata.annotations[names.RESUMED_AT] = "1970-01-01T00:01:00Z"
    assert left_s(job, Children(noted), 60.0) == 60.0
    job.spec.suspend = True
    assert left_s(job, Children(), 20.0) is None
    assert left_s(train_job(), Children(), 20.0) is None


def test_the_time_after_the_end() -> None:
    """It stands in a note: the Job must not go before its end is told."""
    job = train_job()
    old = made(job, "Completed", ttlSecondsAfterFinished=30)
    assert old.spec.ttl_seconds_after_finished is None
    assert expires_s(job, Children(old)) is None
    end = Condition(type="Complete", status="True", last_transition_time="1970-01-01T00:00:10Z", reason="r", message="")
    job.status.conditions.append(end)
    assert expires_s(job, Children(old)) == 40.0
    assert expires_s(job, Children(made(job, "Completed"))) is None


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


def test_other_words_of_an_obstacle_lead_to_no_pass() -> None:
    """They are written by a pass; it would be tried again at once, and may find yet other words."""

    def blocked(message: str, reason: str = "Blocked") -> TrainJob:
        said = {"type": "Blocked", "status": "True", "lastTransitionTime": NOW, "reason": reason, "message": message}
        return msgspec.convert({"spec": {"runtimeRef": {"name": "r"}}, "status": {"conditions": [said]}}, TrainJob)

    nobody: Any = None
    asked = TrainJobs(Kit(nobody, nobody), Caches(nobody))._asked
    assert asked(blocked('pods "a-x7k2p" is forbidden')) == asked(blocked('pods "a-9qm4z" is forbidden'))
    assert asked(blocked("no")) != asked(blocked("no", reason="Other"))
