"""Publication of gangs as native PodGroups, if the API server serves native PodGroups (docs/native-podgroups.md).

kube-scheduler's preemption in the cluster's other profiles respects native PodGroups: with `disruptionMode.all`,
preemption evicts all pods of a gang or none. Preemption finds the native PodGroup of a pod by `spec.schedulingGroup`,
which is immutable. Therefore, pods get `spec.schedulingGroup` at their creation, from admission or, for Volcano Jobs,
from this process (`NativeGroupWorker.joins`).

The native PodGroup has the name of Muster's PodGroup, which owns it, so both are deleted together. The planner does not
read native PodGroups.
"""

import structlog
from msgspec import to_builtins

from controller.caches import GROUP_INDEX, SharedCaches
from controller.kit import KeyController, Kit
from controller.live import find_or_make, owned_by, patch_object, write_status
from muster.api import names
from muster.api.kubernetes.meta import format_time
from muster.api.kubernetes.scheduling import INITIALLY_SCHEDULED, NATIVE_POD_GROUPS, SCHEDULED, NativePodGroup
from muster.api.volcano.scheduling import PodGroup
from muster.kube.errors import APIError, Conflict, NotFound, Refused
from muster.kube.served import FRESH_S, Served
from muster.volcano.native import is_gang, native_of

log = structlog.get_logger(__name__)
REFUSED_S = 300.0
"""Time until the next attempt to create a rejected native PodGroup, because a missing PriorityClass may exist by
then."""
_CHECK = ""
"""Work-queue key for the periodic check that the API server serves native PodGroups."""


class NativeGroupWorker(KeyController):
    """The worker that publishes gangs; its keys are `namespace/name` of PodGroups.

    The worker is idle while the API server does not serve native PodGroups.
    """

    def __init__(self, kit: Kit, caches: SharedCaches) -> None:
        super().__init__(kit, "native")
        self._groups, self._natives, self._pods = caches.groups.store, caches.natives.store, caches.pods.store
        self._served = Served(kit.client, NATIVE_POD_GROUPS, monotonic_s=kit.monotonic_s)
        self._was_served = False
        self.handlers += [(caches.groups, self._group_seen), (caches.natives, self._native_seen)]

    def joins(self, group: PodGroup) -> bool:
        """Return True if the gang is published, so its new pods must name the native PodGroup."""
        return is_gang(group) and self._served()

    def replay(self) -> None:
        """Queue the check whether the API server serves native PodGroups, for a new leader."""
        self._was_served = False
        self.worker.queue.add(_CHECK)

    def _group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Queue a PodGroup whose published fields have changed."""
        if self._was_served and new and is_gang(new) and (old is None or _shown(old) != _shown(new)):
            self.worker.queue.add(new.metadata.key)

    def _native_seen(self, old: NativePodGroup | None, new: NativePodGroup | None) -> None:
        """Queue the gang of a deleted native PodGroup; if the gang still exists, it is published again."""
        if old and new is None and old.metadata.labels.get(names.MANAGED_BY) == names.MANAGER:
            self.worker.queue.add(old.metadata.key)

    def process(self, key: str) -> None:
        """Run one pass over one gang; with the key `_CHECK`, check whether native PodGroups are served."""
        if key == _CHECK:
            self._check_served()
            return
        group = self._groups.get(key)
        if group is None or not is_gang(group) or not self._served() or self._in_another_group(key):
            return
        try:
            self._publish(key, group)
        except Refused as error:
            log.warning("gang not published", group=key, why=str(error), again_s=REFUSED_S)
            self.worker.queue.add_after(key, REFUSED_S)
        except NotFound:  # the kind is no longer served, or the namespace is being deleted
            log.info("gang not published", group=key, why="the API server does not know the kind or the namespace")

    def _in_another_group(self, key: str) -> bool:
        """Return True if pods of the gang name another native PodGroup.

        The Job controller of Kubernetes, for example, can create such a PodGroup for a Job.
        """
        others = (pod.spec.scheduling_group for pod in self._pods.by_index(GROUP_INDEX, key))
        return any(other and other.pod_group_name != key.partition("/")[2] for other in others)

    def _check_served(self) -> None:
        served = self._served()
        # Set this before listing, so that a gang that is created in the meantime is published by its own event.
        was, self._was_served = self._was_served, served
        if served and not was:
            for group in self._groups.list():
                if is_gang(group):
                    self.worker.queue.add(group.metadata.key)
        self.worker.queue.add_after(_CHECK, FRESH_S)

    def _publish(self, key: str, group: PodGroup) -> None:
        """Create the native PodGroup, or update its minimum and its condition."""
        wanted = native_of(group)
        known = self._natives.get(key) or find_or_make(self._client, NATIVE_POD_GROUPS, wanted)[0]
        meta = known.metadata
        if not owned_by(meta, group.metadata.uid):
            return  # of another owner, or of an earlier gang that is being deleted
        if known.spec.scheduling_policy != wanted.spec.scheduling_policy:
            spec = {"schedulingPolicy": to_builtins(wanted.spec.scheduling_policy)}
            known = patch_object(self._client, NATIVE_POD_GROUPS, meta, {"spec": spec})
        if group.status.phase == "Running" and not _initially_scheduled(known):
            self._report(known)

    def _report(self, known: NativePodGroup) -> None:
        """Write the permanent condition that the gang has received its nodes; keep other conditions."""
        condition = {
            "type": INITIALLY_SCHEDULED,
            "status": "True",
            "reason": SCHEDULED,
            "message": "Muster has placed the gang",
            "lastTransitionTime": format_time(self._wall_s()),
        }
        others = [to_builtins(each) for each in known.status.conditions if each.type != INITIALLY_SCHEDULED]
        try:
            write_status(self._client, NATIVE_POD_GROUPS, known, {"conditions": [*others, condition]})
        except Conflict:
            self.worker.queue.add_after(known.metadata.key, 1.0)  # the cache is stale for a moment
        except APIError as error:
            log.info("condition of a native PodGroup not written", group=known.metadata.key, why=str(error))


def _shown(group: PodGroup) -> tuple[int, bool]:
    """Return the mutable fields of a gang that its native PodGroup also contains: its minimum, and whether it runs."""
    return group.spec.min_member, group.status.phase == "Running"


def _initially_scheduled(known: NativePodGroup) -> bool:
    return any(each.type == INITIALLY_SCHEDULED and each.status == "True" for each in known.status.conditions)
