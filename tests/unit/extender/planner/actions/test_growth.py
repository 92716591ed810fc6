"""Growth never costs what runs: not the gang's own members, and not other gangs' start."""

import pytest
from extender_world import GPU8, World, of, slots
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.actions.stalegangeviction import StaleGangEviction
from extender.planner.framework import decisions
from extender.planner.framework.registry import PlannerPlugin
from extender.planner.plugins.admission import Drf
from extender.planner.plugins.order import Elastic, SubGroupOrder
from extender.planner.timing import Timing
from muster.api.muster.placement import StartedWith


def bound(world: World, key: str, ranks: range, epoch: int, **more: str) -> None:
    """These members run where the gang's placement put them."""
    nodes = slots(world.state.placements[key])["worker"]
    for rank in ranks:
        world.pod(key, "worker", rank, GPU8, node=nodes[rank], pin=nodes[rank], epoch=epoch, phase="Running", **more)
    world.close(world.plan())


def running(world: World, members: int = 2) -> str:
    """A gang that runs, one member a node."""
    key = world.gang("a", {"worker": (members, GPU8)}, phase="Running")
    world.plan()
    bound(world, key, range(members), epoch=1)
    return key


def evicted(world: World) -> list[str]:
    """Who is evicted once the grace period is over."""
    action = StaleGangEviction()
    assert not of(world.session(action), decisions.Evict)
    world.now += 61
    return [evict.pod.name for evict in of(world.session(action), decisions.Evict)]


def test_a_running_gang_that_is_scaled_up_without_room_keeps_its_members() -> None:
    """Two run, four are wanted; that they start together was never asked of the two."""
    world = World().nodes(2)
    world.scale(running(world), "worker", 4)
    assert evicted(world) == []


@pytest.mark.parametrize(
    ("elastic", "ends", "placed"),
    [(True, ["Succeeded", "Running"], 0), (True, ["Succeeded"] * 2, 0), (True, ["Running"] * 2, 1),
     (False, ["Succeeded", "Running"], 1), (True, ["Succeeded", "Failed"], 1)],
)  # fmt: skip
def test_an_elastic_world_that_ends_does_not_grow(*, elastic: bool, ends: list[str], placed: int) -> None:
    """A member that starts when others have ended well would be alone; the reason is told."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (3, GPU8)}, min_member=2, min_task_member={}, phase="Running")
    if elastic:
        world.change(world.state.groups[key], annotations={"muster.dev/elastic": "2:3"})
    world.node("node-2", unschedulable=True)
    world.members(key, 3, GPU8, gated=True)
    world.plan()
    bound(world, key, range(2), epoch=1)
    for rank, phase in enumerate(ends):
        world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", pin=f"node-{rank}", epoch=1, phase=phase)
    world.node("node-2")
    world.now += 60
    session = world.plan()
    assert sum(place.new_slots for place in of(session, decisions.Place)) == placed
    told = [each.message for each in of(session, decisions.Unschedulable)]
    assert (told == []) == bool(placed)
    assert all("succeeded, so no other member starts any more" in each for each in told)


def test_what_a_gang_has_grown_to_is_what_it_must_keep() -> None:
    """With four members it is stale when one is lost; it started with two."""
    world = World().nodes(4)
    key = running(world)
    world.scale(key, "worker", 4)
    world.members(key, (2, 3), GPU8, gated=True)
    world.plan()
    bound(world, key, range(2, 4), epoch=2)
    assert world.state.placements[key].status.started_with == StartedWith(min_member=4, min_task_member={"worker": 4})
    world.pod(key, "worker", 3, GPU8, node="node-3", phase="Running", deletion_timestamp="2027-01-15T08:00:00Z")
    assert evicted(world) == ["a-worker-0", "a-worker-1", "a-worker-2"]


def test_a_gang_that_was_scaled_down_may_be_scaled_up_again() -> None:
    """The lower minimum is remembered as soon as it is seen."""
    world = World().nodes(4)
    key = running(world, 4)
    world.scale(key, "worker", 2)
    for pod in list(world.state.pod_objects.values()):
        if pod.metadata.name in {"a-worker-2", "a-worker-3"}:
            world.state.on_pod(pod, None)
    world.close(world.plan())
    assert not of(world.plan(), decisions.ClosePlacement), "it is written once"
    world.scale(key, "worker", 4)
    assert evicted(world) == []


def test_a_minimum_that_is_raised_while_the_gang_starts_is_not_the_one_it_started_with() -> None:
    """Planned for two, bound with two, and four are asked for meanwhile."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)}, phase="Inqueue")
    world.plan()
    world.scale(key, "worker", 4)
    bound(world, key, range(2), epoch=1)
    assert evicted(world) == []


