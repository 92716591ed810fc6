"""A queue's capability holds also while a gang is placed and pods without a gang are bound at the same moment."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW, World, of
from msgspec.structs import replace

from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.gangevents import GangEvents
from extender.placementcontent import DEADLINE_PER_SLOT_S, DEADLINE_S
from extender.placements import PlacementWriter
from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus
from muster.api.muster.reason import reason_of
from muster.kube.errors import Conflict, NotFound

CPU1, CPU2 = {"cpu": 1}, {"cpu": 2}


class Api:
    """Takes placements; `during` happens while one is written."""

    def __init__(self, world: World, *, fails: bool = False) -> None:
        self.written: list[str] = []
        self.seen: list[object] = []
        self.deadlines_s: list[float] = []
        self._world, self._fails = world, fails

    def delete(self, *_: object, **__: object) -> None:
        """Nothing of an earlier gang is there any more."""
        raise NotFound("it is gone")

    def merge_patch(self, *_: object) -> Placement:
        """Nor what there was of this one."""
        raise NotFound("it is gone")

    def create(self, _resource: object, body: dict[str, Any], _namespace: str) -> Placement:
        """As the API server."""
        self.seen.append(dict(self._world.state.ledger.queues.queues["small"].staying))
        if self._fails:
            raise Conflict("not now")
        self.written.append(body["metadata"]["name"])
        self.deadlines_s.append(parse_time(body["spec"]["deadline"]) or 0.0)
        return Placement(metadata=self._world.meta(body["metadata"]["name"]))


def placed(world: World, api: Api) -> None:
    """One cycle places a gang of two pods, and its placement is written."""
    key = world.gang("a", {"worker": (2, CPU2)}, queue="small")
    session = world.session(Allocate())
    [place] = of(session, decisions.Place)
    assert place.gang.key == key
    writer_for(world, api).place(session, place)


def writer_for(world: World, api: Api) -> PlacementWriter:
    """Writes to that API; a pod of the queue is being bound."""
    cluster = Cluster(cast("Any", None), wake=lambda: None)
    cluster.state = world.state
    world.state.ledger.assume("uid-p", "small", world.state.classes.of_amounts({"cpu": 1000}))
    events = GangEvents(cast("Any", SimpleNamespace(event=lambda *_: None)), wall_s=lambda: NOW)
    barrier = Barrier(timeout_s=1, monotonic_s=lambda: 0.0)
    return PlacementWriter(
        cast("Any", api), cluster, barrier, events, cast("Any", None), cast("Any", None), wall_s=lambda: NOW
    )


def small(cpus: int) -> World:
    """A node, and a queue of so many CPUs."""
    return World().nodes(1).queue("small", capability={"cpu": cpus})


@pytest.mark.parametrize(("cpus", "written"), [(4, []), (5, ["a"])])
def test_a_gang_is_not_placed_beside_a_pod_that_fills_its_queue(cpus: int, written: list[str]) -> None:
    """The pod is being bound, and the planner has not seen it: the next cycle decides anew."""
    world = small(cpus)
    api = Api(world)
    placed(world, api)
    assert api.written == written


def test_the_deadline_leaves_time_for_all_pods_that_are_being_made() -> None:
    """The pods of this gang, and of the gangs that were placed before."""
    world = World().nodes(4).queue("small")
    world.gang("before", {"worker": (5, CPU1)}, queue="small")
    world.plan()
    assert world.session().snapshot.placed_slots == 5
    world.gang("a", {"worker": (10, {"cpu": 0})}, queue="small")
    session, api = world.session(Allocate()), Api(world)
    [place] = of(session, decisions.Place)
    writer_for(world, api).place(session, place)
    assert api.deadlines_s == [pytest.approx(NOW + DEADLINE_S + 15 * DEADLINE_PER_SLOT_S, abs=1)]


@pytest.mark.parametrize("fails", [0, 1])
def test_what_is_being_placed_counts_for_pods_until_it_is_written_or_has_failed(fails: int) -> None:
    """Bind sees it in the same place."""
    world = small(5)
    api = Api(world, fails=bool(fails))
    try:
        placed(world, api)
    except Conflict:
        assert fails
    assert api.seen == [{"cpu": 5000, "pods": 2}]
    assert world.state.ledger.queues.queues["small"].staying == {"cpu": 1000}


@pytest.mark.parametrize(("user", "written"), [("alice", []), ("bob", ["a"])])
def test_a_gang_is_not_placed_beside_a_pod_that_takes_what_its_user_may_have(user: str, written: list[str]) -> None:
    """Nor by a limit per user, which counts for nobody else."""
    world = World().nodes(1).queue("small", **{"max-per-user": "cpu=4"})
    key = world.gang("a", {"worker": (2, CPU2)}, queue="small", user=user)
    api = Api(world)
    writer = writer_for(world, api)
    session = world.session(Allocate())
    assert [place.gang.key for place in of(session, decisions.Place)] == [key]
    world.state.ledger.assume("uid-q", "small", world.state.classes.of_amounts({"cpu": 1000}), user="alice")
    writer.place(session, of(session, decisions.Place)[0])
    assert api.written == written


@pytest.mark.parametrize("limit", [{"max-per-user": "cpu=9"}, {"limit-windows": "Mon-Sun 00:00-24:00 UTC cpu=9"}])
def test_what_is_being_placed_counts_for_its_user_until_it_is_written(limit: dict[str, str]) -> None:
    """Pods of that user which are bound meanwhile would exceed the limit together with it."""
    world = World().nodes(1).queue("small", **limit)
    world.gang("a", {"worker": (2, CPU2)}, queue="small", user="alice")
    seen: list[dict[tuple[str, str], dict[str, int]]] = []

    class Looks(Api):
        def create(self, *write: Any) -> Placement:
            seen.append({key: dict(use.staying) for key, use in world.state.ledger.queues.users.items()})
            return super().create(*write)

    session = world.session(Allocate())
    writer_for(world, Looks(world)).place(session, of(session, decisions.Place)[0])
    assert seen == [{("small", "alice"): {"cpu": 4000, "pods": 2}, ("small", ""): {"cpu": 1000}}]
    assert world.state.ledger.queues.users.keys() == {("small", "")}


def of_an_earlier_gang(world: World, pod_group_uid: str) -> Placement:
    """A placement whose end was watched before the answer to our write of it came: only we still know it."""
    stale = Placement(metadata=world.meta("a"), spec=PlacementSpec(pod_group_uid=pod_group_uid, epoch=1))
    world.state.on_placement(None, stale)
    return stale


def test_a_placement_that_only_we_know_is_in_nobodys_way() -> None:
    """A gang of the same name is placed, though what is known of the earlier one cannot be deleted."""
    world = small(8)
    stale = of_an_earlier_gang(world, "another-uid")
    api = Api(world)
    placed(world, api)
    assert api.written == ["a"]
    assert world.state.placements.get(stale.metadata.key) is not stale


def test_a_placement_that_is_gone_when_it_is_changed_is_forgotten() -> None:
    """Or it would be changed in vain in every cycle from then on."""
    world = small(8)
    key = world.gang("a", {"worker": (2, CPU2)}, queue="small")
    uid = next(gang.uid for gang in world.session().snapshot.gangs if gang.key == key)
    stale = of_an_earlier_gang(world, uid)
    world.state.on_placement(stale, replace(stale, status=PlacementStatus(phase="Reserved")))
    gang = next(gang for gang in world.session().snapshot.gangs if gang.key == key)
    with pytest.raises(NotFound):
        writer_for(world, Api(world)).unreserve(decisions.Unreserve(gang, reason_of("nobody waits")))
    assert key not in world.state.placements


def test_a_pod_group_that_is_gone_when_our_write_is_answered_stays_forgotten() -> None:
    """And one of the same name that came meanwhile stays."""
    world = small(8)
    key = world.gang("a", {"worker": (2, CPU2)}, queue="small")
    group = world.state.groups[key]
    world.state.on_pod_group(group, None)
    world.state.on_pod_group_written(group)
    assert key not in world.state.groups
    other = replace(group, metadata=replace(group.metadata, uid="another-uid"))
    world.state.on_pod_group(None, other)
    world.state.on_pod_group_written(group)
    assert world.state.groups[key] is other


def test_a_gang_that_only_changes_its_nodes_needs_no_more_of_its_queue() -> None:
    """The queue is full with the slots that it has."""
    world = small(5)
    world.gang("a", {"worker": (2, CPU2)}, queue="small")
    session = world.plan()
    [place] = of(session, decisions.Place)
    gang = world.view("ns/a")
    assert gang.active
    writer = writer_for(world, Api(world))
    with pytest.raises(NotFound, match="it is gone"):  # it came as far as the write
        writer.place(session, decisions.Place(gang, place.pod_sets, 2, 2))
