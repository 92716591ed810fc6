"""Run times of gangs that have ended, which starts are foretold by."""

from typing import Any

import msgspec
import pytest
from builders import pod, pod_group

from gangs.rows import RowSources
from gangs.runs import LATEST, past_runs
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job


def day(time: str) -> str:
    """That time of one day."""
    return f"2026-11-21T{time}Z"


def job(phase: str, **at: str) -> Job:
    """A Volcano Job that entered phases at these times of one day."""
    conditions: list[Any] = [{"status": name, "lastTransitionTime": day(time)} for name, time in at.items()]
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
    assert past_runs(RowSources(jobs=jobs)) == {"q": [1800.0, 5.0]}


def ended(start: str | None, *ends: str) -> Pod:
    """A pod of a gang whose containers ended at these times of one day."""
    states = [{"name": f"c{at}", "state": {"terminated": {"exitCode": 0, "finishedAt": day(at)}}} for at in ends]
    told = {"startTime": day(start) if start else None, "containerStatuses": states}
    return pod(f"p{start}{ends}", node="n", phase="Succeeded", gang="g", status=told)


@pytest.mark.parametrize(("phase", "pods", "run_s"), [
    ("Completed", [("10:00:05", "10:01:00", "10:02:00"), ("10:00:00", "10:01:30")], 120.0),
    ("Completed", [(None, "10:01:00"), ("10:00:00",)], 60.0),
    ("Completed", [("10:00:00", "10:00:00")], 0.0),
    ("Completed", [("10:00:00",)], None),
    ("Completed", [(None, "10:00:00")], None),
    ("Completed", [("10:00:00", "09:59:59")], None),
    ("Completed", [], None),
    ("Running", [("10:00:00", "10:02:00")], None),
])  # fmt: skip
def test_run_times_of_pods(phase: str, pods: list[tuple[str | None, ...]], run_s: float | None) -> None:
    """From the first start to the last end, of a gang without a Job."""
    objects = RowSources(groups=[pod_group("g", queue="q", phase=phase)], pods=[ended(*each) for each in pods])
    assert past_runs(objects) == ({} if run_s is None else {"q": [run_s]})
    assert past_runs(RowSources(groups=objects.groups, pods=None)) == {}


def test_the_latest_runs_count() -> None:
    """In the order in which they ended, and not those of long ago."""
    jobs = [job("Completed", Running="00:00:00", Completed=f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}")
            for s in range(LATEST + 1, 0, -1)]  # fmt: skip
    assert past_runs(RowSources(jobs=jobs)) == {"q": [float(s) for s in range(2, LATEST + 2)]}
