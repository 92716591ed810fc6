"""One pod set of a gang: its slots, and its minimum by Volcano's rule."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from muster.api.muster.placement import StartedWith
from muster.resources.runtime import UNKNOWN, Runtime
from muster.resources.topology import PodTopology


def enough(counts: Mapping[str, int], least: int, minimums: dict[str, int]) -> bool:
    """Return True if so many members per pod set reach the minimum of all together and those per pod set that count."""
    return sum(counts.values()) >= least and all(
        counts.get(name, 0) >= minimum for name, minimum in counting(least, minimums).items()
    )


def counting(least: int, minimums: dict[str, int]) -> dict[str, int]:
    """Return the minimums per pod set, all 0 unless `least`, that of all together, covers their sum."""
    return minimums if least >= sum(minimums.values()) else dict.fromkeys(minimums, 0)


def lower(today: StartedWith, known: StartedWith) -> StartedWith:
    """Return the lower of both minimums, for each pod set of `today`."""
    tasks = {name: min(least, known.min_task_member.get(name, 0)) for name, least in today.min_task_member.items()}
    return StartedWith(min_member=min(today.min_member, known.min_member), min_task_member=tasks)


@dataclass(frozen=True, slots=True)
class SubGroup:
    """Ranks of one pod set that are placed together or not at all."""

    pod_set: "PodSetView"
    ranks: tuple[int, ...]


@dataclass(slots=True)
class PodSetView:
    """Pods of one shape in a gang."""

    name: str
    cls: PodClass | None
    """None while there is neither a pod nor a template."""
    replicas: int
    minimum: int
    taken: dict[int, str] = field(default_factory=dict)
    """Rank → node ("" for a pod that succeeded and is gone)."""
    alive: int = 0
    """Taken slots whose pods have not ended."""
    failed: set[int] = field(default_factory=set)
    """Ranks whose pod failed and still exists; its owner decides if another one comes."""
    waiting: dict[int, PodRecord] = field(default_factory=dict)
    template: bool = False
    """Pods may be made from a template, so a slot needs no pod yet."""
    born_gated: bool = False
    """Pods made from the template wait for gates that are not Muster's, so a slot needs a pod all the same."""
    unit: int = 1
    """Size of its sub-groups: consecutive ranks that are placed together or not at all."""
    runtime: Runtime = UNKNOWN
    topology: PodTopology | None = None
    """Nearness that the template asks for; see `planner.topology.requests`."""
    mixed: bool = False
    """Some waiting pods are of another class than the set, e.g. because each has a claim of its own."""

    def class_of(self, rank: int) -> PodClass | None:
        """Return the class of the pod with this rank, whether it exists or not."""
        pod = self.waiting.get(rank) if self.mixed else None
        return pod.cls if pod else self.cls

    def classes_of(self, ranks: Sequence[int]) -> dict[PodClass, int]:
        """Return the classes of the pods with these ranks, each with their number; unknown pods are left out."""
        if not self.mixed:
            return {self.cls: len(ranks)} if self.cls is not None else {}
        found: dict[PodClass, int] = {}
        for cls in map(self.class_of, ranks):
            if cls is not None:
                found[cls] = found.get(cls, 0) + 1
        return found

    def open_slots(self, *, begun: bool) -> Sequence[int]:
        """Return the ranks of open slots, in order; a range where no pod is known, as thousands of gangs may wait.

        Once the gang has begun, only pods that exist count: its owner decides if one comes again. A pod with a gate
        that is not Muster's could not run.
        """
        if self.template and not begun and not self.born_gated:
            gated = {rank for rank, pod in self.waiting.items() if pod.other_gates}
            closed = self.taken.keys() | (self.failed - self.waiting.keys()) | gated
            ranks = range(self.replicas)
            return [rank for rank in ranks if rank not in closed] if closed else ranks
        return sorted(rank for rank, pod in self.waiting.items() if rank not in self.taken and not pod.other_gates)

    def units(self, ranks: Sequence[int]) -> Iterator[list[int]]:
        """Yield these ranks by sub-group, in order."""
        return (list(group) for _, group in groupby(ranks, key=lambda rank: rank // self.unit))
