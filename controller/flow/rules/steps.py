"""Which Jobs of a JobFlow are due, and its phase. No I/O, no clock.

A Job that has ended counts when it is gone, too, as the status of the JobFlow remembers it: one with a short time to
live would be run again and again otherwise. One that was deleted before its end is made again.
"""

from collections.abc import Mapping

from muster.api.volcano.batch import FINISHED, Job, Phase
from muster.api.volcano.flow import Flow, FlowPhase, JobFlow, TaskStatus, job_name
from muster.volcano.flows import targets
from muster.volcano.tasks import minimum, task_name

Jobs = Mapping[str, Job]
"""The Jobs of a JobFlow that exist, or were seen to end and are gone, by step."""
_LOST = frozenset({"Failed", "Terminated"})
_BEGUN = frozenset({"Running", "Restarting", "Completing", "Completed", "Terminating"})
_ONE_IS_ENOUGH = frozenset({"Failed", "Unknown"})


def phases(job_flow: JobFlow, jobs: Jobs) -> dict[str, Phase]:
    """The phase of the Job of each step that was made and need not be made again."""
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
    """True if the step of this Job would be run again if the Job, which has ended, were gone."""
    meta, status = job_flow.metadata, job_flow.status
    mine = job.metadata.controller
    if mine is None or mine.uid != meta.uid or meta.deletion_timestamp:
        return False
    made = {job_name(job_flow, flow.name) for flow in job_flow.spec.flows}
    known = {each.name for each in status.job_status_list if each.state in FINISHED}
    return job.status.state.phase in FINISHED and job.metadata.name in made - known


def phase(job_flow: JobFlow, jobs: Jobs) -> FlowPhase:
    """The phase of the JobFlow."""
    known = phases(job_flow, jobs)
    if job_flow.metadata.deletion_timestamp:
        return "Terminating"
    if _LOST.intersection(known.values()):
        return "Failed"
    if job_flow.spec.flows and all(known.get(flow.name) == "Completed" for flow in job_flow.spec.flows):
        return "Succeed"
    return "Running" if _BEGUN.intersection(known.values()) else "Pending"


def due(job_flow: JobFlow, jobs: Jobs) -> list[Flow]:
    """The steps whose Jobs are to be made now; none when one has failed, or all is over."""
    if phase(job_flow, jobs) not in {"Running", "Pending"}:
        return []
    known = phases(job_flow, jobs)
    return [
        flow
        for flow in job_flow.spec.flows
        if flow.name not in known and all(_is_met(flow, known.get(each), jobs.get(each)) for each in targets(flow))
    ]


def _is_met(flow: Flow, state: Phase | None, job: Job | None) -> bool:
    """True for a step that is not waited for: it is completed, or its tasks are as far as the probe asks."""
    probe = flow.depends_on.probe if flow.depends_on else None
    return state == "Completed" or bool(job and probe and _reached(job, probe.task_status_list))


def _reached(job: Job, wanted: list[TaskStatus]) -> bool:
    tasks = {task_name(index, task): task for index, task in enumerate(job.spec.tasks)}
    of_job = [each for each in wanted if each.task_name in tasks]
    for each in of_job:
        counts = job.status.task_status_count.get(each.task_name)
        seen = dict(counts.phase) if counts else {}
        there = seen.get(each.phase, 0) + (seen.get("Succeeded", 0) if each.phase == "Running" else 0)
        if there < (1 if each.phase in _ONE_IS_ENOUGH else max(1, minimum(tasks[each.task_name]))):
            return False
    return bool(of_job)
