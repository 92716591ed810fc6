"""Record of writes by this process that its caches do not contain yet.

Without records of its own writes, a pass would create pods twice, or use a deleted PodGroup. Records of deletions are
kept for a few minutes. A pod that this process has deleted may end later, and its end must not count as an eviction.
"""

import threading
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from msgspec import structs

from controller.caches import OwnWrites
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.tasks import JobRef, job_of_pod, reference

KEPT_S = 30.0
"""Time for which a created object counts as existing while no cache contains it."""
REMEMBERED_S = 300.0
"""Time for which records of deletions are kept: longer than a pod takes to end, and a watch to recover."""

_SWEPT_AT_ONCE = 2


class Deletion(NamedTuple):
    """The deletion of an object; `ours` is false if the object was already gone before this process deleted it."""

    until: float
    ours: bool


class Expectations:
    """Record of created pods and PodGroups, and of deleted objects. Thread-safe."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._pods: dict[JobRef, dict[str, tuple[float, Pod]]] = {}
        self._deleted: dict[str, Deletion] = {}
        self.groups = OwnWrites[PodGroup](monotonic_s, KEPT_S)

    def pod_created(self, job: JobRef, pod: Pod) -> None:
        """Record a pod that this process has created, or that already existed."""
        with self._lock:
            self._pods.setdefault(job, {})[pod.metadata.name] = (self._monotonic_s() + KEPT_S, pod)

    def deleted(self, uid: str, *, ours: bool = True) -> None:
        """Record the deletion of the object with this UID; `ours` is false if the object was already gone."""
        with self._lock:
            now = self._monotonic_s()
            self._deleted.pop(uid, None)
            self._deleted[uid] = Deletion(now + REMEMBERED_S, ours)
            for old, deletion in list(islice(self._deleted.items(), _SWEPT_AT_ONCE)):  # oldest first
                if deletion.until <= now:
                    del self._deleted[old]

    def deletion(self, uid: str) -> Deletion | None:
        """Return the recent deletion of the object with this UID, or None."""
        found = self._deleted.get(uid)
        return found if found and self._monotonic_s() < found.until else None

    def pods(self, job: JobRef, cached: Iterable[Pod]) -> list[Pod]:
        """Return the Job's current pods: cached and newly created pods; recently deleted pods count as terminating."""
        with self._lock:
            now = self._monotonic_s()
            known = {pod.metadata.name: pod for pod in cached}
            created = self._pods.get(job, {})
            for name, (until, pod) in list(created.items()):
                if name in known or now >= until:
                    del created[name]
                else:
                    known[name] = pod
            if not created:
                self._pods.pop(job, None)
            return [_terminating(pod) if pod.metadata.uid in self._deleted else pod for pod in known.values()]

    def satisfied(self, job: JobRef, group_key: str = "") -> bool:
        """Return True if the caches contain the Job's PodGroup and all pods that were created for the Job."""
        return job not in self._pods and not self.groups.unseen(group_key)

    def group(self, key: str, cached: PodGroup | None) -> PodGroup | None:
        """Return the current PodGroup, or None if it does not exist or is being deleted."""
        found = self.groups.newest(key, cached)
        gone = found is None or found.metadata.deletion_timestamp or found.metadata.uid in self._deleted
        return None if gone else found

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Drop the record of a pod that a cache contains."""
        pod = new or old
        if pod is None:
            return
        with self._lock:
            job = job_of_pod(pod.metadata)
            entries = self._pods.get(job) if job else None
            if job and entries is not None:
                entries.pop(pod.metadata.name, None)
                if not entries:
                    del self._pods[job]

    def forget(self, job: Job, group_key: str) -> None:
        """Drop the records of a deleted Job."""
        with self._lock:
            self._pods.pop(reference(job), None)
        self.groups.drop(group_key)


def _terminating(pod: Pod) -> Pod:
    since = pod.metadata.deletion_timestamp or "just now"
    return structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_timestamp=since))
