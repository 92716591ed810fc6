"""Creates and deletes pods, many at a time. One that fails does not hold up the others."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from controller.deletion import delete, exists
from controller.job.expectations import Expectations
from controller.metrics import POD_FAILURES, PODS_CREATED, PODS_DELETED
from muster.api import names
from muster.api.batch import Job
from muster.api.core import PODS, Pod
from muster.api.meta import ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, Conflict, NotFound
from muster.kube.events import Recorder
from muster.volcano.manifests import Manifest
from muster.volcano.owner import job_of_pod, reference

AT_ONCE = 16
"""Calls in flight for all Jobs together; the API server takes no more of them per second from more."""

T = TypeVar("T")


class Effects:
    """Carries out what was decided about pods. Each method gives a sentence for every pod that failed.

    With `at_once` 1 one call follows the other, in order and in the caller's thread.
    """

    def __init__(self, client: Client, expectations: Expectations, recorder: Recorder, at_once: int = AT_ONCE) -> None:
        self._client = client
        self._expectations = expectations
        self._recorder = recorder
        self._at_once = at_once
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="pods")

    def close(self) -> None:
        """Ends the threads; what has not begun is dropped, and found missing by whoever leads next."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def create_pods(self, job: Job, manifests: Sequence[Manifest]) -> list[str]:
        """Creates these pods; one of ours that exists already is fine, a foreign one is a failure."""
        failures = self._each(manifests, lambda manifest: self._create(job, manifest))
        return self._report(job, "create", failures)

    def delete_pods(self, job: Job, pods: Sequence[Pod], *, why: str, mark: bool) -> list[str]:
        """Deletes these pods and no others of the same name.

        With `mark` each is first marked as deleted on purpose, for a process that takes over in between. A kill of the
        whole Job needs no marks: its old pods are outdated by their version, or the Job stops.
        """
        failures = self._each(pods, lambda pod: self._delete(pod, why=why, mark=mark))
        return self._report(job, "delete", failures)

    def _each(self, items: Sequence[T], act: Callable[[T], str | None]) -> Iterable[str | None]:
        return map(act, items) if min(len(items), self._at_once) == 1 else self._pool.map(act, items)

    def _report(self, job: Job, verb: str, failures: Iterable[str | None]) -> list[str]:
        sentences = [failure for failure in failures if failure]
        for sentence in sentences:
            POD_FAILURES.labels(verb).inc()
            self._recorder.event(job, "Warning", f"Failed{verb.capitalize()}", sentence)
        return sentences

    def _create(self, job: Job, manifest: Manifest) -> str | None:
        meta = manifest["metadata"]
        try:
            pod = self._client.create(PODS, manifest)
        except AlreadyExists:
            return self._adopt(job, meta["namespace"], meta["name"])
        except APIError as error:
            return f"pod {meta['name']} cannot be created: {error}"
        PODS_CREATED.labels("pinned" if names.NODE in meta["annotations"] else "gated").inc()
        self._expectations.pod_created(reference(job), pod)
        return None

    def _adopt(self, job: Job, namespace: str, name: str) -> str | None:
        """The pod was there already, by an attempt of ours that was cut short, or because the name is taken."""
        try:
            pod = self._client.get(PODS, name, namespace)
        except NotFound:
            return f"pod {name} was in the way and has just gone; it will be created again"
        except APIError as error:
            return f"pod {name} cannot be read: {error}"
        if job_of_pod(pod.metadata) == reference(job):
            self._expectations.pod_created(reference(job), pod)
            return None
        owner = pod.metadata.controller
        whose = f"{owner.kind} {owner.name}" if owner else "nobody"
        if owner and owner.uid == job.metadata.uid:
            whose = f"this Job only by its owner reference ({names.TASK_SPEC}, {names.TASK_INDEX} say another pod)"
        return f"pod {name} exists already and belongs to {whose}; delete it, or give the Job or its task another name"

    def _delete(self, pod: Pod, *, why: str, mark: bool) -> str | None:
        meta = pod.metadata
        try:
            there = not mark or names.OUT_OF_SYNC in meta.annotations or self._mark(meta)
            ours = there and delete(self._client, PODS, meta)
        except APIError as error:
            return f"pod {meta.name} cannot be deleted: {error}"
        PODS_DELETED.labels(why).inc()
        if not meta.deletion_timestamp:  # else somebody else has begun it, and that is an eviction
            self._expectations.deleted(meta.uid, ours=ours)
        return None

    def _mark(self, meta: ObjectMeta) -> bool:
        """Marks the pod as deleted on purpose; False if it is gone already."""
        patch = {"metadata": {"uid": meta.uid, "annotations": {names.OUT_OF_SYNC: "true"}}}
        try:
            self._client.merge_patch(PODS, meta.name, patch, meta.namespace)
        except (NotFound, Conflict):
            if exists(self._client, PODS, meta):
                raise
            return False
        return True
