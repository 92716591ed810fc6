"""What a watch of the past tells: times that are as near as the order of changes allows."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from history.past import _WatchedChange, moments
from history.pods import ObservationTime, RecordedPod, gone
from muster.api.kubernetes.meta import format_time

T = 1_800_000_000
LONG_MS = 60_000


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[int, _WatchedChange]]:
    """Changes of pods in their order, each with the time (ms) at which it happened and stamps as servers write them."""
    found: list[tuple[int, _WatchedChange]] = []
    for number, at in enumerate(sorted(draw(st.lists(st.integers(0, LONG_MS), max_size=12)))):
        what = draw(st.sampled_from(["ADDED", "MODIFIED", "DELETED"]))
        born = at if what == "ADDED" else draw(st.integers(0, at))
        bound = draw(st.none() | st.integers(born, at))
        conditions: list[dict[str, Any]] = []
        if bound is not None:
            stamp = format_time((T * 1000 + bound) // 1000)
            conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp}]
        created = format_time((T * 1000 + born) // 1000)
        content = {"metadata": {"uid": str(number), "creationTimestamp": created}, "status": {"conditions": conditions}}
        found.append((T * 1000 + at, _WatchedChange(number, "pods", what, convert(content, RecordedPod))))
    return found


@given(changes())
def test_the_time_of_a_change_is_within_its_bound(found: list[tuple[int, _WatchedChange]]) -> None:
    """Whatever happened between two runs of the recorder, its time is told with a bound that holds, and in order."""
    told = moments([event for _, event in found], T * 1000, T * 1000 + LONG_MS)
    for (at, _), moment in zip(found, told, strict=True):
        assert abs(moment.at - at) <= moment.within + 1
        assert T * 1000 <= moment.at <= T * 1000 + LONG_MS
    assert all(one.at <= other.at for one, other in pairwise(told))


def test_a_change_is_not_older_than_the_last_time_in_it_nor_what_came_after() -> None:
    """A pod that was made long ago and bound a moment ago: its change has the time of the binding."""
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": format_time(T + 40)}]
    bound, other = (
        convert({"metadata": {"creationTimestamp": format_time(T)}, "status": {"conditions": each}}, RecordedPod)
        for each in (conditions, [])
    )
    events = [_WatchedChange(1, "pods", "MODIFIED", bound), _WatchedChange(2, "pods", "DELETED", other)]
    for moment in moments(events, T * 1000, T * 1000 + LONG_MS):
        assert (moment.at, moment.within) == ((T + 50) * 1000, 10_000)


@given(at=st.integers(0, 10_000), late=st.integers(0, 3_000), live=st.booleans())
def test_a_second_that_was_written_is_believed(*, at: int, late: int, live: bool) -> None:
    """The time that is told is in the second that the API server wrote, whatever the recorder's clock says."""
    happened = T * 1000 + at
    told = ObservationTime(happened + late, live=live).time_of(format_time(happened // 1000))
    assert happened // 1000 == told // 1000
    assert abs(told - happened) <= (min(late, 999) if live else 500)


@pytest.mark.parametrize(("both", "second"), [(True, 12), (False, 20)])
def test_a_deleted_pod_ended_with_the_last_of_its_containers(*, both: bool, second: int) -> None:
    """While one of them still runs, the pod ended when it went, not when another container did."""
    ends = [{"terminated": {"exitCode": 0, "finishedAt": format_time(T + at)}} for at in (9, 12)]
    ended = [{"name": str(number), "state": state} for number, state in enumerate(ends)]
    running = {"name": "1", "state": {"running": {"startedAt": format_time(T)}}}
    content = {"status": {"phase": "Running", "containerStatuses": ended if both else [ended[0], running]}}
    told = gone(convert(content, RecordedPod), ObservationTime((T + 20) * 1000, live=True))
    assert (told.at // 1000, told.reason) == (T + second, "deleted")


@given(st.integers(0, 5_000), st.integers(0, 5_000), st.integers(0, 5_000))
def test_the_second_of_a_stamp_and_the_bound_of_its_moment_are_both_believed(true: int, at: int, more: int) -> None:
    """What was read afterwards is in the middle of what second and bound have in common, off by half of it at most."""
    moment = ObservationTime(T * 1000 + at, live=True, within=abs(true - at) + more)
    stamp = format_time((T * 1000 + true) // 1000)
    told, error = moment.time_of(stamp), moment.error(stamp)
    assert abs(told - (T * 1000 + true)) <= error + 1
    assert error <= min(500, moment.within)
    assert told // 1000 == T + true // 1000
