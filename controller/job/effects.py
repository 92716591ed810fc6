"""Creation and deletion of pods in concurrent calls.

A pod that cannot be created does not delay other pods. Jobs do not delay each other, because their calls alternate. All
failures of a pass become one Event. After a quota has rejected a few pods, other pods that request the same amounts are
skipped during a pause, which grows with each new rejection. Rejected pods then cost the API server only one or two
calls per minute.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec
from prometheus_client import Counter

from controller.job.expectations import Expectations
from controller.job.fair_pool import FairPool
from controller.live import delete, exists, get_or_none, owned_by, owner_text, patch_object
from muster.api import names
from muster.api.grammar import and_more
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import Job
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, Conflict, NamespaceEnds, NotFound, over_quota
from muster.kube.events import EventWriter
from muster.process.counters import from_zero
from muster.volcano.manifests import Manifest
from muster.volcano.tasks import job_of_pod, reference

PODS_CREATED = Counter(
    "muster_controller_pods_created_total",
    "Created pods: with a planned node (pinned), or with a scheduling gate (gated).",
    ["born"],
)
PODS_DELETED = Counter("muster_controller_pods_deleted_total", "Deleted pods, by the reason for the deletion.", ["why"])
POD_FAILURES = Counter(
    "muster_controller_pod_failures_total", "Pods that could not be created or deleted, by the failed verb.", ["verb"]
)
from_zero(PODS_CREATED, ("gated", "pinned"))
from_zero(PODS_DELETED, ("HalfDeleted", "Surplus", "Restart", "Completing", "Terminating", "Aborting", "Failed"))
from_zero(POD_FAILURES, ("create", "delete"))
AT_ONCE = 16
"""Number of concurrent calls for all Jobs together; a higher number would not increase the throughput."""
OVER_QUOTA_AT_MOST = 3
"""Number of rejections by a quota after which all pods that request the same amounts are skipped, in every task."""
FIRST_S, MAX_S = 1.0, 30.0
"""First and longest pause after rejections by a quota, in seconds; each pause is twice as long as the previous one."""

T = TypeVar("T")
R = TypeVar("R")


class Attempts:
    """Rejected attempts to create pods of one Job, and the pause before the next attempt. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refused: defaultdict[bytes, int] = defaultdict(int)
        self.until_s = 0.0  # end of the pause, monotonic
        self.delay_s = FIRST_S / 2  # length of the last pause
        self.untried = 0  # pods that were skipped in this pass
        self.new = False  # True if a quota has refused a pod in this pass
        self.failures: list[str] = []  # failures of the last pass with an attempt

    def start(self, now_s: float) -> None:
        """Start a pass over the Job; if the pause is over, forget the rejections, so that all pods are tried again."""
        self.untried, self.new = 0, False
        if now_s >= self.until_s:
            self._refused.clear()

    def begin(self, amounts: bytes) -> bool:
        """Return True if this pass may try to create another pod that requests these amounts."""
        with self._lock:
            fits = self._refused[amounts] < OVER_QUOTA_AT_MOST
            self.untried += not fits
            return fits

    def refused(self, amounts: bytes) -> None:
        """Record that a quota has rejected a pod that requests these amounts."""
        with self._lock:
            self._refused[amounts] += 1
            self.new = True


class Refusals:
    """Rejected attempts to create pods because of quotas, for each Job.

    Not thread-safe for the same Job: no two passes over a Job run at the same time.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._jobs: dict[str, Attempts] = {}

    @contextmanager
    def attempts(self, uid: str) -> Iterator[Attempts]:
        """Yield the `Attempts` of one pass over a Job; store rejections even if the pass fails."""
        attempts = self._jobs.get(uid) or Attempts()
        attempts.start(self._monotonic_s())
        try:
            yield attempts
        finally:
            if attempts.new:
                attempts.delay_s = min(attempts.delay_s * 2, MAX_S)
                attempts.until_s = self._monotonic_s() + attempts.delay_s
                self._jobs[uid] = attempts
            elif not attempts.untried:
                self._jobs.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Drop the rejections of a deleted Job."""
        self._jobs.pop(uid, None)


def _amounts(manifest: Manifest) -> bytes:
    """Return the fields by which quotas count or select a pod, joined to one string for comparisons."""
    spec = manifest["spec"]
    started = [spec.get(kind) or [] for kind in ("initContainers", "containers")]
    counted = [[one.get("resources") for one in containers] for containers in started]
    affinity = spec.get("affinity") or {}  # node affinity is left out: the pin differs from pod to pod
    selected = [spec.get(key) for key in ("resources", "overhead", "priorityClassName", "activeDeadlineSeconds")]
    selected += [affinity.get(key) for key in ("podAffinity", "podAntiAffinity")]
    return msgspec.json.encode([counted, selected], order="deterministic")


