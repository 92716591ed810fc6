"""From events to actions, by the policies of a task and of its Job."""

import pytest
from builders import job as a_job
from builders import pod
from builders.manifests import task as a_task
from hypothesis import given
from hypothesis import strategies as st
from simulated_cluster import Cluster
from simulated_jobs import fail, job, pods, settle, submit, task

from controller.job.rules.events import JobEvent, pod_changed
from controller.job.rules.phases import Counts, next_phase
from controller.job.rules.policies import (
    SYNC,
    Match,
    PodEffect,
    PolicyCell,
    match,
    pods_to_delete,
    restart_targets,
    restarting,
    step,
    target_of,
)
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, JobSpec, JobState, JobStatus, LifecyclePolicy, TaskSpec


def policy(action: str, *events: str, exit_code: int | None = None, timeout: str | None = None) -> LifecyclePolicy:
    """A policy as a user writes it."""
    return LifecyclePolicy(action=action, events=list(events), exit_code=exit_code, timeout=timeout)  # type: ignore[arg-type]  # events as text


def with_job_policies(*policies: LifecyclePolicy, task: list[LifecyclePolicy] | None = None, version: int = 0) -> Job:
    """A Job of UID `u` with these policies, and one task `w`."""
    tasks = [a_task("w", policies=task or [])]
    return a_job("j", tasks, "n", uid="u", policies=list(policies), status=JobStatus(version=version))


def failed(**more: object) -> JobEvent:
    """A pod of task `w` failed with exit code 3."""
    defaults = {"event": "PodFailed", "job_uid": "u", "job_version": 0, "task": "w", "pod": "j-w-0", "exit_codes": (3,)}
    return JobEvent(**{**defaults, **more})  # type: ignore[arg-type]  # from a mapping


OWN = [policy("RestartTask", "PodFailed"), policy("RestartPod", "PodFailed")]
BOTH = LifecyclePolicy(action="AbortJob", event="PodFailed", events=["PodEvicted"])
PENDING = failed(event="PodPending", exit_codes=())
CODE, ANY = policy("TerminateJob", exit_code=137), policy("AbortJob", "*")


@pytest.mark.parametrize(("of", "request_", "action"), [
    pytest.param(with_job_policies(), failed(), "SyncJob", id="no policy is a sync"),
    pytest.param(with_job_policies(policy("AbortJob", "PodFailed"), task=OWN), failed(), "RestartTask",
        id="task's first"),
    pytest.param(with_job_policies(policy("AbortJob", "PodFailed"), task=OWN), failed(task="x"), "AbortJob",
        id="another task's"),
    pytest.param(with_job_policies(BOTH), failed(), "AbortJob", id="event and events are one list: event"),
    pytest.param(with_job_policies(BOTH), failed(event="PodEvicted", exit_codes=()), "AbortJob", id="of events"),
    *[pytest.param(with_job_policies(ANY), failed(event=event), "AbortJob",
        id=f"any matches {event}") for event in ("PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed")],
    *[pytest.param(with_job_policies(policy("AbortJob", "*", event)), failed(event=event), "SyncJob",
        id=f"{event} is internal") for event in ("OutOfSync", "CommandIssued", "PodRunning")],
    pytest.param(with_job_policies(policy("AbortJob", "PodPending")), PENDING, "SyncJob", id="pending needs a timeout"),
    pytest.param(with_job_policies(ANY), PENDING, "SyncJob", id="pending is not any event"),
    pytest.param(with_job_policies(CODE), failed(exit_codes=(1, 137)), "TerminateJob", id="exit code of any container"),
    pytest.param(with_job_policies(CODE), failed(), "SyncJob", id="another exit code"),
    pytest.param(with_job_policies(ANY, version=1), failed(), "SyncJob", id="stale: an older version"),
    pytest.param(with_job_policies(ANY), failed(job_uid="other"), "SyncJob", id="stale: another Job of this name"),
    pytest.param(with_job_policies(ANY, version=1), failed(job_version=1), "AbortJob", id="of this version"),
    pytest.param(with_job_policies(policy("RestartJob", "Unknown"), version=7),
        JobEvent(event="Unknown", group_uid="g"), "RestartJob",
        id="unknown has no version: a gang can become so again"),
    pytest.param(with_job_policies(version=3), JobEvent(event="CommandIssued", action="ResumeJob"), "ResumeJob",
        id="a command needs none"),
])  # fmt: skip
def test_what_a_policy_makes_of_an_event(of: Job, request_: JobEvent, action: str) -> None:
    """The task's policies come before the Job's, and the first one that matches counts."""
    assert match(of, request_).action == action


def test_pending_needs_a_timeout() -> None:
    """To be pending is normal; only to stay so is an event."""
    assert match(with_job_policies(policy("AbortJob", "PodPending", timeout="5m")), PENDING) == Match("AbortJob", 300.0)


