"""What has happened to a Job is dealt with once and in order, however a pass over the Job ends."""

from collections.abc import Iterable
from contextlib import suppress

import pytest

from controller.job.pending_events import PendingEvents
from controller.job.rules.events import COMMAND_ISSUED, SYNC, JobEvent
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job

KEY = "n/j"
A, B, C, LATER = (JobEvent(event="PodFailed", pod=name) for name in ("a", "b", "c", "later"))
STOP, RESUME = (JobEvent(event=COMMAND_ISSUED, command=name, command_order=order) for order, name in enumerate("sr", 1))


class Cut(BaseException):
    """The pass ends here."""


def noted(*requests: JobEvent) -> PendingEvents:
    """Events of Job `n/j` that have come in this order."""
    events = PendingEvents()
    for request in requests:
        events.put(KEY, request)
    return events


def pending(events: PendingEvents) -> list[JobEvent]:
    """What the next pass gets; it stays."""
    with events.batch(KEY) as batch:
        return batch.left()


def cut_pass(events: PendingEvents, at: JobEvent, unwritten: Iterable[JobEvent] = ()) -> None:
    """A pass that fails while it deals with request `at`; meanwhile another event comes."""
    with suppress(Cut), events.batch(KEY, unwritten) as batch:
        for request in batch:
            if request == at:
                events.put(KEY, LATER)
                raise Cut


def test_each_request_is_dealt_with_once_and_in_order() -> None:
    """Repeats are one, a mere sync is none, Commands come last in the order in which they were given."""
    events = noted(RESUME, A, STOP, B, A, SYNC)
    with events.batch(KEY) as batch:
        assert list(batch) == [A, B, STOP, RESUME]
        assert list(batch.carried_out()) == [STOP, RESUME]
    assert pending(events) == []


def test_jobs_have_batches_of_their_own() -> None:
    """Another Job's events stay where they are."""
    events = noted(A)
    events.put("n/other", B)
    with events.batch("n/other") as batch:
        assert list(batch) == [B]
    assert pending(events) == [A]


@pytest.mark.parametrize(("requests", "at", "left"), [
    ([A, B, C], B, [B, C, LATER]), ([STOP, RESUME], RESUME, [LATER, STOP, RESUME]),
], ids=["events", "commands"])  # fmt: skip
def test_a_pass_that_fails_leaves_what_it_had_not_dealt_with(
    requests: list[JobEvent], at: JobEvent, left: list[JobEvent]
) -> None:
    """Before what has come meanwhile; Commands stay until they are deleted, behind what is none."""
    events = noted(*requests)
    cut_pass(events, at=at)
    assert pending(events) == left


def test_a_pass_that_fails_before_its_first_request_loses_none() -> None:
    """Neither of those that were noted, nor of those that the pass itself has found to have happened earlier."""
    events = noted(B)
    with suppress(Cut), events.batch(KEY) as batch:
        batch.add_first([A, C])
        raise Cut
    assert pending(events) == [A, C, B]


def test_what_a_pass_has_found_itself_comes_first() -> None:
    """In its own order, and it is dealt with like the others."""
    events = noted(C)
    with events.batch(KEY) as batch:
        batch.add_first([A, B])
        assert list(batch) == [A, B, C]
    assert pending(events) == []


def test_a_command_is_through_when_it_is_gone() -> None:
    """A deletion that fails leaves it and the next one; so does a pass that deletes nothing, also without an error."""
    events = noted(A, STOP, RESUME)
    with suppress(Cut), events.batch(KEY) as batch:
        assert list(batch) == [A, STOP, RESUME]
        for request in batch.carried_out():
            if request == RESUME:
                raise Cut
    assert pending(events) == [RESUME]
    with events.batch(KEY) as batch:
        assert list(batch) == [RESUME]
    assert pending(events) == [RESUME]


def test_what_is_not_written_is_put_back_first() -> None:
    """It was dealt with before the rest, and is looked at when the pass ends: by then it may be written."""
    events = noted(A, B)
    unwritten = dict.fromkeys([C])
    cut_pass(events, at=B, unwritten=unwritten)
    assert pending(events) == [C, B, LATER]
    unwritten.clear()
    cut_pass(events, at=B, unwritten=unwritten)
    assert pending(events) == [B, LATER]


def test_what_is_put_back_and_comes_again_is_one() -> None:
    """At its earlier place."""
    events = noted(A, B)
    with suppress(Cut), events.batch(KEY) as batch:
        assert batch.left() == [A, B]
        for request in (LATER, B):
            events.put(KEY, request)
        raise Cut
    assert pending(events) == [A, B, LATER]


def test_a_job_that_is_gone_has_no_requests() -> None:
    """What waits is dropped as a whole, once the Commands among it are dealt with."""
    events = noted(A, STOP)
    with events.batch(KEY) as batch:
        assert batch.commands() == [STOP]
        batch.drop()
    assert pending(events) == []


def test_jobs_that_have_gone_are_told_once() -> None:
    """Each as it was, also where two of one name have gone since the last pass."""
    events = PendingEvents()
    gone = [Job(metadata=ObjectMeta(name="j", namespace="n", uid=uid)) for uid in "uv"]
    for job in gone:
        events.put_gone(job)
    assert events.take_gone(KEY) == gone
    assert events.take_gone(KEY) == []
