"""What gangs are made of, and how it belongs together: PodGroups, their Placements, their Jobs; and the views of them.

A view is made from many objects, and one gang of a thousand pods brings thousands of events. So an event only notes
that a gang is not what its view says any more (`touch`), and `look` makes the view when somebody wants to see it.

A PodGroup or Placement that is older than the one which is known is left aside: the planner is told of its own writes
as soon as the API server has confirmed them, and a watch may show what was before that afterwards.
"""

from collections import Counter
from itertools import count
from typing import TypeVar

from extender.planner import reasons
from extender.planner.state.gangs import GangView, once_whole
from extender.planner.state.podrecord import PodRecord
from extender.planner.state.pods import PodTable
from extender.planner.state.templates import Templates
from extender.planner.state.views import free_slots, set_aside, view_of
from muster.api.kubernetes.meta import Object
from muster.api.limits import whole_number
from muster.api.muster.placement import Placement, is_noted, noted
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup

T = TypeVar("T", bound=Object)


def version(text: str) -> int:
    """A resourceVersion as a number; the API server promises that they can be compared since 1.35."""
    return whole_number(text) or 0


class GangTable:
    """PodGroups, Placements and views by key (`namespace/name`), Jobs by UID, priority classes by name."""

    def __init__(self, templates: Templates) -> None:
        self.groups: dict[str, PodGroup] = {}
        self.placements: dict[str, Placement] = {}
        """The one that counts: an object, or what is noted in the PodGroup."""
        self._objects: dict[str, Placement] = {}
        self._notes: dict[str, Placement] = {}
        self.jobs: dict[str, Job] = {}
        self.priorities: dict[str, int] = {}
        self.meek: set[str] = set()
        """Priority classes of which nobody is evicted for: their preemptionPolicy is Never."""
        self.views: dict[str, GangView] = {}
        """As they were when they were last looked at."""
        self.dirty: set[str] = set()
        """Keys of gangs of which something changed since then."""
        self._templates = templates
        self._of_job: dict[tuple[str, str], str] = {}
        """Namespace and UID of a Job → key of its gang: a PodGroup elsewhere may name it as its owner, too."""
        self._arrivals: dict[str, int] = {}
        self._counter = count()

    # -- objects that change ----------------------------------------------------------------------------------------

    def on_group(self, old: PodGroup | None, new: PodGroup | None) -> str | None:
        """Takes in a PodGroup that changed; the key of the gang, None if nothing follows from it."""
        key = _take_in(self.groups, old, new)
        if key is None:
            return None
        self._notes.pop(key, None)
        if new is not None and (note := noted(new)) is not None:
            self._notes[key] = note
        self._choose(key)
        if new is not None:
            self._arrivals.setdefault(new.metadata.uid, next(self._counter))
            if new.metadata.controller is not None:
                self._of_job[new.metadata.namespace, new.metadata.controller.uid] = key
        elif old is not None:
            self._arrivals.pop(old.metadata.uid, None)
            if old.metadata.controller is not None:
                self._of_job.pop((old.metadata.namespace, old.metadata.controller.uid), None)
        return key

    def on_placement(self, old: Placement | None, new: Placement | None) -> str | None:
        """Takes in a Placement that changed; the key of its gang, None if nothing follows from it."""
        item = new or old
        key = _take_in(self._notes if item is not None and is_noted(item) else self._objects, old, new)
        if key is not None:
            self._choose(key)
        return key

    def on_job(self, old: Job | None, new: Job | None) -> str | None:
        """Takes in a Job that changed; the key of its gang, None if nothing follows from it."""
        job = new or old or Job()
        uid = job.metadata.uid
        if new is None:
            self.jobs.pop(uid, None)
        else:
            self.jobs[uid] = new
        if old is not None and new is not None and old.spec == new.spec:
            return None
        self._templates.forget(uid)
        return self.of_job(job)

    def _choose(self, key: str) -> None:
        """Of an object and a note the later one counts; of equal ones the object, which was made of the note."""
        one, note = self._objects.get(key), self._notes.get(key)
        chosen = one or note
        if one is not None and note is not None:
            same = one.spec.pod_group_uid == note.spec.pod_group_uid
            chosen = one if same and one.spec.epoch >= note.spec.epoch else note
        if chosen is None:
            self.placements.pop(key, None)
        else:
            self.placements[key] = chosen

    # -- how they belong together -----------------------------------------------------------------------------------

    def placement_of(self, key: str) -> Placement | None:
        """The placement of a gang; not one that was made for another PodGroup of its name."""
        placement, group = self.placements.get(key), self.groups.get(key)
        same = placement and group and placement.spec.pod_group_uid == group.metadata.uid
        return placement if same else None

    def of_job(self, job: Job) -> str | None:
        """The key of the gang that a Job owns."""
        return self._of_job.get((job.metadata.namespace, job.metadata.uid))

    def certainly_started(self, key: str, pods: PodTable) -> bool | None:
        """What `GangView.started` would be with the pods as they are now; None if only a view can tell."""
        if pods.alive[key] and once_whole(self.placement_of(key)):
            return True
        group, known = self.groups.get(key), self.views.get(key)
        least = max(group.spec.min_member, 1) if group is not None else 0
        if group is None or pods.taken[key] < least:
            return False
        slots = pods.slots.get(key, Counter[str]())
        enough = slots.total() >= least and all(slots[n] >= each for n, each in group.spec.min_task_member.items())
        return True if enough and known is not None and not known.set_aside else None

    # -- views ------------------------------------------------------------------------------------------------------

    def touch(self, key: str) -> None:
        """Notes that something changed of which the gang's view does not know."""
        self.dirty.add(key)

    def look(self, key: str, pods: list[PodRecord], aside: str) -> bool:
        """Gives these members of a gang their slots and makes its view; True if other slots may be placed.

        That is so where its pods are not what they were, have just been given slots, or can be evaluated (no more).
        `aside` says why the gang is set aside; it may also turn out here that it must be.
        """
        self.dirty.discard(key)
        group, known = self.groups.get(key), self.views.get(key)
        if group is None:
            self.views.pop(key, None)
            return False
        arrival = self._arrivals[group.metadata.uid]
        slotless = any(pod.slot is None for pod in pods)
        try:
            view = set_aside(group, aside, arrival) if aside else self._view(key, group, pods, arrival)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one gang must not end the others
            view = set_aside(group, reasons.aside.error_words(error), arrival)
        self.views[key] = view
        return slotless or (known is not None and (known.classes, known.set_aside) != (view.classes, view.set_aside))

    def _view(self, key: str, group: PodGroup, pods: list[PodRecord], arrival: int) -> GangView:
        for pod, slot in free_slots(pods):
            pod.slot = slot
        owner = group.metadata.controller
        job = self.jobs.get(owner.uid) if owner else None
        return view_of(
            group,
            pods,
            self._templates,
            job=job if job and job.metadata.namespace == group.metadata.namespace else None,
            placement=self.placement_of(key),
            priority=self.priorities.get(group.spec.priority_class_name, 0),
            arrival=arrival,
            preempts=group.spec.priority_class_name not in self.meek,
        )


def _take_in(table: dict[str, T], old: T | None, new: T | None) -> str | None:
    """Puts an object into a table, or takes one out that is gone; its key, None if that is known already."""
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
