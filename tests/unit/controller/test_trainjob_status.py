"""What the status of a TrainJob is, and when it ends, decided without a cluster."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from frameworks_world import train_job
from hypothesis import given
from hypothesis import strategies as st
from kept_train_jobs import FAILED, INITIALIZER, JSON, NOW, PHASES, batch, compiled, made, pods

from controller.caches import SharedCaches
from controller.kit import Kit
from controller.trainjob.controller import TrainJobs
from controller.trainjob.rules.children import Children
from controller.trainjob.rules.outcome import deadline_exceeded, expires_s, left_s, outcome, overdue
from controller.trainjob.rules.status import conditions, jobs_status, trains, why_waiting
from muster.api import names
from muster.api.kubeflow.jobset import JobSet, ReplicatedJobStatus
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.meta import Condition
from muster.api.volcano.batch import Job, JobState, Phase
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus

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


@pytest.mark.parametrize(
    ("launcher", "node", "runs"),
    [("ready", "ready", True), ("ready", "succeeded", True), ("ready", "active", False), ("active", "failed", False)],
)
def test_it_runs_when_all_that_trains_does(launcher: str, node: str, *, runs: bool) -> None:
    """Other pod sets are not waited for."""
    roles = {"launcher": "launcher", "node": "trainer", "other": ""}
    plan = SimpleNamespace(pod_sets=[SimpleNamespace(name=name, role=role) for name, role in roles.items()])
    zeros = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), 0)
    states = {"launcher": launcher, "node": node, "other": "active"}
    statuses = [ReplicatedJobStatus(**{**zeros, state: 1}, name=name) for name, state in states.items()]
    assert trains(statuses, cast("Any", plan)) is runs
    assert not trains([], cast("Any", plan))


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


@pytest.mark.parametrize(("ready", "succeeded", "counted"), [(1, 1, 1), (2, 0, 1), (1, 0, 0), (0, 0, 0)])
def test_an_initializer_is_ready_with_all_of_its_pods(ready: int, succeeded: int, counted: int) -> None:
    """Those that have succeeded are."""
    job, name = train_job(**INITIALIZER), "train-dataset-initializer-0"
    found = compiled(job, steps=True)
    assert found.plan
    one = batch(name, job, ready=ready, succeeded=succeeded, active=1)
    one.spec.completions = 2
    assert jobs_status(job, found.plan, Children(initializers={name: one}))[0].ready == counted


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
    assert failed[1:] == ("FailedJobs", "jobset failed due to one or more job failures: pod train-node-1 failed")
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


@pytest.mark.parametrize(("phase", "reason", "told"), [
    ("Inqueue", "NoRoom", "no room"),
    ("Pending", "QueueFull", "no room"),
    ("Inqueue", "NotEnoughPods", ""),
    ("Running", "NoRoom", ""),
])  # fmt: skip
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
    assert deadline_exceeded(job, Children()).message.endswith("deadline of 60 s, counted from its creation")
    assert deadline_exceeded(job, Children(noted)).message.endswith("60 s, counted from its last resumption")
    job.spec.suspend = True
    assert left_s(job, Children(), 20.0) is None
    assert left_s(train_job(), Children(), 20.0) is None


@pytest.mark.parametrize(
    ("kind", "reason", "over"),
    [("Failed", "DeadlineExceeded", True), ("Failed", "FailedJobs", False), ("Complete", "DeadlineExceeded", False)],
)
def test_only_a_failure_by_the_deadline_deletes_pods(kind: str, reason: str, *, over: bool) -> None:
    """Other ends leave Jobs that have ended as they are."""
    job = train_job()
    job.status.conditions.append(
        Condition(type=kind, status="True", last_transition_time=NOW, reason=reason, message="")
    )
    assert overdue(job) is over


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


def test_other_words_of_an_obstacle_lead_to_no_pass() -> None:
    """They are written by a pass; it would be tried again at once, and may find yet other words."""

    def blocked(message: str, reason: str = "Blocked") -> TrainJob:
        said = {"type": "Blocked", "status": "True", "lastTransitionTime": NOW, "reason": reason, "message": message}
        return msgspec.convert({"spec": {"runtimeRef": {"name": "r"}}, "status": {"conditions": [said]}}, TrainJob)

    nobody: Any = None
    asked = TrainJobs(Kit(nobody, nobody), SharedCaches(nobody))._relevant_fields
    assert asked(blocked('pods "a-x7k2p" is forbidden')) == asked(blocked('pods "a-9qm4z" is forbidden'))
    assert asked(blocked("no")) != asked(blocked("no", reason="Other"))
