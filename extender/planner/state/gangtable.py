"""PodGroups, their Placements and Jobs, and the views of gangs that are made of them.

A gang of a thousand pods brings thousands of events. So an event only marks the gang as `dirty`, and `look` makes its
view when that is read. A PodGroup or Placement that is older than the known one is ignored: the planner is told of its
own writes as soon as the API server has confirmed them, and the watch may show an earlier version afterwards.
"""

from collections import Counter
from itertools import count
from operator import attrgetter
from typing import TypeVar

from extender.planner import reasons
from extender.planner.state.gangs import GangView, once_whole
from extender.planner.state.lives import named_for_one_life, of_owner
from extender.planner.state.plannedjob import planned_job, restarts_whole
from extender.planner.state.pods import PodRecord, PodTable
from extender.planner.state.podset import PodSetView
from extender.planner.state.priority import Priorities
from extender.planner.state.templates import Templates
from muster.api.kubernetes.meta import Object
from muster.api.limits import EPOCH, PODS, RESOURCES, TASKS, LimitError, whole_number
from muster.api.muster.gang import DEFAULT_POD_SET, Slot, later_tasks
from muster.api.muster.placement import Placement, is_noted, noted
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.tasks import total_replicas

_AGE = attrgetter("created", "name")
"""Sort key: the oldest first."""
T = TypeVar("T", bound=Object)


def version(text: str) -> int:
    """Return a resourceVersion as a number; the API server promises that they can be compared since 1.35."""
    return whole_number(text) or 0


def _part(pods: list[PodRecord]) -> None:
    """Take the slots of members that have the same as a member of another controller: indexes count in each of them.

    Who is on a node or pinned to one keeps his, then the oldest.
    """
    holders: dict[Slot, PodRecord] = {}
    if len({pod.controller for pod in pods}) == 1:
        return
    for pod in sorted(pods, key=lambda pod: (not pod.taken, pod.epoch is None, *_AGE(pod))):
        if pod.slot and _holds_slot(pod) and holders.setdefault(pod.slot, pod).controller != pod.controller:
            pod.slot = None


def _give_slots(pods: list[PodRecord]) -> None:
    """Give members without a slot the first free ranks, the oldest first; a later member may be an older pod."""
    _part(pods)
    without = [pod for pod in pods if pod.slot is None]
    occupied = {pod.slot.rank for pod in pods if pod.slot and pod.slot.pod_set == DEFAULT_POD_SET and _holds_slot(pod)}
    rank = 0
    for pod in sorted(without, key=_AGE):
        while rank in occupied:
            rank += 1
        pod.slot = Slot(DEFAULT_POD_SET, rank)
        if _holds_slot(pod):
            occupied.add(rank)


def _pod_sets(group: PodGroup, pods: list[PodRecord], job: Job | None, templates: Templates) -> list[PodSetView]:
    """Make the pod sets of a gang whose pods all have slots."""
    pod_sets = _job_sets(group, job, templates) if job else {}
    for pod in sorted(pods, key=_AGE):
        _slot_pod(pod_sets, pod)
    for pod_set in pod_sets.values():
        existing = next(iter(pod_set.waiting.values()), None)
        if existing:
            pod_set.cls, pod_set.runtime = existing.cls, existing.runtime
        pod_set.mixed = any(pod.cls is not pod_set.cls for pod in pod_set.waiting.values())
        for cls in {pod.cls for pod in pod_set.waiting.values()} if pod_set.mixed else {pod_set.cls}:
            if cls and len(cls.asked) > RESOURCES.value:
                asked = len(cls.asked)
                raise LimitError(reasons.aside.asks_too_much(pod_set=pod_set.name, count=asked, limit=RESOURCES))
    return list(pod_sets.values())


