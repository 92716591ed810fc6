"""What a pass creates, deletes, counts and writes."""

from typing import Any

import pytest
from builders import job as a_job
from builders import pod as a_pod
from hypothesis import given
from hypothesis import strategies as st

from controller.job.rules import status as statuses
from controller.job.rules.events import JobEvent
from controller.job.rules.phases import Counts, count
from controller.job.rules.policies import RestartTarget, pods_to_delete, restart_targets, restarting, target_of
from controller.job.rules.sync import decide
from controller.job.rules.timers import still_true
from muster.api import names
from muster.api.kubernetes.constraints import SchedulingGate
from muster.api.kubernetes.core import Pod
from muster.api.merge_diff import difference
from muster.api.volcano.batch import DependsOn, Job, JobState, JobStatus, TaskSpec
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition, PodGroupStatus

GATE = SchedulingGate(name=names.GATE)


def pod(name: str, phase: str = "Running", *, version: int = 0, **more: Any) -> Pod:
    """A pod of Job `j` named `j-<task>-<index>`."""
    annotations = {"volcano.sh/task-spec": name.split("-")[1], "volcano.sh/job-version": str(version)}
    annotations |= {"volcano.sh/controller-out-of-sync": "true"} if more.get("marked") else {}
    status = {"phase": phase, "containerStatuses": [{"name": "c", "ready": more.get("ready", True)}]}
    labels = {"volcano.sh/partition-id": more.get("partition", "0")}
    deleted = "2026-01-01T00:00:00Z" if more.get("going") else ""
    uid = more.get("uid", name)
    return a_pod(name, uid=uid, annotations=annotations, labels=labels, status=status, deleted=deleted)


def job(*tasks: TaskSpec, **status: Any) -> Job:
    """Job `n/j` with these tasks, or one task `w` of 3."""
    made = list(tasks) or [TaskSpec(name="w", replicas=3)]
    return a_job("j", made, "n", uid="u", created="1970-01-01T00:00:00Z", max_retry=3, status=JobStatus(**status))


def test_creates_what_is_missing_and_deletes_what_is_too_much() -> None:
    """A name whose pod is terminating is taken; marked pods go; nothing is created before the gang is admitted."""
    pods = [pod("j-w-0"), pod("j-w-1", going=True), pod("j-w-7")]
    decision = decide(job(), pods, may_create=True)
    assert [slot.name for slot in decision.create] == ["j-w-2"]
    assert [one.metadata.name for one in decision.delete] == ["j-w-7"]
    assert decide(job(), pods, may_create=False).create == []
    assert [x.metadata.name for x in decide(job(), [pod("j-w-0", marked=True)], may_create=True).delete] == ["j-w-0"]


def test_waiting_pods_follow_the_class_of_the_job() -> None:
    """A gang has one priority: its waiting pods are made again, unless their template names a class of its own."""
    own = {"spec": {"priorityClassName": "own"}}
    of = job(TaskSpec(name="w", replicas=3), TaskSpec(name="own", replicas=1, template=own))
    of.spec.priority_class_name = "urgent"
    pods = [pod(name, "Pending") for name in ("j-w-0", "j-w-1", "j-w-2", "j-own-0")]
    for each, gates, name in zip(pods, ([GATE], [GATE], [], [GATE]), ("low", "urgent", "low", "own"), strict=True):
        each.spec.scheduling_gates, each.spec.priority_class_name = gates, name
    assert [one.metadata.name for one in decide(of, pods, may_create=True).delete] == ["j-w-0"]


@given(st.lists(st.sampled_from(range(8)), unique=True), st.integers(0, 6))
def test_after_a_sync_there_is_exactly_what_is_wanted(present: list[int], replicas: int) -> None:
    """Whatever pods there are, creates and deletes together lead to the wanted set."""
    of = job(TaskSpec(name="w", replicas=replicas))
    pods = [pod(f"j-w-{index}") for index in present]
    decision = decide(of, pods, may_create=True)
    left = {one.metadata.name for one in pods} - {one.metadata.name for one in decision.delete}
    assert left | {slot.name for slot in decision.create} == {f"j-w-{index}" for index in range(replicas)}
    assert not left & {slot.name for slot in decision.create}


