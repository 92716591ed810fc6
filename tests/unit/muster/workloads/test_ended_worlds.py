"""The completions with which an elastic Indexed Job ends when its started members have succeeded."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import names
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.workloads.batch_job import size_of_ended_world

JSON = dict[str, Any]
PHASES = {"S": "Succeeded", "F": "Failed", "R": "Running", "P": "Pending", "g": "Pending"}


def job(size: int, *, elastic: bool = True, status: JSON | None = None, **spec: Any) -> IndexedJob:
    """An Indexed Job of this size."""
    note = {"metadata": {"annotations": {names.ELASTIC: "1:9"} if elastic else {}}}
    spec = {"completionMode": "Indexed", "completions": size, "parallelism": size, "template": note, **spec}
    return msgspec.convert({"metadata": {"name": "t"}, "spec": spec, "status": status or {}}, IndexedJob)


def pods(states: str) -> list[Pod]:
    """One pod per index: S succeeded, F failed, R runs, P is pinned, g is gated, - does not exist."""
    return [
        msgspec.convert(
            {
                "metadata": {"name": f"t-{index}", "labels": {names.COMPLETION_INDEX: str(index)}},
                "spec": {"schedulingGates": [{"name": names.GATE}] if state == "g" else []},
                "status": {"phase": PHASES[state]},
            },
            Pod,
        )
        for index, state in enumerate(states)
        if state != "-"
    ]


@pytest.mark.parametrize(
    ("states", "status", "size"),
    [
        ("SSg", {}, 2),
        ("SSgg", {"completedIndexes": "0,1"}, 2),
        ("-Sg", {"completedIndexes": "0"}, 2),
        ("ggg", {}, 0),  # of a JobSet: its other Jobs have the started members
        ("SRg", {}, None),
        ("SPg", {}, None),
        ("SgS", {}, None),
        ("gSg", {}, None),
        ("SSF", {}, None),
        ("SFg", {}, None),
        ("-Sg", {"completedIndexes": "1"}, None),
        ("SSg", {"failedIndexes": "2"}, None),
        ("SSg", {"conditions": [{"type": "FailureTarget", "status": "True"}]}, None),
        ("SSS", {}, None),
    ],
)
def test_pods_that_never_started_must_have_the_highest_indexes(states: str, status: JSON, size: int | None) -> None:
    """Otherwise the Job stays as it is."""
    assert size_of_ended_world(job(len(states), status=status), pods(states)) == size


def test_a_failed_try_of_an_index_that_succeeded_later() -> None:
    """It does not count."""
    failed, *_ = pods("F")
    assert size_of_ended_world(job(3), [failed, *pods("SSg")]) == 2


@pytest.mark.parametrize("spec", [
    {"elastic": False},
    {"suspend": True},
    {"completionMode": "NonIndexed"},
    {"parallelism": 2},
    {"successPolicy": {"rules": [{"succeededIndexes": "0-2"}]}},
])  # fmt: skip
def test_other_jobs_stay(spec: Any) -> None:
    """Only an elastic Job that runs all its indexes at once, and whose user has defined no other success."""
    assert size_of_ended_world(job(3, **spec), pods("SSg")) is None


@given(st.text("SFRPg-", min_size=1, max_size=6), st.sets(st.integers(0, 5)))
def test_no_member_that_has_started_is_left_out(states: str, completed: set[int]) -> None:
    """All indexes below the new size have succeeded; above it are only gated pods, or none."""
    completed &= {index for index, state in enumerate(states) if state == "-"}
    status = {"completedIndexes": ",".join(map(str, sorted(completed)))}
    size = size_of_ended_world(job(len(states), status=status), pods(states))
    if size is not None:
        assert size < len(states)
        assert all(state == "S" or index in completed for index, state in enumerate(states[:size]))
        assert set(states[size:]) <= {"g", "-"}
        assert not any(index in completed for index in range(size, len(states)))
