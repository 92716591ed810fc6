"""PodGroups for pods that use Muster's schedulers and name no PodGroup: one PodGroup per owner.

Owners are not watched, because every change of a gang (scaling, a template update, the end) affects its pods. When pods
change, their owner is read, and the PodGroup is created, changed, completed or deleted.
"""

from contextlib import suppress

from msgspec import structs

from controller.caches import ENDED_INDEX, GROUP_INDEX, NAMED_INDEX, NATIVE_INDEX, SharedCaches, named_keys
from controller.gangs.owners import group_owner, keeps_queue, pod_owner
from controller.kit import KeyController, Kit
from controller.live import controller_of, delete, find_or_make, get_or_none, owned_by, patch_object
from muster.api import names
from muster.api.grammar import many
from muster.api.kubernetes.core import INDEXED_JOBS, PODS, Pod
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.kubernetes.pod_problems import being_evicted
from muster.api.muster.pools import is_musters
from muster.api.muster.states import TOO_MANY_FAILED
from muster.api.volcano.scheduling import POD_GROUPS, SUSPENDED, WORLD_ENDED, PodGroup
from muster.kube.errors import APIError, NotFound, Refused
from muster.process.tracing import SPANS, workload_of
from muster.resources.delays import doubled_s
from muster.volcano.tasks import job_of, job_of_pod
from muster.workloads.podgroup import group_to_make, in_the_queue_of, inherited, pod_group, update
from muster.workloads.table import PLAIN_PREFIX, gang_of, gang_rules, group_name, row_of, world_of

AGAIN_S = 0.5
"""Delay between a change of a pod and the pass, so that one pass handles the changes of all pods of a gang."""
END_S = 5.0
"""Maximum time between two checks of a Job whose pods have all finished, until the Job itself has ended."""
MISSING_S = 10.0
"""Age in seconds from which a pod's missing PodGroup is reported; it may be created slightly after the pod."""
MOVED_S = 5.0
"""Time between a change of a PodGroup's queue and the pass that compares the queue with the owner's. The pass restores
a move that an earlier pass has reverted because it had read the owner before the move. Kubernetes also copies the
annotation of a moved Deployment to its ReplicaSets only later."""
REFUSED_S = 5.0
"""Time until the next attempt to create or change a PodGroup that was rejected."""
_WANTS_NONE = "the workload needs no pods: it is suspended, or scaled to 0"

Fit = tuple[str, str, int, int, str]
"""State of a gang: UID and queue of the PodGroup, the numbers of pods and of succeeded pods, the UID of the newest pod.
While the state of the gang is the same, its PodGroup is up to date."""


