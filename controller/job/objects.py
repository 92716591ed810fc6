"""Sees to it that the objects of a Job's plugins exist while it runs, and not after its end; and its claims, always.

Objects stay through restarts: pods that come back find the same names and keys. Claims die with the Job only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins

from certs import ssh
from controller.deletion import delete
from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.storage import CLAIMS
from muster.api.volcano.batch import Job
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, NotFound
from muster.volcano.claims import claims
from muster.volcano.manifests import Manifest
from muster.volcano.owner import owner_of
from muster.volcano.plugins.base import Owned, Plugin


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
        """Creates the objects, or brings them up to date after a change of the Job.

        Raises ObjectError if one cannot be had for now, and PluginError if it never can.
        """
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
            for owned in plugin.objects(job):
                name, namespace = owned.manifest["metadata"]["name"], job.metadata.namespace
                try:
                    found = self._client.get(owned.resource, name, namespace)
                except NotFound:
                    continue
                owner = found.metadata.controller
                if owner and owner.uid == job.metadata.uid:
                    delete(self._client, owned.resource, found.metadata)

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
        resource = owned.resource
        metadata = {
            **owned.manifest["metadata"],
            "namespace": job.metadata.namespace,
            "ownerReferences": [to_builtins(owner_of(job))],
        }
        content = {**owned.manifest, "metadata": metadata}
        # Keys are not made for nothing: RSA takes its time.
        found = self._find(resource, metadata) if owned.made_once or owned.keys else None
        if found is None:
            try:
                self._client.create(resource, _whole(content, owned))
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


def _whole(content: Manifest, owned: Owned) -> Manifest:
    """The object with the entries of `data` that are made with it; PluginError if keys of the user's are no keys."""
    made = {**(owned.made_once() if owned.made_once else {}), **(owned.keys(ssh) if owned.keys else {})}
    return {**content, "data": {**content.get("data", {}), **made}} if made else content
