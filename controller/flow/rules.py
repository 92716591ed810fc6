"""Decisions about a JobFlow: the due Jobs, and the status. The functions do no I/O and read no clock.

A Job that has ended still counts after its deletion, because the status of the JobFlow records its end. Otherwise, a
Job with a short time to live would run repeatedly. If a Job is deleted before its end, it is created again.

The size of a JobFlow's status is limited: histories are truncated, and beyond a limit, tasks are not counted.
"""

from collections.abc import Mapping
from typing import Final, Literal

from muster.api.volcano.batch import FINISHED, Job, Phase
from muster.api.volcano.flow import (
    Flow,
    FlowCondition,
    FlowHistory,
    FlowJobStatus,
    FlowPhase,
    FlowState,
    JobFlow,
    JobFlowStatus,
    TaskStatus,
    job_name,
)
from muster.volcano.flows import targets
from muster.volcano.tasks import minimum

Jobs = Mapping[str, Job]
"""Maps each step of a JobFlow to its Job: an existing Job, or a deleted Job that had ended before."""
_LOST = frozenset({"Failed", "Terminated"})
_BEGUN = frozenset({"Running", "Restarting", "Completing", "Completed", "Terminating"})
_ONE_IS_ENOUGH = frozenset({"Failed", "Unknown"})
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
"""Maximum number of phases in the history of a Job in the JobFlow's status."""
MOST_TASKS: Final = 2_048
"""Maximum number of tasks counted in one status; with the longest names, the counts take half a MiB."""


def phases(job_flow: JobFlow, jobs: Jobs) -> dict[str, Phase]:
    """Return a mapping from steps to the phases of their Jobs; without steps whose Job must be created."""
    past = {each.name: each.state for each in job_flow.status.job_status_list if each.state in FINISHED}
    found: dict[str, Phase] = {}
    for flow in job_flow.spec.flows:
        job, last = jobs.get(flow.name), past.get(job_name(job_flow, flow.name))
        if job is not None:
            found[flow.name] = job.status.state.phase
        elif last:
            found[flow.name] = last
    return found


def is_forgotten(job_flow: JobFlow, job: Job) -> bool:
    """Return True if the step of this ended Job would run again if the Job were deleted.

    A step does not run again if the status of the JobFlow already records the end of its Job.
    """
    meta, status = job_flow.metadata, job_flow.status
    mine = job.metadata.controller
    if mine is None or mine.uid != meta.uid or meta.deletion_timestamp:
        return False
    made = {job_name(job_flow, flow.name) for flow in job_flow.spec.flows}
    known = {each.name for each in status.job_status_list if each.state in FINISHED}
    return job.status.state.phase in FINISHED and job.metadata.name in made - known


def phase(job_flow: JobFlow, jobs: Jobs) -> FlowPhase:
    """Return the phase of the JobFlow."""
    known = phases(job_flow, jobs)
    if job_flow.metadata.deletion_timestamp:
        return "Terminating"
    if _LOST.intersection(known.values()):
        return "Failed"
    if job_flow.spec.flows and all(known.get(flow.name) == "Completed" for flow in job_flow.spec.flows):
        return "Succeed"
    return "Running" if _BEGUN.intersection(known.values()) else "Pending"


def due(job_flow: JobFlow, jobs: Jobs) -> list[Flow]:
    """Return the steps whose Jobs must be created now; an empty list if a Job has failed or all Jobs have ended."""
    if phase(job_flow, jobs) not in {"Running", "Pending"}:
        return []
    known = phases(job_flow, jobs)
    found: dict[str, Flow] = {}
    for flow in job_flow.spec.flows:
        if flow.name not in known and all(_is_met(flow, known.get(each), jobs.get(each)) for each in targets(flow)):
            found.setdefault(flow.name, flow)
    return [*found.values()]


def _is_met(flow: Flow, state: Phase | None, job: Job | None) -> bool:
    """Return True if a dependency of `flow` is met: its Job is completed, or its tasks satisfy the probe of `flow`."""
    probe = flow.depends_on.probe if flow.depends_on else None
    return state == "Completed" or bool(job and probe and _reached(job, probe.task_status_list))


def _reached(job: Job, wanted: list[TaskStatus]) -> bool:
    tasks = {task.name: task for task in job.spec.tasks}
    of_job = [each for each in wanted if each.task_name in tasks]
    for each in of_job:
        counts = job.status.task_status_count.get(each.task_name)
        seen = dict(counts.phase) if counts else {}
        there = seen.get(each.phase, 0) + (seen.get("Succeeded", 0) if each.phase == "Running" else 0)
        if there < (1 if each.phase in _ONE_IS_ENOUGH else max(1, minimum(tasks[each.task_name]))):
            return False
    return bool(of_job)


def status_of(job_flow: JobFlow, jobs: Jobs, present: frozenset[str], now: str) -> JobFlowStatus:
    """Return the status of the JobFlow; `present` are the steps whose Jobs still exist."""
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
        state=FlowState(phase=(now_in := phase(job_flow, jobs)), message=_message(job_flow, now_in)),
    )


def _message(job_flow: JobFlow, phase: FlowPhase) -> str:
    """Return the previous message, which explains why a Job could not be created; "" once the JobFlow has ended."""
    return "" if phase in {"Succeed", "Failed"} else job_flow.status.state.message


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