class PodGroups(KeyController):
    """The worker that creates and updates PodGroups; its keys are `namespace/name` of PodGroups."""

    def __init__(self, kit: Kit, caches: SharedCaches) -> None:
        super().__init__(kit, "podgroup")
        self._pods, self._groups = caches.pods.store, caches.groups.store
        self._fits: dict[str, Fit] = {}
        self._lowered: dict[str, set[str]] = {}
        """Maps a PodGroup to the UIDs of Jobs whose completions were lowered. The completions of a Job are lowered only
        once, because a user may raise them again."""
        self._deleted: dict[str, str] = {}
        """Maps a PodGroup to its first pod that was deleted without an eviction and not replaced yet."""
        self._end_checks: dict[str, int] = {}
        """Maps a PodGroup whose pods have all finished to the number of checks that found its owner unfinished."""
        self.handlers += [(caches.pods, self._pod_seen), (caches.groups, self._group_seen)]

    def _pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """Queue the gang of a changed pod."""
        pod = new or old
        if pod is None or not is_musters(pod.spec.scheduler_name) or job_of_pod(pod.metadata):
            return
        if new and old is None:
            for named in named_keys(new):
                self.worker.queue.add_after(named, MISSING_S)
        key = f"{pod.metadata.namespace}/{group_name(pod.metadata)}"
        self._note_deletion(key, old, pod)
        if new and group_to_make(new) and (key not in self._fits or gang_of(new) is None):
            self.worker.queue.add(key)
        elif old is None or new is None or old.finished != new.finished:
            self.worker.queue.add_after(key, AGAIN_S)

    def _note_deletion(self, key: str, old: Pod | None, pod: Pod) -> None:
        """Record that a pod is being deleted before the pod is gone, because a Job counts the deletion as a failure."""
        deleted, ended = pod.metadata.deletion_timestamp, (old or pod).finished
        if old is None and not deleted:
            self._deleted.pop(key, None)
        elif deleted and not ended and not being_evicted(pod) and self._groups.get(key):
            self._deleted.setdefault(key, pod.metadata.name)

    def _group_seen(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Queue a changed PodGroup; if the PodGroup of existing pods was deleted, the pass re-creates it."""
        group = new or old
        if group is None or job_of(group.metadata):
            return
        if old and new is None:
            key = old.metadata.key
            self._fits.pop(key, None)
            self._lowered.pop(key, None)
            self._deleted.pop(key, None)
            self._end_checks.pop(key, None)
            if self._pods.by_index(GROUP_INDEX, key):
                self.worker.queue.add(key)
        elif old is None and new and _is_of_plain_pods(new.metadata):
            self.worker.queue.add(new.metadata.key)  # its pods may have ended while no controller ran
        elif old and new and old.spec.queue != new.spec.queue:
            self.worker.queue.add_after(new.metadata.key, AGAIN_S if new.world_ended else MOVED_S)
        elif new and (new.world_ended or (old and old.status.phase != new.status.phase != "Completed")):
            self.worker.queue.add_after(new.metadata.key, AGAIN_S)

    def process(self, key: str) -> None:
        """Run one pass over one PodGroup."""
        pods = self._pods.by_index(GROUP_INDEX, key)
        if pods:
            self._end_checks.pop(key, None)
            self._ensure(key, pods)
            self._end_world(key, pods)
        else:
            self._end(key)

    def _ensure(self, key: str, pods: list[Pod]) -> None:
        """Create the PodGroup, and annotate pods that do not name the PodGroup yet."""
        pods = self._without_native(key, pods)
        if not pods:
            return
        newest = max(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
        group = self._groups.get(key)
        ended = self._ended(key, "Succeeded")
        of_group = (group.metadata.uid, group.spec.queue) if group else ("", "")
        fit = (*of_group, len(pods), ended, newest.metadata.uid)
        if self._fits.get(key) != fit:
            owner = pod_owner(self._client, newest.metadata)
            above = world_of(newest.metadata)
            world = get_or_none(self._client, *above, newest.metadata.namespace) if above else None
            orphaned = owner is None and group is None and gang_rules(newest.metadata.controller)
            if orphaned or (above and world is None):
                return  # the owner was deleted, and its pods will be
            wanted = pod_group(newest, inherited(owner, world) if owner else None, world, ended)
            try:
                made = group or self._create(wanted)
                if world and not owned_by(made.metadata, world.metadata.uid):  # an earlier workload's PodGroup
                    self.worker.queue.add_after(key, AGAIN_S)
                    return
                self._update(made, wanted, newest, owner)
            except Refused as error:
                reader = world or owner or structs.replace(newest, api_version="v1", kind="Pod")
                self._refused(key, reader, error, group)
                return
            self._fits[key] = (made.metadata.uid, made.spec.queue, *fit[2:])
        for pod in pods:
            if gang_of(pod) is None:
                self._name(pod, key.partition("/")[2])

    def _without_native(self, key: str, pods: list[Pod]) -> list[Pod]:
        """Add new pods of a Job to the gang of the Job's native PodGroup; return the pods that were not added.

        While the feature gate of native PodGroups is off, a pod of such a Job is created without `schedulingGroup`,
        which is immutable. In a PodGroup of its own, such a pod and the Job's other pods would wait for each other once
        the gate is on again.
        """
        native = next((gang_of(pod) for pod in self._pods.by_index(NATIVE_INDEX, key)), None)
        if native is None:
            return pods
        new = [pod for pod in pods if names.NATIVE_GROUP in pod.metadata.annotations and not pod.spec.node_name]
        for pod in new:
            self._name(pod, native)
        return [pod for pod in pods if pod not in new]

    def _name(self, pod: Pod, group: str) -> None:
        """Write the annotation that makes the pod a member of this gang; it takes precedence over the label."""
        with suppress(NotFound):
            patch_object(self._client, PODS, pod.metadata, {"metadata": {"annotations": {names.GROUP_NAME: group}}})

    def _update(self, group: PodGroup, wanted: PodGroup, pod: Pod, owner: Object | None) -> None:
        """Update the PodGroup. If the change of its queue is refused, write the other fields and raise the refusal."""
        if group.spec.queue != wanted.spec.queue == names.DEFAULT_QUEUE and keeps_queue(self._client, pod, owner):
            wanted = in_the_queue_of(group, wanted)
        patch = update(group, wanted)
        try:
            if patch:
                patch_object(self._client, POD_GROUPS, group.metadata, patch)
        except Refused:
            rest = update(group, in_the_queue_of(group, wanted))
            if rest and rest != patch:
                patch_object(self._client, POD_GROUPS, group.metadata, rest)
            raise

    def _create(self, wanted: PodGroup) -> PodGroup:
        with SPANS.around(workload_of(wanted.metadata), "create the PodGroup"):
            return find_or_make(self._client, POD_GROUPS, wanted)[0]  # the name has the owner's UID

    def _refused(self, key: str, owner: Object, error: APIError, group: PodGroup | None) -> None:
        """Record the refusal in an Event for the owner, and retry: the queue may open, or the quota may become free."""
        why = error.why
        name = key.partition("/")[2]
        called = "its PodGroup" if name.endswith(owner.metadata.uid) else f"PodGroup {name}"
        label = f"label {names.QUEUE} or annotation {names.VOLCANO_QUEUE}"
        until = f"until {label} names another queue, or the reason for the refusal is gone"
        if group:
            message = f"a change of {called} is refused: {why}. The PodGroup stays in queue {group.spec.queue} {until}"
        else:
            message = (
                f"{called} is refused: {why}. The pods have no gang and no queue; pods without a gate "
                f"run anyway and are not charged to any queue, {until}"
            )
        self._recorder.event(owner, "Warning", "PodGroupError", message)
        self.worker.queue.add_after(key, REFUSED_S)

    def _end(self, key: str) -> None:
        """Complete the PodGroup of a gang without pods if its owner has ended; delete it if the owner needs no pods."""
        group = self._groups.get(key)
        self._fits.pop(key, None)
        if group is None:
            self._missing(key)
        if group is None or group.metadata.deletion_timestamp or job_of(group.metadata):
            return
        if _is_of_plain_pods(group.metadata):
            done, failed = self._ended(key, "Succeeded"), self._ended(key, "Failed")
            if done + failed >= group.spec.min_member:  # otherwise some pods were deleted
                self._complete(group, f"{many(failed, 'pod')} failed" if failed else "")
            delete(self._client, POD_GROUPS, group.metadata)
            return
        owner, rules = group_owner(self._client, group)
        if owner is None or rules is None:
            return  # gone, and the group is deleted with it
        if rules.is_over and rules.is_over(owner):
            self._complete(group, self._with_deleted(key, rules.failure(owner) if rules.failure else ""))
        elif rules.wants_none and rules.wants_none(owner):
            self._suspend(group)
        elif rules.is_over:
            checks = self._end_checks.get(key, 0)
            self._end_checks[key] = checks + 1
            self.worker.queue.add_after(key, doubled_s(AGAIN_S, checks, END_S))

    def _with_deleted(self, key: str, ending: str) -> str:
        """Return the reason for a gang's failure, extended by the pod whose deletion has caused the failure.

        Kubernetes counts deleted pods as failures towards a Job's backoffLimit. The reason is not extended if a failed
        pod shows the cause.
        """
        deleted, failed = self._deleted.get(key), self._pods.by_index(ENDED_INDEX, f"{key} Failed")
        by_deletion = deleted and ending.startswith(TOO_MANY_FAILED)
        if by_deletion and all(pod.metadata.deletion_timestamp for pod in failed):
            return f"{ending}: pod {deleted} was deleted"
        return ending

    def _end_world(self, key: str, pods: list[Pod]) -> None:
        """Lower the completions of Jobs whose elastic run has ended, so that pods that never started are deleted."""
        group = self._groups.get(key)
        if group is None or not group.world_ended:
            return
        ended = [pod for phase in ("Succeeded", "Failed") for pod in self._pods.by_index(ENDED_INDEX, f"{key} {phase}")]
        for meta in {pod.metadata.controller.uid: pod.metadata for pod in pods if pod.metadata.controller}.values():
            kind = row_of(meta.controller)
            if not kind or not kind.gang or not kind.gang.size_of_ended:
                continue
            job = controller_of(self._client, meta, kind.resource)
            if job is None or job.metadata.uid in self._lowered.get(key, ()):
                continue
            own = [pod for pod in (*pods, *ended) if owned_by(pod.metadata, job.metadata.uid)]
            size = kind.gang.size_of_ended(job, own)
            # Users may write the condition, too: without a member that has succeeded, the run has not ended.
            if size or (size == 0 and self._ended(key, "Succeeded")):
                self._lower(key, job, size)

    def _lower(self, key: str, job: Object, size: int) -> None:
        version = {"resourceVersion": job.metadata.resource_version}
        patch = {"metadata": version, "spec": {"completions": size, "parallelism": size}}
        patch_object(self._client, INDEXED_JOBS, job.metadata, patch)
        self._lowered.setdefault(key, set()).add(job.metadata.uid)
        why = "the elastic run has succeeded, and its other members had not started"
        self._recorder.event(job, "Normal", WORLD_ENDED, f"completions and parallelism lowered to {size}: {why}")

    def _suspend(self, group: PodGroup) -> None:
        """Delete the PodGroup of an owner that needs no pods; first add a condition with the reason to the PodGroup."""
        reason = {"type": "Unschedulable", "status": "True", "reason": SUSPENDED, "message": _WANTS_NONE}
        patch_object(self._client, POD_GROUPS, group.metadata, {"status": {"conditions": [reason]}})
        delete(self._client, POD_GROUPS, group.metadata)

    def _complete(self, group: PodGroup, ending: str) -> None:
        """Record in the PodGroup that the gang has ended; `ending` is the reason for a failure, or empty."""
        if (group.status.phase, group.status.ending) != ("Completed", ending):
            status = {"phase": "Completed", "ending": ending or None}
            patch_object(self._client, POD_GROUPS, group.metadata, {"status": status})

    def _ended(self, key: str, phase: str) -> int:
        """Return how many of a gang's existing pods have ended in this phase."""
        return len(self._pods.keys_by_index(ENDED_INDEX, f"{key} {phase}"))

    def _missing(self, key: str) -> None:
        """Record an Event for each pod that names this PodGroup, which does not exist."""
        pods = self._pods.by_index(NAMED_INDEX, key)
        namespace, _, name = key.partition("/")
        if not pods or get_or_none(self._client, POD_GROUPS, name, namespace) is not None:
            return
        why = f"the pod waits for PodGroup {name}, which does not exist; create the PodGroup, or correct its name"
        for pod in pods:
            self._recorder.event(structs.replace(pod, api_version="v1", kind="Pod"), "Warning", "PodGroupMissing", why)


def _is_of_plain_pods(group: ObjectMeta) -> bool:
    """Return True for a PodGroup that was created for plain pods, all of which own the PodGroup."""
    return group.controller is None and group.name == f"{PLAIN_PREFIX}{group.labels.get(names.KUEUE_GROUP)}"
