"""What this process did to the cluster and its caches do not show yet.

A pass right after a write would otherwise decide on the state before it: create pods twice, or take a deleted PodGroup
for a living one. What was created is noted until the cache shows it, or for a while: then it came and went between two
lists of the reflector. What was deleted stays noted for some minutes: the end of a pod may be told late, and must not
be taken for an eviction.
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
"""How long something created is believed in that no cache shows."""
REMEMBERED_S = 300.0
"""How long our own deletions are remembered: longer than pods take to end, and watches to come back."""

_SWEPT_AT_ONCE = 2


class Deletion(NamedTuple):
    """Of an object that is on its way out; `ours` unless it had gone when we came."""

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
        """We created this pod, or found it where we wanted to create it."""
        with self._lock:
            self._pods.setdefault(job, {})[pod.metadata.name] = (self._monotonic_s() + KEPT_S, pod)

    def group_created(self, group: PodGroup) -> None:
        """We created this PodGroup, or a pass before the cache shows it would make it again."""
        with self._lock:
            self._groups[group.metadata.key] = (self._monotonic_s() + KEPT_S, group)

    def deleted(self, uid: str, *, ours: bool = True) -> None:
        """The deletion of the object with this UID was accepted, or, if it is not ours, it was gone already."""
        with self._lock:
            now = self._monotonic_s()
            self._deleted.pop(uid, None)
            self._deleted[uid] = Deletion(now + REMEMBERED_S, ours)
            for old, deletion in list(islice(self._deleted.items(), _SWEPT_AT_ONCE)):  # in the order of their ends
                if deletion.until <= now:
                    del self._deleted[old]

    def deletion(self, uid: str) -> Deletion | None:
        """What we know of the deletion of the object with this UID, in the last minutes."""
        found = self._deleted.get(uid)
        return found if found and self._monotonic_s() < found.until else None

    def wrote(self, job: Job) -> None:
        """The API server answered a write with this Job."""
        with self._lock:
            self._jobs[job.metadata.key] = job

    def pods(self, job: JobRef, cached: Iterable[Pod]) -> list[Pod]:
        """The Job's pods as they are: the cached ones, those created, and with those deleted on their way out."""
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
            return [self._on_its_way_out(pod) for pod in known.values()]

    def _on_its_way_out(self, pod: Pod) -> Pod:
        if pod.metadata.uid not in self._deleted or pod.metadata.deletion_timestamp:
            return pod
        return structs.replace(pod, metadata=structs.replace(pod.metadata, deletion_timestamp="just now"))

    def satisfied(self, job: JobRef, group_key: str = "") -> bool:
        """Whether the caches show all pods that were created for the Job, and its PodGroup."""
        group_until, _ = self._groups.get(group_key, (0.0, None))
        return job not in self._pods and self._monotonic_s() >= group_until

    def group(self, key: str, cached: PodGroup | None) -> PodGroup | None:
        """The PodGroup as it is, or None if it does not exist or is on its way out."""
        with self._lock:
            until, created = self._groups.get(key, (0.0, None))
            for group in (cached, created if self._monotonic_s() < until else None):
                if group and not group.metadata.deletion_timestamp and group.metadata.uid not in self._deleted:
                    return group
            return None

    def job(self, cached: Job) -> Job:
        """The newer of the cached Job and of what we wrote last."""
        with self._lock:
            mine = self._jobs.get(cached.metadata.key)
            if mine is None or mine.metadata.uid != cached.metadata.uid:
                return cached
            newer = int(mine.metadata.resource_version) > int(cached.metadata.resource_version)
            return mine if newer else cached

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """A cache shows a change of this pod: what we noted about it is true there now, or outdated."""
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
        """A cache shows a change of this PodGroup."""
        group = new or old
        if group is None:
            return
        with self._lock:
            _, created = self._groups.get(group.metadata.key, (0.0, None))
            if created and created.metadata.uid == group.metadata.uid:
                del self._groups[group.metadata.key]

    def job_seen(self, old: Job | None, new: Job | None) -> None:
        """A cache shows a change of this Job; of a Job that is gone nothing is kept."""
        job = new or old
        if job is None:
            return
        with self._lock:
            mine = self._jobs.get(job.metadata.key)
            if new is None or (mine and mine.metadata.resource_version == new.metadata.resource_version):
                self._jobs.pop(job.metadata.key, None)

    def forget(self, job: JobRef, group_key: str) -> None:
        """The Job is gone: keeps nothing that was created or written for it."""
        with self._lock:
            self._pods.pop(job, None)
            self._groups.pop(group_key, None)
            mine = self._jobs.get(job.key)
            if mine and mine.metadata.uid == job.uid:
                del self._jobs[job.key]
