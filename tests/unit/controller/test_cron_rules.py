"""Which Job of a CronJob is due, which go, and what its status says, decided without a cluster."""

from typing import Any

import msgspec
import pytest
from builders import manifests
from hypothesis import given
from hypothesis import strategies as st

from controller.cron.rules import active, due_s, job_manifest, outdated, status_of
from muster.api.kubernetes.meta import ObjectMeta, format_time, parse_time
from muster.api.names import CREATED_BY
from muster.api.volcano.batch import Job, JobSpec, JobState, JobStatus, Phase
from muster.api.volcano.cron import SCHEDULED_AT, CronJob
from muster.volcano.schedule import read_schedule

HOURLY = read_schedule("0 * * * *", None)
CREATED = "2026-01-01T00:30:00Z"


def cron_job(last: str | None = None, **spec: Any) -> CronJob:
    """A CronJob that was created at half past midnight; `last`: of its status."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"tasks": [manifests.task("t")], "queue": "q"}}
    whole = {"schedule": "0 * * * *", "jobTemplate": template, **spec}
    metadata = {"name": "cron", "namespace": "team", "uid": "uid-cron", "creationTimestamp": CREATED}
    status = {"lastScheduleTime": last} if last else {}
    return msgspec.convert({"metadata": metadata, "spec": whole, "status": status}, CronJob)


def job(name: str, phase: Phase = "Running", at: str = CREATED) -> Job:
    """A Job that was created, and entered its phase, at that time."""
    metadata = ObjectMeta(name=name, namespace="team", uid=f"uid-{name}", creation_timestamp=at)
    return Job(metadata=metadata, status=JobStatus(state=JobState(phase=phase, last_transition_time=at)))


@pytest.mark.parametrize(("now", "last", "deadline", "expected"), [
    ("2026-01-01T00:45:00Z", None, None, None),
    ("2026-01-01T01:00:00Z", None, None, "2026-01-01T01:00:00Z"),
    ("2026-01-01T05:59:00Z", None, None, "2026-01-01T05:00:00Z"),
    ("2026-01-01T05:59:00Z", "2026-01-01T05:00:00Z", None, None),
    ("2026-01-01T05:59:00Z", "2026-01-01T03:00:00Z", None, "2026-01-01T05:00:00Z"),
    ("2026-01-01T05:59:00Z", None, 60, None),
    ("2026-01-01T05:00:30Z", None, 60, "2026-01-01T05:00:00Z"),
    ("2036-01-01T05:00:30Z", None, None, "2036-01-01T05:00:00Z"),
])  # fmt: skip
def test_the_latest_missed_time_is_due(now: str, last: str | None, deadline: int | None, expected: str | None) -> None:
    """Once, and not after its deadline."""
    found = due_s(cron_job(last, startingDeadlineSeconds=deadline), HOURLY, parse_time(now) or 0.0)
    assert (None if found is None else format_time(found)) == expected


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=30))
def test_each_time_has_one_job(waits_s: list[int]) -> None:
    """However often one looks: none twice, none that is over, in order."""
    now_s, of, made = parse_time(CREATED) or 0.0, cron_job(), list[float]()
    for wait_s in waits_s:
        now_s += wait_s
        time_s = due_s(of, HOURLY, now_s)
        if time_s is not None:
            assert time_s <= now_s < time_s + 3600
            made.append(time_s)
            of = cron_job(format_time(time_s))
        assert due_s(of, HOURLY, now_s) is None
    assert made == sorted(set(made))


def test_a_job_is_named_after_its_time() -> None:
    """The same Job, whichever process makes it."""
    made = job_manifest(cron_job(), 1_767_229_200.0, "2026-01-01T02:00:00+01:00")
    assert made["metadata"]["name"] == f"cron-{1_767_229_200 // 60}"
    assert made["metadata"]["annotations"] == {SCHEDULED_AT: "2026-01-01T02:00:00+01:00"}
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-cron"
    assert msgspec.convert(made["spec"], JobSpec) == cron_job().spec.job_template.spec


def test_a_job_is_created_by_who_created_the_cron_job() -> None:
    """Whatever its template says."""
    of = cron_job()
    of.spec.job_template.metadata.annotations[CREATED_BY] = "bob"
    assert CREATED_BY not in job_manifest(of, 60.0, "then")["metadata"]["annotations"]
    of.metadata.annotations[CREATED_BY] = "alice"
    assert job_manifest(of, 60.0, "then")["metadata"]["annotations"][CREATED_BY] == "alice"


def test_the_oldest_jobs_go() -> None:
    """Completed ones and lost ones have a limit each; those that run have none."""
    times = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 6)]
    jobs = [
        *(job(f"won-{at[9]}", "Completed", at) for at in times),
        *(job(f"lost-{at[9]}", "Failed", at) for at in times),
    ]
    jobs += [job("ended", "Terminated", "2025-01-01T00:00:00Z"), *(job(f"runs-{number}") for number in range(9))]
    gone = {each.metadata.name for each in outdated(cron_job(), jobs)}
    assert gone == {"won-1", "won-2", "lost-1", "lost-2", "lost-3", "lost-4", "ended"}
    kept = cron_job(successfulJobsHistoryLimit=0, failedJobsHistoryLimit=6)
    assert {each.metadata.name for each in outdated(kept, jobs)} == {f"won-{number}" for number in range(1, 6)}


def test_the_status_has_what_runs_and_what_was_won() -> None:
    """The time of success stays when the Job is gone."""
    jobs = [job("b"), job("a", "Pending"), job("c", "Completed", "2026-01-01T03:00:00Z"), job("d", "Failed")]
    assert [each.metadata.name for each in active(jobs)] == ["a", "b"]
    status = status_of(cron_job(), jobs, parse_time("2026-01-01T04:00:00Z"))
    assert [each.name for each in status.active] == ["a", "b"]
    assert (status.last_schedule_time, status.last_successful_time) == ("2026-01-01T04:00:00Z", "2026-01-01T03:00:00Z")
    later = msgspec.structs.replace(cron_job(), status=status)
    assert status_of(later, []) == msgspec.structs.replace(status, active=[])
