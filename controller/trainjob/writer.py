"""Writes a TrainJob's status: changed fields only, and only to the version that was read."""

import time
from typing import Any

from msgspec import structs

from controller.own_writes import OwnWrites
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
        self._written = OwnWrites[TrainJob](time.monotonic)

    def newest(self, key: str) -> TrainJob | None:
        """The TrainJob as it is."""
        return self._written.newest(key, self._cached.get(key))

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
        self._written.note(written)
        return written


def _counts(job: ReplicatedJobStatus) -> bool:
    return bool(job.ready or job.succeeded or job.failed or job.active or job.suspended)