def pod_of(task: str, index: int, phase: str = "Running") -> Pod:
    """A pod of Job `j`."""
    return pod(f"j-{task}-{index}", uid=f"j-{task}-{index}", task=task, index=index, phase=phase)


def test_from_a_failed_pod_to_the_restart_of_its_task() -> None:
    """The steps of the example in `policies`, one function after the other."""
    running = with_job_policies(policy("RestartTask", "PodFailed"))
    running.status.state = JobState(phase="Running")
    request = pod_changed(pod_of("w", 0), pod_of("w", 0, "Failed"))
    assert (request.event, request.task) == ("PodFailed", "w")
    found = match(running, request)
    assert found == Match("RestartTask")
    assert step("Running", found.action) == PolicyCell(PodEffect.KILL_TARGET, "Restarting", retry=True)
    status = restarting(JobStatus(state=JobState(phase="Restarting")), target_of(found.action, request))
    assert [str(target) for target in restart_targets(status)] == ["task/w"]
    restarted = Job(metadata=running.metadata, spec=running.spec, status=status)
    pods = [pod_of("w", 0, "Failed"), pod_of("w", 1), pod_of("other", 0)]
    assert [each.metadata.name for each in pods_to_delete(restarted, pods)] == ["j-w-0", "j-w-1"]
    transition = next_phase(running.spec, "Restarting", Counts(running=1), retry_count=1)
    assert transition is not None
    assert transition.phase == "Pending"


EVENTS = st.sampled_from(["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown"])
POLICIES = st.lists(st.builds(
    LifecyclePolicy,
    action=st.sampled_from(["RestartJob", "RestartTask", "RestartPod", "AbortJob", "TerminateJob", "CompleteJob"]),
    events=st.lists(EVENTS | st.just("*"), max_size=2),
    exit_code=st.none() | st.sampled_from([1, 3, 137]),
    timeout=st.none() | st.sampled_from(["1s", "5m"]),
), max_size=3)  # fmt: skip
CODES = st.sampled_from([(), (3,), (1, 137)])
REQUESTS = st.builds(JobEvent, event=EVENTS, task=st.sampled_from(["w", "v", ""]), exit_codes=CODES)


def with_policies(own: list[LifecyclePolicy], of_job: list[LifecyclePolicy]) -> Job:
    """A Job of tasks `w`, which has policies of its own, and `v`."""
    tasks = [TaskSpec(name="w", replicas=1, policies=own), TaskSpec(name="v", replicas=1)]
    return Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"), spec=JobSpec(tasks=tasks, policies=of_job))


@given(POLICIES, POLICIES, REQUESTS)
def test_an_event_that_no_policy_of_the_task_is_for_is_the_jobs(
    own: list[LifecyclePolicy], of_job: list[LifecyclePolicy], request: JobEvent
) -> None:
    """The policies of one level decide alone where the other has none for the event, and the task's where both have."""
    of_task = match(with_policies(own, []), request)
    alone = match(with_policies([], of_job), request)
    assert match(with_policies(own, of_job), request) == (alone if of_task == SYNC else of_task)
    if request.task != "w":
        assert of_task == SYNC


@given(POLICIES, POLICIES, REQUESTS)
def test_the_first_that_fits_decides(
    first: list[LifecyclePolicy], then: list[LifecyclePolicy], request: JobEvent
) -> None:
    """Further policies change nothing for events that have one."""
    found = match(with_policies([], first), request)
    both = match(with_policies([], [*first, *then]), request)
    assert both == (match(with_policies([], then), request) if found == SYNC else found)


@pytest.mark.parametrize(
    ("event", "phase", "restarted"), [("PodFailed", "Pending", ["j-w-0"]), ("PodEvicted", "Aborted", None)]
)
def test_each_event_has_its_levels_action(
    cluster: Cluster, event: str, phase: str, restarted: list[str] | None
) -> None:
    """A task that restarts failed pods leaves the abort after an eviction to its Job."""
    own = [{"event": "PodFailed", "action": "RestartPod"}]
    of_job = {"event": "PodEvicted", "action": "AbortJob"}
    submit(cluster, "j", 0, of_job, tasks=[task("w", 2, policies=own), task("v", 1)], minAvailable=3)
    before = {pod.metadata.name: pod.metadata.uid for pod in pods(cluster)}
    if event == "PodFailed":
        fail(cluster, "j-w-0")
    else:
        cluster.api.remove(PODS, cluster.api.find(PODS, "j-w-0", "n"), at_once=True)
    settle(cluster)
    assert job(cluster, "j").status.state.phase == phase
    new = [pod.metadata.name for pod in pods(cluster) if before[pod.metadata.name] != pod.metadata.uid]
    assert new == (restarted or [])
    assert len(pods(cluster)) == (3 if restarted else 0)
