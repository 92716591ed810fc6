"""Writes a Job's status: only what has changed, and mere counters not more often than a few times a second."""

from collections.abc import Callable

from msgspec import structs

from controller.job.ledger import Ledger
from controller.job.status import difference, only_counters
from controller.metrics import STATUS_WRITES
from muster.api.batch import JOBS, Job, JobStatus
from muster.kube.client import Client

COUNTERS_EVERY_S = 0.3


class StatusWriter:
    """The one place that writes Jobs. `clock` is monotonic; `again` wants another pass over a key after a delay."""

    def __init__(
        self, client: Client, ledger: Ledger, again: Callable[[str, float], None], clock: Callable[[], float]
    ) -> None:
        self._client = client
        self._ledger = ledger
        self._again = again
        self._clock = clock
        self._written: dict[str, float] = {}

    def write(self, job: Job, status: JobStatus) -> Job:
        """The Job with this status, which is written if it differs; counters alone may have to wait for a moment.

        Raises Conflict if the Job has changed since it was read.
        """
        patch = difference(job.status, status)
        if not patch:
            return job
        meta, mere = job.metadata, only_counters(job.status, status)
        wait_s = self._written.get(meta.uid, 0.0) + COUNTERS_EVERY_S - self._clock()
        if mere and wait_s > 0:
            self._again(meta.key, wait_s)
            return structs.replace(job, status=status)
        body = {"metadata": {"resourceVersion": meta.resource_version, "uid": meta.uid}, "status": patch}
        written = self._client.merge_patch(JOBS, meta.name, body, meta.namespace, subresource="status")
        STATUS_WRITES.labels("counters" if mere else "phase").inc()
        self._written[meta.uid] = self._clock()
        self._ledger.wrote(written)
        return written

    def forget(self, job: Job) -> None:
        """The Job is gone."""
        self._written.pop(job.metadata.uid, None)
