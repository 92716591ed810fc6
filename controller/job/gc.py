"""Deletes Jobs some time after their end, where they ask for it (`ttlSecondsAfterFinished`)."""

import time
from collections.abc import Callable
from contextlib import suppress

import structlog

from controller.job.rules.timers import expires_s
from controller.live import find
from controller.worker import Worker
from muster.api.volcano.batch import JOBS, Job
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.kube.store import Store

log = structlog.get_logger(__name__)


class GarbageCollector:
    """A worker over the keys of Jobs; `wall_s` gives seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        jobs: Store[Job],
        wall_s: Callable[[], float],
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._jobs = jobs
        self._wall_s = wall_s
        self.worker = Worker("gc", self.process, queue="gc", monotonic_s=monotonic_s)

    def job_seen(self, old: Job | None, new: Job | None) -> None:
        """Queues a Job that has ended for the time of its deletion."""
        del old
        due_s = expires_s(new) if new else None
        if new and due_s is not None:
            self.worker.queue.add_after(new.metadata.key, due_s - self._wall_s())

    def process(self, key: str) -> None:
        """Deletes the Job, with its pods first, if it is due as it is at the API server now."""
        namespace, _, name = key.partition("/")
        job = find(self._client, JOBS, name, namespace) if self._jobs.get(key) else None
        due_s = expires_s(job) if job else None
        if job is None or due_s is None:
            return
        if due_s > self._wall_s():
            self.worker.queue.add_after(key, due_s - self._wall_s())
            return
        log.info("job deleted, its time after finishing is over", job=key)
        meta = job.metadata
        with suppress(NotFound):
            self._client.delete(
                JOBS, name, namespace, uid=meta.uid, resource_version=meta.resource_version, propagation="Foreground"
            )
