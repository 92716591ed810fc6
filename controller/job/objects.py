"""Objects of a Job beside its pods: those of plugins exist while it runs, claims as long as the Job itself.

Objects stay through restarts: pods that come back find the same names and keys.
"""

from collections.abc import Sequence

from msgspec import to_builtins

from certs import ssh
from controller.live import delete, find, find_or_make, owned_by, owner_words
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.storage import CLAIMS
from muster.api.volcano.batch import Job
from muster.kube.client import Client
from muster.kube.errors import APIError
from muster.volcano.manifests import Manifest, claims
from muster.volcano.plugins.base import Owned, Plugin
from muster.volcano.tasks import owner_of


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
                name = owned.manifest["metadata"]["name"]
                found = find(self._client, owned.resource, name, job.metadata.namespace)
                if found and owned_by(found.metadata, job.metadata.uid):
                    delete(self._client, owned.resource, found.metadata)

    def forget(self, job: Job) -> None:
        """Has the objects of the Job checked again, if it goes on."""
        self._synced_generation.pop(job.metadata.uid, None)

    def _ensure(self, job: Job, owned: Owned, reason: str, *, change: bool) -> None:
        what = f"{owned.resource.kind} {owned.manifest['metadata']['name']}"
        try:
            foreign = self._made(job, owned, change=change)
        except APIError as error:
            raise ObjectError(reason, f"{what} cannot be made: {error}") from error
        if foreign:
            why = f"{what} exists already and {owner_words(foreign.metadata)}"
            raise ObjectError(reason, f"{why}; delete it, or give the Job another name")

    def _made(self, job: Job, owned: Owned, *, change: bool) -> Object | None:
        """Makes or changes the object; returns a foreign one that has its name."""
        resource = owned.resource
        metadata = {
            **owned.manifest["metadata"],
            "namespace": job.metadata.namespace,
            "ownerReferences": [to_builtins(owner_of(job))],
        }
        content = {**owned.manifest, "metadata": metadata}
        name, namespace = metadata["name"], job.metadata.namespace
        # Look first where keys would be made in vain: RSA takes its time.
        there = find(self._client, resource, name, namespace) if owned.made_once or owned.keys else None
        found: Object
        found, new = (there, False) if there else find_or_make(self._client, resource, _whole(content, owned))
        if new:
            return None
        if not owned_by(found.metadata, job.metadata.uid):
            return found
        if change:
            self._client.apply(resource, content)  # entries that were made once are not in it, so they stay
        return None


def _whole(content: Manifest, owned: Owned) -> Manifest:
    """The object with the entries of `data` that are made once; PluginError if the user's own keys cannot be read."""
    made = {**(owned.made_once() if owned.made_once else {}), **(owned.keys(ssh) if owned.keys else {})}
    return {**content, "data": {**content.get("data", {}), **made}} if made else content
