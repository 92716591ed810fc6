"""The machine's table, stated a second time as users know it, and the rules of counters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.job.rules.done import GonePod
from controller.job.rules.phases import Counts, next_phase, unplaced
from controller.job.rules.policies import TABLE, PolicyAction, step
from muster.api.kubernetes.core import Pod, PodStatus
from muster.api.volcano.batch import Job, JobSpec, TaskSpec

ACTIONS = (
    "SyncJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition",
    "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob",
)  # fmt: skip

# One line per phase, one cell per action in the order above: effect, phase that is entered, "+" for a used retry.
STATED = """
              | sync   | all>Restarting+ | target>Restarting+ | target>Restarting+ | target>Restarting+ | soft>Aborting | soft>Terminating | soft>Completing | sync
Pending       | sync   | all>Restarting+ | target>Restarting+ | target>Restarting+ | target>Restarting+ | soft>Aborting | soft>Terminating | soft>Completing | sync
Running       | sync   | all>Restarting+ | target>Restarting+ | target>Restarting+ | target>Restarting+ | soft>Aborting | soft>Terminating | soft>Completing | sync
Restarting    | sync   | all             | target             | target             | target             | soft>Aborting | soft>Terminating | soft>Completing | sync
Completing    | soft   | soft            | soft               | soft               | soft               | soft          | soft             | soft            | soft
Terminating   | soft   | soft            | soft               | soft               | soft               | soft          | soft             | soft            | soft
Aborting      | soft   | soft            | soft               | soft               | soft               | soft          | soft             | soft            | soft>Restarting
Aborted       | soft   | soft            | soft               | soft               | soft               | soft          | soft             | soft            | soft>Restarting
Completed     | soft   | soft            | soft               | soft               | soft               | soft          | soft             | soft            | soft
Failed        | soft   | soft            | soft               | soft               | soft               | soft          | soft             | soft            | soft
Terminated    | soft   | soft            | soft               | soft               | soft               | soft          | soft             | soft            | soft
"""  # noqa: E501 - a table is read across
EFFECTS = {"sync": "sync", "all": "kill all", "soft": "kill", "target": "kill target"}
CELLS = [
    (line.split("|")[0].strip(), action, cell.strip())
    for line in STATED.strip("\n").splitlines()
    for action, cell in zip(ACTIONS, line.split("|")[1:], strict=True)
]


@pytest.mark.parametrize(("phase", "action", "cell"), CELLS)
def test_table(phase: str, action: str, cell: str) -> None:
    """Every phase answers every action as stated."""
    effect, _, enters = cell.partition(">")
    found = step(phase, action)  # type: ignore[arg-type]  # phases as text
    assert (found.effect, found.enter, found.retry) == (
        EFFECTS[effect],
        enters.rstrip("+") or None,
        enters.endswith("+"),
    )


def test_table_is_complete() -> None:
    """There is a cell for each of 11 phases (with none yet) and 9 actions, and no other."""
    assert len(CELLS) == 99
    assert {(phase, action) for phase, action, _ in CELLS} == {(row, each) for row in TABLE for each in TABLE[row]}


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Restarting", "Aborted", "Failed"])
def test_unknown_action_is_a_sync(phase: str) -> None:
    """A word that nobody knows does not kill anything."""
    assert step(phase, "Foo") == step(phase, "SyncJob")  # type: ignore[arg-type]  # phases as text


def spec(*tasks: tuple[int, int | None], min_available: int, min_success: int | None = None) -> JobSpec:
    """A Job with tasks t0, t1, … of (replicas, minAvailable)."""
    return JobSpec(
        min_available=min_available,
        min_success=min_success,
        tasks=[TaskSpec(name=f"t{i}", replicas=n, min_available=least) for i, (n, least) in enumerate(tasks)],
    )


def phase_after(job: JobSpec, phase: str, counts: Counts, retry: int = 0) -> str:
    """The phase that the counters lead to."""
    transition = next_phase(job, phase, counts, retry)  # type: ignore[arg-type]  # phases as text
    return transition.phase if transition else phase


@pytest.mark.parametrize(
    ("counts", "unplaced", "phase"),
    [
        (Counts(succeeded=2, pending=1), 1, "Completing"),
        (Counts(succeeded=2), 0, "Completing"),  # the third could not even be created
        (Counts(succeeded=2, pending=1), 0, "Running"),  # it has a node
        (Counts(succeeded=2, pending=1), None, "Running"),  # the Job is not elastic
        (Counts(succeeded=1, running=1, pending=1), 1, "Running"),
        (Counts(succeeded=1, failed=1, pending=1), 1, "Running"),
        (Counts(succeeded=2, terminating=1), 0, "Running"),
        (Counts(running=2, pending=1), 1, "Running"),
    ],
)
def test_an_elastic_world_that_has_ended_is_complete(counts: Counts, unplaced: int | None, phase: str) -> None:
    """Members that never had a node do not start any more."""
    transition = next_phase(spec((3, 3), min_available=2), "Running", counts, 0, unplaced=unplaced)
    assert (transition.phase if transition else "Running") == phase


@pytest.mark.parametrize(
    ("own", "of_the_template", "tasks", "found"),
    [(True, False, 1, 1), (False, True, 1, 1), (False, False, 1, None), (True, False, 2, None)],
)
def test_which_job_is_elastic(*, own: bool, of_the_template: bool, tasks: int, found: int | None) -> None:
    """By the annotation of the Job or of its pods; a Job of several tasks has pods of other kinds, too."""
    notes = {"muster.dev/elastic": "1:2"}
    job = Job(spec=spec(*[(2, None)] * tasks, min_available=1))
    job.metadata.annotations.update(notes if own else {})
    job.spec.tasks[0].template = {"metadata": {"annotations": notes if of_the_template else None}}
    placed, waits, leaves, done = Pod(), Pod(), Pod(), GonePod(status=PodStatus(phase="Succeeded"))
    placed.spec.node_name, leaves.metadata.deletion_timestamp = "n", "2027-01-15T08:00:00Z"
    assert unplaced(job, [placed, waits, leaves, done]) == found


@pytest.mark.parametrize(("counts", "phase"), [
    (Counts(pending=3), "Pending"),
    (Counts(pending=1, running=2), "Pending"),
    (Counts(running=3), "Running"),
    (Counts(running=1, succeeded=1, failed=1), "Running"),
    (Counts(running=2, terminating=1), "Pending"),
])  # fmt: skip
def test_pending_runs_when_the_minimum_has_started(counts: Counts, phase: str) -> None:
    """Started are pods that run or have finished."""
    assert phase_after(spec((3, 3), min_available=3), "Pending", counts) == phase


@pytest.mark.parametrize(
    ("job", "counts", "phase"),
    [
        (spec((0, None), min_available=0), Counts(), "Running"),  # scaled to zero
        (spec((3, 3), min_available=3, min_success=1), Counts(running=2, succeeded=1), "Completed"),
        (spec((3, 3), min_available=3), Counts(succeeded=3, tasks={"t0": {"Succeeded": 3}}), "Completed"),
        (spec((3, 3), min_available=3), Counts(succeeded=2, failed=1, tasks={"t0": {"Succeeded": 2}}), "Failed"),
        (spec((6, None), min_available=3), Counts(succeeded=3, failed=3, tasks={"t0": {"Succeeded": 3}}), "Completed"),
        (spec((6, 6), min_available=3), Counts(succeeded=3, failed=3, tasks={"t0": {"Succeeded": 3}}), "Completed"),
        (spec((6, None), min_available=3), Counts(succeeded=2, failed=4), "Failed"),
        (spec((3, 1), min_available=1, min_success=3), Counts(succeeded=2, failed=1), "Failed"),
        (spec((2, 2), (1, 0), min_available=2), Counts(succeeded=2, failed=1), "Completed"),
        (spec((3, 3), min_available=3), Counts(running=2, failed=1), "Running"),
        (spec((3, 3), min_available=3), Counts(running=2, pending=1), "Pending"),
        (spec((3, 2), min_available=2), Counts(running=2, pending=1), "Running"),
    ],
)  # fmt: skip
def test_completion(job: JobSpec, counts: Counts, phase: str) -> None:
    """The completion rules, in their order."""
    assert phase_after(job, "Running", counts) == phase


@pytest.mark.parametrize(
    ("retry", "terminating", "phase"),
    [(1, 3, "Restarting"), (1, 1, "Restarting"), (2, 0, "Pending"), (3, 0, "Failed"), (3, 3, "Failed")],
)
def test_restart_waits_for_old_pods_and_ends_at_the_limit(retry: int, terminating: int, phase: str) -> None:
    """MaxRetry 3 means three runs: the third restart fails the Job."""
    assert phase_after(spec((3, 3), min_available=3), "Restarting", Counts(terminating=terminating), retry) == phase


@pytest.mark.parametrize(
    ("phase", "end"), [("Completing", "Completed"), ("Terminating", "Terminated"), ("Aborting", "Aborted")]
)
def test_draining_ends_when_nothing_is_left(phase: str, end: str) -> None:
    """Finished pods may stay; running, pending and terminating ones may not."""
    job = spec((3, 3), min_available=3)
    assert phase_after(job, phase, Counts(succeeded=1, failed=1)) == end
    for left in (Counts(running=1), Counts(pending=1), Counts(terminating=1)):
        assert phase_after(job, phase, left) == phase


@given(
    phase=st.sampled_from(["Completed", "Failed", "Terminated"]),
    numbers=st.lists(st.integers(0, 5), min_size=6, max_size=6),
    retry=st.integers(0, 9),
    action=st.sampled_from(PolicyAction),
)
def test_finished_stays_finished(phase: str, numbers: list[int], retry: int, action: PolicyAction) -> None:
    """Neither counters nor actions lead out of a finished phase."""
    assert step(phase, action).enter is None  # type: ignore[arg-type]  # phases as text
    assert phase_after(spec((3, 3), min_available=3), phase, Counts(*numbers), retry) == phase
