"""The pod sets of a gang: their slots, the pods in the slots, and the minimums according to Volcano's rule."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from extender.planner import reasons
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.templates import Templates
from muster.api.limits import RESOURCES, LimitError
from muster.api.muster.gang import DEFAULT_POD_SET, Slot, later_tasks
from muster.api.muster.placement import StartedWith
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.resources.runtime import UNKNOWN, Runtime
from muster.resources.topology import PodTopology
from muster.volcano.done import done_slots

_AGE = attrgetter("created", "name")
"""Sort key of pods by age, the oldest pod first."""


def enough(counts: Mapping[str, int], least: int, minimums: dict[str, int]) -> bool:
    """Return True if the members per pod set, `counts`, reach the total minimum and the pod sets' valid minimums."""
    return sum(counts.values()) >= least and all(
        counts.get(name, 0) >= minimum for name, minimum in counting(least, minimums).items()
    )


def counting(least: int, minimums: dict[str, int]) -> dict[str, int]:
    """Return the minimum of each pod set; all are 0 if the gang's minimum `least` is below their sum."""
    return minimums if least >= sum(minimums.values()) else dict.fromkeys(minimums, 0)


def lower(today: StartedWith, known: StartedWith) -> StartedWith:
    """Return the lower of two minimums, separately for the total and for each pod set in `today`."""
    tasks = {name: min(least, known.min_task_member.get(name, 0)) for name, least in today.min_task_member.items()}
    return StartedWith(min_member=min(today.min_member, known.min_member), min_task_member=tasks)


@dataclass(frozen=True, slots=True)
class SubGroup:
    """A sub-group: ranks of one pod set that are placed together or not at all."""

    pod_set: "PodSetView"
    ranks: tuple[int, ...]


