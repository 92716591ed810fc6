"""PodGroups, their Placements and Jobs, and the views of gangs that are built from these objects.

The creation of a gang of a thousand pods causes thousands of events. Therefore an event only marks the gang as `dirty`,
and `check` builds the gang's view when it is needed. A PodGroup or Placement that is older than the known version is
ignored. Muster's own writes are recorded as soon as the API server has confirmed them, so a watch may still deliver an
earlier version.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TypeVar

from extender.planner import reasons
from extender.planner.state.amounts import put_entry
from extender.planner.state.gangphase import once_whole
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import give_slots, pod_sets_of
from extender.planner.state.podtable import PodTable
from extender.planner.state.templates import Template, Templates, planned_job, restarts_whole, spends_retries
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import Object, OwnerReference
from muster.api.limits import EPOCH, PODS, TASKS, LimitError, whole_number
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import is_noted, noted
from muster.api.volcano.batch import Job, is_job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.done import SUCCEEDED, done_slots
from muster.volcano.tasks import total_replicas
from muster.workloads.table import row_of

T = TypeVar("T", bound=Object)


def version(text: str) -> int:
    """Return a resourceVersion as a number; versions can be compared since Kubernetes 1.35."""
    return whole_number(text) or 0


def is_older(item: Object, known: Object) -> bool:
    """Return True if the first object is an earlier version of the second object."""
    same = item.metadata.uid == known.metadata.uid
    return same and version(item.metadata.resource_version) < version(known.metadata.resource_version)


def _check(group: PodGroup, pods: list[PodRecord], job: Job | None, placement: Placement | None) -> None:
    """Raise LimitError for a gang that exceeds a limit, which is possible only if the webhook was bypassed."""
    words = reasons.exclusions
    asked = [(words.MIN_MEMBER, group.spec.min_member, PODS), (words.PODS, len(pods), PODS)]
    if job:
        asked += [(words.JOB_PODS, total_replicas(job.spec), PODS), (words.JOB_TASKS, len(job.spec.tasks), TASKS)]
    asked.append((words.GROUP_TASKS, len(group.spec.min_task_member), TASKS))
    epoch = max([placement.spec.epoch if placement else 0, *(pod.epoch or 0 for pod in pods)])
    asked.append((words.NEXT_EPOCH, epoch + 1, EPOCH))
    for what, value, limit in asked:
        if value > limit.value:
            raise LimitError(words.over_limit(what=what, value=value, limit=limit))


class Priorities:
    """The PriorityClasses of the cluster, and the priorities of gangs.

    A gang has the priority of its PodGroup, but at most the highest priority of its pods. The API server checks the
    PriorityClass of a pod, whereas a PodGroup may name any PriorityClass. For example, a ResourceQuota may allow a
    namespace only a few pods of a PriorityClass, or none. Before the pods of a gang exist, the templates of its Job
    limit its priority. Without pods and templates, a gang has at most the priority of a pod without a PriorityClass.
    """

    def __init__(self) -> None:
        self._classes: dict[str, PriorityClass] = {}

    def update_class(self, name: str, new: PriorityClass | None) -> None:
        """Update a PriorityClass, or (with None) remove it."""
        put_entry(self._classes, name, new)

    def of_gang(self, name: str, pods: Sequence[PodRecord], templates: Iterable[Template]) -> tuple[int, bool]:
        """Return the priority of a gang whose PodGroup names this PriorityClass, and whether the gang may preempt."""
        living = [pod for pod in pods if pod.waiting or pod.alive]
        if living:
            most = max(self._of_pod(pod) for pod in living)
            preempts = any(pod.preempts for pod in living)
        else:
            given = [each.priority_class for each in templates if each.task.replicas > 0] or [""]
            most = max(map(self._of_new_pod, given))
            preempts = any(self._preempts(each) for each in given)
        return min(self._value(name), most), preempts and self._preempts(name)

    def _value(self, name: str) -> int:
        known = self._classes.get(name)
        return known.value if known else 0

    def _preempts(self, name: str) -> bool:
        known = self._classes.get(name)
        return known is None or known.preemption_policy != "Never"

    def _of_pod(self, pod: PodRecord) -> int:
        """Return the priority of a pod; a pod from a file has the priority that the API server would set."""
        return self._of_new_pod(pod.priority_class) if pod.priority is None else pod.priority

    def _of_new_pod(self, name: str) -> int:
        if name:
            return self._value(name)
        defaults = [each.value for each in self._classes.values() if each.global_default]
        return min(defaults, default=0)


class GangTable:
    """PodGroups, Placements and views by key (`namespace/name`), Jobs by UID, and priority classes."""

    def __init__(self, templates: Templates) -> None:
        self.groups: dict[str, PodGroup] = {}
        self.placements: dict[str, Placement] = {}
        """Maps a gang to its valid placement, which is an object or an annotation of the PodGroup."""
        self._objects: dict[str, Placement] = {}
        self._notes: dict[str, Placement] = {}
        self.jobs: dict[str, Job] = {}
        """Maps a UID to a Job, without the parts of its templates that planning does not read."""
        self.priorities = Priorities()
        self.views: dict[str, GangView] = {}
        """Maps a gang to its view, as of the last `check`."""
        self.dirty: set[str] = set()
        """Keys of gangs that have changed since their last view was built."""
        self._templates = templates
        self._of_job: dict[tuple[str, str], str] = {}
        """Maps a Job's namespace and UID to its gang; PodGroups elsewhere may also name it as owner."""
        self._arrivals: dict[str, int] = {}
        self._counter = count()

    def on_group(self, old: PodGroup | None, new: PodGroup | None) -> str | None:
        """Update a PodGroup; return the key of its gang, or None if the change has no effect."""
        key = _take_in(self.groups, old, new)
        if key is None:
            return None
        put_entry(self._notes, key, noted(new) if new is not None else None)
        self._choose(key)
        if new is not None:
            if new.metadata.uid not in self._arrivals:
                self._arrivals[new.metadata.uid] = next(self._counter)
            if new.metadata.controller is not None:
                self._of_job[new.metadata.namespace, new.metadata.controller.uid] = key
        elif old is not None:
            self._arrivals.pop(old.metadata.uid, None)
            if old.metadata.controller is not None:
                self._of_job.pop((old.metadata.namespace, old.metadata.controller.uid), None)
        return key

    def on_placement(self, old: Placement | None, new: Placement | None) -> str | None:
        """Update a Placement; return the key of its gang, or None if the change has no effect."""
        item = new or old
        key = _take_in(self._notes if item is not None and is_noted(item) else self._objects, old, new)
        if key is not None:
            self._choose(key)
        return key

    def on_job(self, old: Job | None, new: Job | None) -> str | None:
        """Update a Job; return the key of its gang, or None if the change has no effect."""
        job = new or old or Job()
        planned = planned_job(new) if new is not None else None
        known = put_entry(self.jobs, job.metadata.uid, planned)
        if planned is not None and known is not None and _parts_of_gang(known) == _parts_of_gang(planned):
            return None if done_slots(known) == done_slots(planned) else self.of_job(job)
        self._templates.forget(job)
        return self.of_job(job)

    def _choose(self, key: str) -> None:
        """Choose the placement of the object or of the annotation, whichever is later; the object if both are equal."""
        one, note = self._objects.get(key), self._notes.get(key)
        chosen = one or note
        if one is not None and note is not None:
            same = one.spec.pod_group_uid == note.spec.pod_group_uid
            chosen = one if same and one.spec.epoch >= note.spec.epoch else note
        put_entry(self.placements, key, chosen)

    def placement_of(self, key: str) -> Placement | None:
        """Return the placement of a gang, unless it belongs to an earlier PodGroup of the same name."""
        placement, group = self.placements.get(key), self.groups.get(key)
        same = placement and group and placement.spec.pod_group_uid == group.metadata.uid
        return placement if same else None

    def of_job(self, job: Job) -> str | None:
        """Return the key of the gang that this Job owns."""
        return self._of_job.get((job.metadata.namespace, job.metadata.uid))

    def _job_of(self, group: PodGroup | None) -> Job | None:
        """Return the Job that owns a PodGroup; None if no Job owns the PodGroup."""
        owner = group.metadata.controller if group else None
        job = self.jobs.get(owner.uid) if owner else None
        return job if job and group and job.metadata.namespace == group.metadata.namespace else None

    def some_done(self, key: str) -> bool:
        """Return True if the gang's Job has recorded that members succeeded, whose pods may be gone."""
        job = self._job_of(self.groups.get(key))
        return job is not None and SUCCEEDED in job.status.controlled_resources

    def certainly_started(self, key: str, pods: PodTable) -> bool | None:
        """Return the current value of `GangView.started`; None if only building a view can determine the value."""
        if pods.alive[key] and once_whole(self.placement_of(key)):
            return True
        group, known = self.groups.get(key), self.views.get(key)
        least = max(group.spec.min_member, 1) if group is not None else 0
        if group is None or pods.taken[key] < least:
            return None if self.some_done(key) else False
        slots = pods.slots.get(key, Counter[str]())
        enough = slots.total() >= least and all(slots[n] >= each for n, each in group.spec.min_task_member.items())
        if known is None or known.excluded or not enough:
            return None
        all_seen = len(known.pods) == pods.members(key) and known.uid == group.metadata.uid
        return True if all_seen or _named_for_one_life(group) else None

    def check(self, key: str, pods: list[PodRecord], excluded: str) -> bool:
        """Assign slots to a gang's members and build its view; return True if placed slots may have changed.

        Placed slots may change if pods received slots or another class, or if the gang was or is excluded. `excluded`
        is a known reason to exclude the gang; `check` may find another reason.
        """
        self.dirty.discard(key)
        group, known = self.groups.get(key), self.views.get(key)
        if group is None:
            self.views.pop(key, None)
            return False
        pods = _of_owner(group, pods)
        arrival = self._arrivals[group.metadata.uid]
        slotless = any(pod.slot is None for pod in pods)
        try:
            view = None if excluded else self._view(key, group, pods, arrival)
        except Exception as error:  # noqa: BLE001 - an error in one gang must not affect the others
            view, excluded = None, reasons.exclusions.error_text(error)
        if view is None:
            view = GangView(key, group, 0, [], [], None, arrival, excluded=excluded)
        self.views[key] = view
        return slotless or (known is not None and (known.classes, known.excluded) != (view.classes, view.excluded))

    def _view(self, key: str, group: PodGroup, pods: list[PodRecord], arrival: int) -> GangView:
        give_slots(pods)
        job, placement = self._job_of(group), self.placement_of(key)
        _check(group, pods, job, placement)
        sets = pod_sets_of(group, pods, job, self._templates)
        templates = self._templates.templates_of(job) if job else ()
        priority, preempts = self.priorities.of_gang(group.spec.priority_class_name, pods, templates)
        whole = job is not None and restarts_whole(job)
        spent = whole and job is not None and spends_retries(job)
        return GangView(
            key,
            group,
            priority,
            sets,
            pods,
            placement,
            arrival,
            preempts=preempts,
            restarts_whole=whole,
            retry_spent=spent,
        )