@pytest.mark.parametrize(("whole", "phases", "goes"), [
    pytest.param(False, ["Running", "", ""], 0, id="it never was whole"),
    pytest.param(True, ["Running", "Succeeded", ""], 0, id="one has finished"),
    pytest.param(True, ["Running", "Failed", "Failed"], 0, id="failed ones are left to its owner"),
    pytest.param(True, ["Running", "Failed", ""], 2, id="one failed and one is gone"),
    pytest.param(True, ["Running", "Running", ""], 2, id="one is gone"),
    pytest.param(True, ["", "", ""], 0, id="nobody is left"),
])  # fmt: skip
def test_only_what_is_left_of_a_whole_gang_goes(phases: list[str], goes: int, *, whole: bool) -> None:
    """Those that still run; how it is whole again is another's to say."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (3, GPU8)}, phase="Running")
    world.plan()
    if whole:
        bound(world, key, range(3), epoch=1)
    for rank, phase in enumerate(phases):
        pod = world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", pin=f"node-{rank}", epoch=1, phase=phase)
        if not phase:
            world.state.on_pod(pod, None)
    left = [name for name in ("a-worker-0", "a-worker-1") if phases[int(name[-1])] == "Running"]
    assert evicted(world) == left[:goes]


def three_elastic_gangs(world: World, slots: int) -> list[str]:
    """Three Jobs that were created together: two pods each must start together, and there are 16 of each."""
    world.timing = Timing(growth_delay_s=1.0)
    world.nodes(slots)
    keys = []
    for name in ("a", "b", "c"):
        keys.append(world.gang(name, {"worker": (16, GPU8)}, min_member=2, min_task_member={"worker": 2}))
        world.members(keys[-1], 16, GPU8, gated=True)
        for place in of(world.plan(), decisions.Place):
            assert place.new_slots == 2, "the next gang may come in a moment"
    return keys


def test_gangs_that_come_together_all_start_before_one_of_them_grows() -> None:
    """The first one would have taken all 16 slots."""
    world = World()
    for key in three_elastic_gangs(world, slots=16):
        bound(world, key, range(2), epoch=1)
    assert not of(world.plan(), decisions.Place), "it is too early"
    world.now += 2
    places = of(world.plan(), decisions.Place)
    assert sum(place.new_slots for place in places) == 10
    assert all(place.gang.started for place in places)


def test_a_member_that_is_missed_comes_back_although_a_gang_waits() -> None:
    """It is not growth."""
    world = World()
    world.timing = Timing(growth_delay_s=1.0)
    world.nodes(2)
    key = running(world)
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    world.gang("b", {"worker": (2, GPU8)})
    world.pod(key, "worker", 1, GPU8, gated=True)
    assert [place.gang.key for place in of(world.plan(), decisions.Place)] == [key]


ONE = {"cpu": 1, "nvidia.com/gpu": 1}


def grown(world: World) -> dict[str, int]:
    """Slots that each gang gets in one cycle."""
    return {place.gang.group.metadata.name: place.new_slots for place in of(world.plan(), decisions.Place)}


@pytest.mark.parametrize("plugins", [[], [Elastic({})], [Elastic({}), Drf({})], [SubGroupOrder({})]])
def test_gangs_of_one_queue_share_what_is_left(plugins: list[PlannerPlugin]) -> None:
    """Six GPUs, two gangs that run with one and want six: three each, whatever the order."""
    world = World().nodes(1, gpus=6)
    world.plugins += plugins
    for name in ("a", "b"):
        world.gang(name, {"worker": (6, ONE)}, min_member=1, min_task_member={})
    assert grown(world) == {"a": 3, "b": 3}


def test_what_a_gang_has_above_its_minimum_already_counts() -> None:
    """One runs with three of five, and one begins with one: of the four GPUs that are left the latter gets three."""
    world = World().nodes(1)
    world.gang("a", {"worker": (5, ONE)}, phase="Running", min_member=1, min_task_member={})
    for rank in range(5):
        placed = {"node": "node-0", "phase": "Running"} if rank < 3 else {"gated": True}
        world.pod("ns/a", "worker", rank, ONE, **placed)  # type: ignore[arg-type]
    world.gang("b", {"worker": (9, ONE)}, min_member=1, min_task_member={})
    assert grown(world) == {"a": 1, "b": 4}


@pytest.mark.parametrize("plugins", [[], [SubGroupOrder({})]])
def test_pod_sets_of_one_gang_share_what_is_left(plugins: list[PlannerPlugin]) -> None:
    """Each has one of its minimum, and gets two of the four that are left."""
    world = World().nodes(1, gpus=6)
    world.plugins += plugins
    world.gang("a", {"x": (6, ONE), "y": (6, ONE)}, min_member=2, min_task_member={"x": 1, "y": 1})
    place = next(iter(of(world.plan(), decisions.Place)))
    assert {name: len(nodes) for name, nodes in slots(place).items()} == {"x": 3, "y": 3}


def test_pod_sets_get_what_is_left_by_their_minimums() -> None:
    """One with a minimum of 4 gets twice as much as one with a minimum of 2."""
    world = World().nodes(2)
    world.plugins.append(SubGroupOrder({}))
    world.gang("a", {"x": (16, ONE), "y": (16, ONE)}, min_member=6, min_task_member={"x": 4, "y": 2})
    counts = {name: len(nodes) for name, nodes in slots(next(iter(of(world.plan(), decisions.Place)))).items()}
    assert sum(counts.values()) == 16
    assert abs(counts["x"] - 2 * counts["y"]) <= 2


@settings(max_examples=settings().max_examples * 2 // 5)
@given(gangs=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 8)), min_size=1, max_size=4), gpus=st.integers(1, 16))
def test_no_gang_has_a_surplus_two_above_that_of_one_that_wants_more(gangs: list[tuple[int, int]], gpus: int) -> None:
    """Of one queue and priority, as long as all start; and nothing stays free that one could use."""
    world = World(checked=False).nodes(1, gpus=gpus)
    sizes = {f"g{number}": (least, max(least, most)) for number, (least, most) in enumerate(gangs)}
    for name, (least, most) in sizes.items():
        world.gang(name, {"worker": (most, ONE)}, min_member=least, min_task_member={})
    got = grown(world)
    if got.keys() < sizes.keys():
        return
    assert sum(got.values()) == min(gpus, sum(most for _, most in sizes.values()))
    surplus = {name: got[name] - sizes[name][0] for name in got}
    hungry = [surplus[name] for name in got if got[name] < sizes[name][1]]
    assert not hungry or max(surplus.values()) <= min(hungry) + 1


def test_a_gang_whose_minimum_is_0_starts_at_once() -> None:
    """It has no start that growth could wait for, as a PodGroup without `minMember`, which Spark makes."""
    world = World().nodes(2)
    world.timing = Timing(growth_delay_s=60.0)
    key = world.pod_group("spark", 0)
    assert not of(world.plan(), decisions.Place)
    world.members(key, 2, GPU8, task="driver")
    [place] = of(world.plan(), decisions.Place)
    assert place.new_slots == 2