@dataclass(slots=True)
class PodSetView:
    """Pods of one shape in a gang, with their slots."""

    name: str
    cls: PodClass | None
    """Class of the pod set's pods; None while the pod set has neither a pod nor a template."""
    replicas: int
    minimum: int
    taken: dict[int, str] = field(default_factory=dict)
    """Maps each taken rank to its node ("" for a pod that succeeded and is gone)."""
    alive: int = 0
    """Number of taken slots whose pods have not ended."""
    failed: set[int] = field(default_factory=set)
    """Ranks whose pod has failed and still exists; the pod's owner decides about a replacement."""
    waiting: dict[int, PodRecord] = field(default_factory=dict)
    template: bool = False
    """True if pods can be created from a template, so that a slot needs no pod yet."""
    born_gated: bool = False
    """True if the template's pods are created with scheduling gates other than Muster's, so that a slot needs an
    existing pod."""
    unit: int = 1
    """Size of the pod set's sub-groups, which consist of consecutive ranks that are placed together or not at all."""
    runtime: Runtime = UNKNOWN
    topology: PodTopology | None = None
    """Topology request in the template; see `planner.topology.requests`."""
    labels: dict[str, str] | None = None
    """Labels of the template; None without a template."""
    mixed: bool = False
    """True if the class of some waiting pods differs from the pod set's class, e.g. because each pod has its own
    claim."""
    gone: int = 0
    """Number of taken slots whose pods have succeeded and are gone."""

    def take_gone(self, rank: int) -> None:
        """Mark the slot of a finished member whose pod is gone as taken; do nothing if the slot has a pod."""
        if rank < self.replicas and not (rank in self.taken or rank in self.waiting or rank in self.failed):
            self.taken[rank] = ""
            self.gone += 1

    def class_of(self, rank: int) -> PodClass | None:
        """Return the class of the pod with this rank, even if the pod does not exist."""
        pod = self.waiting.get(rank) if self.mixed else None
        return pod.cls if pod else self.cls

    def classes_of(self, ranks: Sequence[int]) -> dict[PodClass, int]:
        """Return the number of the pods with these ranks, by class; unknown pods are left out."""
        if not self.mixed:
            return {self.cls: len(ranks)} if self.cls is not None else {}
        found: dict[PodClass, int] = {}
        for cls in map(self.class_of, ranks):
            if cls is not None:
                found[cls] = found.get(cls, 0) + 1
        return found

    def open_slots(self, *, begun: bool) -> Sequence[int]:
        """Return the ranks of open slots, in order; if no pod is known, as a range, which uses little memory.

        Once the gang has begun, only slots with existing pods are open, because the gang's owner decides about
        replacements. Slots of pods with scheduling gates other than Muster's are left out, because pods with other
        gates could not run.
        """
        if self.template and not begun and not self.born_gated:
            gated = {rank for rank, pod in self.waiting.items() if pod.other_gates}
            closed = self.taken.keys() | (self.failed - self.waiting.keys()) | gated
            ranks = range(self.replicas)
            return [rank for rank in ranks if rank not in closed] if closed else ranks
        return sorted(rank for rank, pod in self.waiting.items() if rank not in self.taken and not pod.other_gates)

    def units(self, ranks: Sequence[int]) -> Iterator[list[int]]:
        """Yield these ranks, grouped by sub-group, in order."""
        return (list(group) for _, group in groupby(ranks, key=lambda rank: rank // self.unit))


def _part(pods: list[PodRecord]) -> None:
    """Leave each slot to one member and clear it in the others; members of several controllers may share an index.

    Members that are on a node or pinned to a node take precedence, then the oldest member.
    """
    holders: dict[Slot, PodRecord] = {}
    if len({pod.controller for pod in pods}) == 1:
        return
    for pod in sorted(pods, key=lambda pod: (not pod.taken, pod.epoch is None, *_AGE(pod))):
        if pod.slot and _holds_slot(pod) and holders.setdefault(pod.slot, pod).controller != pod.controller:
            pod.slot = None


def give_slots(pods: list[PodRecord]) -> None:
    """Assign free ranks to members without a slot: the oldest member gets the first free rank of its task."""
    _part(pods)
    without = [pod for pod in pods if pod.slot is None]
    occupied = {pod.slot for pod in pods if pod.slot and _holds_slot(pod)}
    ranks: dict[str, int] = defaultdict(int)
    for pod in sorted(without, key=_AGE):
        name = pod.task or DEFAULT_POD_SET
        while Slot(name, ranks[name]) in occupied:
            ranks[name] += 1
        pod.slot = Slot(name, ranks[name])
        if _holds_slot(pod):
            occupied.add(pod.slot)


def pod_sets_of(group: PodGroup, pods: list[PodRecord], job: Job | None, templates: Templates) -> list[PodSetView]:
    """Build the pod sets of a gang whose pods all have slots."""
    pod_sets = _job_sets(group, job, templates) if job else {}
    for name, minimum in group.spec.min_task_member.items() if job is None else ():
        pod_sets[name] = PodSetView(name, None, 0, minimum)  # pods may be created later
    for pod in sorted(pods, key=_AGE):
        _slot_pod(pod_sets, pod)
    for slot in done_slots(job) if job else ():
        pod_sets[slot.pod_set].take_gone(slot.rank)
    for pod_set in pod_sets.values():
        existing = next(iter(pod_set.waiting.values()), None)
        if existing:
            pod_set.cls, pod_set.runtime = existing.cls, existing.runtime
        pod_set.mixed = any(pod.cls is not pod_set.cls for pod in pod_set.waiting.values())
        for cls in {pod.cls for pod in pod_set.waiting.values()} if pod_set.mixed else {pod_set.cls}:
            if cls and len(cls.asked) > RESOURCES.value:
                asked = len(cls.asked)
                raise LimitError(reasons.exclusions.asks_too_much(pod_set=pod_set.name, count=asked, limit=RESOURCES))
    return list(pod_sets.values())


def _job_sets(group: PodGroup, job: Job, templates: Templates) -> dict[str, PodSetView]:
    sets, later = {}, later_tasks(group.metadata)
    for template in templates.templates_of(job):
        task = template.task
        slots = 0 if task.name in later else task.replicas
        minimum = min(group.spec.min_task_member.get(task.name, 0), slots)
        sets[task.name] = PodSetView(task.name, template.cls, slots, minimum, template=True)
        sets[task.name].runtime, sets[task.name].topology = template.runtime, template.topology
        sets[task.name].born_gated, sets[task.name].labels = bool(template.other_gates), template.labels
    for policy in group.spec.sub_group_policy:
        if policy.name in sets:
            sets[policy.name].unit = policy.sub_group_size or 1
    return sets


def _slot_pod(pod_sets: dict[str, PodSetView], pod: PodRecord) -> None:
    """Assign a pod to its slot; create the slot's pod set if necessary."""
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
    """Return True if the pod occupies its slot; a failed or terminating pod leaves it to its replacement."""
    return pod.taken or pod.waiting
