"""PodGroups say where their gangs stand: rarely, and only of those that wait."""

from collections.abc import Callable
from typing import Any

import pytest
from extender_world import GPU8, World
from msgspec import structs

from extender.groupcontent import status_body, wanted_status
from extender.planner.queuepositions import QueuePosition, queue_positions, waiting_by_queue
from extender.positionwriter import AGAIN_S, CHECK_INTERVAL_S, MAX_AT_ONCE, WRITE_EVERY_S, QueuePositionWriter
from extender.writes import WriteContext
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition

WHY = [PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="no room")]


class Clerk:
    """A writer, and what it writes of a world: by gang, the patches of its status."""

    def __init__(self, world: World, *, kept: bool = True) -> None:
        self.world = world
        self.written: list[tuple[str, dict[str, Any]]] = []
        self.now = world.now
        self.set_back_s = 0.0
        self._kept = kept
        me: Any = self
        context = WriteContext(me, me, me, me, lambda: self.now - self.set_back_s, lambda: self.now)
        self._writer = QueuePositionWriter(context)

    def start(self, _lane: object, _what: str, _name: str, write: Callable[[], object]) -> None:
        """As Writes."""
        write()

    def merge_patch(self, _kind: object, name: str, patch: dict[str, Any], namespace: str) -> PodGroup:
        """As a client; a CRD that does not know the fields drops them."""
        self.written.append((name, patch["status"]))
        group = self.world.state.groups[f"{namespace}/{name}"]
        said = {"place": patch["status"]["place"] or 0, "expected_start": patch["status"]["expectedStart"]}
        return structs.replace(group, status=structs.replace(group.status, **said)) if self._kept else group

    def change(self, how: Callable[[Any], object]) -> None:
        """As the cluster."""
        how(self.world.state)

    def look(self, after_s: float = CHECK_INTERVAL_S) -> list[tuple[str, Any]]:
        """Gangs that are written in a cycle so much later, and their places."""
        self.now += after_s
        self.written.clear()
        self._writer.write(self.world.plan())
        return [(name, status["place"]) for name, status in self.written]


def full(*gangs: str, queue: str = "default") -> World:
    """A node, and gangs of two that do not fit, all of which know why they wait."""
    world = World().nodes(1)
    for name in gangs:
        told(world, world.gang(name, {"worker": (2, GPU8)}, queue=queue))
    return world


def told(world: World, key: str, **status: Any) -> None:
    """The gang has the condition."""
    world.change(world.state.groups[key], status={"conditions": WHY, **status})


def test_places_count_by_queue_in_the_order_in_which_gangs_are_tried() -> None:
    """As muster explain tells them."""
    world = full("a", "b").queue("other")
    told(world, world.gang("c", {"worker": (2, GPU8)}, queue="other"))
    session = world.plan()
    assert {key: each.place for key, each in queue_positions(session).items()} == {"ns/a": 1, "ns/b": 2, "ns/c": 1}
    assert waiting_by_queue(session) == {"default": 2, "other": 1}


def test_it_is_written_once_and_a_gang_once_a_minute() -> None:
    """However the queue moves meanwhile."""
    world = full("a", "b", "c")
    clerk = Clerk(world)
    assert clerk.look() == [("a", 1), ("b", 2), ("c", 3)]
    assert clerk.look() == []
    world.state.on_pod_group(world.state.groups["ns/a"], None)
    assert clerk.look() == []
    assert clerk.look(WRITE_EVERY_S) == [("b", 1), ("c", 2)]


def test_places_are_written_whatever_happens_to_the_clock() -> None:
    """Of the machine, which may be set back by an hour."""
    clerk = Clerk(full("a"))
    assert clerk.look() == [("a", 1)]
    told(clerk.world, clerk.world.gang("b", {"worker": (2, GPU8)}))
    clerk.set_back_s = 3600.0
    assert clerk.look() == [("b", 2)]


def test_nobody_looks_in_each_cycle() -> None:
    """To put all gangs in order takes time."""
    clerk = Clerk(full("a"))
    clerk.look()
    told(clerk.world, clerk.world.gang("b", {"worker": (2, GPU8)}))
    assert clerk.look(CHECK_INTERVAL_S / 2) == []
    assert clerk.look(CHECK_INTERVAL_S / 2) == [("b", 2)]


def test_of_many_gangs_some_are_written_at_once() -> None:
    """The others have the next turns, and none is left out."""
    clerk = Clerk(full(*(f"g{number:03}" for number in range(2 * MAX_AT_ONCE + 1))))
    turns = [clerk.look() for _ in range(3)]
    assert [len(turn) for turn in turns] == [MAX_AT_ONCE, MAX_AT_ONCE, 1]
    assert len({name for turn in turns for name, _ in turn}) == 2 * MAX_AT_ONCE + 1


def test_a_gang_that_was_not_told_why_it_waits_is_left_alone() -> None:
    """Most start in a moment, and each write costs."""
    world = World().nodes(1)
    world.gang("a", {"worker": (2, GPU8)})
    assert Clerk(world).look() == []


def test_a_crd_that_drops_the_fields_is_not_written_for_ever() -> None:
    """Volcano's own, where the chart's CRDs are not installed."""
    clerk = Clerk(full("a"), kept=False)
    assert len(clerk.look()) == 1
    assert clerk.look(WRITE_EVERY_S) == []
    assert len(clerk.look(AGAIN_S)) == 1


@pytest.mark.parametrize(("enqueued", "placed", "place"), [(False, False, 3), (True, False, 3), (False, True, None)])
def test_a_gang_that_waits_no_more_has_no_place(*, enqueued: bool, placed: bool, place: int | None) -> None:
    """The write of its phase takes it out, so that this costs nothing."""
    world = full()
    key = world.gang("a", {"worker": (1, GPU8)}, phase="Pending")
    told(world, key, place=3, expected_start="2027-01-15T08:00:00Z")
    status = wanted_status(world.view(key), enqueued=enqueued, placed=placed, waits=None, now=0.0)
    assert status_body(status)["place"] == place
    assert bool(status_body(status)["expectedStart"]) == bool(place)


def test_a_reservation_says_when_a_gang_is_expected_to_start() -> None:
    """To the minute, as it changes with what runs; who runs for ever ends at no time that is known."""
    world = World().nodes(1)
    key = world.gang("old", {"worker": (1, GPU8)}, phase="Running", runtime="90s")
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running", since=world.now)
    world.gang("big", {"worker": (1, GPU8)})
    world.plan()
    assert queue_positions(world.plan()) == {"ns/big": QueuePosition(1, format_time(world.now + 120))}
    assert queue_positions(full("a").plan()) == {"ns/a": QueuePosition(1, None)}
