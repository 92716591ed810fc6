"""From events to actions."""

import pytest

from controller.job.rules.policies import Match, match
from controller.job.rules.request import Request
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, JobSpec, JobStatus, LifecyclePolicy, TaskSpec


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
