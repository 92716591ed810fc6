"""Deletes Jobs some time after their end, where they ask for it (`ttlSecondsAfterFinished`)."""

import time
from collections.abc import Callable
from contextlib import suppress

import structlog

from controller.job.rules.timers import expires_s
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
        """Notes when a Job that has ended is due."""
        del old
        due_s = expires_s(new) if new else None
        if new and due_s is not None:
            self.worker.queue.add_after(new.metadata.key, due_s - self._wall_s())

    def process(self, key: str) -> None:
        """Deletes the Job, with its pods first, if it is still due by what the API server says now."""
        namespace, _, name = key.partition("/")
        if self._jobs.get(key) is None:
            return
        with suppress(NotFound):
            job = self._client.get(JOBS, name, namespace)
            due_s = expires_s(job)
            if due_s is None:
                return
            if due_s > self._wall_s():
                self.worker.queue.add_after(key, due_s - self._wall_s())
                return
            log.info("job deleted, its time after finishing is over", job=key)
            meta = job.metadata
            self._client.delete(
                JOBS, name, namespace, uid=meta.uid, resource_version=meta.resource_version, propagation="Foreground"
            )
