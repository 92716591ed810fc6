"""A queue's capability holds also while a gang is placed and pods without a gang are bound at the same moment."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW, World, of

from extender.actions.allocate import Allocate
from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.framework import decisions
from extender.placements import PlacementWriter
from extender.state.pledges import Pledge
from muster.api.placement import Placement
from muster.kube.errors import Conflict

CPU2 = {"cpu": 2}


class Api:
    """Takes placements; `during` happens while one is written."""

    def __init__(self, world: World, *, fails: bool = False) -> None:
        self.written: list[str] = []
        self.seen: list[Pledge] = []
        self._world, self._fails = world, fails

    def create(self, _resource: object, body: dict[str, Any], _namespace: str) -> Placement:
        """As the API server."""
        self.seen += self._world.state.pledges.of_others("somebody else")
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
    cluster = Cluster(cast("Any", None), wake=lambda: None)
    cluster.state = world.state
    world.state.pledges.put("uid-p", Pledge("small", {"cpu": 1000}))
    recorder = cast("Any", SimpleNamespace(event=lambda *_: None))
    barrier = Barrier(timeout_s=1, monotonic_s=lambda: 0.0)
    writer = PlacementWriter(
        cast("Any", api), cluster, barrier, recorder, cast("Any", None), cast("Any", None), wall_s=lambda: NOW
    )
    writer.place(session, place)


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
    assert Pledge("small", {"cpu": 4000, "pods": 2}) in api.seen
    assert [pledge.requests for pledge in world.state.pledges.of_others("")] == [{"cpu": 1000}]
