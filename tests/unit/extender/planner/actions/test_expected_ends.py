"""When pods are expected to end, and what they give back."""

from math import inf

import numpy as np
import pytest
from extender_world import World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.actions.reserve.ends import Releases, expected_end, releases, used_by_gangs
from muster.api.kubernetes.core import Pod

GPU = {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("since", "runtime", "now", "end"),
    [
        (100.0, 50.0, 120.0, 150.0),
        (None, 50.0, 120.0, 170.0),
        (100.0, None, 120.0, inf),
        (100.0, 50.0, 160.0, 150.0),
        (100.0, 50.0, 210.0, 150.0),
        (100.0, 50.0, 211.0, inf),
        (100.0, 600.0, 1300.0, 700.0),
        (100.0, 600.0, 1301.0, inf),
    ],
    ids=[
        "runs",
        "has not started",
        "says nothing",
        "is late: any moment",
        "is late by a minute: still believed",
        "is believed no more",
        "has run twice as long as it said",
        "has run longer than that",
    ],
)
def test_the_expected_end(since: float | None, runtime: float | None, now: float, end: float) -> None:
    """Of a pod, in seconds since the epoch."""
    assert expected_end(since, runtime, now) == end


def test_pods_with_and_without_a_gang_and_slots_on_their_way_give_back_in_the_order_of_their_ends() -> None:
    """Those of which no end is known never do; what a gang holds may come free one day all the same."""
    world = World().nodes(4, gpus=2)
    late = world.gang("late", {"worker": (1, GPU)}, runtime="300s", phase="Running")
    world.pod(late, "worker", 0, GPU, node="node-0", phase="Running", since=world.now)
    silent = world.gang("silent", {"worker": (1, GPU)}, phase="Running")
    world.pod(silent, "worker", 0, GPU, node="node-1", phase="Running", since=world.now)
    lone = Pod(metadata=world.meta("lone", annotations={"muster.dev/expected-runtime": "100s"}))
    lone.spec.node_name, lone.status.phase = "node-2", "Running"
    world.state.on_pod(None, lone)
    world.gang("starting", {"worker": (2, GPU)}, runtime="200s")
    world.plan()
    snapshot = world.session().snapshot
    found = releases(snapshot, world.now, [])
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
def test_the_time_at_which_enough_is_given_back_is_the_first_one(
    ends: list[tuple[int, int, int]], lacking: list[int]
) -> None:
    """Compared with a walk over all of them; columns 1 and 3 are asked about."""
    ends = sorted(ends)
    found = Releases(
        times=np.array([end[0] for end in ends], dtype=np.float64),
        columns=np.array([end[1] for end in ends], dtype=np.int64),
        rows=np.array([[end[2]] for end in ends], dtype=np.int64).reshape(len(ends), 1),
        owners=tuple("a" for _ in ends),
    )
    columns, wanted = np.array([1, 3]), np.array([lacking])
    moments = [-inf, *(float(end[0]) for end in ends)]
    enough = [moment for moment in moments if (found.gained(columns, found.until(moment)) >= wanted).all()]
    assert found.when(columns, wanted) == (min(enough) if enough else None)
