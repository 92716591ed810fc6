"""Evictions for a gang: only once its placement stands, all or none, and none twice in a short time."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW, of
from victims_world import Cluster as VictimsWorld

from extender.cluster import Cluster
from extender.evictions import EVICT_AGAIN_S, Evictions
from extender.gangevents import GangEvents
from extender.notices import NoticeWriter
from extender.planner import reasons
from extender.planner.framework.decisions import ClosePlacement, MakeRoom
from extender.planner.framework.session import Session
from extender.writes import Writes
from muster.kube.errors import Conflict, NotFound, TooManyRequests


class Api:
    """Answers evictions; remembers who was told to go, and which Events there were."""

    def __init__(self, refuses: str = "", gone: str = "", versions: Mapping[str, str] | None = None) -> None:
        self.evicted: list[str] = []
        self.versions = versions or {}
        self.events: list[str] = []
        self._refuses, self._gone = refuses, gone

    def evict(self, _namespace: str, name: str, uid: str, *, resource_version: str) -> None:
        """As the Eviction API, which evicts nobody but the pod as it was at this version."""
        assert uid
        if resource_version != self.versions.get(name, resource_version):
            raise Conflict("the object has been modified")
        if name == self._refuses:
            raise TooManyRequests("the budget db needs 1 pod")
        if name == self._gone:
            raise NotFound("no such pod")
        self.evicted.append(name)

    def event(self, obj: Any, _kind: str, reason: str, message: str) -> None:
        """As the recorder."""
        self.events.append(f"{obj.metadata.name} {reason}: {message}")


def carried_out(
    api: Api,
    *,
    written: bool = True,
    budgeted: bool = False,
    times: tuple[float, ...] = (0,),
    meanwhile: Callable[[VictimsWorld], None] = lambda _: None,
) -> Any:
    """The evictions of a cycle in which a gang of two pods goes for another; who was closed, too.

    `meanwhile` is what happens between the decision and the evictions.
    """
    world = VictimsWorld(2)
    world.runs("low", 2)
    if budgeted:
        world.label_pods("low", app="db")
        world.budget("db", allowed=2, app="db")
    world.asks("high", 2)
    session = world.cycle()
    if not written:
        world.state.on_placement(world.state.placements["ns/high"], None)
    meanwhile(world)
    cluster = Cluster(cast("Any", None), wake=lambda: None)
    cluster.state = world.state
    closed: list[ClosePlacement] = []
    clock = SimpleNamespace(now=NOW)

    def close(_: Session, decision: ClosePlacement) -> None:
        closed.append(decision)

    events = GangEvents(cast("Any", api), wall_s=lambda: NOW)
    notices = NoticeWriter(cast("Any", api), cluster, events, wall_s=lambda: cast("float", clock.now))
    evictions = Evictions(
        cast("Any", api), cluster, events, notices, close=close, wall_s=lambda: cast("float", clock.now)
    )

    writes = Writes(active=lambda: True, wake=lambda: None, wall_s=lambda: cast("float", clock.now))
    assert of(session, MakeRoom)
    for moment in times:
        clock.now = NOW + moment
        evictions.make_room(session, writes)
    writes.stop()
    return closed


def test_all_go_and_their_owners_can_read_why() -> None:
    """An Event on the PodGroup and on each pod, and one on the workload; in their namespace the gang has a name."""
    api = Api()
    assert carried_out(api) == []
    assert sorted(api.evicted) == ["low-worker-0", "low-worker-1"]
    why = "preempted by Job high of priority 10 in queue default"
    assert f"low-worker-0 Evict: {why}" in api.events
    assert f"low Evict: low-worker-1: {why}" in api.events
    assert [each for each in api.events if "Evicted" in each] == [f"low Evicted: 2 pods were evicted: {why}"]


def test_the_name_of_the_gang_is_not_for_other_namespaces() -> None:
    """They read its queue and its priority."""
    theirs = SimpleNamespace(metadata=SimpleNamespace(namespace="other", name="g", controller=None))
    asker: Any = SimpleNamespace(group=theirs, uid="theirs")
    room = MakeRoom(asker, 1, (), reasons.placements.preempted(priority=10, queue="q"))
    world = VictimsWorld(1)
    assert str(room.reason_for(world.view(world.runs("low", 1)))) == "preempted by a gang of priority 10 in queue q"


def test_nobody_goes_for_a_placement_that_does_not_stand() -> None:
    """Its write was lost."""
    api = Api()
    carried_out(api, written=False)
    assert api.evicted == []


def test_the_first_refusal_spares_the_others() -> None:
    """The placement is given up, and says that it was in vain."""
    api = Api(refuses="low-worker-0")
    (closed,) = carried_out(api, budgeted=True)
    assert api.evicted == []
    assert (closed.gang.key, closed.phase, closed.evicted_in_vain) == ("ns/high", "Abandoned", True)
    assert "a PodDisruptionBudget does not let pods go" in closed.message
    assert "low" not in closed.message, "neither pod nor budget are for the gang's owner to see"
    assert "db" not in closed.message.split()


def test_one_that_is_gone_is_no_trouble() -> None:
    """The others go."""
    api = Api(gone="low-worker-0")
    assert carried_out(api) == []
    assert api.evicted == ["low-worker-1"]


@pytest.mark.parametrize(("later_s", "times"), [(1.0, 1), (EVICT_AGAIN_S + 1, 2)])
def test_nobody_is_told_twice_in_a_short_time(later_s: float, times: int) -> None:
    """A watch may lag."""
    api = Api()
    carried_out(api, times=(0, later_s))
    assert len(api.evicted) == 2 * times


def test_one_that_has_ended_by_then_stays() -> None:
    """It holds no room any more, and its owner counts on it: made anew, it would start with fewer than its gang."""
    api = Api()
    assert carried_out(api, meanwhile=lambda world: world.ends("low", 0)) == []
    assert api.evicted == ["low-worker-1"]


def test_one_that_has_ended_and_whose_end_is_not_known_yet_stays() -> None:
    """The API server evicts it only as it is known."""
    api = Api(versions={"low-worker-0": "later"})
    assert carried_out(api) == []
    assert api.evicted == ["low-worker-1"]
