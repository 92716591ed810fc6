"""What shaped pods need to meet, where nobody else makes it: a headless Service, and for MPI the keys of ssh.

Pods that the webhook shapes refer to both by name, and wait until they are there. Each is made once, when the first pod
of a workload is seen. Batch Jobs in a queue get their Service together with their PodGroup (`podgroups`).
"""

import time
from collections.abc import Callable
from typing import Any

from certs.ssh import complete
from controller.gangs.workloads import rendezvous_service
from controller.worker import Retry, Worker
from muster.api import names
from muster.api.apps import STATEFUL_SETS
from muster.api.base import Resource
from muster.api.batch import JOBS
from muster.api.core import INDEXED_JOBS, SECRETS, SERVICES, IndexedJob, Pod
from muster.api.jobset import JOB_SETS
from muster.api.meta import Object, ObjectMeta
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Invalid, NotFound
from muster.kube.events import Recorder
from muster.kube.store import Store
from muster.runtime.adapters.job import JOBSET_NAME
from muster.runtime.adapters.stateful import LWS_NAME
from muster.runtime.plan import Owner
from muster.runtime.plugins.mpi_objects import SSH_VOLUME, secret_name, ssh_secret
from muster.runtime.settings import SSH_KEY, annotation

LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", Object)
_BY_LABEL: dict[str, Resource[Any]] = {JOBSET_NAME: JOB_SETS, LWS_NAME: LEADER_WORKER_SETS}
_BY_KIND: dict[tuple[str, str], Resource[Any]] = {
    (resource.api_version, resource.kind): resource for resource in (INDEXED_JOBS, STATEFUL_SETS, JOBS)
}
_MAX_KNOWN = 10_000


class Rendezvous:
    """A worker over shaped pods; of each owner the first one is enough."""

    def __init__(
        self, client: Client, recorder: Recorder, pods: Store[Pod], *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._pods = pods
        self._done: dict[str, None] = {}
        self.worker = Worker("rendezvous", self.process, queue="rendezvous", monotonic_s=monotonic_s)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """A pod has changed; only what a new one needs can be missing."""
        if old is None and new and needs_something(new) and _owner_uid(new) not in self._done:
            self.worker.queue.add(new.metadata.key)

    def process(self, key: str) -> None:
        """One pass over one pod."""
        pod = self._pods.get(key)
        if pod is None or _owner_uid(pod) in self._done:
            return
        if needs_service(pod):
            self._serve(pod)
        if mounted_keys(pod):
            self._make_keys(pod)
        if len(self._done) >= _MAX_KNOWN:
            self._done.clear()
        self._done[_owner_uid(pod)] = None

    def _serve(self, pod: Pod) -> None:
        """The Service of a batch Job, unless the Job is a JobSet's, or its pods name another subdomain."""
        ref = pod.metadata.controller
        job = self._read(INDEXED_JOBS, ref.name, pod.metadata) if ref else None
        if not isinstance(job, IndexedJob) or not ref or job.metadata.uid != ref.uid or job.metadata.controller:
            return
        try:
            self._client.create(SERVICES, rendezvous_service(job))
        except AlreadyExists:
            self._check(SERVICES, job, job.metadata.name)
        except Invalid as error:
            why = f"Service {job.metadata.name} is refused: {error}"
            self._recorder.event(job, "Warning", "ServiceError", f"{why}; give the Job another name")

    def _make_keys(self, pod: Pod) -> None:
        """The Secret that the pod mounts, if it is the one of its workload rather than one that its user names."""
        workload = self._workload(pod)
        if workload is None or mounted_keys(pod) != secret_name(workload.metadata.name):
            return
        meta = workload.metadata
        owner = Owner(workload.api_version, workload.kind, meta.name, meta.namespace, meta.uid)
        wanted = pod.metadata.annotations.get(annotation(SSH_KEY)) or meta.annotations.get(annotation(SSH_KEY))
        secret = ssh_secret(owner, "ecdsa" if wanted == "ecdsa" else "ed25519")
        try:
            self._client.create(SECRETS, complete(secret))
        except AlreadyExists:
            self._check(SECRETS, workload, secret.name)

    def _check(self, resource: Resource[Any], workload: Object, name: str) -> None:
        """One that is there must be the workload's; that of an earlier workload of this name will soon be gone."""
        found = self._read(resource, name, workload.metadata)
        owner = found.metadata.controller if found else None
        if found is None or (owner and owner.uid != workload.metadata.uid):
            why = f"{resource.kind} {name} belongs to {owner.kind} {owner.name}" if owner else f"{name} has just gone"
            self._recorder.event(workload, "Warning", f"{resource.kind}Error", f"{why}; waiting until it is gone")
            raise Retry(why)

    def _workload(self, pod: Pod) -> Object | None:
        """The highest owner that the pod names: what the webhook calls the Secret after."""
        meta, ref = pod.metadata, pod.metadata.controller
        for label, resource in _BY_LABEL.items():
            if label in meta.labels:
                return self._read(resource, meta.labels[label], meta)
        source = _BY_KIND.get((ref.api_version, ref.kind)) if ref else None
        found = self._read(source, ref.name, meta) if source and ref else None
        return found if found and ref and found.metadata.uid == ref.uid else None

    def _read(self, resource: Resource[Any], name: str, near: ObjectMeta) -> Object | None:
        try:
            found: Object = self._client.get(resource, name, near.namespace)
        except NotFound:
            return None
        return found


def needs_something(pod: Pod) -> bool:
    """Whether the webhook has shaped the pod in a way that refers to an object of ours."""
    if names.FRAMEWORK not in pod.metadata.labels or pod.finished or pod.metadata.deletion_timestamp:
        return False
    return needs_service(pod) or bool(mounted_keys(pod))


def needs_service(pod: Pod) -> bool:
    """Whether it is of a batch Job that Muster does not place, and found under the Job's name."""
    ref = pod.metadata.controller
    of_job = ref is not None and (ref.api_version, ref.kind) == (INDEXED_JOBS.api_version, INDEXED_JOBS.kind)
    return bool(of_job and ref and pod.spec.subdomain == ref.name and pod.spec.scheduler_name not in names.SCHEDULERS)


def mounted_keys(pod: Pod) -> str:
    """The Secret with the keys that the pod mounts; empty if it mounts none."""
    volumes = [volume for volume in pod.spec.volumes if volume.get("name") == SSH_VOLUME]
    return str((volumes[0].get("secret") or {}).get("secretName") or "") if volumes else ""


def _owner_uid(pod: Pod) -> str:
    return pod.metadata.controller.uid if pod.metadata.controller else pod.metadata.uid
