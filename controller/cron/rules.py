"""Decisions about a CronJob: the due Job, the Jobs to delete, and the status.

The functions do no I/O and read no clock. If scheduled times were missed, a Job is created only for the latest time,
unless this time is more than `startingDeadlineSeconds` ago. While a running Job prevents the next Job, the scheduled
time of the next Job stays due.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import structs, to_builtins

from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.limits import TEMPLATE_JOBS
from muster.api.muster.creator import passed_on
from muster.api.volcano.batch import FINISHED, JOBS, Job
from muster.api.volcano.cron import CRON_JOBS, SCHEDULED_AT, CronJob, CronJobStatus, ObjectReference
from muster.volcano.schedule import Schedule
from muster.workloads.adapter import Owner

JSON = dict[str, Any]
_KEPT: Final = 3
_KEPT_LOST: Final = 1
_MINUTE_S: Final = 60


def start_s(cron_job: CronJob) -> float:
    """Return the creation time of the CronJob, from which its schedule counts."""
    return readable_time(cron_job.metadata.creation_timestamp) or 0.0


def due_s(cron_job: CronJob, schedule: Schedule, now_s: float) -> float | None:
    """Return the latest scheduled time for which a Job must still be created, or None."""
    start, deadline_s = start_s(cron_job), cron_job.spec.starting_deadline_seconds
    last_s = readable_time(cron_job.status.last_schedule_time)
    since_s = start if last_s is None else last_s
    if deadline_s is not None:
        since_s = max(since_s, now_s - deadline_s)
    return schedule.latest(now_s, since_s, start)


def active(jobs: Sequence[Job]) -> list[Job]:
    """Return the Jobs that have not ended, sorted by name."""
    return sorted((job for job in jobs if job.status.state.phase not in FINISHED), key=lambda job: job.metadata.name)


def outdated(cron_job: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """Return the oldest of the ended Jobs, as many as exceed the history limits."""
    spec = cron_job.spec
    won = [job for job in jobs if job.status.state.phase == "Completed"]
    lost = [job for job in jobs if job.status.state.phase in FINISHED - {"Completed"}]
    kept = _KEPT if spec.successful_jobs_history_limit is None else spec.successful_jobs_history_limit
    kept_lost = _KEPT_LOST if spec.failed_jobs_history_limit is None else spec.failed_jobs_history_limit
    return [*_oldest(won, kept), *_oldest(lost, kept_lost)]


def _oldest(jobs: list[Job], kept: int) -> list[Job]:
    ordered = sorted(jobs, key=lambda job: (job.metadata.creation_timestamp or "", job.metadata.name))
    return ordered[: max(0, len(ordered) - kept)]


def status_of(cron_job: CronJob, jobs: Sequence[Job], made_for_s: float | None = None) -> CronJobStatus:
    """Return the CronJob's status; `made_for_s` is the scheduled time of a Job that was just created, if any."""
    ends = [job.status.state.last_transition_time for job in jobs if job.status.state.phase == "Completed"]
    known = cron_job.status.last_successful_time
    latest = max((end for end in (known, *ends) if end), key=lambda end: readable_time(end) or 0.0, default=None)
    return structs.replace(
        cron_job.status,
        active=[_reference(job) for job in active(jobs)[: TEMPLATE_JOBS.value]],
        last_successful_time=latest,
        last_schedule_time=cron_job.status.last_schedule_time if made_for_s is None else format_time(made_for_s),
        message=cron_job.status.message if made_for_s is None else "",
    )


def _reference(job: Job) -> ObjectReference:
    meta = job.metadata
    return ObjectReference(
        api_version=JOBS.api_version, kind=JOBS.kind, name=meta.name, namespace=meta.namespace, uid=meta.uid
    )


def job_manifest(cron_job: CronJob, time_s: float, local: str) -> JSON:
    """Return the Job for a time of the schedule; `local` is that time in the CronJob's time zone."""
    meta, template = cron_job.metadata, cron_job.spec.job_template
    metadata = {
        "name": f"{meta.name}-{int(time_s) // _MINUTE_S}",
        "namespace": meta.namespace,
        "labels": template.metadata.labels,
        "annotations": {**passed_on(meta.annotations, template.metadata.annotations), SCHEDULED_AT: local},
        "ownerReferences": [Owner.from_meta(CRON_JOBS, meta).reference()],
    }
    spec = to_builtins(template.spec)
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}