class PodEffects:
    """Executor of creations and deletions of pods, in up to `at_once` concurrent calls.

    The methods of this class return the messages of the failed calls.
    """

    def __init__(
        self,
        client: Client,
        expectations: Expectations,
        recorder: EventWriter,
        at_once: int = AT_ONCE,
        *,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._expectations = expectations
        self._recorder = recorder
        self._at_once = at_once
        self._pool = FairPool(at_once, "pods")
        self._refusals = Refusals(monotonic_s)

    def forget(self, job: Job) -> None:
        """Drop the data of a deleted Job."""
        self._refusals.forget(job.metadata.uid)

    def close(self) -> None:
        """Stop the threads; pending calls are dropped, and the next leader creates the missing pods."""
        self._pool.close()

    def create_pods(self, job: Job, batches: Iterable[Sequence[Manifest]]) -> list[str]:
        """Create the pods of these batches, and return the messages of the failures.

        A pod of the Job that already exists is accepted; an existing pod of another owner is a failure.
        """
        failures: list[str] = []
        with self._refusals.attempts(job.metadata.uid) as attempts:
            for batch in batches:
                found = self._each(batch, lambda manifest: self._create(job, manifest, attempts))
                failures += [failure for failure in found if failure]
        untried = f"{attempts.untried} more pods were not created, because the quota would reject them too"
        sentences = [*failures, untried] if attempts.untried else failures
        if failures or not sentences:
            attempts.failures = self._report(job, "create", sentences)
        return attempts.failures or sentences  # during a pause, the API server's last message stays

    def delete_pods(self, job: Job, pods: Sequence[Pod], *, why: str, mark: bool) -> list[str]:
        """Delete exactly these pods, by UID, and return the messages of the failures.

        With `mark`, for Jobs that continue, the pods are first marked as intentionally deleted.
        """
        failures = self._each(pods, lambda pod: self._delete(pod, why=why, mark=mark))
        return self._report(job, "delete", failures)

    def _each(self, items: Sequence[T], act: Callable[[T], R]) -> list[R]:
        alone = min(len(items), self._at_once) == 1
        return [act(item) for item in items] if alone else self._pool.each(items, act)

    def _report(self, job: Job, verb: str, failures: Iterable[str | None]) -> list[str]:
        """Record one Event with the first failure and the number of other failures; return all messages."""
        sentences = [failure for failure in failures if failure]
        if sentences:
            POD_FAILURES.labels(verb).inc(len(sentences))
            message = and_more(sentences[0], len(sentences))
            self._recorder.event(job, "Warning", f"Failed{verb.capitalize()}", message)
        return sentences

    def _create(self, job: Job, manifest: Manifest, attempts: Attempts) -> str | None:
        meta = manifest["metadata"]
        amounts = _amounts(manifest)
        if not attempts.begin(amounts):
            return None
        try:
            pod = self._client.create(PODS, manifest)
        except AlreadyExists:
            return self._adopt(job, meta["namespace"], meta["name"])
        except NamespaceEnds:
            raise
        except APIError as error:
            if over_quota(error):
                attempts.refused(amounts)
            return f"pod {meta['name']} cannot be created: {error}"
        PODS_CREATED.labels("pinned" if names.NODE in meta["annotations"] else "gated").inc()
        self._expectations.pod_created(reference(job), pod)
        return None

    def _adopt(self, job: Job, namespace: str, name: str) -> str | None:
        """Accept a pod that an earlier attempt has created; return an error message if the pod has another owner."""
        try:
            pod = get_or_none(self._client, PODS, name, namespace)
        except APIError as error:
            return f"pod {name} cannot be read: {error}"
        if pod is None:
            return f"pod {name} had the same name and was just deleted; the Job's pod will be created"
        if job_of_pod(pod.metadata) == reference(job):
            self._expectations.pod_created(reference(job), pod)
            return None
        owner = owner_text(pod.metadata)
        if owned_by(pod.metadata, job.metadata.uid):
            labels = f"{names.TASK_SPEC}, {names.TASK_INDEX}"
            owner = f"belongs to this Job only by its owner reference ({labels} name another pod)"
        return f"pod {name} exists already and {owner}; delete it, or give the Job or its task another name"

    def _delete(self, pod: Pod, *, why: str, mark: bool) -> str | None:
        meta = pod.metadata
        try:
            there = not mark or names.OUT_OF_SYNC in meta.annotations or self._mark(meta)
            ours = there and delete(self._client, PODS, meta)
        except APIError as error:
            return f"pod {meta.name} cannot be deleted: {error}"
        PODS_DELETED.labels(why).inc()
        if not meta.deletion_timestamp:  # otherwise another client began the deletion: an eviction
            self._expectations.deleted(meta.uid, ours=ours)
        return None

    def _mark(self, meta: ObjectMeta) -> bool:
        """Mark the pod as intentionally deleted; return False if it no longer exists."""
        try:
            patch_object(self._client, PODS, meta, {"metadata": {"annotations": {names.OUT_OF_SYNC: "true"}}})
        except (NotFound, Conflict):
            if exists(self._client, PODS, meta):
                raise
            return False
        return True
