"""From events to actions."""

import pytest
from builders import job as a_job
from builders import pod
from builders.manifests import task as a_task

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
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job, JobState, JobStatus, LifecyclePolicy


def policy(action: str, *events: str, exit_code: int | None = None, timeout: str | None = None) -> LifecyclePolicy:
    """A policy as a user writes it."""
    return LifecyclePolicy(action=action, events=list(events), exit_code=exit_code, timeout=timeout)  # type: ignore[arg-type]  # events as text


def job(*policies: LifecyclePolicy, task: list[LifecyclePolicy] | None = None, version: int = 0) -> Job:
    """A Job of UID `u` with these policies, and one task `w`."""
    tasks = [a_task("w", policies=task or [])]
    return a_job("j", tasks, "n", uid="u", policies=list(policies), status=JobStatus(version=version))


def failed(**more: object) -> Request:
    """A pod of task `w` failed with exit code 3."""
    defaults = {"event": "PodFailed", "job_uid": "u", "job_version": 0, "task": "w", "pod": "j-w-0", "exit_codes": (3,)}
    return Request(**{**defaults, **more})  # type: ignore[arg-type]  # from a mapping


OWN = [policy("RestartTask", "PodFailed"), policy("RestartPod", "PodFailed")]
BOTH = LifecyclePolicy(action="AbortJob", event="PodFailed", events=["PodEvicted"])
PENDING = failed(event="PodPending", exit_codes=())
CODE, ANY = policy("TerminateJob", exit_code=137), policy("AbortJob", "*")


@pytest.mark.parametrize(
    ("of", "request_", "action"),
    [
        pytest.param(job(), failed(), "SyncJob", id="no policy is a sync"),
        pytest.param(job(policy("AbortJob", "PodFailed"), task=OWN), failed(), "RestartTask", id="task's first"),
        pytest.param(job(policy("AbortJob", "PodFailed"), task=OWN), failed(task="x"), "AbortJob", id="another task's"),
        pytest.param(job(BOTH), failed(), "AbortJob", id="event and events are one list: event"),
        pytest.param(job(BOTH), failed(event="PodEvicted", exit_codes=()), "AbortJob", id="of events"),
        *[
            pytest.param(job(ANY), failed(event=event), "AbortJob", id=f"any matches {event}")
            for event in ("PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed")
        ],
        *[
            pytest.param(job(policy("AbortJob", "*", event)), failed(event=event), "SyncJob", id=f"{event} is internal")
            for event in ("OutOfSync", "CommandIssued", "PodRunning")
        ],
        pytest.param(job(policy("AbortJob", "PodPending")), PENDING, "SyncJob", id="pending needs a timeout"),
        pytest.param(job(ANY), PENDING, "SyncJob", id="pending is not any event"),
        pytest.param(job(CODE), failed(exit_codes=(1, 137)), "TerminateJob", id="exit code of any container"),
        pytest.param(job(CODE), failed(), "SyncJob", id="another exit code"),
        pytest.param(job(ANY, version=1), failed(), "SyncJob", id="stale: an older version"),
        pytest.param(job(ANY), failed(job_uid="other"), "SyncJob", id="stale: another Job of this name"),
        pytest.param(job(ANY, version=1), failed(job_version=1), "AbortJob", id="of this version"),
        pytest.param(
            job(policy("RestartJob", "Unknown"), version=7),
            Request(event="Unknown", group_uid="g"),
            "RestartJob",
            id="unknown has no version: a gang can become so again",
        ),
        pytest.param(
            job(version=3), Request(event="CommandIssued", action="ResumeJob"), "ResumeJob", id="a command needs none"
        ),
    ],
)
def test_what_a_policy_makes_of_an_event(of: Job, request_: Request, action: str) -> None:
    """The task's policies come before the Job's, and the first one that matches counts."""
    assert match(of, request_).action == action


def test_pending_needs_a_timeout() -> None:
    """To be pending is normal; only to stay so is an event."""
    assert match(job(policy("AbortJob", "PodPending", timeout="5m")), PENDING) == Match("AbortJob", 300.0)


def pod_of(task: str, index: int, phase: str = "Running") -> Pod:
    """A pod of Job `j`."""
    return pod(f"j-{task}-{index}", uid=f"j-{task}-{index}", task=task, index=index, phase=phase)


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
    assert [each.metadata.name for each in pods_to_delete(restarted, pods)] == ["j-w-0", "j-w-1"]
    transition = next_phase(running.spec, "Restarting", Counts(running=1), retry_count=1)
    assert transition is not None
    assert transition.phase == "Pending"
