"""Events that repeat are one, and one that could not be written is not counted on."""

import threading

import pytest
from guarded_api import GuardedApi, Sent
from structlog.testing import capture_logs

import muster.kube
from muster.api.kubernetes.core import EVENTS
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.kube import events
from muster.kube.errors import APIError, Conflict, Forbidden, Invalid, NamespaceEnds, Unreachable
from muster.kube.events import EVENTS_DROPPED, EventWriter

WAIT_S = 60.0


class Desk:
    """A recorder, and the API server that it writes to."""

    def __init__(self) -> None:
        self.api = GuardedApi(muster.kube)
        self.now = 1_800_000_000.0
        self.recorder = EventWriter(self.api, "muster-test", wall_s=lambda: self.now)  # type: ignore[arg-type]

    def tell(self, uid: str = "u", *, times: int = 1, message: str = "it waits", namespace: str = "n") -> None:
        """Notes an event of Job `j` so many times."""
        for _ in range(times):
            self.now += 1.0
            meta = ObjectMeta(name="j", namespace=namespace, uid=uid)
            self.recorder.event(Object(api_version="v1", kind="Job", metadata=meta), "Normal", "Waits", message)

    def write(self) -> None:
        """Writes what is noted, as the thread does."""
        while self.recorder._pending:
            self.recorder._deliver(*self.recorder._next())

    @property
    def counts(self) -> list[tuple[str, int]]:
        """UID and count of each event that is there."""
        return sorted((each.involved_object["uid"], each.count) for each in self.api.all(EVENTS))

    def fails(self, error: Exception, *, after: bool = False, times: int = 1) -> None:
        """The next writes are answered so, before or `after` they are carried out."""
        left = [times]

        def answer(_: Sent) -> None:
            if left[0]:
                left[0] -= 1
                raise error

        if after:
            self.api.answered = answer
        else:
            self.api.meddle = answer


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    """One that waits for nothing."""
    monkeypatch.setattr(events, "_FIRST_DELAY_S", 0.0)
    monkeypatch.setattr(events, "_MAX_DELAY_S", 0.0)
    return Desk()


def dropped() -> float:
    """Events that were given up."""
    return float(EVENTS_DROPPED.labels("not written")._value.get())


def test_repeats_are_counted_before_and_after_the_first_is_written(desk: Desk) -> None:
    """Five in all; another message is another event."""
    desk.tell(times=2)
    desk.write()
    desk.tell(times=3)
    desk.tell(message="it waits for nodes")
    desk.write()
    assert desk.counts == [("u", 1), ("u", 5)]


def test_another_object_of_the_same_name_has_events_of_its_own(desk: Desk) -> None:
    """A Job that was made again has not waited before."""
    desk.tell("first", times=2)
    desk.write()
    desk.tell("second")
    desk.write()
    assert desk.counts == [("first", 2), ("second", 1)]


@pytest.mark.parametrize("error", [Forbidden("no"), Invalid("too long"), Conflict("no")])
def test_one_that_is_refused_is_not_thought_to_be_there(desk: Desk, error: APIError) -> None:
    """The next one is created, and counts what it stands for; the refused one is counted as dropped, once."""
    before = dropped()
    desk.fails(error)
    desk.tell(times=2)
    desk.write()
    assert (desk.counts, dropped() - before) == ([], 1)
    desk.tell()
    desk.write()
    assert (desk.counts, dropped() - before) == ([("u", 1)], 1)


def test_one_in_a_namespace_that_ends_is_left_off(desk: Desk) -> None:
    """Without a warning: nobody could read it for long."""
    before = dropped()
    desk.fails(NamespaceEnds("it is being terminated"))
    desk.tell()
    with capture_logs() as logs:
        desk.write()
    assert (desk.counts, dropped() - before, logs) == ([], 0, [])


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_an_answer_that_was_lost_counts_nothing_twice(desk: Desk, *, after: bool, known: bool) -> None:
    """Whether the write had come through, and whether it was the first."""
    if known:
        desk.tell(times=2)
        desk.write()
    desk.fails(Unreachable("no answer"), after=after, times=3)
    desk.tell(times=2)
    desk.write()
    assert desk.counts == [("u", 4 if known else 2)]


def test_one_that_has_expired_is_written_again(desk: Desk) -> None:
    """With the count of what is new."""
    desk.tell(times=3)
    desk.write()
    desk.api.kind(EVENTS).clear()
    desk.tell()
    desk.write()
    assert [uid for uid, _ in desk.counts] == ["u"]


@pytest.mark.parametrize("error", [Forbidden("no"), ZeroDivisionError()])
def test_the_thread_is_free_again_after_one_that_failed(desk: Desk, error: Exception) -> None:
    """Also by a defect of ours; the next one is written, and nobody waits for ever."""
    desk.fails(error)
    with capture_logs():
        desk.recorder.start()
        desk.tell()
        assert desk.recorder.flush(WAIT_S)
    desk.tell(message="it waits for nodes")
    assert desk.recorder.flush(WAIT_S)
    desk.recorder.stop()
    assert desk.counts == [("u", 1)]
    assert not desk.recorder._thread.is_alive()


def test_events_are_written_in_the_order_in_which_they_were_noted(desk: Desk) -> None:
    """Also those from before the thread; a recorder that never had one stops at once."""
    desk.recorder.stop()
    later = Desk()
    for uid in "bac":
        later.tell(uid)
    recorder = later.recorder

    def until_stopped(_: Sent) -> None:
        while not (recorder._changed._waiters or recorder._stopping):  # type: ignore[attr-defined]
            threading.Event().wait(0.001)

    later.api.meddle = until_stopped
    recorder.start()
    recorder.stop()
    assert [each.involved_object["uid"] for each in later.api.all(EVENTS)] == ["b", "a", "c"]
    dropped_before = EVENTS_DROPPED.labels("queue full")._value.get()
    later.tell("late")
    assert EVENTS_DROPPED.labels("queue full")._value.get() == dropped_before + 1


def test_a_namespace_with_many_events_delays_and_displaces_none_of_others() -> None:
    """It loses its own; another one's are written next."""
    desk = Desk()
    before = EVENTS_DROPPED.labels("queue full")._value.get()
    for number in range(1_000):
        desk.tell(f"eve-{number}", namespace="eve")
    for number in range(3):
        desk.tell(f"ada-{number}", namespace="ada")
    assert EVENTS_DROPPED.labels("queue full")._value.get() - before == 750
    desk.write()
    written = [each.involved_object["uid"] for each in desk.api.all(EVENTS)]
    assert len(written) == 253
    assert written[:6] == ["eve-0", "ada-0", "eve-1", "ada-1", "eve-2", "ada-2"]
    assert not desk.recorder._of_namespace
