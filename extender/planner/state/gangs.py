"""Gangs as the planner sees them: pod sets, slots, and how far each slot is.

A *slot* is (pod set, rank). It is taken by a pod that is bound or has succeeded, placed (an active placement gives it
a node, and no pod has taken it), or open.
A view is made from the objects when any of them changed, and is not changed afterwards.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf

from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord, preemptable
from extender.planner.state.podset import PodSetView, counting, enough, lower
from muster.api.kubernetes.meta import parse_time, readable_time
from muster.api.muster.gang import Slot
from muster.api.muster.placement import Placement, StartedWith, slots_of
from muster.api.volcano.scheduling import PodGroup
from muster.resources.runtime import declared_s

ACTIVE = frozenset({"Planned", "Binding"})


def once_whole(placement: Placement | None) -> bool:
    """Whether the placement says that its gang had what it needs; of its members none may be left by now."""
    return placement is not None and (placement.status.started or placement.status.phase == "Bound")


class GangPhase(Enum):
    """How far a gang is, for the planner.

    Two questions make six phases: how many members have a node (or have succeeded) - none, too few, enough - and
    whether a placement is being carried out. The phase of a PodGroup is another thing: it is what users and the
    controller see.

    A gang has one life after the other: one begins when it starts whole, and ends when no member of it has a node any
    more. Within a life members are placed as they come; in the next one it starts whole again.
    """

    WAITING = auto()
    """No member has a node and nothing is being carried out: room is looked for, for the whole minimum at once."""
    STARTING = auto()
    """A placement is being carried out, and no member has a node yet: all its slots are placed."""
    ARRIVING = auto()
    """A placement is being carried out; some members have their node, and still too few to start."""
    STRANDED = auto()
    """Some members have a node, too few to start, and nothing is being carried out for the others.

    They take room and do nothing, so this must not last: the gang is completed at once, or goes back as a whole.
    """
    WHOLE = auto()
    """The gang has, or had in this life, what it needs. Until its last member ends, others are placed as they come."""
    GROWING = auto()
    """The gang is whole, and a placement is being carried out for members that came later or again."""


_ACTIVE = (GangPhase.STARTING, GangPhase.ARRIVING, GangPhase.GROWING)
_INCOMPLETE = (GangPhase.ARRIVING, GangPhase.STRANDED)
_STARTED = (GangPhase.WHOLE, GangPhase.GROWING)


@dataclass(slots=True)
class GangView:
    """One gang at one moment."""

    key: str
    group: PodGroup
    priority: int
    pod_sets: list[PodSetView]
    pods: list[PodRecord]
    placement: Placement | None
    arrival: int
    """Number in the order in which gangs were seen; decides between those created in the same second."""
    set_aside: str = ""
    """Why the gang cannot be evaluated, in a sentence for its owner; nothing else is then known but its PodGroup."""
    preempts: bool = True
    """Others may be evicted for it; a PriorityClass with the preemptionPolicy Never says that none may."""
    phase: GangPhase = field(init=False)
    _open_slots: dict[str, Sequence[int]] | None = field(default=None, init=False)
    _at_rest: bool | None = field(default=None, init=False)
    _preemptable: bool | None = field(default=None, init=False)
    least: tuple[object, object] | None = field(default=None, init=False)
    """An axis of resources, and along it what the gang needs to start: kept by `planner.framework.demand`."""
    topology: object = field(default=None, init=False)
    """What it asks of the topology: kept by `planner.topology.requests`."""
    wanted: dict[str, int] | None = field(default=None, init=False)
    """Per pod set how many open slots must be filled for it to start: kept by `planner.framework.demand`."""
    _ends: bool | None = field(default=None, init=False)
    _runtime_s: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.phase = self._find_phase()

    @property
    def uid(self) -> str:
        """UID of the PodGroup, which tells a gang from an earlier one of its name."""
        return self.group.metadata.uid

    @property
    def classes(self) -> list[PodClass | None]:
        """The class of each pod set."""
        return [pod_set.cls for pod_set in self.pod_sets]

    @property
    def queue(self) -> str:
        """Name of the queue that it waits in, Volcano's default one if it names none."""
        return self.group.spec.queue or "default"

    @property
    def preemptable(self) -> bool:
        """Whether neither its PodGroup nor a pod of it forbids that it is evicted to make room for others."""
        if self._preemptable is None:
            self._preemptable = preemptable(self.group.metadata) and all(pod.preemptable for pod in self.pods)
        return self._preemptable

    @property
    def created(self) -> str:
        """Creation time of the PodGroup, RFC 3339 (sorts as text)."""
        return self.group.metadata.creation_timestamp or ""

    @property
    def min_member(self) -> int:
        """How many members start together or not at all."""
        return self.group.spec.min_member

    @property
    def declared_s(self) -> float | None:
        """How long its pods are expected to run where they do not say so themselves, in seconds; None if nobody says.

        The PodGroup's annotation, which the controller copies from the workload.
        """
        return declared_s(self.group.metadata.annotations)

    @property
    def runtime_s(self) -> float | None:
        """How long it is expected to run once it starts now: as long as the longest of its pods; None: for ever."""
        if self._runtime_s is None:
            self._runtime_s = self._longest_s()
        return None if self._runtime_s == inf else self._runtime_s

    @property
    def ends(self) -> bool:
        """Whether an end is known of any pod of it that has a node."""
        if self._ends is None:
            declared = self.declared_s
            there = (pod for pod in self.pods if pod.uses_node)
            self._ends = self.active or any(pod.runtime.expected_s(declared) is not None for pod in there)
        return self._ends

    @property
    def active(self) -> bool:
        """Whether a placement of this gang is being carried out."""
        return self.phase in _ACTIVE

    @property
    def taken(self) -> int:
        """Members that are bound or have succeeded."""
        return sum(len(pod_set.taken) for pod_set in self.pod_sets)

    @property
    def started(self) -> bool:
        """Whether the gang has (or had, in this life) what it needs; then its members are placed as they come."""
        return self.phase in _STARTED

    @property
    def incomplete(self) -> bool:
        """Whether some members have a node, but never enough of them: the state that must not last."""
        return self.phase in _INCOMPLETE

    @property
    def begun(self) -> bool:
        """Whether any member ever had a node, in this life or an earlier one, as far as that is known."""
        return self.incomplete or self.started or once_whole(self.placement)

    @property
    def at_rest(self) -> bool:
        """Whether nothing is to be carried out, waited for or cleared away until one of the gang's objects changes."""
        if self._at_rest is None:
            pinned = any(pod.pinned for pod in self.pods)
            self._at_rest = not (self.active or self.incomplete or pinned or self.outgrew_minimum)
        return self._at_rest

    def placed_slots(self) -> Iterator[tuple[Slot, str, PodSetView | None]]:
        """Slots of its active placement that no pod has taken, each with its node and, if there is one, its pod set."""
        if self.placement is None or not self.active:
            return
        sets = {pod_set.name: pod_set for pod_set in self.pod_sets}
        for slot, node in slots_of(self.placement):
            pod_set = sets.get(slot.pod_set)
            if pod_set is None or slot.rank not in pod_set.taken:
                yield slot, node, pod_set

    def open_slots(self) -> dict[str, Sequence[int]]:
        """Per pod set the ranks that can be given a node now."""
        if self._open_slots is None:
            begun = self.begun
            self._open_slots = {pod_set.name: pod_set.open_slots(begun=begun) for pod_set in self.pod_sets}
        return self._open_slots

    @property
    def minimums(self) -> dict[str, int]:
        """Per pod set how many must start together, whoever else does.

        Minimums per task count only if minMember covers their sum (Volcano's gang rule); else all are 0.
        """
        return counting(self.min_member, {pod_set.name: pod_set.minimum for pod_set in self.pod_sets})

    def certainly_needed(self) -> dict[str, int]:
        """Per pod set how many it cannot start without, of those it may have; the rest of minMember may be anybody."""
        needed = self.minimums
        if len(self.pod_sets) == 1:
            needed[self.pod_sets[0].name] = self.min_member
        return {each.name: min(needed[each.name], each.replicas) for each in self.pod_sets}

    def satisfied(self, counts: Mapping[str, int]) -> bool:
        """Whether so many members per pod set are enough.

        See `minimums` for those per pod set.
        """
        return enough(counts, self.min_member, {each.name: each.minimum for each in self.pod_sets})

    def viable(self, counts: Mapping[str, int]) -> bool:
        """Whether so many members per pod set are enough to go on, now that the gang has started.

        A minimum that was raised since then is a wish: whoever runs does not have to go because more were asked for.
        """
        kept = self._kept
        return self.satisfied(counts) if kept is None else enough(counts, kept.min_member, kept.min_task_member)

    def started_with(self) -> StartedWith:
        """The minimum to remember: today's once it has been reached, else no more than was remembered or is there."""
        counts = {each.name: len(each.taken) for each in self.pod_sets}
        today = StartedWith(min_member=self.min_member, min_task_member={e.name: e.minimum for e in self.pod_sets})
        if self.satisfied(counts):
            return today
        return self._kept or lower(today, StartedWith(min_member=sum(counts.values()), min_task_member=counts))

    @property
    def floor(self) -> StartedWith:
        """What it needs to start, or once it has started, to go on; whoever comes above that is growth."""
        today = StartedWith(min_member=self.min_member, min_task_member=self.minimums)
        return (self._kept if self.started else None) or today

    @property
    def outgrew_minimum(self) -> bool:
        """Whether the minimum that is remembered is not the right one any more."""
        known = self.placement.status.started_with if self.placement else None
        return known is not None and self.phase is GangPhase.WHOLE and known != self.started_with()

    @property
    def _kept(self) -> StartedWith | None:
        """The minimum that is remembered, as far as it is not above today's; None if there is none."""
        known = self.placement.status.started_with if self.placement and once_whole(self.placement) else None
        if known is None:
            return None
        today = StartedWith(min_member=self.min_member, min_task_member={e.name: e.minimum for e in self.pod_sets})
        return lower(today, known)

    @property
    def gated_by_others(self) -> list[PodRecord]:
        """Its pods that wait for scheduling gates that are not Muster's."""
        return [pod for pod in self.pods if pod.waiting and pod.other_gates]

    @property
    def has_pods(self) -> bool:
        """Whether so many of its pods exist that it could start."""
        return self.satisfied({each.name: len(each.taken.keys() | each.waiting.keys()) for each in self.pod_sets})

    def waits_until(self, now: float) -> str:
        """When it may be placed again after its pods did not come in time (RFC 3339); empty if it may be placed now.

        `now` is seconds since the epoch. The wait is over as soon as the pods exist.
        """
        until = self.placement.status.not_before if self.placement else ""
        over = (parse_time(until) or 0.0) <= now
        return "" if over or self.started or self.has_pods else until

    def next_epoch(self) -> int:
        """An epoch later than that of every placement and pin there has been."""
        known = [pod.epoch or 0 for pod in self.pods]
        return max([self.placement.spec.epoch if self.placement else 0, *known]) + 1

    def _longest_s(self) -> float:
        declared, longest = self.declared_s, 0.0
        for pod_set in self.pod_sets:
            if pod_set.replicas or pod_set.waiting:
                for runtime in {pod.runtime for pod in pod_set.waiting.values()} | {pod_set.runtime}:
                    expected = runtime.expected_s(declared)
                    longest = max(longest, inf if expected is None else expected)
        return longest or inf

    def _find_phase(self) -> GangPhase:
        active = self.placement is not None and self.placement.status.phase in ACTIVE
        counts = {pod_set.name: len(pod_set.taken) for pod_set in self.pod_sets}
        alive = any(pod_set.alive for pod_set in self.pod_sets)
        if (alive and once_whole(self.placement)) or (any(counts.values()) and self.satisfied(counts)):
            return GangPhase.GROWING if active else GangPhase.WHOLE
        if alive:
            return GangPhase.ARRIVING if active else GangPhase.STRANDED
        return GangPhase.STARTING if active else GangPhase.WAITING


def avoided_nodes(gangs: Iterable[GangView], now: float) -> dict[str, set[str]]:
    """Gang key → nodes that refused a member of it lately, as its placement says; `now` is seconds since the epoch."""
    result: dict[str, set[str]] = {}
    for gang in gangs:
        if gang.placement is not None and gang.placement.status.avoided:
            nodes = {each.node for each in gang.placement.status.avoided if (readable_time(each.until) or 0.0) > now}
            if nodes:
                result[gang.key] = nodes
    return result
