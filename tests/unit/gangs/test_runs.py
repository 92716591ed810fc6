"""Run times of gangs that have ended, which starts are foretold by."""

from typing import Any

import msgspec

from gangs.rows import Objects
from gangs.runs import past_runs
from muster.api.volcano.batch import Job


def job(phase: str, **at: str) -> Job:
    """A Volcano Job that entered phases at these times of one day."""
    conditions: list[Any] = [{"status": name, "lastTransitionTime": f"2026-11-21T{time}Z"} for name, time in at.items()]
    status = {"state": {"phase": phase}, "conditions": conditions}
    return msgspec.convert({"metadata": {"uid": phase}, "spec": {"queue": "q"}, "status": status}, Job)


def test_run_times_of_jobs() -> None:
    """From the last start to the end, of those that ended by themselves."""
    jobs = [
        job("Failed", Running="10:00:00", Failed="10:00:05"),
        job("Completed", Pending="08:00:00", Running="08:30:00", Completed="09:00:00"),
        job("Aborted", Running="10:00:00", Aborted="10:00:05"),
        job("Running", Running="10:00:00"),
    ]
    assert past_runs(Objects(jobs=jobs)) == {"q": [1800.0, 5.0]}
