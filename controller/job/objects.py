"""Sees to it that the objects of a Job's plugins exist while it runs, and not after its end; and its claims, always.

Objects stay through restarts: pods that come back find the same names and keys. Claims die with the Job only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from controller.deletion import delete
from controller.job.rules.podgroup import owner_of
from controller.job.rules.volumes import claims
from controller.plugins.base import Owned, Plugin
from muster.api.base import Resource
from muster.api.batch import Job
from muster.api.meta import Object
from muster.api.storage import CLAIMS
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, NotFound


class ObjectError(Exception):
    """An object that the pods need cannot be had for now; `reason` is the event's: PVCError or PluginError."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Objects:
    """The Services, ConfigMaps, … of Jobs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._synced_generation: dict[str, int] = {}  # UID of a Job → its generation that the objects fit

    def ensure(self, job: Job, plugins: Sequence[Plugin]) -> None:
        """Creates the objects, or brings them up to date after a change of the Job. Raises ObjectError."""
        if self._synced_generation.get(job.metadata.uid) == job.metadata.generation:
            return
        for claim in claims(job):
            self._ensure(job, Owned(CLAIMS, claim), "PVCError", change=False)
        for plugin in plugins:
            for owned in plugin.objects(job):
                self._ensure(job, owned, "PluginError", change=True)
        self._synced_generation[job.metadata.uid] = job.metadata.generation

    def delete(self, job: Job, plugins: Sequence[Plugin]) -> None:
        """Deletes the objects that are the Job's."""
        self.forget(job)
        for plugin in plugins:
            for resource, manifest, _ in plugin.objects(job):
                name, namespace = manifest["metadata"]["name"], job.metadata.namespace
                try:
                    found = self._client.get(resource, name, namespace)
                except NotFound:
                    continue
                owner = found.metadata.controller
                if owner and owner.uid == job.metadata.uid:
                    delete(self._client, resource, found.metadata)

    def forget(self, job: Job) -> None:
        """The Job is gone, or at its end."""
        self._synced_generation.pop(job.metadata.uid, None)

    def _ensure(self, job: Job, owned: Owned, reason: str, *, change: bool) -> None:
        what = f"{owned.resource.kind} {owned.manifest['metadata']['name']}"
        try:
            foreign = self._made(job, owned, change=change)
        except APIError as error:
            raise ObjectError(reason, f"{what} cannot be made: {error}") from error
        if foreign:
            owner = foreign.metadata.controller
            whose = f"{owner.kind} {owner.name}" if owner else "nobody"
            why = f"{what} exists already and belongs to {whose}; delete it, or give the Job another name"
            raise ObjectError(reason, why)

    def _made(self, job: Job, owned: Owned, *, change: bool) -> Object | None:
        """Makes or changes the object; gives another one that is in its way."""
        resource, manifest, made_once = owned
        metadata = {
            **manifest["metadata"],
            "namespace": job.metadata.namespace,
            "ownerReferences": [to_builtins(owner_of(job))],
        }
        content = {**manifest, "metadata": metadata}
        # Keys are not made for nothing: RSA takes its time.
        found = self._find(resource, metadata) if made_once else None
        if found is None:
            whole = {**content, "data": {**content.get("data", {}), **made_once()}} if made_once else content
            try:
                self._client.create(resource, whole)
            except AlreadyExists:
                found = self._client.get(resource, metadata["name"], metadata["namespace"])
            else:
                return None
        owner = found.metadata.controller
        if owner is None or owner.uid != job.metadata.uid:
            return found
        if change:
            self._client.apply(resource, content)  # leaves alone what was made once: it does not name it
        return None

    def _find(self, resource: Resource[Any], metadata: Mapping[str, Any]) -> Object | None:
        try:
            found: Object = self._client.get(resource, metadata["name"], metadata["namespace"])
        except NotFound:
            return None
        return found