@pytest.mark.parametrize(("iteration", "pods", "ready"), [
    (None, [], False),
    (None, [pod("j-a-0"), pod("j-b-0", ready=False)], False),
    (None, [pod("j-a-0"), pod("j-b-0", "Succeeded")], True),
    ("any", [pod("j-a-0")], True),
    ("any", [pod("j-a-0", going=True)], False),
])  # fmt: skip
def test_dependencies(iteration: Any, pods: list[Pod], ready: bool) -> None:  # noqa: FBT001 - a parameter of a table
    """A task waits for as many ready pods of the others as these need."""
    last = TaskSpec(name="last", replicas=1, depends_on=DependsOn(name=["a", "b"], iteration=iteration))
    of = job(TaskSpec(name="a", replicas=1), TaskSpec(name="b", replicas=1), last)
    assert ("j-last-0" in [slot.name for slot in decide(of, pods, may_create=True).create]) is ready


def test_counting() -> None:
    """Pods by phase, in total and per task; those on their way out count as that only."""
    pods = [pod("j-a-0", "Succeeded"), pod("j-a-1", "Failed"), pod("j-b-0", ""), pod("j-b-1", "Odd"), pod("j-b-2", going=True)]  # fmt: skip  # noqa: E501 - one row
    assert count(pods) == Counts(
        pending=1,
        succeeded=1,
        failed=1,
        unknown=1,
        terminating=1,
        tasks={"a": {"Succeeded": 1, "Failed": 1}, "b": {"Pending": 1, "Odd": 1}},
    )


def names(pods: list[Pod]) -> list[str]:
    """Their names."""
    return [one.metadata.name for one in pods]


def restarting_job(*targets: str, retry_count: int = 1) -> Job:
    """Job `n/j` in its second version, which restarts these targets."""
    noted = {"muster.dev/restart": ",".join(targets)}
    return job(version=1, retry_count=retry_count, state=JobState(phase="Restarting"), controlled_resources=noted)


def test_pods_that_are_deleted() -> None:
    """A phase that stops pods spares finished ones, a restart of a part the others, a whole one the new version's."""
    pods = [pod("j-w-0"), pod("j-w-1", "Failed"), pod("j-v-0", partition="1"), pod("j-v-1", version=1), pod("j-v-2", going=True)]  # fmt: skip  # noqa: E501 - one row
    whole = pod("j-x-0", partition="")
    assert pods_to_delete(job(version=1, state=JobState(phase="Running")), pods) == []
    assert names(pods_to_delete(job(version=1, state=JobState(phase="Aborting")), pods)) == ["j-w-0", "j-v-0", "j-v-1"]
    assert names(pods_to_delete(restarting_job("job"), pods)) == ["j-w-0", "j-w-1", "j-v-0"]
    assert names(pods_to_delete(restarting_job("job", retry_count=3), pods)) == ["j-w-0", "j-v-0"]
    assert names(pods_to_delete(restarting_job("unfinished"), pods)) == ["j-w-0", "j-v-0"]
    assert names(pods_to_delete(restarting_job("task/v"), pods)) == ["j-v-0", "j-v-1"]
    assert names(pods_to_delete(restarting_job("partition/v/1"), pods)) == ["j-v-0"]
    assert names(pods_to_delete(restarting_job("partition/x/"), [*pods, whole])) == ["j-x-0"]
    assert names(pods_to_delete(restarting_job("pod/j-w-1", "task/x"), [*pods, whole])) == ["j-w-1", "j-x-0"]


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask", "RestartPod", "RestartPartition", "ResumeJob"])
def test_target_survives_in_the_status(action: str) -> None:
    """What is restarted can be read from the status again, until the next phase is entered."""
    target = target_of(action, JobEvent(task="w", partition="2", pod="j-w-0", pod_uid="p"))
    status = restarting(JobStatus(), target)
    assert restart_targets(status) == [target]
    assert restart_targets(statuses.moved(status, "Pending", "r", "m", 0.0)) == []


