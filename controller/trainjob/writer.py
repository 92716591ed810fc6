"""Writes a TrainJob's status: changed fields only, and only to the version that was read."""

import threading
from typing import Any

from msgspec import structs

from muster.api.kubeflow.jobset import ReplicatedJobStatus
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.meta import Condition
from muster.api.merge_diff import difference
from muster.kube.client import Client
from muster.kube.store import Store


class StatusWriter:
    """The one place that writes conditions and counts of TrainJobs; trainers write `trainerStatus`."""

    def __init__(self, client: Client, cached: Store[TrainJob]) -> None:
        self._client = client
        self._cached = cached
        self._lock = threading.Lock()
        self._written: dict[str, TrainJob] = {}

    def newest(self, key: str) -> TrainJob | None:
        """The TrainJob as it is: the newer of the cached one and the one written last."""
        cached = self._cached.get(key)
        with self._lock:
            written = self._written.get(key)
            if written is None or cached is None:
                self._written.pop(key, None)
                return cached
            if cached.metadata.uid == written.metadata.uid and _version(written) > _version(cached):
                return written
            del self._written[key]
            return cached

    def write(self, train_job: TrainJob, jobs: list[ReplicatedJobStatus], held: list[Condition]) -> TrainJob:
        """The TrainJob with this status, which is written if it differs.

        Counts that are all zero are left out at first. Raises Conflict if the TrainJob has changed since it was read.
        """
        old = train_job.status
        counts = jobs if old.jobs_status or any(map(_counts, jobs)) else []
        wanted = structs.replace(old, conditions=held, jobs_status=counts)
        patch: dict[str, Any] = difference(old, wanted)
        if not patch:
            return train_job
        meta = train_job.metadata
        body = {"metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid}, "status": patch}
        written = self._client.merge_patch(TRAIN_JOBS, meta.name, body, meta.namespace, subresource="status")
        with self._lock:
            self._written[meta.key] = written
        return written


def _counts(job: ReplicatedJobStatus) -> bool:
    return bool(job.ready or job.succeeded or job.failed or job.active or job.suspended)


def _version(train_job: TrainJob) -> int:
    return int(train_job.metadata.resource_version)
