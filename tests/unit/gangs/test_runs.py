"""Intervals of run times: they hold as often as they say, on runs of a production cluster that came later."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_replay import tasks

from gangs.rows import Objects
from gangs.runs import LATEST, LEAST, past_runs, remaining
from muster.api.volcano.batch import Job

WIDTH = 0.05
"""How far the share of cases may be from 80 %."""
Run = tuple[float, float]
"""Its begin and its end."""


@pytest.fixture(scope="module")
def runs() -> dict[str, list[Run]]:
    """Tasks of a production cluster by their class of service, in the order of their begin."""
    found: dict[str, list[Run]] = defaultdict(list)
    for task in tasks():
        found[task.queue].append((task.begin_s, task.end_s))
    return {queue: sorted(each) for queue, each in found.items() if len(each) > 2 * LATEST}


@pytest.mark.parametrize("elapsed_s", [0.0, 60.0, 600.0])
def test_the_interval_holds_for_later_runs(runs: dict[str, list[Run]], elapsed_s: float) -> None:
    """Four of five tasks of the later half end within it, which knows those alone that had ended by then."""
    held, asked = 0, 0
    for each in runs.values():
        ended = sorted(each, key=lambda run: run[1])
        ends = [end for _, end in ended]
        for begin, end in each[len(each) // 2 :]:
            if end - begin <= elapsed_s:
                continue
            known = ended[: bisect_right(ends, begin + elapsed_s)][-LATEST:]
            found = remaining([late - early for early, late in known], elapsed_s)
            if found is not None:
                asked += 1
                held += found.early_s <= end - begin - elapsed_s <= found.late_s
    assert asked > 500
    assert held / asked == pytest.approx(0.8, abs=WIDTH)


SECONDS = st.lists(st.floats(0.1, 1e7), max_size=60)


@given(SECONDS, st.floats(0, 1e6))
def test_an_interval_is_made_of_past_runs(past_s: Sequence[float], elapsed_s: float) -> None:
    """It lies ahead, and there is one only if enough of them took longer."""
    found = remaining(past_s, elapsed_s)
    longer = [seconds for seconds in past_s if seconds > elapsed_s]
    assert (found is None) == (len(longer) < LEAST)
    if found is not None:
        assert 0 < found.early_s <= found.late_s <= max(longer) - elapsed_s


def test_the_shortest_and_the_longest_of_nine() -> None:
    """The next one is as likely before, between and after any of them: it is beyond these two in two of ten cases."""
    assert remaining([5.0, 1.0, 9.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0]) == (1.0, 9.0)
    assert remaining([float(n) for n in range(1, 20)]) == (2.0, 18.0)


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