def test_a_whole_restart_is_not_replaced_by_a_part() -> None:
    """Once the whole job is to go, a restart of a task does not spare the rest."""
    status = restarting(JobStatus(), RestartTarget())
    assert restart_targets(restarting(status, RestartTarget("task", "w"))) == [RestartTarget()]


def test_running_duration_is_written_at_the_end() -> None:
    """From creation to the last change of phase; a Job that goes on has none, and one that has ended keeps it."""
    ended = statuses.moved(JobStatus(), "Completed", "", "", 3725.0)
    once = statuses.finished_with_duration(job(), ended)
    assert once.running_duration == "1h2m5s"
    assert statuses.finished_with_duration(job(), once) == once
    running = statuses.moved(once, "Restarting", "", "", 4000.0)
    assert statuses.finished_with_duration(job(), running).running_duration is None


def test_conditions_are_one_per_phase() -> None:
    """The newest entry of each phase is kept, in order."""
    status = JobStatus()
    for second, phase in enumerate(["Pending", "Running", "Pending"]):
        status = statuses.moved(status, phase, "", "", second)  # type: ignore[arg-type]  # phases as text
    assert [(c.status, c.last_transition_time) for c in status.conditions] == [
        ("Running", "1970-01-01T00:00:01Z"),
        ("Pending", "1970-01-01T00:00:02Z"),
    ]


def test_counters_that_become_zero_are_written() -> None:
    """A zero is left out on the wire, and must still replace what was there."""
    assert difference(JobStatus(running=3), statuses.counted(JobStatus(), Counts(), 0)) == {"running": None}


def test_why_a_job_waits() -> None:
    """The PodGroup's newest condition first, then its phase, then gates."""
    group = PodGroup(status=PodGroupStatus(phase="Inqueue"))
    assert statuses.waiting(group, [])[0] == "Starting"
    assert statuses.waiting(PodGroup(), []) == ("Queued", "the gang waits to be admitted by queue default")
    group.status.conditions = [
        PodGroupCondition(type="Unschedulable", status="True", message="no room", last_transition_time="2026-01-02"),
        PodGroupCondition(type="Scheduled", status="True", last_transition_time="2026-01-01"),
    ]
    assert statuses.waiting(group, []) == ("Unschedulable", "no room")
    group.status.conditions[1].last_transition_time = "2026-01-03"
    assert statuses.waiting(group, [])[0] == "Starting"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.5, "500ms"), (1.5, "1.5s"), (59, "59s"), (61, "1m1s"), (3600, "1h0m0s")]
)
def test_durations_as_go_writes_them(seconds: float, text: str) -> None:
    """RunningDuration is read by Go clients."""
    assert statuses.format_duration(seconds) == text


def test_timers_ask_again() -> None:
    """A pending pod that runs by now, a failed one that is back, and a finished Job make a timer pointless."""
    running = job(state=JobState(phase="Running"))

    def asked(request: JobEvent, *there: Pod, of: Job = running) -> bool:
        return still_true(request, of, {one.metadata.name: one for one in there}, "")

    pending = JobEvent(event="PodPending", pod="j-w-0", pod_uid="j-w-0")
    assert asked(pending, pod("j-w-0", "Pending"))
    assert not asked(pending, pod("j-w-0", "Running"))
    assert not asked(pending, pod("j-w-0", "Pending", uid="another"))
    assert not asked(pending)
    failed = JobEvent(event="PodFailed", pod="j-w-0", pod_uid="old")
    assert asked(failed)
    assert asked(failed, pod("j-w-0", "Pending", uid="new"))
    assert not asked(failed, pod("j-w-0", uid="new"))
    assert asked(failed, pod("j-w-0", uid="old")), "it runs on for a moment, and is still the one that is lost"
    assert not asked(failed, of=job(state=JobState(phase="Aborted")))
    assert still_true(JobEvent(event="Unknown"), running, {}, "Unknown")
    assert not still_true(JobEvent(event="Unknown"), running, {}, "Running")
