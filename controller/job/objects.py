"""Objects of a Job other than its pods: the PodGroup, objects of plugins, and PersistentVolumeClaims.

Objects of plugins exist while the Job runs, so that pods find the same names and keys after a restart. Claims exist as
long as the Job. When all pods of the Job are deleted, the PodGroup is deleted, too.
"""

from collections.abc import Callable, Sequence

from msgspec import to_builtins

from certs import ssh
from controller.job.expectations import Expectations
from controller.job.rules.sync import not_counted_yet
from controller.live import delete, find_or_make, get_or_none, owned_by, owner_text, patch_object
from controller.worker import Retry
from muster.api.kubernetes.core import Pod, PriorityClass
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.storage import CLAIMS
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.muster.placementnotes import noted
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import APIError, NamespaceEnds
from muster.kube.store import ObjectStore
from muster.process.tracing import SPANS
from muster.volcano.manifests import claims
from muster.volcano.plugins.base import JobPlugin, Owned
from muster.volcano.podgroup import group_key, pod_group, update
from muster.volcano.pods import keeps_nodes, usable
from muster.volcano.tasks import job_of, owner_of, reference


class ObjectError(Exception):
    """Error for a required object that cannot be created now.

    `reason` is the reason of the resulting Event: PVCError or PluginError.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class JobObjects:
    """Manager of the objects of a Job other than its pods and PodGroup, such as Services and ConfigMaps."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._synced_generation: dict[str, int] = {}  # by UID: the generation of the Job that the objects match

    def ensure(self, job: Job, plugins: Sequence[JobPlugin]) -> None:
        """Create or update the claims and the objects of plugins.

        Raise ObjectError for a temporary failure, PluginError for a permanent failure.
        """
        if self._synced_generation.get(job.metadata.uid) == job.metadata.generation:
            return
        for claim in claims(job):
            self._ensure(job, Owned(CLAIMS, claim), "PVCError", change=False)
        for plugin in plugins:
            for owned in plugin.objects(job):
                self._ensure(job, owned, "PluginError", change=True)
        self._synced_generation[job.metadata.uid] = job.metadata.generation

    def delete(self, job: Job, plugins: Sequence[JobPlugin]) -> None:
        """Delete the objects of the Job's plugins."""
        self.forget(job)
        for plugin in plugins:
            for owned in plugin.objects(job):
                name = owned.manifest["metadata"]["name"]
                found = get_or_none(self._client, owned.resource, name, job.metadata.namespace)
                if found and owned_by(found.metadata, job.metadata.uid):
                    delete(self._client, owned.resource, found.metadata)

    def forget(self, job: Job) -> None:
        """Drop the record that the Job's objects are up to date, so that the next pass checks these objects again."""
        self._synced_generation.pop(job.metadata.uid, None)

    def _ensure(self, job: Job, owned: Owned, reason: str, *, change: bool) -> None:
        what = f"{owned.resource.kind} {owned.manifest['metadata']['name']}"
        try:
            foreign = self._made(job, owned, change=change)
        except NamespaceEnds:
            raise
        except APIError as error:
            raise ObjectError(reason, f"{what} cannot be made: {error}") from error
        if foreign:
            why = f"{what} exists already and {owner_text(foreign.metadata)}"
            raise ObjectError(reason, f"{why}; delete it, or give the Job another name")

    def _made(self, job: Job, owned: Owned, *, change: bool) -> Object | None:
        """Create or update the object; if an object of another owner has the name, return that object."""
        resource = owned.resource
        name, namespace = owned.manifest["metadata"]["name"], job.metadata.namespace
        of_job = {"namespace": namespace, "ownerReferences": [to_builtins(owner_of(job))]}
        content = {**owned.manifest, "metadata": {**owned.manifest["metadata"], **of_job}}
        # Read first, so that keys are generated only if they are needed: generating RSA keys is slow.
        there = get_or_none(self._client, resource, name, namespace) if owned.made_once or owned.keys else None
        found: Object
        if there:
            found, new = there, False
        else:  # with generated `data`; PluginError if the user's own keys cannot be read
            made = {**(owned.made_once() if owned.made_once else {}), **(owned.keys(ssh) if owned.keys else {})}
            whole = {**content, "data": {**content.get("data", {}), **made}} if made else content
            found, new = find_or_make(self._client, resource, whole)
        if new:
            return None
        if not owned_by(found.metadata, job.metadata.uid):
            return found
        if change:  # without the generated entries, which therefore stay
            self._client.apply(resource, {**content, "metadata": {**content["metadata"], "uid": found.metadata.uid}})
        return None


