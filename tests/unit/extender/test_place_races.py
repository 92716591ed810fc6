"""A queue's capability holds also while a gang is placed and pods without a gang are bound at the same moment."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW, World, of
from msgspec.structs import replace

from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.gangevents import GangEvents
from extender.placements import PlacementWriter
from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus
from muster.kube.errors import Conflict, NotFound

CPU2 = {"cpu": 2}


class Api:
    """Takes placements; `during` happens while one is written."""

    def __init__(self, world: World, *, fails: bool = False) -> None:
        self.written: list[str] = []
        self.seen: list[object] = []
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
    world = World()
    world.nodes(1)
    world.queue("small", capability={"cpu": cpus})
    return world


@pytest.mark.parametrize(("cpus", "written"), [(4, []), (5, ["a"])])
def test_a_gang_is_not_placed_beside_a_pod_that_fills_its_queue(cpus: int, written: list[str]) -> None:
    """The pod is being bound, and the planner has not seen it: the next cycle decides anew."""
    world = small(cpus)
    api = Api(world)
    placed(world, api)
    assert api.written == written


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
    reserved = replace(stale, status=PlacementStatus(phase="Reserved"))
    world.state.on_placement(stale, reserved)
    gang = next(gang for gang in world.session().snapshot.gangs if gang.key == key)
    with pytest.raises(NotFound):
        writer_for(world, Api(world)).unreserve(decisions.Unreserve(gang, "nobody waits"))
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
