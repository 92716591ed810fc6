"""Sees to it that the objects of a Job's plugins exist while it runs, and not after its end; and its claims, always.

Objects stay through restarts: pods that come back find the same names and keys. Claims die with the Job only.
"""

from collections.abc import Sequence

from msgspec import to_builtins

from controller.job.podgroup import owner_of
from controller.job.volumes import claims
from controller.plugins.base import Owned, Plugin
from controller.worker import Retry
from muster.api.batch import Job
from muster.api.storage import CLAIMS
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Conflict, NotFound


class Objects:
    """The Services, ConfigMaps, … of Jobs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._settled: dict[str, int] = {}  # UID of a Job → its generation that the objects fit

    def ensure(self, job: Job, plugins: Sequence[Plugin]) -> None:
        """Creates the objects, or brings them up to date after a change of the Job."""
        if self._settled.get(job.metadata.uid) == job.metadata.generation:
            return
        for claim in claims(job):
            self._ensure(job, Owned(CLAIMS, claim), change=False)
        for plugin in plugins:
            for owned in plugin.objects(job):
                self._ensure(job, owned, change=True)
        self._settled[job.metadata.uid] = job.metadata.generation

    def delete(self, job: Job, plugins: Sequence[Plugin]) -> None:
        """Deletes the objects that are the Job's."""
        self.forget(job)
        for plugin in plugins:
            for resource, manifest in plugin.objects(job):
                name, namespace = manifest["metadata"]["name"], job.metadata.namespace
                try:
                    found = self._client.get(resource, name, namespace)
                    owner = found.metadata.controller
                    if owner and owner.uid == job.metadata.uid:
                        self._client.delete(resource, name, namespace, uid=found.metadata.uid)
                except (NotFound, Conflict):
                    continue  # gone already

    def forget(self, job: Job) -> None:
        """The Job is gone, or at its end."""
        self._settled.pop(job.metadata.uid, None)

    def _ensure(self, job: Job, owned: Owned, *, change: bool) -> None:
        resource, manifest = owned
        metadata = {
            **manifest["metadata"],
            "namespace": job.metadata.namespace,
            "ownerReferences": [to_builtins(owner_of(job))],
        }
        content = {**manifest, "metadata": metadata}
        try:
            self._client.create(resource, content)
        except AlreadyExists:
            found = self._client.get(resource, metadata["name"], metadata["namespace"])
            owner = found.metadata.controller
            if owner is None or owner.uid != job.metadata.uid:
                whose = f"{owner.kind} {owner.name}" if owner else "nobody"
                raise Retry(
                    f"{resource.kind} {metadata['name']} exists already and belongs to {whose}; "
                    "delete it, or give the Job another name"
                ) from None
            if change:
                self._client.apply(resource, content)
