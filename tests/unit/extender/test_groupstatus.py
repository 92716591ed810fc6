"""When the status of a PodGroup is written."""

from contextlib import suppress
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from extender.groupstatus import (
    COUNTS_MAX_S,
    COUNTS_REST_S,
    END_LASTS_S,
    LOSS_LASTS_S,
    TEXTS_EVERY_S,
    WORDS_AT_LAST_S,
    WORDS_EVERY_S,
    StatusWriter,
)
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition, PodGroupPhase, PodGroupStatus
from muster.kube.errors import APIError, Conflict, ServerError


def writer() -> StatusWriter:
    """One that is only asked, and writes nothing."""
    nothing: Any = None
    return StatusWriter(nothing, nothing, nothing, nothing, wall_s=lambda: 0.0)


def gang(phase: PodGroupPhase) -> Any:
    """A gang that says of itself that it is in this phase."""
    return SimpleNamespace(key="n/g", group=PodGroup(status=PodGroupStatus(phase=phase)))


@pytest.mark.parametrize(("wanted", "lasts_s"), [("Unknown", LOSS_LASTS_S), ("Completed", END_LASTS_S)])
def test_a_running_gang_is_lost_or_over_when_that_lasts(wanted: PodGroupPhase, lasts_s: float) -> None:
    """A lost pod may be being made again; and of a gang that has ended, the PodGroup is often gone at once."""
    one = writer()
    assert one._due_s(gang("Running"), PodGroupStatus(phase=wanted), 100.0) == 100.0 + lasts_s
    assert one._due_s(gang("Running"), PodGroupStatus(phase=wanted, failed=1), 101.0) == 100.0 + lasts_s


def test_a_loss_that_was_made_good_is_forgotten() -> None:
    """The next one has to last as long again."""
    one = writer()
    one._due_s(gang("Running"), PodGroupStatus(phase="Unknown"), 100.0)
    assert one._due_s(gang("Running"), PodGroupStatus(phase="Running"), 101.0) == inf
    assert one._due_s(gang("Running"), PodGroupStatus(phase="Unknown"), 102.0) == 102.0 + LOSS_LASTS_S


def test_other_phases_are_written_at_once() -> None:
    """Pods are waiting for them."""
    assert writer()._due_s(gang("Pending"), PodGroupStatus(phase="Inqueue"), 100.0) == 100.0


def test_counts_are_written_when_they_rest() -> None:
    """A gang that starts changes them with every pod; and if they never rest, they are written all the same."""
    one = writer()
    for second in range(4):
        due = one._due_s(gang("Running"), PodGroupStatus(phase="Running", running=second + 1), 100.0 + second)
        assert due == 100.0 + second + COUNTS_REST_S
    due = one._due_s(gang("Running"), PodGroupStatus(phase="Running", running=9), 104.5)
    assert due == 100.0 + COUNTS_MAX_S


def test_why_it_waits_is_written_at_once() -> None:
    """The first time; whoever looks wants to know."""
    why = PodGroupCondition(type="Unschedulable", status="True", message="no room")
    assert writer()._due_s(gang("Inqueue"), PodGroupStatus(phase="Inqueue", conditions=[why]), 100.0) == 100.0


def test_other_words_for_the_same_reason_wait() -> None:
    """Another reason does not, nor does one that is over."""
    said = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="lacks 3")
    waiting, one = gang("Inqueue"), writer()
    waiting.group.status.conditions = [said]
    one._status_at["n/g"] = 100.0
    for change, every_s in (
        ({"message": "lacks 2"}, WORDS_EVERY_S),
        ({"reason": "QueueNotOpen"}, TEXTS_EVERY_S),
        ({"status": "False"}, TEXTS_EVERY_S),
    ):
        now = PodGroupStatus(phase="Inqueue", conditions=[replace(said, **change)])
        assert one._due_s(waiting, now, 100.5) == 100.0 + every_s


