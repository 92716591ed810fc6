"""PodGroups for pods of Muster's schedulers that have none, one per owner; Services for batch Jobs of a framework."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from controller.worker import Worker
from controller.workloads import OWNERS, group_to_make, pod_group, rendezvous_service, shaped
from muster.api import names
from muster.api.core import PODS, SERVICES, IndexedJob, Pod
from muster.api.gang import gang_of
from muster.api.meta import Object
from muster.api.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Invalid, NotFound
from muster.kube.events import Recorder
from muster.kube.store import Store

GROUP_INDEX = "group"
"""Index of the pod store: `namespace/name` of the PodGroup that has to be made for the pod."""


def group_keys(pod: Pod) -> list[str]:
    """The index function."""
    name = group_to_make(pod)
    return [f"{pod.metadata.namespace}/{name}"] if name else []


class PodGroups:
    """A worker over `namespace/name` of PodGroups."""

    def __init__(
        self,
        client: Client,
        recorder: Recorder,
        pods: Store[Pod],
        groups: Store[PodGroup],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._pods = pods
        self._groups = groups
        self._served: set[str] = set()  # group keys whose owner's Service was seen to
        self.worker = Worker("podgroup", self.process, queue="podgroup", clock=clock)

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """A pod has changed; a group that exists is looked after by others."""
        del old
        for key in group_keys(new) if new else ():
            if key not in self._served or (new and gang_of(new.metadata) is None):
                self.worker.queue.add(key)

    def process(self, key: str) -> None:
        """One pass over one group: Service, then PodGroup, then the pods that do not say yet that they belong to it."""
        pods = self._pods.by_index(GROUP_INDEX, key)
        if not pods:
            return
        if key not in self._served:
            owner = self._owner(pods[0])
            if isinstance(owner, IndexedJob) and shaped(pods[0], owner):
                self._serve(owner)
            if self._groups.get(key) is None:
                with suppress(AlreadyExists):  # ours: the name holds the owner's UID
                    self._client.create(POD_GROUPS, pod_group(pods[0], owner))
            self._served.add(key)
        for pod in pods:
            if gang_of(pod.metadata) is None:
                self._join(pod, key.partition("/")[2])

    def group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """A PodGroup has changed; one that is deleted under living pods is made again."""
        if old and new is None:
            key = old.metadata.key
            self._served.discard(key)
            if self._pods.by_index(GROUP_INDEX, key):
                self.worker.queue.add(key)

    def _owner(self, pod: Pod) -> Object | None:
        ref = pod.metadata.controller
        resource = OWNERS.get((ref.api_version, ref.kind)) if ref else None
        if ref is None or resource is None:
            return None
        try:
            owner: Object = self._client.get(resource, ref.name, pod.metadata.namespace)
        except NotFound:
            return None
        return owner if owner.metadata.uid == ref.uid else None

    def _serve(self, job: IndexedJob) -> None:
        manifest: dict[str, Any] = rendezvous_service(job)
        try:
            self._client.create(SERVICES, manifest)
        except AlreadyExists:
            found = self._client.get(SERVICES, job.metadata.name, job.metadata.namespace)
            owner = found.metadata.controller
            if owner is None or owner.uid != job.metadata.uid:
                self._complain(job, f"Service {job.metadata.name} exists already and is not this Job's")
        except Invalid as error:
            self._complain(job, f"Service {job.metadata.name} is refused: {error}")

    def _complain(self, job: IndexedJob, why: str) -> None:
        message = f"{why}; the pods cannot find each other by name. Give the Job another name"
        self._recorder.event(job, "Warning", "ServiceError", message)

    def _join(self, pod: Pod, group: str) -> None:
        patch = {"metadata": {"uid": pod.metadata.uid, "annotations": {names.GROUP_NAME: group}}}
        with suppress(NotFound):
            self._client.merge_patch(PODS, pod.metadata.name, patch, pod.metadata.namespace)
