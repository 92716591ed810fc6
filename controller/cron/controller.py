"""The controller of CronJobs: its cache, handlers and worker."""

import time
from collections.abc import Callable
from typing import Any

from controller.caches import OwnWrites
from controller.cron.reconcile import Context, Reconciler, cron_key
from controller.worker import Worker
from muster.api.volcano.batch import Job
from muster.api.volcano.cron import CRON_JOBS, CronJob
from muster.kube.budget import Budget
from muster.kube.client import Client
from muster.kube.events import Recorder
from muster.kube.reflector import Reflector
from muster.kube.store import Store

BELIEVED_S = 30.0
"""Time for which a Job that was made counts while no cache shows it."""


class CronJobs:
    """A worker over `namespace/name` of Volcano's CronJobs; `jobs` has the index of `reconcile`."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        jobs: Store[Job],
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._cron_jobs = Reflector(client, CRON_JOBS, store=Store(packed=CronJob), budget=Budget(CRON_JOBS))
        self.reflectors: dict[str, Reflector[Any]] = {"cronjobs": self._cron_jobs}
        self.handlers: list[tuple[Reflector[Any], Any]] = [(self._cron_jobs, self._cron_job_seen)]
        self.worker = Worker("cronjob", self.process, monotonic_s=monotonic_s)
        self._context = Context(
            client=client,
            recorder=recorder,
            cron_jobs=self._cron_jobs.store,
            jobs=jobs,
            written=OwnWrites[CronJob](monotonic_s),
            made=OwnWrites[Job](monotonic_s, BELIEVED_S),
            requeue_after=self.worker.queue.add_after,
            wall_s=wall_s,
        )
        self._reconciler = Reconciler(self._context)

    def process(self, key: str) -> None:
        """One pass over one CronJob."""
        self._reconciler.process(key)

    def job_seen(self, old: Job | None, new: Job | None) -> None:
        """Queues the CronJob of a Job that has come, gone, or entered another phase."""
        self._context.made.seen(old, new)
        for job in (old, new):
            key = cron_key(job) if job else None
            if key and (old is None or new is None or _state(old) != _state(new)):
                self.worker.queue.add(key)

    def _cron_job_seen(self, old: CronJob | None, new: CronJob | None) -> None:
        self._context.written.seen(old, new)
        if new and (old is None or _asked(old) != _asked(new)):
            self.worker.queue.add(new.metadata.key)


def _state(job: Job) -> tuple[str, str, str | None]:
    return job.metadata.uid, job.status.state.phase, job.metadata.deletion_timestamp


def _asked(cron_job: CronJob) -> tuple[str, int, str | None]:
    meta = cron_job.metadata
    return meta.uid, meta.generation, meta.deletion_timestamp