def _parts_of_gang(job: Job) -> tuple[object, object]:
    return job.spec, job.metadata.annotations


def _take_in(table: dict[str, T], old: T | None, new: T | None) -> str | None:
    """Add an object to a table, or remove a deleted object; return its key, or None if the change was already known."""
    item = new or old
    if item is None:
        return None
    key = item.metadata.key
    known = table.get(key)
    if new is None:
        if known is None or known.metadata.uid != item.metadata.uid:
            return None
    elif known is not None and new is not known and (is_older(new, known) or new == known):
        return None  # Muster's own writes arrive twice, as a response and by the watch
    put_entry(table, key, new)
    return key


def _named_for_one_life(group: PodGroup) -> bool:
    """Return True if pods of an earlier owner with the same name cannot refer to this PodGroup.

    The result is True for a PodGroup that has no owner, belongs to a Volcano Job, or has a name that ends with the
    owner's UID.
    """
    owner = group.metadata.controller
    return owner is None or is_job(owner) or group.metadata.name.endswith(owner.uid)


def _of_owner(group: PodGroup, pods: list[PodRecord]) -> list[PodRecord]:
    """Return the pods that may belong to the gang, without pods of an earlier or later owner with the same name.

    A workload that is created again has, for a while, pods of two incarnations, but only one PodGroup. New pods must
    not replace members of a gang that is about to be deleted, nor may old pods count as members of the new gang.
    """
    owner, kind = group.metadata.controller, row_of(group.metadata.controller)
    if owner is None:
        return pods
    label = kind.world.uid_label if kind and kind.world else ""
    return [pod for pod in pods if _uid_of(pod, owner, label) in {"", owner.uid}]


def _uid_of(pod: PodRecord, owner: OwnerReference, label: str) -> str:
    """Return the UID of the gang's owner that the pod records; empty if the pod records no UID."""
    if pod.controller == f"{owner.kind}/{owner.name}":
        return pod.controller_uid
    return pod.labels.get(label, "") if label else ""
