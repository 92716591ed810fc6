"""The controller of CronJobs: it deletes old Jobs, creates the due Job, and writes the status."""

from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from controller.caches import CRON_INDEX, OwnWrites, SharedCaches, packed
from controller.cron.rules import active, due_s, job_manifest, outdated, start_s, status_of
from controller.kit import KindController, Kit
from controller.live import controller_key, delete, find_or_make, owned_by, owner_text
from muster.api.merge_diff import difference
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.cron import CRON_JOBS, CronJob
from muster.kube.errors import NotFound, Refused
from muster.volcano.schedule import ScheduleError, read_schedule, zone_of

BLOCKED_S = 30.0
"""Time until the next attempt to create a Job that the API server has rejected."""
MARGIN_S = 0.1
"""Time that is added to the next scheduled pass, so that the clock has certainly reached the scheduled time."""
LONGEST_S = 3600.0
"""Maximum interval between passes, so that a pass soon notices a change of the system clock."""
BELIEVED_S = 30.0
"""Time for which a created Job counts as existing while no cache contains it."""


class CronJobs(KindController[CronJob]):
    """The controller of Volcano's CronJobs."""

    def __init__(self, kit: Kit, caches: SharedCaches) -> None:
        super().__init__(kit, "cronjob", CRON_JOBS, packed(kit.client, CRON_JOBS))
        self._jobs = caches.jobs.store
        self._made = OwnWrites[Job](kit.monotonic_s, BELIEVED_S)
        self.handlers.append((caches.jobs, self._job_seen))

    def _job_seen(self, old: Job | None, new: Job | None) -> None:
        """Queue the CronJob of a Job that was created or deleted, or whose phase has changed."""
        self._made.seen(old, new)
        for job in (old, new):
            key = controller_key(job.metadata, CRON_JOBS) if job else None
            if key and (old is None or new is None or _state(old) != _state(new)):
                self.worker.queue.add(key)

    def process(self, key: str) -> None:
        """Run one pass. No Jobs are created for a suspended or terminating CronJob."""
        cron_job = self.newest(key)
        if cron_job is None or cron_job.metadata.deletion_timestamp:
            return
        jobs = self._jobs_of(cron_job)
        old = outdated(cron_job, jobs)
        self._delete(cron_job, old, "SuccessfulDelete", "because newer Jobs have ended")
        gone = {job.metadata.uid for job in old}
        jobs = [job for job in jobs if job.metadata.uid not in gone]
        with suppress(NotFound):
            cron_job = self.patched(cron_job, difference(cron_job.status, status_of(cron_job, jobs)))
            if not cron_job.spec.suspend:
                self._run(cron_job, jobs)

    def _run(self, cron_job: CronJob, jobs: list[Job]) -> None:
        spec, now_s = cron_job.spec, self._wall_s()
        try:
            schedule = read_schedule(spec.schedule, spec.time_zone)
        except ScheduleError as error:
            self._recorder.event(cron_job, "Warning", "InvalidSchedule", f"no Jobs are made: {error}")
            return
        time_s = due_s(cron_job, schedule, now_s)
        if time_s is not None and not self._make(cron_job, jobs, time_s):
            self.worker.queue.add_after(cron_job.metadata.key, BLOCKED_S)
        next_s = schedule.after(now_s, start_s(cron_job))
        self.worker.queue.add_after(cron_job.metadata.key, min(LONGEST_S, next_s - now_s) + MARGIN_S)

    def _make(self, cron_job: CronJob, jobs: list[Job], time_s: float) -> bool:
        """Create the Job for this scheduled time if the policy allows it; return False if a retry is needed."""
        policy = cron_job.spec.concurrency_policy
        local = datetime.fromtimestamp(time_s, zone_of(cron_job.spec.time_zone)).isoformat()
        manifest = job_manifest(cron_job, time_s, local)
        name = manifest["metadata"]["name"]
        # The Job of this time already exists if a process stopped between its creation and the status update.
        running = [job for job in active(jobs) if job.metadata.name != name]
        if running and policy == "Forbid":
            why = f"the next Job waits, as {running[0].metadata.name} has not ended"
            self._recorder.event(cron_job, "Normal", "JobAlreadyActive", why)
            return True  # the end of that Job leads to the next pass
        if policy == "Replace":
            self._delete(cron_job, running, "Replaced", "because the next Job is due")
            jobs = [job for job in jobs if job not in running]
        try:
            job, new = find_or_make(self._client, JOBS, manifest)
        except Refused as error:
            why = f"Job {name}: {error.message}"
            self._recorder.event(cron_job, "Warning", "FailedCreate", why)
            self.patched(cron_job, difference(cron_job.status, replace(cron_job.status, message=why)))
            return False
        if not owned_by(job.metadata, cron_job.metadata.uid):
            why = f"Job {name} exists already and {owner_text(job.metadata)}; no Job is created for this time"
            self._recorder.event(cron_job, "Warning", "ForeignJob", why)
        else:
            self._made.note(job)
            jobs = [*(each for each in jobs if each.metadata.uid != job.metadata.uid), job]
            if new:
                self._recorder.event(cron_job, "Normal", "SuccessfulCreate", f"made Job {name}")
        self.patched(cron_job, difference(cron_job.status, status_of(cron_job, jobs, time_s)))
        return True

    def _jobs_of(self, cron_job: CronJob) -> list[Job]:
        """Return the existing Jobs, including new Jobs that no cache contains yet."""
        meta = cron_job.metadata
        cached = {job.metadata.key: job for job in self._jobs.by_index(CRON_INDEX, meta.key)}
        known = {*cached, *(f"{meta.namespace}/{each.name}" for each in cron_job.status.active)}
        found = [self._made.newest(key, cached.get(key)) for key in sorted(known)]
        return [job for job in found if job is not None and owned_by(job.metadata, meta.uid)]

    def _delete(self, cron_job: CronJob, jobs: list[Job], reason: str, why: str) -> None:
        for job in jobs:
            if not job.metadata.deletion_timestamp and delete(self._client, JOBS, job.metadata):
                self._recorder.event(cron_job, "Normal", reason, f"deleted Job {job.metadata.name}, {why}")
            self._made.drop(job.metadata.key)


def _state(job: Job) -> tuple[str, str, str | None]:
    return job.metadata.uid, job.status.state.phase, job.metadata.deletion_timestamp
