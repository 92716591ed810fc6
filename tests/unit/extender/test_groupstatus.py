"""When the status of a PodGroup is written."""

from math import inf
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from extender_world import World
from guarded_extender import process_of
from msgspec.structs import replace

from extender import groupstatus
from extender.groupstatus import (
    COUNTS_MAX_S,
    COUNTS_REST_S,
    END_LASTS_S,
    EVICTION_SHOWS_S,
    LONGEST_MESSAGE_DELAY_S,
    LOSS_LASTS_S,
    MESSAGE_INTERVAL_S,
    MOMENT_S,
    TEXTS_EVERY_S,
    PodGroupStatusWriter,
    _lasting,
    _lengthen,
    _Memory,
    _why,
)
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.writes import Lane, WriteContext
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus
from muster.kube.errors import APIError, Conflict, NotFound, ServerError

NO_ROOM = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="lacks 3")
PLACED = PodGroupCondition(type="Scheduled", status="True", reason="Ready", message="all have nodes")
WAITS = PodGroupStatus(phase="Inqueue", conditions=[NO_ROOM])
LESS = PodGroupStatus(phase="Inqueue", conditions=[replace(NO_ROOM, message="lacks 2")])
CLOSED = PodGroupStatus(phase="Inqueue", conditions=[replace(NO_ROOM, reason="QueueNotOpen")])


def status(phase: PodGroupPhase, **counts: int) -> PodGroupStatus:
    """A status without conditions."""
    return PodGroupStatus(phase=phase, **counts)


def gang(present: PodGroupStatus) -> Any:
    """A gang with this status."""
    return SimpleNamespace(key="n/g", group=PodGroup(status=present))


def writer(client: Any = None, events: Any = None) -> PodGroupStatusWriter:
    """One that starts no writes of its own."""
    return PodGroupStatusWriter(WriteContext(client, None, None, events, lambda: 100.0, lambda: 100.0))  # type: ignore[arg-type]


RUNS = status("Running")
LOST = status("Unknown")
Looks = list[tuple[PodGroupStatus, float, float]]
"""Statuses that are wanted at a time, and when they are to be written."""
DUE: dict[str, tuple[PodGroupStatus, Looks]] = {
    "a loss has to last": (RUNS, [(LOST, 100, 100 + LOSS_LASTS_S), (status("Unknown", failed=1), 101, 110)]),
    "a loss of a gang that did not run is written at once": (status("Pending"), [(LOST, 100, 100)]),
    "an end has to last": (RUNS,
        [(status("Completed"), 100, 100 + END_LASTS_S), (status("Completed", failed=1), 101, 101)]),
    "a loss that was made good is forgotten": (RUNS, [(LOST, 100, 110), (RUNS, 101, inf), (LOST, 102, 112)]),
    "another phase is not the one that lasted": (RUNS, [(LOST, 100, 110), (status("Completed"), 104, 105)]),
    "pods wait for other phases": (status("Pending"), [(status("Inqueue"), 100, 100)]),
    "counts have to rest": (RUNS,
        [(status("Running", running=late), 100 + late, 100 + late + COUNTS_REST_S) for late in range(1, 5)]),
    "counts that rest are due when they came": (RUNS,
        [(status("Running", running=1), 100, 101), (status("Running", running=1), 100.5, 101)]),
    "counts that never rest are written": (RUNS,
        [(status("Running", running=1), 100, 101), (status("Running", succeeded=1), 104.5, 100 + COUNTS_MAX_S)]),
    "who looks wants to know why": (status("Inqueue"), [(WAITS, 100, 100)]),
}  # fmt: skip


@pytest.mark.parametrize(("present", "looks"), DUE.values(), ids=DUE)
def test_a_status_is_written_when_it_lasts(present: PodGroupStatus, looks: Looks) -> None:
    """A lost pod may be being made again; of a gang that has ended, the PodGroup is often gone at once."""
    one, waiting = writer(), gang(present)
    assert [one._due_s(waiting, wanted, now) for wanted, now, _ in looks] == [due for *_, due in looks]


