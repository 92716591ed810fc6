"""Writes of a Job's status.

Only changed fields are written. Counters are written once they no longer change, or at the latest after a few seconds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import structs
from prometheus_client import Counter

from controller.job.rules.status import STARTING, only_counters
from muster.api.merge_diff import difference
from muster.api.volcano.batch import Job, JobStatus

STATUS_WRITES = Counter(
    "muster_controller_status_writes_total",
    "Writes of a Job's status, for a new phase or only for new counters.",
    ["why"],
)
REST_S = 0.5
"""Time in seconds without changes after which counters are written."""
REST_PER_POD_S = 0.01
"""Time in seconds that is added to `REST_S` for each pod of the Job, because the counters of a large Job change all the
time."""
MESSAGE_INTERVAL_S = 5.0
"""Time in seconds without changes after which a new message is written although the reason is the same. The message of
a waiting gang changes whenever another gang starts or ends. Within this time, a Job that is about to start has usually
started, so no message is needed."""
MAX_S = 10.0
"""Interval, in seconds, at which counters that keep changing are written."""


class Held(NamedTuple):
    """Counters that are not written yet, with the times of their first and their last change."""

    first_s: float
    latest_s: float
    status: JobStatus


class JobStatusWriter:
    """The only component that writes the status of Jobs. `patched` writes a merge patch of a status.

    `requeue_after` requests another pass over a key after a delay in seconds.
    """

    def __init__(
        self,
        patched: Callable[[Job, dict[str, Any]], Job],
        requeue_after: Callable[[str, float], None],
        monotonic_s: Callable[[], float],
    ) -> None:
        self._patched = patched
        self._requeue_after = requeue_after
        self._monotonic_s = monotonic_s
        self._held: dict[str, Held] = {}

    def write(self, job: Job, status: JobStatus) -> Job:
        """Write the Job's status if it has changed; counters may be written later.

        Return the Job. Raise Conflict if the Job has changed.
        """
        meta = job.metadata
        patch = difference(job.status, status)
        if not patch:
            self._held.pop(meta.uid, None)
            return job
        mere = only_counters(job.status, status)
        only_words = structs.replace(status, state=job.status.state) == job.status
        words = only_words and job.status.state.reason == status.state.reason
        usual = status.state.reason in STARTING and not (status.running or status.succeeded or status.failed)
        rest_s = MESSAGE_INTERVAL_S if words or usual else _rest_s(status)
        wait_s = self._hold(meta.uid, status, rest_s) if mere else 0.0
        if wait_s > 0:
            self._requeue_after(meta.key, wait_s)
            return structs.replace(job, status=status)
        written = self._patched(job, patch)
        STATUS_WRITES.labels("counters" if mere else "phase").inc()
        self._held.pop(meta.uid, None)
        return written

    def forget(self, job: Job) -> None:
        """Drop the unwritten counters of a deleted Job."""
        self._held.pop(job.metadata.uid, None)

    def _hold(self, uid: str, status: JobStatus, rest_s: float) -> float:
        """Return the seconds until the counters in this status may be written; at most 0 if this is now."""
        now_s = self._monotonic_s()
        held = self._held.get(uid, Held(now_s, now_s, status))
        if held.status != status:
            held = Held(held.first_s, now_s, status)
        self._held[uid] = held
        return min(held.latest_s + rest_s, held.first_s + MAX_S) - now_s


def _rest_s(status: JobStatus) -> float:
    pods = status.pending + status.running + status.succeeded + status.failed + status.terminating + status.unknown
    return REST_S + REST_PER_POD_S * pods
