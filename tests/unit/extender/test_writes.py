"""Writes that go on while the next cycle plans: none is doubled, none is lost, none holds up the others."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from extender.writes import _THREADS, REFUSED_MOST_S, RETRY_S, Lane, Writes
from muster.kube.errors import APIError, Conflict, Invalid

WAIT_S = 10.0


class Desk:
    """The writes of a process, a clock, and what was written."""

    def __init__(self) -> None:
        self.now, self.leads, self.woken = 1_000.0, True, 0
        self.written: list[str] = []
        self.writes = Writes(active=lambda: self.leads, wake=self._wake, monotonic_s=lambda: self.now)

    def start(self, key: str, write: Callable[[], None] | None = None) -> None:
        """A cycle decides that this is to be written."""
        self.writes.start(Lane.PODS, "status", key, write or partial(self.written.append, key))

    def settled(self) -> list[str]:
        """What was written, once nothing is under way."""
        assert self.writes.settled(WAIT_S)
        return self.written

    def _wake(self) -> None:
        self.woken += 1


@pytest.fixture
def desk() -> Iterator[Desk]:
    """One whose threads end with the test."""
    made = Desk()
    yield made
    made.writes.stop()


@pytest.fixture
def answer() -> Iterator[threading.Event]:
    """Set it, and a slow write is answered."""
    made = threading.Event()
    yield made
    made.set()


def test_a_slow_write_holds_up_nobody(desk: Desk, answer: threading.Event) -> None:
    """Neither the cycle that started it nor what others write."""
    done = threading.Event()
    desk.start("slow", lambda: assert_set(answer))
    desk.start("other", done.set)
    assert done.wait(WAIT_S)


def test_many_writes_of_a_namespace_delay_none_of_others(desk: Desk, answer: threading.Event) -> None:
    """The threads are busy with those of one namespace, of which hundreds wait; the other one's is next."""
    threads = _THREADS[Lane.PODS]
    for number in range(threads):
        desk.start(f"eve/busy-{number}", lambda: assert_set(answer))
    for number in range(500):
        desk.start(f"eve/{number}")
    desk.start("ada/one")
    desk.writes.start(Lane.PODS, "release", "uid", partial(desk.written.append, "ada/pod"), namespace="ada")
    answer.set()
    written = desk.settled()
    assert len(written) == 502
    assert {"ada/one", "ada/pod"} <= set(written[: 2 * threads])


def test_one_thing_is_not_written_twice_at_once(desk: Desk, answer: threading.Event) -> None:
    """What was decided meanwhile is decided once more when it has been answered."""
    desk.start("gang", lambda: assert_set(answer))
    desk.writes.snapshot_taken()
    desk.start("gang")
    assert desk.woken == 0
    answer.set()
    assert desk.settled() == []
    assert desk.woken == 1
    desk.writes.snapshot_taken()
    desk.start("gang")
    assert desk.settled() == ["gang"]


def test_a_cycle_does_not_repeat_what_its_snapshot_does_not_show(desk: Desk) -> None:
    """It was answered after the snapshot; the next cycle knows of it."""
    desk.writes.snapshot_taken()
    desk.start("gang")
    assert desk.settled() == ["gang"]
    desk.start("gang")
    assert desk.settled() == ["gang"]
    assert desk.woken == 1


def test_what_failed_rests_for_a_while(desk: Desk) -> None:
    """Else it would be tried as fast as cycles go."""

    def fails() -> None:
        desk.written.append("tried")
        raise Conflict("it has changed")

    for seconds, times in ((0.0, 1), (0.0, 1), (RETRY_S, 2)):
        desk.now += seconds
        desk.writes.snapshot_taken()
        desk.start("gang", fails)
        assert desk.settled() == ["tried"] * times


def tries(desk: Desk, seconds: int, answer: APIError | None) -> int:
    """How often a write is tried in so many seconds, while every second decides on it, and it is answered so."""
    before = len(desk.written)

    def write() -> None:
        desk.written.append("tried")
        if answer is not None:
            raise answer

    for _ in range(seconds):
        desk.now += 1.0
        desk.writes.snapshot_taken()
        desk.start("gang", write)
        desk.settled()
    return len(desk.written) - before


def test_what_is_refused_again_and_again_is_tried_ever_less(desk: Desk) -> None:
    """The same write gets the same answer: fewer than ten in the first minute, then one a minute."""
    assert tries(desk, 60, Invalid("no such class")) < 10
    assert tries(desk, 600, Invalid("no such class")) <= 600 / REFUSED_MOST_S + 1
    assert tries(desk, int(REFUSED_MOST_S) + 1, None) > 0
    assert tries(desk, 3, Invalid("no such class")) == 2, "an answer that was good ends the series"
    assert tries(desk, 600, Invalid("no such class")) < 20
    while not tries(desk, 1, Invalid("no such class")):
        pass
    desk.now += 2 * REFUSED_MOST_S
    assert tries(desk, 3, Invalid("no such class")) == 2, "so does a time in which nobody wanted it"


def test_what_has_changed_meanwhile_is_tried_each_second(desk: Desk) -> None:
    """The next snapshot knows better."""
    assert tries(desk, 60, Conflict("it has changed")) == 60


def test_an_error_of_ours_is_not_the_end_of_it(desk: Desk) -> None:
    """The thread goes on, and the thing may be written again."""

    def breaks() -> None:
        raise ZeroDivisionError

    desk.start("gang", breaks)
    assert desk.settled() == []
    desk.writes.snapshot_taken()
    desk.start("gang")
    assert desk.settled() == ["gang"]


def test_who_does_not_lead_any_more_writes_nothing(desk: Desk, answer: threading.Event) -> None:
    """What stands in line was decided by a leader that is none now."""
    begun = threading.Event()

    def hold() -> None:
        begun.set()
        assert_set(answer)

    for number in range(16):
        desk.start(f"slow-{number}", hold)
    desk.start("later")
    assert begun.wait(WAIT_S)
    desk.leads = False
    answer.set()
    assert desk.settled() == []


def test_a_write_is_under_way_until_it_is_answered(answer: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the thread that was asked for another one carries it out, as the namespaces take turns."""
    monkeypatch.setitem(_THREADS, Lane.PODS, 1)
    desk, first, begun = Desk(), threading.Event(), threading.Event()
    desk.start("busy/first", lambda: assert_set(first))
    desk.start("busy/slow", lambda: (begun.set(), assert_set(answer))[1])
    desk.start("other/fast")
    first.set()
    assert begun.wait(WAIT_S)
    assert desk.written == ["other/fast"]
    assert not desk.writes.settled(0.0)
    answer.set()
    assert desk.settled()
    desk.writes.stop()


def test_decisions_are_awaited_and_one_that_fails_keeps_no_other(desk: Desk) -> None:
    """Placements stand when the cycle ends."""

    def write(item: Any) -> None:
        if item.gang.key == "bad":
            raise Conflict("it has changed")
        desk.written.append(item.gang.key)

    items: list[Any] = [SimpleNamespace(gang=SimpleNamespace(key=key)) for key in ("a", "bad", "b")]
    desk.writes.all("placement", write, items)
    assert sorted(desk.written) == ["a", "b"]


def assert_set(event: threading.Event) -> None:
    """Waits as long as a test may take."""
    assert event.wait(WAIT_S)