def test_an_eviction_is_decided_once_and_told_for_a_moment() -> None:
    """Its pods may not be seen to go yet: that some are missing, or told again, is no news; a lack of room is."""
    nothing: Any = None
    evicted = cast("Any", SimpleNamespace(reason="Evicted", gang=SimpleNamespace(key="n/g", uid="u"), message="for b"))
    one = writer()

    def told(why: Any, uid: str = "u", *, active: bool = False) -> Any:
        return one._evicted_or(why, cast("Any", SimpleNamespace(key="n/g", uid=uid, active=active)), 100.0)

    assert told(nothing) is None
    one._evicted["n/g"] = (evicted, 99.0)
    reasons_ = ("NotEnoughPods", "NotEnoughResources", "Evicted")
    too_few, no_room, rest = (cast("Any", SimpleNamespace(reason=each)) for each in reasons_)
    assert told(nothing) is told(too_few) is told(rest) is evicted
    assert told(no_room) is no_room
    assert told(nothing, uid="another") is None


def test_an_eviction_is_over_with_the_next_placement() -> None:
    """What comes after that is another one, however soon."""
    evicted, again = (cast("Any", SimpleNamespace(reason="Evicted", gang=SimpleNamespace(uid="u"))) for _ in range(2))
    one = writer()

    def told(why: Any, *, active: bool = False) -> Any:
        return one._evicted_or(why, cast("Any", SimpleNamespace(key="n/g", uid="u", active=active)), 100.0)

    one._evicted["n/g"] = (evicted, 99.0)
    assert told(None, active=True) is None
    assert told(None) is None
    assert told(again) is again


def test_an_event_tells_what_is_new() -> None:
    """Neither a message that was reported before, nor a condition that is over."""
    told: list[tuple[str, str]] = []
    events = SimpleNamespace(
        waits=lambda _gang, reason, message, **_: told.append((reason, message)),
        scheduled=lambda _gang, message: told.append(("Scheduled", message)),
    )
    nothing: Any = None
    one = StatusWriter(nothing, nothing, cast("Any", events), nothing, wall_s=lambda: 0.0)
    waits = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="lacks 3")
    placed = PodGroupCondition(type="Scheduled", status="True", reason="Ready", message="all have nodes")
    waiting = gang("Inqueue")
    waiting.group.status.conditions = [waits, placed]
    over = [replace(waits, status="False", message="it was"), replace(placed, status="False", message="they had")]
    why = cast("Any", SimpleNamespace())
    for conditions in ([waits, placed], over):
        one._tell(waiting, PodGroupStatus(phase="Inqueue", conditions=conditions), why)
    assert told == []
    news = [replace(waits, message="lacks 2"), replace(placed, message="all run")]
    one._tell(waiting, PodGroupStatus(phase="Inqueue", conditions=news), why)
    assert told == [("NotEnoughResources", "lacks 2"), ("Scheduled", "all run")]


def test_words_for_the_same_reason_come_ever_more_rarely() -> None:
    """Down to once a minute, as what others do changes them all the time; another reason begins anew."""
    said = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="lacks 3")
    waiting, one = gang("Inqueue"), writer()
    waiting.group.status.conditions = [said]
    other = PodGroupStatus(phase="Inqueue", conditions=[replace(said, message="lacks 2")])
    pauses = []
    for _ in range(6):
        one._status_at["n/g"] = 100.0
        pauses.append(one._due_s(waiting, other, 100.5) - 100.0)
        one._pause(waiting, other)
    assert pauses == [WORDS_EVERY_S, 10.0, 20.0, 40.0, WORDS_AT_LAST_S, WORDS_AT_LAST_S]
    one._pause(waiting, PodGroupStatus(phase="Inqueue", conditions=[replace(said, reason="QueueNotOpen")]))
    assert one._due_s(waiting, other, 100.5) == 100.0 + WORDS_EVERY_S


def refuses(error: Exception) -> Any:
    """A client whose writes all fail so."""

    def merge_patch(*_: object, **__: object) -> None:
        raise error

    return SimpleNamespace(merge_patch=merge_patch)


@pytest.mark.parametrize("error", [Conflict("it has changed"), ServerError("later")])
def test_words_that_could_not_be_written_do_not_delay_the_next(error: APIError) -> None:
    """The PodGroup still has the earlier message, which may be old."""
    nothing: Any = None
    one = StatusWriter(refuses(error), nothing, nothing, nothing, wall_s=lambda: 100.0)
    said = PodGroupCondition(type="Unschedulable", status="True", reason="NotEnoughResources", message="lacks 3")
    waiting = gang("Inqueue")
    waiting.group.status.conditions = [said]
    other = PodGroupStatus(phase="Inqueue", conditions=[replace(said, message="lacks 2")])
    with suppress(ServerError):
        one._write(waiting, other, "text", None)
    assert one._due_s(waiting, other, 100.5) == 100.5
