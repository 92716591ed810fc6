"""Writes of this process that its caches do not show yet.

A pass right after a write would otherwise decide on the state before it: create pods twice, or take a deleted PodGroup
for a living one. A created object is noted until the cache shows it, or for a while: then it came and went between two
lists of the reflector. A deletion stays noted for some minutes: the event of a pod's end may come late, and must not be
taken for an eviction.
"""

import threading
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from msgspec import structs

from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.owner import JobRef, job_of_pod

KEPT_S = 30.0
"""Time for which a created object counts that no cache shows."""
REMEMBERED_S = 300.0
"""Time for which deletions are remembered: longer than pods take to end, and watches to come back."""

_SWEPT_AT_ONCE = 2


class Deletion(NamedTuple):
    """The deletion of an object; `ours` unless it was gone before this process deleted it."""

    until: float
    ours: bool


class Expectations:
    """Objects created, deleted and written. Thread safe."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._pods: dict[JobRef, dict[str, tuple[float, Pod]]] = {}
        self._groups: dict[str, tuple[float, PodGroup]] = {}
        self._deleted: dict[str, Deletion] = {}
        self._jobs: dict[str, Job] = {}

    def pod_created(self, job: JobRef, pod: Pod) -> None:
        """Notes a pod that was created, or found where it should be created."""
        with self._lock:
            self._pods.setdefault(job, {})[pod.metadata.name] = (self._monotonic_s() + KEPT_S, pod)

    def group_created(self, group: PodGroup) -> None:
        """Notes a PodGroup that was created."""
        with self._lock:
            self._groups[group.metadata.key] = (self._monotonic_s() + KEPT_S, group)

    def deleted(self, uid: str, *, ours: bool = True) -> None:
        """Notes the accepted deletion of the object with this UID; not `ours`: it was gone already."""
        with self._lock:
            now = self._monotonic_s()
            self._deleted.pop(uid, None)
            self._deleted[uid] = Deletion(now + REMEMBERED_S, ours)
            for old, deletion in list(islice(self._deleted.items(), _SWEPT_AT_ONCE)):  # in the order of their ends
                if deletion.until <= now:
                    del self._deleted[old]

    def deletion(self, uid: str) -> Deletion | None:
        """The deletion of the object with this UID, if it was in the last minutes."""
        found = self._deleted.get(uid)
        return found if found and self._monotonic_s() < found.until else None

    def wrote(self, job: Job) -> None:
        """Notes the Job with which the API server answered a write."""
        with self._lock:
            self._jobs[job.metadata.key] = job

    def pods(self, job: JobRef, cached: Iterable[Pod]) -> list[Pod]:
        """The Job's pods as they are: the cached ones and those created; those deleted are terminating."""
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
            return [self._terminating(pod) for pod in known.values()]

    def _terminating(self, pod: Pod) -> Pod:
        if pod.metadata.uid not in self._deleted or pod.metadata.deletion_timestamp:
            return pod
        return structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_timestamp="just now"))

    def satisfied(self, job: JobRef, group_key: str = "") -> bool:
        """True if the caches show all pods that were created for the Job, and its PodGroup."""
        group_until, _ = self._groups.get(group_key, (0.0, None))
        return job not in self._pods and self._monotonic_s() >= group_until

    def group(self, key: str, cached: PodGroup | None) -> PodGroup | None:
        """The PodGroup as it is, or None if it does not exist or is being deleted."""
        with self._lock:
            until, created = self._groups.get(key, (0.0, None))
            for group in (cached, created if self._monotonic_s() < until else None):
                if group and not group.metadata.deletion_timestamp and group.metadata.uid not in self._deleted:
                    return group
            return None

    def job(self, cached: Job) -> Job:
        """The newer of the cached Job and of the one written last."""
        with self._lock:
            mine = self._jobs.get(cached.metadata.key)
            if mine is None or mine.metadata.uid != cached.metadata.uid:
                return cached
            newer = int(mine.metadata.resource_version) > int(cached.metadata.resource_version)
            return mine if newer else cached

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Drops the note of a pod that a cache shows."""
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

    def group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Drops the note of a PodGroup that a cache shows."""
        group = new or old
        if group is None:
            return
        with self._lock:
            _, created = self._groups.get(group.metadata.key, (0.0, None))
            if created and created.metadata.uid == group.metadata.uid:
                del self._groups[group.metadata.key]

    def job_seen(self, old: Job | None, new: Job | None) -> None:
        """Drops the note of a Job that a cache shows, or that is gone."""
        job = new or old
        if job is None:
            return
        with self._lock:
            mine = self._jobs.get(job.metadata.key)
            if new is None or (mine and mine.metadata.resource_version == new.metadata.resource_version):
                self._jobs.pop(job.metadata.key, None)

    def forget(self, job: JobRef, group_key: str) -> None:
        """Drops everything that is kept about a Job that is gone."""
        with self._lock:
            self._pods.pop(job, None)
            self._groups.pop(group_key, None)
            mine = self._jobs.get(job.key)
            if mine and mine.metadata.uid == job.uid:
                del self._jobs[job.key]
