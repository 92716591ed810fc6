"""Policies of a task and of its Job together: the task's come first, and the Job's stay for all other events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_cluster import Cluster
from simulated_jobs import fail, job, pods, settle, submit, task

from controller.job.rules.events import Request
from controller.job.rules.policies import SYNC, match
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job, JobSpec, LifecyclePolicy, TaskSpec

EVENTS = st.sampled_from(["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown"])
POLICIES = st.lists(
    st.builds(
        LifecyclePolicy,
        action=st.sampled_from(["RestartJob", "RestartTask", "RestartPod", "AbortJob", "TerminateJob", "CompleteJob"]),
        events=st.lists(EVENTS | st.just("*"), max_size=2),
        exit_code=st.none() | st.sampled_from([1, 3, 137]),
        timeout=st.none() | st.sampled_from(["1s", "5m"]),
    ),
    max_size=3,
)
CODES = st.sampled_from([(), (3,), (1, 137)])
REQUESTS = st.builds(Request, event=EVENTS, task=st.sampled_from(["w", "v", ""]), exit_codes=CODES)


def with_policies(own: list[LifecyclePolicy], of_job: list[LifecyclePolicy]) -> Job:
    """A Job of tasks `w`, which has policies of its own, and `v`."""
    tasks = [TaskSpec(name="w", replicas=1, policies=own), TaskSpec(name="v", replicas=1)]
    return Job(metadata=ObjectMeta(name="j", namespace="n", uid="u"), spec=JobSpec(tasks=tasks, policies=of_job))


@given(POLICIES, POLICIES, REQUESTS)
def test_an_event_that_no_policy_of_the_task_is_for_is_the_jobs(
    own: list[LifecyclePolicy], of_job: list[LifecyclePolicy], request: Request
) -> None:
    """The policies of one level decide alone where the other has none for the event, and the task's where both have."""
    of_task = match(with_policies(own, []), request)
    alone = match(with_policies([], of_job), request)
    assert match(with_policies(own, of_job), request) == (alone if of_task == SYNC else of_task)
    if request.task != "w":
        assert of_task == SYNC


@given(POLICIES, POLICIES, REQUESTS)
def test_of_one_level_the_first_that_fits_decides(
    first: list[LifecyclePolicy], then: list[LifecyclePolicy], request: Request
) -> None:
    """Further policies change nothing for events that have one."""
    found = match(with_policies([], first), request)
    both = match(with_policies([], [*first, *then]), request)
    assert both == (match(with_policies([], then), request) if found == SYNC else found)


@pytest.mark.parametrize(
    ("event", "phase", "restarted"), [("PodFailed", "Pending", ["j-w-0"]), ("PodEvicted", "Aborted", None)]
)
def test_each_event_gets_the_action_of_its_level(
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
