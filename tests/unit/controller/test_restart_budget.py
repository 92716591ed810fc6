"""Restart budgets: no more restarts in any sliding time than the budget says, whoever counts them."""

from typing import Any

import pytest
from builders import job as a_job
from builders import pod as a_pod
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from controller.job.rules.budget import charged, fault_of, infrastructure_codes, no_restart_left, restarts_of, spent
from controller.job.rules.events import JobEvent, pod_changed
from controller.job.rules.phases import Counts, next_phase
from controller.job.rules.policies import pods_to_delete
from muster.api.kubernetes.core import Pod, PodStatus
from muster.api.kubernetes.meta import ReportedCondition, format_time
from muster.api.volcano.batch import Job, JobState, JobStatus
from muster.resources.runtime import RestartBudget, budget_mistakes, restart_budget

KEY = "muster.dev/restart-budget"
NOW = 1_800_000_000.0
USERS = JobEvent(event="PodFailed", pod="j-w-0", exit_codes=(1,))
SIGNAL = JobEvent(event="PodFailed", pod="j-w-0", exit_codes=(139,))
EVICTED = JobEvent(event="PodEvicted", pod="j-w-0")


def job(budget: str = "2 in 1h", **annotations: str) -> Job:
    """A Job with a budget."""
    return a_job("j", {"w": 1}, uid="u", annotations={KEY: budget, **annotations}, max_retry=1000)


def failed(code: int = 1, reason: str = "Error", **status: Any) -> Pod:
    """A pod whose container has ended with this code."""
    ended = {"name": "main", "state": {"terminated": {"exitCode": code, "reason": reason}}}
    return a_pod("j-w-0", uid="p", task="w", status={"phase": "Failed", "containerStatuses": [ended], **status})


def fault(pod: Pod, *others: Pod, codes: frozenset[int] = frozenset()) -> str:
    """Whose fault the end of a pod is."""
    running = Pod(metadata=pod.metadata, status=PodStatus(phase="Running"))
    return fault_of(pod_changed(running, pod), [pod, *others], NOW, codes)


def restarted(of: Job, status: JobStatus, request: JobEvent, now: float) -> JobStatus:
    """The status after a restart for this event."""
    return charged(of, status, request, fault_of(request, [], now), now)


DISRUPTED = ReportedCondition(type="DisruptionTarget", status="True")


@pytest.mark.parametrize(("pod", "whose"), [
    pytest.param(failed(1), "user", id="an exit code"),
    pytest.param(failed(127), "user", id="no such command"),
    pytest.param(failed(137, "OOMKilled"), "user", id="out of its memory"),
    pytest.param(failed(128, "StartError"), "user", id="no start"),
    pytest.param(failed(137), "unknown", id="killed"),
    pytest.param(failed(139), "unknown", id="a broken pointer or GPU"),
    pytest.param(failed(1, conditions=[DISRUPTED]), "infrastructure", id="disrupted"),
    pytest.param(failed(137, reason="Error"), "unknown", id="without a reason"),
    pytest.param(Pod(status=PodStatus(phase="Failed", reason="OutOfcpu")), "infrastructure", id="refused"),
])  # fmt: skip
def test_whose_fault_it_is(pod: Pod, whose: str) -> None:
    """By exit codes and reasons."""
    assert fault(pod) == whose


@pytest.mark.parametrize("reason", ["Evicted", "NodeLost", "NodeShutdown", "Terminated", "Preempting"])
def test_what_kubelet_ended_is_the_infrastructures(reason: str) -> None:
    """Whatever the code."""
    pod = failed(137)
    pod.status.reason = reason
    assert fault(pod) == "infrastructure"


@pytest.mark.parametrize(("ago_s", "whose"), [(10, "infrastructure"), (599, "infrastructure"), (601, "user")])
def test_who_fails_after_another_was_disrupted_lost_its_connection(ago_s: float, whose: str) -> None:
    """But one that was disrupted long ago, and is left as it ended, excuses no crash loop."""
    evicted = ReportedCondition(type="DisruptionTarget", status="True", last_transition_time=format_time(NOW - ago_s))
    other = failed(137, conditions=[evicted])
    other.metadata.uid = "other"
    assert fault(failed(1), other) == whose
    for changed in ({"type": "Ready"}, {"status": "False"}):
        other.status.conditions = [structs.replace(evicted, **changed)]
        assert fault(failed(1), other) == "user"