def _check(group: PodGroup, pods: list[PodRecord], job: Job | None, placement: Placement | None) -> None:
    """Raise LimitError for a gang with a number over its limit: admission was bypassed."""
    words = reasons.aside
    asked = [(words.MIN_MEMBER, group.spec.min_member, PODS), (words.PODS, len(pods), PODS)]
    if job:
        asked += [(words.JOB_PODS, total_replicas(job.spec), PODS), (words.JOB_TASKS, len(job.spec.tasks), TASKS)]
    epoch = max([placement.spec.epoch if placement else 0, *(pod.epoch or 0 for pod in pods)])
    asked.append((words.NEXT_EPOCH, epoch + 1, EPOCH))
    for what, value, limit in asked:
        if value > limit.value:
            raise LimitError(words.over_limit(what=what, value=value, limit=limit))


def _job_sets(group: PodGroup, job: Job, templates: Templates) -> dict[str, PodSetView]:
    sets, later = {}, later_tasks(group.metadata)
    for template in templates.of(job):
        task = template.task
        slots = 0 if task.name in later else task.replicas
        minimum = min(group.spec.min_task_member.get(task.name, 0), slots)
        sets[task.name] = PodSetView(task.name, template.cls, slots, minimum, template=True)
        sets[task.name].runtime, sets[task.name].topology = template.runtime, template.topology
        sets[task.name].born_gated = bool(template.other_gates)
    for policy in group.spec.sub_group_policy:
        if policy.name in sets:
            sets[policy.name].unit = policy.sub_group_size or 1
    return sets


def _slot_pod(pod_sets: dict[str, PodSetView], pod: PodRecord) -> None:
    """Put a pod on its slot, in a pod set that is made if there is none."""
    if pod.slot is None:
        return
    name, rank = pod.slot.pod_set, pod.slot.rank
    pod_set = pod_sets.get(name)
    if pod_set is None:
        pod_set = pod_sets[name] = PodSetView(name, pod.cls, 0, 0)
    if pod.taken:
        pod_set.taken[rank] = pod.node
        pod_set.alive += pod.alive
    elif pod.phase == "Failed" and not pod.terminating:
        pod_set.failed.add(rank)
    elif pod.waiting:
        pod_set.waiting[rank] = pod
    if not pod_set.template:
        pod_set.replicas = max(pod_set.replicas, rank + 1)


def _holds_slot(pod: PodRecord) -> bool:
    """Return False for a pod that failed or is being deleted, whose slot the next one gets."""
    return pod.taken or pod.waiting


