"""When a Job's status is written."""

import random
from functools import partial

import pytest
from msgspec import structs
from simulated_api import Api
from simulated_faults import Faults

from controller.job.rules.phases import Counts
from controller.job.rules.status import counted, explained, moved
from controller.job.writer import MAX_S, REST_S, WORDS_S, StatusWriter
from controller.live import write_status
from muster.api.volcano.batch import JOBS, Job
from muster.kube.errors import Conflict


class World:
    """One Job and its writer; `requeue_after` notes the delays that it asks for."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.requeue_after: list[float] = []
        chance = random.Random(1)  # noqa: S311 - not a secret
        self.api = Api(Faults(chance, 0.0, 0.0), lambda: self.now_s, lambda *_: None)
        self.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {}}, "n")
        self.writer = StatusWriter(
            partial(write_status, self.api, JOBS),  # type: ignore[arg-type]  # the same methods as a client
            lambda _, delay_s: self.requeue_after.append(round(delay_s, 3)),
            lambda: self.now_s,
        )

    def job(self) -> Job:
        """As the API server has it."""
        found: Job = self.api.find(JOBS, "j", "n")
        return found

    def explain(self, message: str) -> str:
        """Wants another message; the one that the API server has then."""
        job = self.job()
        self.writer.write(job, explained(job.status, "Because", message))
        return self.job().status.state.message


def test_words_and_counters_are_written_when_they_rest() -> None:
    """Not before, and no longer after than it takes."""
    world = World()
    assert world.explain("a") == ""
    world.now_s += REST_S / 2
    assert world.explain("b") == ""
    world.now_s += REST_S / 2
    assert world.explain("b") == ""
    world.now_s += REST_S / 2
    assert world.explain("b") == "b"
    assert world.requeue_after == [REST_S, REST_S, REST_S / 2]


def test_many_pods_take_longer_to_rest() -> None:
    """As one of them changes nearly always."""
    world = World()
    job = world.job()
    world.writer.write(job, counted(job.status, Counts(running=300), 300))
    assert world.requeue_after == [3.5]


def test_what_never_rests_is_written_now_and_then() -> None:
    """Once per period, whatever happens in between."""
    world = World()
    texts = set()
    for number in range(1000):
        world.now_s += MAX_S / 100
        texts.add(world.explain(str(number)))
    assert 9 <= len(texts - {""}) <= 10


def test_a_phase_is_written_at_once() -> None:
    """With the words that waited."""
    world = World()
    world.explain("a")
    job = world.job()
    assert world.writer.write(job, moved(job.status, "Running", "Because", "b", world.now_s)) == world.job()
    assert world.job().status.state.phase == "Running"


def test_nothing_is_written_for_nothing() -> None:
    """And what came back to what it was waits no more."""
    world = World()
    world.explain("a")
    before = world.api.writes
    world.writer.write(world.job(), world.job().status)
    world.now_s += MAX_S
    assert world.explain("a") == "", "it waits anew"
    assert world.api.writes == before


def test_a_job_that_has_changed_is_a_conflict() -> None:
    """Whoever decided on an older state has to decide again."""
    world = World()
    old = world.job()
    world.writer.write(old, moved(old.status, "Pending", "Because", "a", world.now_s))
    with pytest.raises(Conflict):
        world.writer.write(old, moved(old.status, "Running", "Because", "b", world.now_s))


def test_other_words_for_the_same_reason_rest_longer() -> None:
    """A new reason does not: it is news."""
    world = World()
    job = world.job()
    waits = explained(job.status, "Unschedulable", "room for 2 more pods is needed")
    world.writer.write(job, waits)
    still = structs.replace(job, status=waits)
    world.writer.write(still, explained(waits, "Unschedulable", "room for 1 more pod is needed"))
    assert world.requeue_after == [pytest.approx(REST_S), pytest.approx(WORDS_S)]