def test_a_job_may_call_exit_codes_the_infrastructures() -> None:
    """As its program knows best."""
    assert fault(failed(75), codes=frozenset({75, 85})) == "infrastructure"
    assert fault(failed(1), codes=frozenset({75, 85})) == "user"


def test_exit_codes_that_are_no_codes_are_left_out() -> None:
    """A code is a number from 1 to 255."""
    assert infrastructure_codes({"muster.dev/infrastructure-exit-codes": "75, 255,256,0,-1,x,,1"}) == {1, 75, 255}
    assert infrastructure_codes({}) == frozenset()


def test_the_restart_over_the_budget_ends_the_job() -> None:
    """The reason names the budget and the exits; finished pods stay, as they say why."""
    one, status = job(), JobStatus(state=JobState(phase="Running"))
    for second, request in enumerate((USERS, SIGNAL, EVICTED, USERS)):
        assert not spent(status)
        status = restarted(one, status, request, NOW + second)
    assert status.retry_count == 2
    assert spent(status) == (
        "the restart budget (2 in 1h) is spent, and the Job failed once more: exit code 1 (2 times), exit code 139"
    )
    restarting = Job(metadata=one.metadata, spec=one.spec, status=status)
    restarting.status.state = JobState(phase="Restarting")
    restarting.status.version = 1
    assert no_restart_left(restarting)
    assert pods_to_delete(restarting, [failed()]) == []
    end = next_phase(one.spec, "Restarting", Counts(failed=1), status.retry_count, spent(status))
    assert end
    assert (end.phase, end.reason) == ("Failed", "RestartBudgetSpent")


def test_restarts_are_noted_to_the_millisecond() -> None:
    """With what was the cause."""
    assert restarts_of(restarted(job(), JobStatus(), USERS, NOW + 0.12345)).past == [(NOW + 0.123, "exit code 1")]


def test_a_user_who_commands_a_restart_is_obeyed() -> None:
    """It does not count, and a budget that was spent is no end any more."""
    one, status = job("0 in 1h"), JobStatus()
    status = restarted(one, status, USERS, NOW)
    assert spent(status)
    status = restarted(one, status, JobEvent(command="again", action="RestartJob"), NOW + 1)
    assert not spent(status)
    assert restarts_of(status).past == []


def test_without_a_budget_every_restart_uses_up_a_retry() -> None:
    """As in Volcano; nothing is noted."""
    one = job()
    one.metadata.annotations.clear()
    status = restarted(one, JobStatus(), EVICTED, NOW)
    assert (status.retry_count, status.controlled_resources) == (1, {})


@given(
    restarts=st.integers(0, 4),
    within_s=st.integers(1, 100),
    events=st.lists(st.tuples(st.integers(0, 60), st.sampled_from([USERS, SIGNAL, EVICTED])), max_size=40),
)
def test_never_more_restarts_than_the_budget(restarts: int, within_s: int, events: list[tuple[int, JobEvent]]) -> None:
    """Only the status outlives a process; evictions are free, and the first one over the budget is the last."""
    one, status, now, counted = job(f"{restarts} in {within_s}s"), JobStatus(), NOW, list[float]()
    for pause_s, request in events:
        now += pause_s
        status = restarted(one, status, request, now)
        recent = [at for at in counted if at > now - within_s]
        if request is EVICTED:
            assert not spent(status)
        elif spent(status):
            assert len(recent) == restarts
            return
        else:
            counted.append(now)
            assert len(recent) + 1 <= restarts
        assert status.retry_count == len(counted)


@pytest.mark.parametrize(("text", "found"), [
    ("5 in 1h", RestartBudget(5, 3600.0, "5 in 1h")),
    ("0 in 2d12h", RestartBudget(0, 216000.0, "0 in 2d12h")),
    ("101 in 1h", None),
    ("5 in 0s", None),
    ("5 per hour", None),
    ("five in 1h", None),
    ("5 in 1000w1000w", None),
    ("", None),
])  # fmt: skip
def test_how_a_budget_is_written(text: str, found: RestartBudget | None) -> None:
    """What cannot be read is refused with how to write it."""
    assert restart_budget({KEY: text}) == found
    errors = list(budget_mistakes({KEY: text}, "metadata.annotations"))
    assert bool(errors) is (found is None)
    assert all("write it like 5 in 1h" in error.message for error in errors)


def test_a_note_that_was_edited_is_no_note() -> None:
    """The count begins anew."""
    status = JobStatus(controlled_resources={"muster.dev/restarts": "{"})
    assert restarts_of(status).past == []
    assert not spent(status)
