"""One pod set of a gang, as the planner sees it: its slots, who has them, and which can be given a node now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from muster.api.muster.placement import StartedWith
from muster.resources.runtime import UNKNOWN, Runtime
from muster.resources.topology import PodTopology


def enough(counts: Mapping[str, int], least: int, minimums: dict[str, int]) -> bool:
    """Whether so many members per pod set reach both the minimum of all together and those per pod set that count."""
    return sum(counts.values()) >= least and all(
        counts.get(name, 0) >= minimum for name, minimum in counting(least, minimums).items()
    )


def counting(least: int, minimums: dict[str, int]) -> dict[str, int]:
    """The minimums per pod set as far as they count, which is if `least`, that of all together, covers their sum."""
    return minimums if least >= sum(minimums.values()) else dict.fromkeys(minimums, 0)


def lower(today: StartedWith, known: StartedWith) -> StartedWith:
    """The lower of the two for every pod set that there is today."""
    tasks = {name: min(least, known.min_task_member.get(name, 0)) for name, least in today.min_task_member.items()}
    return StartedWith(min_member=min(today.min_member, known.min_member), min_task_member=tasks)


@dataclass(frozen=True, slots=True)
class SubGroup:
    """Ranks of one pod set that are placed together or not at all."""

    pod_set: "PodSetView"
    ranks: tuple[int, ...]


@dataclass(slots=True)
class PodSetView:
    """Pods of one shape inside a gang."""

    name: str
    cls: PodClass | None
    """None while neither a pod nor a template says what the pods are."""
    replicas: int
    minimum: int
    taken: dict[int, str] = field(default_factory=dict)
    """Rank → node ("" for a pod that succeeded and is gone)."""
    alive: int = 0
    """How many of the slots that are taken use a node: their pods have not ended."""
    failed: set[int] = field(default_factory=set)
    """Ranks whose pod failed and is still there: whether another one comes, its owner decides."""
    waiting: dict[int, PodRecord] = field(default_factory=dict)
    template: bool = False
    """Pods may be made from a template, so a slot needs no pod yet."""
    born_gated: bool = False
    """Pods made from the template wait for somebody else's gate, so a slot needs a pod all the same."""
    unit: int = 1
    """Size of its sub-groups: consecutive ranks that are placed together or not at all."""
    runtime: Runtime = UNKNOWN
    """How long its pods are expected to run, as far as they or their template say so."""
    topology: PodTopology | None = None
    """How near to each other its pods are to be, as far as their template says so; see `planner.topology.requests`."""
    mixed: bool = False
    """Some waiting pods are of another class than the set, e.g. because each has a claim of its own."""

    def class_of(self, rank: int) -> PodClass | None:
        """What the pod with this rank is, or will be."""
        pod = self.waiting.get(rank) if self.mixed else None
        return pod.cls if pod else self.cls

    def open_slots(self, *, begun: bool) -> Sequence[int]:
        """Ranks that can be given a node now, in order.

        Once the gang has begun, only pods that exist count: its owner decides whether one comes again. A pod that
        waits for somebody else's gate gets none: it could not run there. A thousand waiting gangs must not cost a list
        of all their slots.
        """
        if self.template and not begun and not self.born_gated:
            gated = {rank for rank, pod in self.waiting.items() if pod.other_gates}
            closed = self.taken.keys() | (self.failed - self.waiting.keys()) | gated
            ranks = range(self.replicas)
            return [rank for rank in ranks if rank not in closed] if closed else ranks
        return sorted(rank for rank, pod in self.waiting.items() if rank not in self.taken and not pod.other_gates)

    def units(self, ranks: Sequence[int]) -> Iterator[list[int]]:
        """These ranks by sub-group, in order."""
        return (list(group) for _, group in groupby(ranks, key=lambda rank: rank // self.unit))
