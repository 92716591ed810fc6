"""When pods are expected to end, and what they give back."""

from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from extender_world import World, of
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.actions.reserve.ends import Releases, expected_end, releases, used_by_gangs
from extender.planner.actions.reserve.reservation import (
    SEARCH_INTERVAL_S,
    ReservationSearch,
    _first,
    _since,
    _when,
    worth_it,
)
from extender.planner.framework.answers import ReservationRules
from extender.planner.framework.decisions import Place
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import format_time

GPU = {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(("since", "runtime", "now", "end"), [
    pytest.param(100.0, 50.0, 120.0, 150.0, id="runs"),
    pytest.param(None, 50.0, 120.0, 170.0, id="has not started"),
    pytest.param(100.0, None, 120.0, inf, id="says nothing"),
    pytest.param(100.0, 50.0, 160.0, 150.0, id="is late: any moment"),
    pytest.param(100.0, 50.0, 210.0, 150.0, id="is late by a minute: still believed"),
    pytest.param(100.0, 50.0, 211.0, inf, id="is believed no more"),
    pytest.param(100.0, 600.0, 1300.0, 700.0, id="has run twice as long as it said"),
    pytest.param(100.0, 600.0, 1301.0, inf, id="has run longer than that"),
])  # fmt: skip
def test_the_expected_end(since: float | None, runtime: float | None, now: float, end: float) -> None:
    """Of a pod, in seconds since the epoch."""
    assert expected_end(since, runtime, now) == end


def test_pods_with_and_without_a_gang_and_slots_on_their_way_give_back_in_the_order_of_their_ends() -> None:
    """Those of which no end is known never do; what a gang holds may come free one day all the same."""
    world = World().nodes(4, gpus=2)
    late = world.gang("late", {"worker": (2, GPU)}, runtime="300s", phase="Running")
    for rank, phase in enumerate(("Running", "Succeeded")):
        world.pod(late, "worker", rank, GPU, node="node-0", phase=phase, since=world.now)
    silent = world.gang("silent", {"worker": (1, GPU)}, phase="Running")
    world.pod(silent, "worker", 0, GPU, node="node-1", phase="Running", since=world.now)
    lone = Pod(metadata=world.meta("lone", annotations={"muster.dev/expected-runtime": "100s"}))
    lone.spec.node_name, lone.status.phase = "node-2", "Running"
    world.state.on_pod(None, lone)
    world.gang("starting", {"worker": (2, GPU)}, runtime="200s")
    world.plan()
    session = world.session()
    snapshot, found = session.snapshot, releases(session, [])
    assert [time - world.now for time in found.times] == [100, 200, 200, 300]
    assert found.owners == ("ns/lone", "ns/starting", "ns/starting", "ns/late")
    gpu = snapshot.axis["nvidia.com/gpu"]
    before = snapshot.free[gpu, :4].sum()
    assert [found.freed(snapshot.free, count)[gpu, :4].sum() - before for count in range(5)] == [0, 0, 1000, 2000, 3000]
    assert used_by_gangs(snapshot)[gpu, :4].sum() == 4000


def test_a_pod_of_no_gang_that_goes_is_expected_no_more() -> None:
    """Nor one that has ended."""
    world = World().nodes(1)
    lone = Pod(metadata=world.meta("lone", annotations={"muster.dev/expected-runtime": "100s"}))
    lone.spec.node_name = "node-0"
    world.state.on_pod(None, lone)
    assert len(world.session().snapshot.ending) == 1
    world.state.on_pod(lone, None)
    assert world.session().snapshot.ending == ()


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.integers(1, 4)), max_size=20),
    st.lists(st.integers(-2, 8), min_size=2, max_size=2),
)
def test_the_first_time_at_which_enough_is_given_back(ends: list[tuple[int, int, int]], lacking: list[int]) -> None:
    """Compared with a walk over all of them; columns 1 and 3 are asked about."""
    ends = sorted(ends)
    found = Releases(
        times=np.array([end[0] for end in ends], dtype=np.float64),
        columns=np.array([end[1] for end in ends], dtype=np.int64),
        rows=np.array([[end[2]] for end in ends], dtype=np.int64).reshape(len(ends), 1),
        owners=tuple("a" for _ in ends),
    )
    columns, wanted = np.array([1, 3]), np.array([lacking])
    for count in range(len(ends) + 1):
        gone = [sum(rows for _, column, rows in ends[:count] if column == at) for at in range(4)]
        assert found.freed(np.ones((1, 4), dtype=np.int64), count).tolist() == [[each + 1 for each in gone]]
        assert found.gained(columns, count).tolist() == [[gone[1], gone[3]]]
    moments = [-inf, *(float(end[0]) for end in ends)]
    enough = [moment for moment in moments if (found.gained(columns, found.until(moment)) >= wanted).all()]
    assert found.when(columns, wanted) == (min(enough) if enough else None)