class GangTable:
    """PodGroups, Placements and views by key (`namespace/name`), Jobs by UID, and priority classes."""

    def __init__(self, templates: Templates) -> None:
        self.groups: dict[str, PodGroup] = {}
        self.placements: dict[str, Placement] = {}
        """The one that counts: an object, or a note in the PodGroup."""
        self._objects: dict[str, Placement] = {}
        self._notes: dict[str, Placement] = {}
        self.jobs: dict[str, Job] = {}
        """Without the parts of their templates that are not read."""
        self.priorities = Priorities()
        self.views: dict[str, GangView] = {}
        """As of the last `look`."""
        self.dirty: set[str] = set()
        """Keys of gangs that changed since then."""
        self._templates = templates
        self._of_job: dict[tuple[str, str], str] = {}
        """Namespace and UID of a Job → key of its gang: a PodGroup elsewhere may name it as its owner, too."""
        self._arrivals: dict[str, int] = {}
        self._counter = count()

    def on_group(self, old: PodGroup | None, new: PodGroup | None) -> str | None:
        """Take a PodGroup that changed; return the key of the gang, None if nothing follows from it."""
        key = _take_in(self.groups, old, new)
        if key is None:
            return None
        self._notes.pop(key, None)
        if new is not None and (note := noted(new)) is not None:
            self._notes[key] = note
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
        """Take a Placement that changed; return the key of its gang, None if nothing follows from it."""
        item = new or old
        key = _take_in(self._notes if item is not None and is_noted(item) else self._objects, old, new)
        if key is not None:
            self._choose(key)
        return key

    def on_job(self, old: Job | None, new: Job | None) -> str | None:
        """Take a Job that changed; return the key of its gang, None if nothing follows from it."""
        job = new or old or Job()
        uid = job.metadata.uid
        known = self.jobs.pop(uid, None)
        if new is not None:
            self.jobs[uid] = planned_job(new)
            if known is not None and known.spec == self.jobs[uid].spec:
                return None
        self._templates.forget(job)
        return self.of_job(job)

    def _choose(self, key: str) -> None:
        """Choose the later one of an object and a note; of equal ones the object, which was made of the note."""
        one, note = self._objects.get(key), self._notes.get(key)
        chosen = one or note
        if one is not None and note is not None:
            same = one.spec.pod_group_uid == note.spec.pod_group_uid
            chosen = one if same and one.spec.epoch >= note.spec.epoch else note
        if chosen is None:
            self.placements.pop(key, None)
        else:
            self.placements[key] = chosen

    def placement_of(self, key: str) -> Placement | None:
        """Return the placement of a gang; not one that was made for another PodGroup of its name."""
        placement, group = self.placements.get(key), self.groups.get(key)
        same = placement and group and placement.spec.pod_group_uid == group.metadata.uid
        return placement if same else None

    def of_job(self, job: Job) -> str | None:
        """Return the key of the gang that a Job owns."""
        return self._of_job.get((job.metadata.namespace, job.metadata.uid))

    def certainly_started(self, key: str, pods: PodTable) -> bool | None:
        """Return `GangView.started` as of now; None if only a view can tell."""
        if pods.alive[key] and once_whole(self.placement_of(key)):
            return True
        group, known = self.groups.get(key), self.views.get(key)
        least = max(group.spec.min_member, 1) if group is not None else 0
        if group is None or pods.taken[key] < least:
            return False
        slots = pods.slots.get(key, Counter[str]())
        enough = slots.total() >= least and all(slots[n] >= each for n, each in group.spec.min_task_member.items())
        if known is None or known.set_aside or not enough:
            return None
        all_seen = len(known.pods) == pods.members(key) and known.uid == group.metadata.uid
        return True if all_seen or named_for_one_life(group) else None

    def look(self, key: str, pods: list[PodRecord], aside: str) -> bool:
        """Give these members of a gang their slots and make its view; return True if other slots may be placed.

        That is so if its pods have other classes, were given slots, or can be evaluated, or no more. `aside` is the
        reason to set the gang aside; another one may turn up here.
        """
        self.dirty.discard(key)
        group, known = self.groups.get(key), self.views.get(key)
        if group is None:
            self.views.pop(key, None)
            return False
        pods = of_owner(group, pods)
        arrival = self._arrivals[group.metadata.uid]
        slotless = any(pod.slot is None for pod in pods)
        try:
            view = None if aside else self._view(key, group, pods, arrival)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one gang must not end the others
            view, aside = None, reasons.aside.error_words(error)
        if view is None:
            view = GangView(key, group, 0, [], [], None, arrival, set_aside=aside)
        self.views[key] = view
        return slotless or (known is not None and (known.classes, known.set_aside) != (view.classes, view.set_aside))

    def _view(self, key: str, group: PodGroup, pods: list[PodRecord], arrival: int) -> GangView:
        _give_slots(pods)
        owner = group.metadata.controller
        job = self.jobs.get(owner.uid) if owner else None
        if job and job.metadata.namespace != group.metadata.namespace:
            job = None
        placement = self.placement_of(key)
        _check(group, pods, job, placement)
        sets = _pod_sets(group, pods, job, self._templates)
        templates = self._templates.of(job) if job else ()
        priority, preempts = self.priorities.of_gang(group.spec.priority_class_name, pods, templates)
        whole = job is not None and restarts_whole(job)
        return GangView(key, group, priority, sets, pods, placement, arrival, preempts=preempts, restarts_whole=whole)


def _take_in(table: dict[str, T], old: T | None, new: T | None) -> str | None:
    """Put an object into a table, or remove one that is gone; return its key, None if that is known already."""
    item = new or old
    if item is None:
        return None
    key = item.metadata.key
    known = table.get(key)
    same = known is not None and known.metadata.uid == item.metadata.uid
    if new is None:
        if not same:
            return None
        del table[key]
        return key
    if known is not None and same and new is not known:  # our own writes come twice, as the answer and by the watch
        older = version(new.metadata.resource_version) < version(known.metadata.resource_version)
        if older or new == known:
            return None
    table[key] = new
    return key
