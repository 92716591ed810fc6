"""Views of gangs for the planner: pod sets, slots and phase.

A *slot* is a pair of a pod set and a rank. A slot is *taken* if its pod is bound or has succeeded, *placed* if an
active placement gives it a node and no pod has taken it, and otherwise *open*. Views are immutable: when an object of
the gang changes, a new view replaces the old one.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from extender.planner import reasons
from extender.planner.state.declaredgang import DeclaredGang
from extender.planner.state.gangphase import GangPhase, once_whole, phase_of
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView, enough, lower
from extender.planner.timing import MAX_PLACEMENT_DELAY_S, is_over
from muster.api import names
from muster.api.kubernetes.meta import parse_time, readable_time
from muster.api.muster.gang import Slot
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import NodeSpares, Placement, StartedWith
from muster.workloads.table import makes_all_alike

_ACTIVE = (GangPhase.STARTING, GangPhase.ARRIVING, GangPhase.GROWING)
_INCOMPLETE = (GangPhase.ARRIVING, GangPhase.STRANDED)
_STARTED = (GangPhase.WHOLE, GangPhase.GROWING)


@dataclass
class GangView(DeclaredGang):
    """Immutable view of one gang."""

    placement: Placement | None
    arrival: int
    """Position in the order of first observation, for gangs created in the same second."""
    excluded: str = ""
    """Why the gang cannot be evaluated, for its owner; the view then contains only the PodGroup."""
    preempts: bool = True
    """False if the gang's PriorityClass has the preemptionPolicy Never, so that no pods are evicted for the gang."""
    restarts_whole: bool = False
    """True if the gang's Volcano Job restarts as a whole when one of its pods is evicted."""
    retry_spent: bool = False
    """True if a restart after an eviction uses up one of the limited restarts of the gang's Job."""
    compared: bool = field(default=True, init=False)
    """False as long as the gang's demands on other pods are being compared (`state.comparisons`). The gang is not
    placed in the meantime."""
    phase: GangPhase = field(init=False)
    guarded: tuple[object, bool] | None = field(default=None, init=False, compare=False)
    """The PodDisruptionBudgets at the last check, and True if a budget protects a pod of the gang (`state.guards`).
    """

    def __post_init__(self) -> None:
        alive, counts = any(pod_set.alive for pod_set in self.pod_sets), self.taken_by_set
        whole = (alive and once_whole(self.placement)) or (any(counts.values()) and self.satisfied(counts))
        self.phase = phase_of(self.placement, alive=alive, whole=whole)

    @property
    def classes(self) -> list[PodClass | None]:
        """The pod class of each pod set; None for a pod set without pods and without a template."""
        return [pod_set.cls for pod_set in self.pod_sets]

    @cached_property
    def all_classes(self) -> list[PodClass | None]:
        """The distinct classes of all pod sets and of their waiting pods."""
        waiting = (pod.cls for pod_set in self.pod_sets if pod_set.mixed for pod in pod_set.waiting.values())
        return list(dict.fromkeys((*self.classes, *waiting)))

    @property
    def does_again(self) -> list[PodRecord]:
        """Finished members that run again after an eviction of a member, because the Job restarts as a whole."""
        return [pod for pod in self.pods if pod.taken and not pod.alive] if self.restarts_whole else []

    @cached_property
    def spends_retries(self) -> bool:
        """True if the gang's owner counts an eviction as one of a limited number of failures."""
        return self.retry_spent or any(pod.spends_retries for pod in self.pods)

    @cached_property
    def started_s(self) -> float | None:
        """Time, in epoch seconds, when all pods of the current run existed, or else when the first pod was bound."""
        started = readable_time(self.placement.status.started_at if self.placement else "")
        return started or min(
            [pod.bound_at for pod in self.pods if pod.alive and pod.bound_at is not None], default=None
        )

    @property
    def spares(self) -> list[NodeSpares]:
        """The spare slots in the gang's placement."""
        return self.placement.spec.spares if self.placement else []

    @cached_property
    def world_ended(self) -> bool:
        """True if members of the gang's elastic world have succeeded, so that a new member would run alone."""
        if names.ELASTIC not in self.options or len(self.pod_sets) != 1:
            return False
        [world] = self.pod_sets
        return world.alive < len(world.taken) >= self.floor.min_member and not world.failed

    @cached_property
    def runtime_s(self) -> float | None:
        """Expected runtime of the gang's longest pod, in seconds; None for an unlimited runtime."""
        declared, longest = self.declared_s, 0.0
        for pod_set in self.pod_sets:
            if pod_set.replicas or pod_set.waiting:
                for runtime in {pod.runtime for pod in pod_set.waiting.values()} | {pod_set.runtime}:
                    expected = runtime.expected_s(declared)
                    if expected is None:
                        return None
                    longest = max(longest, expected)
        return longest or None

    @cached_property
    def ends(self) -> bool:
        """True if at least one pod of the gang is on a node and has an expected end time."""
        declared, there = self.declared_s, (pod for pod in self.pods if pod.uses_node)
        return self.active or any(pod.runtime.expected_s(declared) is not None for pod in there)

    @cached_property
    def active(self) -> bool:
        """True if a placement of this gang is active."""
        return self.phase in _ACTIVE

    @cached_property
    def taken(self) -> int:
        """Number of members that are bound or have succeeded."""
        return sum(len(pod_set.taken) for pod_set in self.pod_sets)

    @property
    def taken_by_set(self) -> dict[str, int]:
        """Maps a pod set to the number of its members that are bound or have succeeded."""
        return {pod_set.name: len(pod_set.taken) for pod_set in self.pod_sets}

    @property
    def has_extras(self) -> bool:
        """True if the gang has started and has more members than its minimum."""
        return self.started and self.taken > self.floor.min_member

    @cached_property
    def started(self) -> bool:
        """True if the gang has, or had in this run, its minimum; new members are placed when they arrive."""
        return self.phase in _STARTED

    @cached_property
    def incomplete(self) -> bool:
        """True if members are bound, but never as many as the gang needs to start; it is soon evicted."""
        return self.phase in _INCOMPLETE

    @property
    def begun(self) -> bool:
        """True if a member is known to have had a node, in this run or in an earlier run."""
        return self.incomplete or self.started or once_whole(self.placement)

    @cached_property
    def at_rest(self) -> bool:
        """True if the planner can only place the gang until the gang's objects change."""
        pinned = any(pod.pinned for pod in self.pods)
        return not (self.active or self.incomplete or pinned or self.outgrew_minimum)

    def placed_slots(self) -> Iterator[tuple[Slot, str, PodSetView | None]]:
        """Yield the placed slots, each with its node and its pod set (None for an unknown pod set)."""
        if self.placement is None or not self.active:
            return
        sets = {pod_set.name: pod_set for pod_set in self.pod_sets}
        for slot, node in slots_of(self.placement):
            pod_set = sets.get(slot.pod_set)
            if pod_set is None or slot.rank not in pod_set.taken:
                yield slot, node, pod_set

    @cached_property
    def open_slots(self) -> Mapping[str, Sequence[int]]:
        """Maps a pod set to the ranks of its open slots."""
        begun = self.begun
        return {pod_set.name: pod_set.open_slots(begun=begun) for pod_set in self.pod_sets}

    def certainly_needed(self) -> dict[str, int]:
        """Maps a pod set to the number of its members without which the gang cannot start."""
        needed = self.minimums
        if len(self.pod_sets) == 1:
            needed[self.pod_sets[0].name] = self.min_member
            if makes_all_alike(self.group.metadata) and not self.pod_sets[0].mixed:
                return needed  # some pods of the gang may not exist yet
        return {each.name: min(needed[each.name], each.replicas) for each in self.pod_sets}

    def satisfied(self, counts: Mapping[str, int]) -> bool:
        """Return True if these numbers of members per pod set are enough to start the gang."""
        return enough(counts, self.min_member, {each.name: each.minimum for each in self.pod_sets})

    def viable(self, counts: Mapping[str, int]) -> bool:
        """Return True if the gang can continue with these members per pod set, even if minimums have been raised."""
        least = self._kept or self._today
        return enough(counts, least.min_member, least.min_task_member)

    def viable_without(self, uids: Container[str]) -> bool:
        """Return True if the gang's members are enough to continue without the pods with these UIDs."""
        counts = self.taken_by_set
        for pod in self.pods:
            if pod.uid in uids and pod.taken and pod.slot and pod.slot.pod_set in counts:
                counts[pod.slot.pod_set] -= 1
        return self.viable(counts)

    def started_with(self) -> StartedWith:
        """Return the minimum to record for this run.

        For a gang that has reached its current minimum, the result is the current minimum. For any other gang, the
        result is the recorded minimum or, without a record, the number of members, but at most the current minimum.
        """
        counts = self.taken_by_set
        if self.satisfied(counts):
            return self._today
        return self._kept or lower(self._today, StartedWith(min_member=sum(counts.values()), min_task_member=counts))

    @property
    def floor(self) -> StartedWith:
        """The minimum that the gang needs to start or, once started, to continue; further members are growth."""
        today = StartedWith(min_member=self.min_member, min_task_member=self.minimums)
        return (self._kept if self.started else None) or today

    @property
    def outgrew_minimum(self) -> bool:
        """True if the recorded minimum of the gang must be updated."""
        known = self.placement.status.started_with if self.placement else None
        return known is not None and self.phase is GangPhase.WHOLE and known != self.started_with()

    @property
    def _today(self) -> StartedWith:
        minimums = {pod_set.name: pod_set.minimum for pod_set in self.pod_sets}
        return StartedWith(min_member=self.min_member, min_task_member=minimums)

    @property
    def _kept(self) -> StartedWith | None:
        """The minimum that was recorded at the gang's start, but at most the current minimum; None without a record."""
        known = self.placement.status.started_with if self.placement and once_whole(self.placement) else None
        return None if known is None else lower(self._today, known)

    @property
    def gated_by_others(self) -> list[PodRecord]:
        """Pods of the gang that wait for scheduling gates other than Muster's."""
        return [pod for pod in self.pods if pod.waiting and pod.other_gates]

    @property
    def has_pods(self) -> bool:
        """True if the gang has enough pods to start."""
        return self.satisfied({each.name: len(each.taken.keys() | each.waiting.keys()) for each in self.pod_sets})

    def waits_until(self, now: float) -> str:
        """Return the earliest time of the gang's next placement (RFC 3339); empty if the gang may be placed now.

        A gang whose pods were not created in time no longer waits once enough pods exist.
        """
        until = self.placement.status.not_before if self.placement else ""
        over = is_over(parse_time(until) or 0.0, now, MAX_PLACEMENT_DELAY_S)
        return "" if over or self.started or (self.has_pods and not self.was_not_bound) else until

    @property
    def was_not_bound(self) -> bool:
        """True if the gang's last placement ended because existing pods were not bound."""
        why = self.placement.status.why if self.placement else None
        return why is not None and why.code == reasons.placements.NOT_BOUND

    def next_epoch(self) -> int:
        """Return an epoch greater than the epochs of all earlier placements and pins."""
        known = [pod.epoch or 0 for pod in self.pods]
        return max([self.placement.spec.epoch if self.placement else 0, *known]) + 1
