"""From events to actions."""

import pytest

from controller.job.rules.events import Request, pod_changed
from controller.job.rules.phases import Counts, next_phase
from controller.job.rules.policies import (
    Effect,
    Match,
    Step,
    match,
    pods_to_delete,
    restart_targets,
    restarting,
    step,
    target_of,
)
from muster.api.kubernetes.core import Pod, PodStatus
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, JobSpec, JobState, JobStatus, LifecyclePolicy, TaskSpec


def policy(action: str, *events: str, exit_code: int | None = None, timeout: str | None = None) -> LifecyclePolicy:
    """A policy as a user writes it."""
    return LifecyclePolicy(action=action, events=list(events), exit_code=exit_code, timeout=timeout)  # type: ignore[arg-type]  # events as text


def job(*policies: LifecyclePolicy, task: list[LifecyclePolicy] | None = None, version: int = 0) -> Job:
    """A Job of UID `u` with these policies, and one task `w`."""
    return Job(
        metadata=ObjectMeta(name="j", namespace="n", uid="u"),
        spec=JobSpec(policies=list(policies), tasks=[TaskSpec(name="w", replicas=1, policies=task or [])]),
        status=JobStatus(version=version),
    )


def failed(**more: object) -> Request:
    """A pod of task `w` failed with exit code 3."""
    defaults = {"event": "PodFailed", "job_uid": "u", "job_version": 0, "task": "w", "pod": "j-w-0", "exit_codes": (3,)}
    return Request(**{**defaults, **more})  # type: ignore[arg-type]  # from a mapping


def test_no_policy_is_a_sync() -> None:
    """An event that nobody asked about changes nothing."""
    assert match(job(), failed()).action == "SyncJob"


def test_task_policies_come_first() -> None:
    """The task's policy wins over the job's, and the first over the second."""
    own = [policy("RestartTask", "PodFailed"), policy("RestartPod", "PodFailed")]
    assert match(job(policy("AbortJob", "PodFailed"), task=own), failed()).action == "RestartTask"
    assert match(job(policy("AbortJob", "PodFailed"), task=own), failed(task="other")).action == "AbortJob"


def test_event_and_events_are_one_list() -> None:
    """Both spellings count."""
    both = LifecyclePolicy(action="AbortJob", event="PodFailed", events=["PodEvicted"])
    assert match(job(both), failed()).action == "AbortJob"
    assert match(job(both), failed(event="PodEvicted", exit_codes=())).action == "AbortJob"


@pytest.mark.parametrize("event", ["PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed"])
def test_any_matches_every_event_of_pods(event: str) -> None:
    """`*` is about success as well as failure."""
    assert match(job(policy("AbortJob", "*")), failed(event=event)).action == "AbortJob"


@pytest.mark.parametrize("event", ["OutOfSync", "CommandIssued", "PodRunning"])
def test_internal_events_match_nothing(event: str) -> None:
    """What the controller tells itself is not for policies."""
    assert match(job(policy("AbortJob", "*", event)), failed(event=event)).action == "SyncJob"


def test_pending_needs_a_timeout() -> None:
    """To be pending is normal; only to stay so is an event."""
    pending = failed(event="PodPending", exit_codes=())
    assert match(job(policy("AbortJob", "PodPending")), pending).action == "SyncJob"
    assert match(job(policy("AbortJob", "*")), pending).action == "SyncJob"
    assert match(job(policy("AbortJob", "PodPending", timeout="5m")), pending) == Match("AbortJob", 300.0)


def test_exit_code_of_any_container() -> None:
    """A policy on an exit code looks at all containers' codes."""
    found = policy("TerminateJob", exit_code=137)
    assert match(job(found), failed(exit_codes=(1, 137))).action == "TerminateJob"
    assert match(job(found), failed()).action == "SyncJob"


def test_stale_events_are_syncs() -> None:
    """An event of an older version, or of another Job of this name, was dealt with."""
    abort = policy("AbortJob", "*")
    assert match(job(abort, version=1), failed()).action == "SyncJob"
    assert match(job(abort), failed(job_uid="other")).action == "SyncJob"
    assert match(job(abort, version=1), failed(job_version=1)).action == "AbortJob"


def test_unknown_has_no_version() -> None:
    """A gang can become Unknown again after a restart of the Job."""
    request = Request(event="Unknown", group_uid="g")
    assert match(job(policy("RestartJob", "Unknown"), version=7), request).action == "RestartJob"


def test_command_is_taken_as_it_is() -> None:
    """Commands need no policy."""
    assert match(job(version=3), Request(event="CommandIssued", action="ResumeJob")).action == "ResumeJob"


def pod_of(task: str, index: int, phase: str = "Running") -> Pod:
    """A pod of Job `j`."""
    name = f"j-{task}-{index}"
    annotations = {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}
    return Pod(metadata=ObjectMeta(name=name, uid=name, annotations=annotations), status=PodStatus(phase=phase))


def test_from_a_failed_pod_to_the_restart_of_its_task() -> None:
    """The steps of the example in `policies`, one function after the other."""
    running = job(policy("RestartTask", "PodFailed"))
    running.status.state = JobState(phase="Running")
    request = pod_changed(pod_of("w", 0), pod_of("w", 0, "Failed"))
    assert (request.event, request.task) == ("PodFailed", "w")
    found = match(running, request)
    assert found == Match("RestartTask")
    assert step("Running", found.action) == Step(Effect.KILL_TARGET, "Restarting", retry=True)
    status = restarting(JobStatus(state=JobState(phase="Restarting")), target_of(found.action, request))
    assert [str(target) for target in restart_targets(status)] == ["task/w"]
    restarted = Job(metadata=running.metadata, spec=running.spec, status=status)
    pods = [pod_of("w", 0, "Failed"), pod_of("w", 1), pod_of("other", 0)]
    assert [pod.metadata.name for pod in pods_to_delete(restarted, pods)] == ["j-w-0", "j-w-1"]
    transition = next_phase(running.spec, "Restarting", Counts(running=1), retry_count=1)
    assert transition is not None
    assert transition.phase == "Pending"
