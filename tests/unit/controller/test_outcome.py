"""What a Job's status says after the work of its phase, and when it is written."""

import random
from functools import partial

import pytest
from builders import job as a_job
from builders import pod
from msgspec import structs
from simulated_api import Api
from simulated_faults import Faults

from controller.job.rules.phases import Counts
from controller.job.rules.status import Failure, Work, concluded, counted, explained, moved
from controller.job.writer import JobStatusWriter
from controller.live import write_status
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import JOBS, Job, JobStatus
from muster.kube.errors import Conflict

NOW_S = 60.0
FULL = Failure("FailedCreate", "pod j-w-0 cannot be created: the quota is used up")
WAITS = ("Unschedulable", "no room")


def job(phase: str, reason: str = "") -> Job:
    """A Job of two pods that both must start."""
    state = {"phase": phase, "reason": reason, "message": "as before"}
    return a_job("j", {"w": 2}, "n", uid="u", min_available=2, status={"state": state})


def pods(*phases: str) -> list[Pod]:
    """Pods of task `w` in these phases."""
    return [pod(f"j-w-{index}", uid=str(index), task="w", phase=phase) for index, phase in enumerate(phases)]


def outcome(
    of: Job, *phases: str, failures: tuple[Failure, ...] = (), waiting: tuple[str, str] | None = None
) -> tuple[JobStatus, str | None]:
    """What follows for a Job with pods in these phases."""
    return concluded(of, Work(of.status, pods(*phases), failures, waiting), NOW_S)


def test_pods_lead_to_the_next_phase_and_are_counted() -> None:
    """Also where something failed: that does not hold up a phase that is about having pods."""
    for failures in ((), (FULL,)):
        status, unschedulable = outcome(job("Pending"), "Running", "Running", failures=failures)
        assert (status.state.phase, status.running, status.min_available) == ("Running", 2, 2)
        assert unschedulable is None


def test_a_phase_that_deletes_stays_while_deletions_fail() -> None:
    """It says why; without a failure the Job moves on."""
    failure = Failure("FailedDelete", "pod j-w-0 cannot be deleted: no answer")
    status, _ = outcome(job("Aborting"), failures=(failure, failure))
    assert (status.state.phase, status.state.reason) == ("Aborting", "FailedDelete")
    assert status.state.message == "pod j-w-0 cannot be deleted: no answer (and 1 more)"
    assert outcome(job("Aborting"))[0].state.phase == "Aborted"


def test_why_a_job_waits_is_told_unless_something_failed() -> None:
    """The failure comes first, and nothing is said of a gang that may only lack what has failed."""
    waiting, unschedulable = outcome(job("Pending"), waiting=WAITS)
    assert (waiting.state.reason, waiting.state.message, unschedulable) == (*WAITS, "no room")
    failed, unschedulable = outcome(job("Pending"), failures=(FULL,), waiting=WAITS)
    assert (failed.state.reason, unschedulable) == ("FailedCreate", None)
    queued, unschedulable = outcome(job("Pending"), waiting=("Queued", "its turn comes"))
    assert (queued.state.reason, unschedulable) == ("Queued", None)


@pytest.mark.parametrize(("reason", "after"), [("FailedCreate", "Recovered"), ("MinAvailableReached", None)])
def test_a_failure_that_is_over_gives_way(reason: str, after: str | None) -> None:
    """Any other reason stays."""
    assert outcome(job("Running", reason), "Running", "Running")[0].state.reason == (after or reason)


def test_a_job_that_has_stopped_keeps_its_reason() -> None:
    """Whatever fails afterwards."""
    status, _ = outcome(job("Failed", "MaxRetryReached"), failures=(FULL,))
    assert (status.state.reason, status.state.message) == ("MaxRetryReached", "as before")


def test_pods_that_are_too_much_count_and_decide_nothing() -> None:
    """Their deletion may have failed."""
    all_pods = pods("Succeeded", "Succeeded", "Failed")
    of = job("Running")
    status, _ = concluded(of, Work(of.status, all_pods, (), surplus=all_pods[2:]), NOW_S)
    assert (status.state.phase, status.succeeded, status.failed) == ("Completed", 2, 1)


def test_a_pod_that_is_too_much_ends_no_elastic_world() -> None:
    """A member still runs, and the pod without a node is not one of those that never started."""
    of = job("Running")
    of.metadata.annotations[names.ELASTIC] = "1:2"
    of.spec.min_available = 1
    all_pods = pods("Succeeded", "Running", "Pending")
    all_pods[0].spec.node_name = all_pods[1].spec.node_name = "n"
    status, _ = concluded(of, Work(of.status, all_pods, (), surplus=all_pods[2:]), NOW_S)
    assert status.state.phase == "Running"


class World:
    """One Job and its writer; `requeue_after` notes the delays that it asks for."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.requeue_after: list[float] = []
        chance = random.Random(1)  # noqa: S311 - not a secret
        self.api = Api(Faults(chance, 0.0, 0.0), lambda: self.now_s, lambda *_: None)
        self.api.add(JOBS, {"metadata": {"name": "j"}, "spec": {}}, "n")
        self.writer = JobStatusWriter(
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
    world.now_s += 0.25
    assert world.explain("b") == ""
    world.now_s += 0.25
    assert world.explain("b") == ""
    world.now_s += 0.25
    assert world.explain("b") == "b"
    assert world.requeue_after == [0.5, 0.5, 0.25]


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
        world.now_s += 0.1
        texts.add(world.explain(str(number)))
    assert len(texts - {""}) == 9


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
    world.now_s += 10.0
    assert world.explain("a") == "", "it waits anew"
    assert world.api.writes == before


def test_a_job_that_has_changed_is_a_conflict() -> None:
    """Whoever decided on an older state has to decide again."""
    world = World()
    old = world.job()
    world.writer.write(old, moved(old.status, "Running", "Because", "a", world.now_s))
    with pytest.raises(Conflict):
        world.writer.write(old, moved(old.status, "Failed", "Because", "b", world.now_s))


def test_other_words_for_the_same_reason_rest_longer() -> None:
    """A new reason does not: it is news."""
    world = World()
    job = world.job()
    waits = explained(job.status, "Unschedulable", "room for 2 more pods is needed")
    world.writer.write(job, waits)
    still = structs.replace(job, status=waits)
    world.writer.write(still, explained(waits, "Unschedulable", "room for 1 more pod is needed"))
    assert world.requeue_after == [pytest.approx(0.5), pytest.approx(5.0)]