class Groups:
    """Manager of the PodGroups of Jobs, which also works while the cache is stale."""

    def __init__(
        self,
        client: Client,
        groups: ObjectStore[PodGroup],
        placements: ObjectStore[Placement],
        priorities: Callable[[], list[PriorityClass]],
        expectations: Expectations,
    ) -> None:
        self._client = client
        self._groups = groups
        self._placements = placements
        self._priorities = priorities
        self._expectations = expectations
        self._fits: dict[str, tuple[str, int, frozenset[str]]] = {}
        """Maps the key of an up-to-date PodGroup to its UID, to the Job's generation, and to the tasks that start
        later."""

    def find(self, job: Job) -> PodGroup | None:
        """Return the Job's current PodGroup."""
        key = group_key(job)
        cached = self._groups.get(key)
        return self._expectations.group(key, cached if cached and _is_of(cached, job) else None)

    def ensure(self, job: Job, pods: Sequence[Pod]) -> PodGroup:
        """Create or update the Job's PodGroup, and return the PodGroup. Its minimum also depends on the Job's pods."""
        found = self.find(job)
        later = not_counted_yet(job, pods, found)
        if found and self._fits.get(group_key(job)) == (found.metadata.uid, job.metadata.generation, later):
            return found
        wanted = pod_group(job, {item.metadata.name: item.value for item in self._priorities()}, later)
        group = self._updated(found, wanted) if found else self._created(job, wanted)
        self._fits[group_key(job)] = (group.metadata.uid, job.metadata.generation, later)
        return group

    def delete(self, job: Job) -> None:
        """Delete the Job's PodGroup; pods that are created later form a new gang."""
        found = self.find(job)
        self._fits.pop(group_key(job), None)
        if found is None:
            return
        delete(self._client, POD_GROUPS, found.metadata)
        self._expectations.deleted(found.metadata.uid)

    def keeps_nodes(self, job: Job) -> bool:
        """Return True if the planner holds nodes for evicted members of the gang: new pods must then join this gang."""
        group = self.find(job)
        return group is not None and keeps_nodes(self.placement(group), group.metadata)

    def admitted(self, group: PodGroup) -> bool:
        """Return True if the gang's pods may be created, because the gang is admitted or has received its nodes.

        The extender writes the phase after the placement; the placement is read so that pods can be created earlier.
        """
        known = self._placements.get(group.metadata.key)
        return group.status.phase not in {"", "Pending"} or usable(known, group.metadata.uid)

    def placement(self, group: PodGroup) -> Placement | None:
        """Return the gang's placement if new pods can be pinned to its nodes; otherwise None."""
        note = noted(group)
        if usable(note, group.metadata.uid):
            return note
        placement = get_or_none(self._client, PLACEMENTS, group.metadata.name, group.metadata.namespace)
        return placement if usable(placement, group.metadata.uid) else None

    def forget(self, job: Job) -> None:
        """Drop the data of a deleted Job."""
        self._fits.pop(group_key(job), None)

    def _created(self, job: Job, wanted: PodGroup) -> PodGroup:
        with SPANS.around(job.metadata.uid, "create the PodGroup"):
            group, new = find_or_make(self._client, POD_GROUPS, wanted)
        if new:
            self._expectations.groups.note(group)
            return group
        if not _is_of(group, job):
            raise Retry(f"PodGroup {group.metadata.name} exists and is not this Job's; delete it")
        if group.metadata.deletion_timestamp:
            raise Retry(f"PodGroup {group.metadata.name} is still being deleted")
        return self._updated(group, wanted)

    def _updated(self, found: PodGroup, wanted: PodGroup) -> PodGroup:
        patch = update(found, wanted)
        return patch_object(self._client, POD_GROUPS, found.metadata, patch) if patch else found


def _is_of(group: PodGroup, job: Job) -> bool:
    """Return True if the PodGroup belongs to the Job, because users can also create PodGroups with this name."""
    return job_of(group.metadata) == reference(job)
