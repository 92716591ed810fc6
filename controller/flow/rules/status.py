"""The status of a JobFlow: its Jobs by phase, each with its history, and its own phase. No I/O, no clock.

It stays small whatever the Jobs are: histories are cut, and counts of tasks are left out when there are too many.
"""

from collections.abc import Mapping
from typing import Final, Literal

from controller.flow.rules.steps import Jobs, phase, phases
from muster.api.volcano.batch import FINISHED, Job, Phase
from muster.api.volcano.flow import (
    FlowCondition,
    FlowHistory,
    FlowJobStatus,
    FlowState,
    JobFlow,
    JobFlowStatus,
    job_name,
)

_Field = Literal[
    "pending_jobs", "running_jobs", "completed_jobs", "terminated_jobs", "failed_jobs", "un_know_jobs"
]  # fmt: skip
_LISTS: Final[Mapping[Phase, _Field]] = {
    "": "pending_jobs",
    "Pending": "pending_jobs",
    "Running": "running_jobs",
    "Completing": "completed_jobs",
    "Completed": "completed_jobs",
    "Terminating": "terminated_jobs",
    "Terminated": "terminated_jobs",
    "Failed": "failed_jobs",
}
LATEST: Final = 8
"""Phases of a Job that its history has."""
MOST_TASKS: Final = 2_048
"""Tasks whose pods are counted in one status; with names of the longest it takes half a MiB."""


def status_of(job_flow: JobFlow, jobs: Jobs, present: frozenset[str], now: str) -> JobFlowStatus:
    """The status; `present` are the steps whose Jobs still exist."""
    known = phases(job_flow, jobs)
    before = {each.name: each for each in job_flow.status.job_status_list}
    lists: dict[_Field, list[str]] = {}
    listed = []
    for step, its_phase in known.items():
        name = job_name(job_flow, step)
        lists.setdefault(_LISTS.get(its_phase, "un_know_jobs"), []).append(name)
        job = jobs.get(step)
        listed.append(_of_job(job, before.get(name), now) if job else before[name])
    return JobFlowStatus(
        **lists,
        job_status_list=listed,
        conditions=_conditions({step: job for step, job in jobs.items() if step in present}),
        state=FlowState(phase=phase(job_flow, jobs)),
    )


def _of_job(job: Job, before: FlowJobStatus | None, now: str) -> FlowJobStatus:
    state, meta = job.status.state, job.metadata
    known = before if before and before.start_timestamp == meta.creation_timestamp else None
    return FlowJobStatus(
        name=meta.name,
        state=state.phase,
        start_timestamp=meta.creation_timestamp,
        end_timestamp=state.last_transition_time if state.phase in FINISHED else None,
        restart_count=max(0, job.status.retry_count),
        running_histories=_histories(known.running_histories if known else [], state.phase, now),
    )


def _histories(known: list[FlowHistory], state: Phase, now: str) -> list[FlowHistory]:
    if not state or (known and known[-1].state == state):
        return known
    ended = [*known[:-1], *(FlowHistory(start_timestamp=each.start_timestamp, end_timestamp=now, state=each.state)
                            for each in known[-1:])]  # fmt: skip
    return [*ended, FlowHistory(start_timestamp=now, state=state)][-LATEST:]


def _conditions(jobs: Jobs) -> dict[str, FlowCondition]:
    counted = 0
    found = {}
    for job in jobs.values():
        counts = job.status.task_status_count
        counted += len(counts)
        found[job.metadata.name] = FlowCondition(
            phase=job.status.state.phase,
            create_time=job.metadata.creation_timestamp,
            running_duration=job.status.running_duration,
            task_status_count=counts if counted <= MOST_TASKS else {},
        )
    return found