OVER = PodGroupStatus(phase="Inqueue", conditions=[replace(NO_ROOM, status="False")])


@pytest.mark.parametrize(
    ("other", "every_s"), [(LESS, MESSAGE_INTERVAL_S), (CLOSED, TEXTS_EVERY_S), (OVER, TEXTS_EVERY_S)]
)
def test_other_words_for_a_reason_wait_and_another_reason_does_not(other: PodGroupStatus, every_s: float) -> None:
    """What others do changes the words all the time."""
    one = writer()
    one._known["n/g"].written_s = 100.0
    assert one._due_s(gang(WAITS), other, 100.5) == 100.0 + every_s
    assert one._due_s(gang(WAITS), other, 200.0) == 200.0


def test_words_for_the_same_reason_come_ever_more_rarely() -> None:
    """Down to once a minute; another reason begins anew, another phase too, and counts change nothing."""
    one, pauses = writer(), []
    memory = one._known["n/g"]
    memory.written_s = 100.0
    for _ in range(6):
        pauses.append(one._due_s(gang(WAITS), LESS, 100.5) - 100.0)
        _lengthen(memory, WAITS, LESS)
        _lengthen(memory, WAITS, replace(WAITS, running=1))
    assert pauses == [MESSAGE_INTERVAL_S, 10.0, 20.0, 40.0, LONGEST_MESSAGE_DELAY_S, LONGEST_MESSAGE_DELAY_S]
    for other in (CLOSED, replace(LESS, phase="Running")):
        memory.interval_s = LONGEST_MESSAGE_DELAY_S
        _lengthen(memory, WAITS, other)
        assert memory.interval_s == MESSAGE_INTERVAL_S


def test_an_eviction_is_decided_once_and_told_for_a_moment() -> None:
    """Its pods may not be seen to go yet: that some are missing, or told again, is no news; a lack of room is.

    After the next placement another eviction may come, however soon.
    """
    reasons, one = ("Evicted", "NotEnoughPods", "NotEnoughResources", "Evicted"), SimpleNamespace(uid="u")
    evicted, too_few, no_room, again = (SimpleNamespace(reason=reason, gang=one) for reason in reasons)
    memory = _Memory()

    def told(why: Any, at: float = 100.0, uid: str = "u", *, active: bool = False) -> Any:
        gang: Any = SimpleNamespace(uid=uid, active=active)
        return _why(memory, gang, why, at)

    assert told(None) is None
    assert told(no_room) is no_room
    assert told(evicted) is told(None) is told(too_few) is told(again) is evicted
    assert told(no_room) is no_room
    assert told(None, 100 + EVICTION_SHOWS_S - 0.1) is evicted
    assert told(None, 100 + EVICTION_SHOWS_S) is None
    assert told(evicted) is evicted
    assert told(None, uid="another") is None
    assert told(None) is None
    assert told(evicted) is evicted
    assert told(None, active=True) is None
    assert told(None) is None
    assert told(again) is again


def test_pods_that_are_missing_for_a_moment_are_no_news() -> None:
    """Their owner is creating them: a healthy start has no Warning. After a while without a new one it has."""
    memory, starts, waits = _Memory(), gang(PodGroupStatus()), gang(WAITS)
    one, two, no_room = (
        cast("Any", SimpleNamespace(reason=reason, why=why))
        for reason, why in (("NotEnoughPods", "1 of 3"), ("NotEnoughPods", "2 of 3"), ("NotEnoughResources", "lacks"))
    )
    assert _lasting(memory, starts, one, 100) is _lasting(memory, starts, two, 109) is None
    assert _lasting(memory, starts, two, 109 + MOMENT_S - 1) is None
    assert _lasting(memory, starts, two, 109 + MOMENT_S) is two
    assert _lasting(memory, starts, no_room, 120) is no_room
    assert _lasting(memory, starts, two, 121) is None
    assert _lasting(memory, waits, two, 122) is two, "another reason is reported already"


