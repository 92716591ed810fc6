"""The PodGroup of a Job: created and kept up to date while the Job runs, deleted when it is killed."""

from collections.abc import Callable, Sequence

from controller.job.expectations import Expectations
from controller.job.rules.sync import not_counted_yet
from controller.live import delete, find, find_or_make
from controller.worker import Retry
from muster.api.kubernetes.core import Pod, PriorityClass
from muster.api.muster.placement import PLACEMENTS, Placement, noted
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.store import Store
from muster.process.tracing import SPANS
from muster.volcano.podgroup import group_key, pod_group, update
from muster.volcano.pods import usable
from muster.volcano.tasks import job_of, reference


class Groups:
    """Creates, updates and deletes the PodGroups of Jobs, and finds them where a cache is late."""

    def __init__(
        self,
        client: Client,
        groups: Store[PodGroup],
        priorities: Callable[[], list[PriorityClass]],
        expectations: Expectations,
    ) -> None:
        self._client = client
        self._groups = groups
        self._priorities = priorities
        self._expectations = expectations
        self._fits: dict[str, tuple[str, int, frozenset[str]]] = {}
        """Key of a PodGroup → its UID, and the generation and later tasks of the Job that it was made for."""

    def find(self, job: Job) -> PodGroup | None:
        """The Job's PodGroup as it is."""
        key = group_key(job)
        cached = self._groups.get(key)
        return self._expectations.group(key, cached if cached and _is_of(cached, job) else None)

    def ensure(self, job: Job, pods: Sequence[Pod]) -> PodGroup:
        """The Job's PodGroup, created or brought up to date; its minimum also depends on the Job's pods."""
        found = self.find(job)
        later = not_counted_yet(job, pods, found)
        if found and self._fits.get(group_key(job)) == (found.metadata.uid, job.metadata.generation, later):
            return found
        wanted = pod_group(job, {item.metadata.name: item.value for item in self._priorities()}, later)
        group = self._updated(found, wanted) if found else self._created(job, wanted)
        self._fits[group_key(job)] = (group.metadata.uid, job.metadata.generation, later)
        return group

    def delete(self, job: Job) -> None:
        """Deletes the Job's PodGroup: the pods that come after a kill are another gang."""
        found = self.find(job)
        self._fits.pop(group_key(job), None)
        if found is None:
            return
        delete(self._client, POD_GROUPS, found.metadata)
        self._expectations.deleted(found.metadata.uid)

    def placement(self, group: PodGroup) -> Placement | None:
        """The gang's placement, noted in its PodGroup or read live, if pods can be born pinned by it."""
        note = noted(group)
        if usable(note, group.metadata.uid):
            return note
        placement = find(self._client, PLACEMENTS, group.metadata.name, group.metadata.namespace)
        return placement if usable(placement, group.metadata.uid) else None

    def forget(self, job: Job) -> None:
        """Drops everything that is kept about a Job that is gone."""
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
        if not patch:
            return found
        patch["metadata"] = {**patch.get("metadata", {}), "uid": found.metadata.uid}
        return self._client.merge_patch(POD_GROUPS, found.metadata.name, patch, found.metadata.namespace)


def _is_of(group: PodGroup, job: Job) -> bool:
    """True if the PodGroup is the Job's: users can make PodGroups of that name, too."""
    return job_of(group.metadata) == reference(job)