@pytest.mark.parametrize(("told", "computed", "at", "written"), [
    (None, None, None, True), (1100, None, None, False), (None, 1100.2, 1101, False), (1101, 1100.2, 1101, True),
    (1091, 1100.2, 1101, True), (1090, 1100.2, 1101, False), (1102, 1100.2, 1101, True), (1103, 1100.2, 1101, False),
    (990, 900.0, 1000, True), (1000, 1000.0, 1000, True), (980, 1000.0, 1000, True), (980, 1001.0, 1001, False),
    (1200, 900.0, 1000, True), (1200, 1000.0, 1000, True), (1200, 1002.0, 1002, False),
])  # fmt: skip
def test_an_expected_start_is_written_again_if_it_is_much_later_or_any_earlier(
    told: int | None, computed: float | None, at: int | None, *, written: bool
) -> None:
    """It is 1000 s now; what may begin any moment is not written again and again."""
    session: Any = SimpleNamespace(now=1000.0)
    assert _when(session, "" if told is None else format_time(told), computed) == (at, written)


@pytest.mark.parametrize(("lasts", "starts"), [("30s", ["short", "long"]), ("1h", ["short"])])
def test_what_starts_in_a_cycle_gives_back_to_a_reservation_of_that_cycle(lasts: str, starts: list[str]) -> None:
    """The head needs four of five GPUs in 100 s; one that ends before leaves the fifth to a long one."""
    world = World()
    world.node("node-0", gpus=5)
    world.node("node-1", gpus=2)
    for node, gpus in (("0", 1), ("1", 2)):
        key = world.gang(f"old{node}", {"worker": (gpus, GPU)}, runtime="100s", phase="Running")
        world.members(key, gpus, GPU, node=f"node-{node}", phase="Running", since=world.now)
    world.gang("head", {"worker": (3, {"nvidia.com/gpu": 2})})
    world.gang("short", {"worker": (1, GPU)}, runtime=lasts)
    world.gang("long", {"worker": (1, GPU)})
    assert [place.gang.group.metadata.name for place in of(world.plan(), Place)] == starts


@pytest.mark.parametrize(("last", "worth"), [
    pytest.param(None, True, id="the first one"),
    pytest.param(ReservationSearch(1, 100.0, improving=True, patient=True), True, id="for something else"),
    pytest.param(ReservationSearch(1, 0.0, improving=False, patient=True), False, id="nothing has changed"),
    pytest.param(ReservationSearch(0, 100.1 - SEARCH_INTERVAL_S, improving=False, patient=True), False,
        id="a moment ago"),
    pytest.param(ReservationSearch(0, 100.0 - SEARCH_INTERVAL_S, improving=False, patient=True), True,
        id="nodes have changed"),
    pytest.param(ReservationSearch(1, 100.0 - SEARCH_INTERVAL_S, improving=False, patient=False), True,
        id="its patience is over"),
])  # fmt: skip
def test_a_search_without_success_is_repeated_when_it_may_find_more(
    last: ReservationSearch | None, *, worth: bool
) -> None:
    """And not at the pace of cycles."""
    assert worth_it(ReservationSearch(1, 100.0, improving=False, patient=True), last) is worth


@pytest.mark.parametrize(
    ("told", "since"), [(None, 1000), (950, 950), (1000, 1000), (1001, 1000), (890, 1000), (891, 891)]
)
def test_a_reservation_counts_from_the_first_time_until_its_pause_is_over(told: int | None, since: int) -> None:
    """It is valid for 100 s, and the pause is 10 s; a time to come is none."""
    session: Any = SimpleNamespace(now=1000.7, reservations=ReservationRules(expiry_s=100.0, patience_s=10.0))
    status = SimpleNamespace(reserved_at=format_time(told) if told else "")
    gang: Any = SimpleNamespace(placement=SimpleNamespace(status=status))
    assert _since(session, gang) == since


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_first_step_that_succeeds_is_found(count: int, first: int) -> None:
    """With its result, by few trials."""
    tried: list[int] = []

    def trial(step: int) -> Any:
        tried.append(step)
        return [step] if step >= first else None

    assert _first(count, trial) == ((first, [first]) if first < count else None)
    assert len(tried) <= 8
