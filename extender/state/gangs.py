"""Gangs as the planner sees them: pod sets, seats, and how far each seat is.

A *seat* is (pod set, rank). It is taken by a pod that is bound or has succeeded, held by an active placement, or open.
A view is made from the objects when any of them changed, and is not changed afterwards.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import groupby

from extender.state.podclass import PodClass
from extender.state.pods import PodRecord
from muster.api.meta import parse_time
from muster.api.placement import Placement
from muster.api.scheduling import PodGroup

ACTIVE = frozenset({"Planned", "Binding"})


def once_whole(placement: Placement | None) -> bool:
    """Whether the placement says that its gang had what it needs."""
    return placement is not None and (placement.status.started or placement.status.phase == "Bound")


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
    waiting: dict[int, PodRecord] = field(default_factory=dict)
    template: bool = False
    """Pods may be made from a template, so a seat needs no pod yet."""
    unit: int = 1
    """Size of its sub-groups: consecutive ranks that are placed together or not at all."""
    mixed: bool = False
    """Some waiting pods are of another class than the set, e.g. because each has a claim of its own."""

    def class_of(self, rank: int) -> PodClass | None:
        """What the pod with this rank is, or will be."""
        pod = self.waiting.get(rank) if self.mixed else None
        return pod.cls if pod else self.cls

    def open_seats(self, *, begun: bool) -> Sequence[int]:
        """Ranks that can be given a node now, in order.

        Once the gang has begun, only pods that exist count: its owner decides whether one comes again. Before that
        nobody has a seat, and a thousand waiting gangs must not cost a list of all their seats.
        """
        if self.template and not begun:
            return range(self.replicas)
        return sorted(rank for rank in self.waiting if rank not in self.taken)

    def units(self, ranks: Sequence[int]) -> Iterator[list[int]]:
        """These ranks by sub-group, in order."""
        return (list(group) for _, group in groupby(ranks, key=lambda rank: rank // self.unit))


class GangPhase(Enum):
    """How far a gang is, for the planner.

    Two questions make six phases: how many members have (or had) a node - none, too few, enough - and whether a
    placement is being carried out. The phase of a PodGroup is another thing: it is what users and the controller see.
    """

    WAITING = auto()
    """Nobody has a node and nothing is being carried out: room is looked for, for the whole minimum at once."""
    STARTING = auto()
    """A placement is being carried out, and nobody has a node yet: the members are on their way."""
    ARRIVING = auto()
    """A placement is being carried out; some members have their node, and still too few to start."""
    STRANDED = auto()
    """Some members have a node, too few to start, and nothing is being carried out for the others.

    They hold room and do nothing, so this must not last: the gang is completed at once, or goes back as a whole.
    """
    WHOLE = auto()
    """The gang has, or once had, what it needs. From now on members are placed as they come (again)."""
    GROWING = auto()
    """The gang is whole, and a placement is being carried out for members that came later, or again."""


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
    phase: GangPhase = field(init=False)
    _open_seats: dict[str, Sequence[int]] | None = field(default=None, init=False)
    _at_rest: bool | None = field(default=None, init=False)

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
    def created(self) -> str:
        """Creation time of the PodGroup, RFC 3339 (sorts as text)."""
        return self.group.metadata.creation_timestamp or ""

    @property
    def min_member(self) -> int:
        """How many members start together or not at all."""
        return self.group.spec.min_member

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
        """Whether the gang has (or once had) what it needs; from then on its members are placed as they come."""
        return self.phase in _STARTED

    @property
    def incomplete(self) -> bool:
        """Whether some members have a node, but never enough of them: the state that must not last."""
        return self.phase in _INCOMPLETE

    @property
    def begun(self) -> bool:
        """Whether any member ever had a node."""
        return self.incomplete or self.started

    @property
    def at_rest(self) -> bool:
        """Whether nothing is to be carried out, waited for or cleared away until one of the gang's objects changes."""
        if self._at_rest is None:
            pinned = any(pod.waiting and pod.pin and not pod.gated for pod in self.pods)
            self._at_rest = not self.active and not self.incomplete and not pinned
        return self._at_rest

    def open_seats(self) -> dict[str, Sequence[int]]:
        """Per pod set the ranks that can be given a node now."""
        if self._open_seats is None:
            begun = self.begun
            self._open_seats = {pod_set.name: pod_set.open_seats(begun=begun) for pod_set in self.pod_sets}
        return self._open_seats

    def satisfied(self, counts: Mapping[str, int]) -> bool:
        """Whether so many members per pod set are enough.

        Minimums per task count only if minMember covers their sum (Volcano's gang rule).
        """
        if sum(counts.values()) < self.min_member:
            return False
        minimums = {pod_set.name: pod_set.minimum for pod_set in self.pod_sets}
        if self.min_member < sum(minimums.values()):
            return True
        return all(counts.get(name, 0) >= minimum for name, minimum in minimums.items())

    def next_epoch(self) -> int:
        """An epoch later than that of every placement and pin there has been."""
        known = [pod.epoch or 0 for pod in self.pods]
        return max([self.placement.spec.epoch if self.placement else 0, *known]) + 1

    def _find_phase(self) -> GangPhase:
        active = self.placement is not None and self.placement.status.phase in ACTIVE
        counts = {pod_set.name: len(pod_set.taken) for pod_set in self.pod_sets}
        some = any(counts.values())
        if once_whole(self.placement) or (some and self.satisfied(counts)):
            return GangPhase.GROWING if active else GangPhase.WHOLE
        if some:
            return GangPhase.ARRIVING if active else GangPhase.STRANDED
        return GangPhase.STARTING if active else GangPhase.WAITING


def _until(text: str) -> float:
    """The time that stands there, in seconds since the epoch; one that nobody can read is over."""
    try:
        return parse_time(text) or 0.0
    except (ValueError, OverflowError):
        return 0.0


def avoided_nodes(gangs: Iterable[GangView], now: float) -> dict[str, set[str]]:
    """Gang key → nodes that refused a member of it lately, as its placement says; `now` is seconds since the epoch."""
    result: dict[str, set[str]] = {}
    for gang in gangs:
        if gang.placement is not None and gang.placement.status.avoided:
            nodes = {each.node for each in gang.placement.status.avoided if _until(each.until) > now}
            if nodes:
                result[gang.key] = nodes
    return result