def test_an_event_tells_what_is_new() -> None:
    """Neither a message that was reported before, nor a condition that is over; without a reason nobody waits."""
    told: list[Any] = []
    events = SimpleNamespace(
        waits=lambda _gang, reason, message, **more: told.append((reason, message, more["other_reason"])),
        scheduled=lambda _gang, message: told.append(message),
    )
    one, why = writer(events=events), cast("Any", SimpleNamespace())
    waiting = gang(PodGroupStatus(phase="Inqueue", conditions=[NO_ROOM, PLACED]))

    def report(*conditions: PodGroupCondition, why: Any = why) -> list[Any]:
        told.clear()
        one._report(waiting, PodGroupStatus(phase="Inqueue", conditions=list(conditions)), why)
        return [*told]

    assert report(NO_ROOM, PLACED) == []
    assert report(*(replace(each, status="False", message="it was") for each in (NO_ROOM, PLACED))) == []
    other, all_run = replace(NO_ROOM, message="lacks 2"), replace(PLACED, message="all run")
    assert report(NO_ROOM, all_run) == ["all run"]
    assert report(other, all_run) == [("NotEnoughResources", "lacks 2", False), "all run"]
    assert report(replace(other, reason="QueueNotOpen")) == [("QueueNotOpen", "lacks 2", True)]
    assert report(other, why=None) == []
    waiting.group.status.conditions = [replace(NO_ROOM, status="False")]
    assert report(NO_ROOM) == [("NotEnoughResources", "lacks 3", True)]


@pytest.mark.parametrize("error", [Conflict("it has changed"), NotFound("it is gone"), ServerError("later")])
def test_words_that_could_not_be_written_do_not_delay_the_next(error: APIError) -> None:
    """The PodGroup still has the earlier message, which may be old."""

    def merge_patch(*_: object, **__: object) -> None:
        raise error

    one = writer(SimpleNamespace(merge_patch=merge_patch))
    try:
        one._write(gang(WAITS), LESS, cast("Any", "text"), None)
    except ServerError as raised:
        assert raised is error  # noqa: PT017 - only this one is for whoever starts the writes
    assert one._known["n/g"] == _Memory()


def test_a_cycle_writes_what_follows_from_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phases let pods start; words come after them. What is written, or waits for its time, is not computed again."""
    computed = Mock(wraps=groupstatus.wanted_status)
    monkeypatch.setattr(groupstatus, "wanted_status", computed)
    world = World().nodes(2)
    gpu8 = {"nvidia.com/gpu": 8}
    for name, phase, pods in (("fits", "Inqueue", 2), ("waits", "Pending", 2), ("large", "Inqueue", 3)):
        world.gang(name, {"worker": (pods, gpu8)}, phase=phase)
    world.change(world.state.groups["ns/fits"], status={"conditions": [NO_ROOM]})
    session, lanes = world.session(Enqueue(), Allocate()), {}
    with process_of(world) as process:
        statuses, start = process.committer._statuses, process.committer.writes.start

        def started(lane: Lane, what: str, key: str, write: Any) -> None:
            lanes[key] = lane
            start(lane, what, key, write)

        process.committer.writes.start = started  # type: ignore[method-assign]
        for _ in range(2):
            statuses.write(session)
            assert process.committer.writes.settled(10)
            process.committer.writes.snapshot_taken()
        assert lanes == {"ns/fits": Lane.WORDS, "ns/waits": Lane.PODS, "ns/large": Lane.WORDS}
        assert process.done("merge_patch") == ["fits", "large", "waits"]
        assert computed.call_count == 3
        reasons = {key: [each.reason for each in found.status.conditions] for key, found in world.state.groups.items()}
        assert reasons == {
            "ns/fits": ["Placed"], "ns/waits": ["NotEnoughResources"], "ns/large": ["NotEnoughResources"]
        }  # fmt: skip
        assert {key: found.status.phase for key, found in world.state.groups.items()} == {
            "ns/fits": "Inqueue", "ns/waits": "Inqueue", "ns/large": "Inqueue"
        }  # fmt: skip
        for known, left in ((106, 106), (107, 3)):
            statuses._known.update((f"gone-{number}", _Memory()) for number in range(known - 3))
            statuses.write(session)
            assert len(statuses._known) == left
