"""Members are counted by their slots: pods that ended or go, and their successors, are one member.

The pods come in any order; a gang has three to six members, in one or two pod sets.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pytest
from extender_world import World, of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender import placementcontent
from extender.groupcontent import wanted_status
from extender.planner.framework import decisions
from extender.planner.state.gangs import GangView
from extender.planner.state.podset import enough
from muster.api.muster.placementnotes import PlacementContent
from muster.api.muster.reason import reason_of
from muster.api.volcano.scheduling import PodGroupStatus

WHY = reason_of("why")

CPU1 = {"cpu": 1}
Member = tuple[str, int]
STATES: Mapping[str, Mapping[str, Any]] = {
    "runs": {"phase": "Running", "node": "node-0"},
    "bound": {"node": "node-0"},
    "succeeded": {"phase": "Succeeded", "node": "node-0"},
    "failed": {"phase": "Failed", "node": "node-0"},
    "goes": {"phase": "Running", "node": "node-0", "deletion_timestamp": "2027-01-01T00:00:00Z"},
    "gated": {"gated": True},
}
HOLDS = frozenset({"runs", "bound", "succeeded"})
"""States of a pod that has taken its slot."""
ALIVE = frozenset({"runs", "bound"})


class Pods(NamedTuple):
    """A gang, the least that it needs, and its pods: member and state, in the order in which they come."""

    sizes: Mapping[str, int]
    minimums: Mapping[str, int]
    least: int
    come: tuple[tuple[Member, str], ...]

    def members(self, states: Iterable[str]) -> set[Member]:
        """The members that have a pod in one of these states."""
        return {member for member, state in self.come if state in states}

    def start(self, members: Iterable[Member]) -> bool:
        """True if these are enough."""
        count = Counter(name for name, _ in members)
        return count.total() >= self.least and all(count[name] >= least for name, least in self.minimums.items())

    def world(self) -> tuple[World, str]:
        """The gang in a world, without a placement."""
        world = World(checked=False).nodes(1)
        tasks = {name: (size, CPU1) for name, size in self.sizes.items()}
        key = world.gang("a", tasks, min_member=self.least, min_task_member=self.minimums)
        for number, (member, state) in enumerate(self.come):
            world.pod(key, *member, CPU1, uid=f"uid-{number}", name=f"p-{number}", **STATES[state])
        return world, key


@st.composite
def pods(draw: st.DrawFn, states: Iterable[str] = STATES) -> Pods:
    """A gang of three to six with up to twice as many pods."""
    one = {"a": draw(st.integers(3, 6))}
    sizes = draw(st.sampled_from([one, {"a": 1, "b": 2}, {"a": 2, "b": 2}, {"a": 3, "b": 3}]))
    minimums = {name: draw(st.integers(0, size)) for name, size in sizes.items()}
    least = draw(st.integers(max(1, sum(minimums.values())), sum(sizes.values())))
    members = [(name, rank) for name, size in sizes.items() for rank in range(size)]
    come = draw(st.lists(st.tuples(st.sampled_from(members), st.sampled_from(sorted(states))), max_size=12))
    return Pods(sizes, minimums, least, tuple(come))


@settings(deadline=None, max_examples=settings().max_examples * 3 // 5)
@given(pods())
def test_a_slot_is_taken_once_however_many_pods_it_had(case: Pods) -> None:
    """By a pod on a node that does not go, or one that has succeeded: so gangs start, or are half placed."""
    world, key = case.world()
    gang, taken = world.view(key), case.members(HOLDS)
    assert gang.taken == len(taken)
    assert {(each.name, rank) for each in gang.pod_sets for rank in each.taken} == taken
    alive = bool(case.members(ALIVE))
    assert gang.started == (bool(taken) and case.start(taken))
    assert gang.incomplete == (alive and not gang.started)


@settings(deadline=None, max_examples=settings().max_examples * 3 // 5)
@given(pods())
def test_a_placement_tells_how_many_members_have_a_node(case: Pods) -> None:
    """When it begins and when it ends; a minimum that was never reached is not recorded as if it had been."""
    world, key = case.world()
    gang, taken = world.view(key), case.members(HOLDS)
    placed = placementcontent.placed(decisions.Place(gang, [], 1, 2), PlacementContent(), deadline_s=world.now).status
    assert (placed.bound, placed.planned) == (len(taken), len(taken) + 2)
    end = decisions.ClosePlacement(gang, "Bound", WHY)
    closed = placementcontent.closed(end, now=world.now, avoided=()).status
    assert closed.bound == len(taken)
    assert closed.started_with is not None
    assert closed.started_with.min_member == (case.least if case.start(taken) else min(case.least, len(taken)))


def whole(case: Pods) -> GangView:
    """The gang after it has started whole with one pod for each member, of which those of the case are left."""
    world, key = Pods(case.sizes, case.minimums, case.least, ()).world()
    world.plan()
    members = [(name, rank) for name, size in case.sizes.items() for rank in range(size)]
    first = [world.pod(key, *member, CPU1, **STATES["runs"]) for member in members]
    world.close(world.plan())
    for number, (member, state) in enumerate(case.come):
        world.pod(key, *member, CPU1, uid=f"uid-{number}", name=f"p-{number}", **STATES[state])
    for pod in first:
        world.state.on_pod(pod, None)
    group = world.state.groups[key]
    world.state.on_pod_group(group, structs.replace(group, status=PodGroupStatus(phase="Running")))
    return world.view(key)


@settings(deadline=None, max_examples=settings().max_examples * 2 // 5)
@given(pods(STATES.keys() - {"gated"}))
def test_a_gang_that_has_started_is_running_as_long_as_enough_members_are_there(case: Pods) -> None:
    """With pods that have ended or go, as in Volcano; a member that failed ten times is one member."""
    status = wanted_status(whole(case), enqueued=False, placed=False, waits=None, now=0.0)
    there = case.members(STATES)
    running = sum(state == "runs" for _, state in case.come)
    if len(there) >= case.least:
        ended = case.members(STATES) and not case.members({"runs", "bound", "goes"})
        assert status.phase == ("Completed" if ended else "Running")
    else:
        assert status.phase in ({"Unknown"} if running else {"Pending", "Running", "Inqueue"})
        assert status.phase != "Running" or not running
    counts = Counter(state for _, state in case.come)
    assert (status.running, status.succeeded, status.failed) == (running, counts["succeeded"], counts["failed"])


@pytest.mark.parametrize("come", [
    pytest.param([(0, "failed"), (0, "failed"), (0, "runs")], id="it failed again and again, and the others are gone"),
    pytest.param([(0, "goes"), (0, "runs"), (1, "runs")], id="it goes and has a successor"),
])  # fmt: skip
def test_a_member_stands_for_no_other(come: list[tuple[int, str]]) -> None:
    """Its Job keeps the pods that failed; a policy on Unknown may answer that members are missing."""
    gang = whole(Pods({"a": 3}, {"a": 3}, 3, tuple((("a", rank), state) for rank, state in come)))
    assert wanted_status(gang, enqueued=False, placed=False, waits=None, now=0.0).phase == "Unknown"


@settings(deadline=None, max_examples=settings().max_examples * 3 // 10)
@given(pods(STATES.keys() - {"gated", "succeeded"}))
def test_a_gang_that_stays_half_placed_is_evicted_as_a_whole_and_one_that_has_enough_is_not(case: Pods) -> None:
    """Each of its pods that still uses a node, once; what goes or has ended goes by itself."""
    world, key = case.world()
    gang = world.view(key)
    world.session(world.progress)
    world.now += 3600
    evicted = of(world.session(world.progress), decisions.Evict)
    alive = [f"p-{number}" for number, (_, state) in enumerate(case.come) if state in ALIVE]
    assert sorted(each.pod.name for each in evicted if each.started) == sorted(alive if gang.incomplete else [])


@pytest.mark.parametrize(
    ("counts", "least", "minimums", "expected"),
    [
        ({"a": 2, "b": 1}, 3, {"a": 2, "b": 1}, True),
        ({"a": 3, "b": 0}, 3, {"a": 2, "b": 1}, False),
        ({"a": 1, "b": 2}, 3, {"a": 2, "b": 1}, False),
        ({"a": 2, "b": 1}, 4, {"a": 2, "b": 1}, False),
        ({"a": 3, "b": 1}, 4, {"a": 2, "b": 1}, True),
        ({"a": 0, "b": 2}, 2, {"a": 2, "b": 1}, True),  # the minimums count only if the least covers their sum
    ],
)
def test_what_is_enough(counts: dict[str, int], least: int, minimums: dict[str, int], *, expected: bool) -> None:
    """So many of all, and so many of each pod set."""
    assert enough(counts, least, minimums) == expected
