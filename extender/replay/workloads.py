"""Workloads and other changes as a recording has them: what a replay plays."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from extender.record import lines
from muster.api.kubernetes.core import Pod
from muster.api.muster.placement import Placement
from muster.api.volcano.batch import Job
from muster.resources.runtime import declared_s


class Change(NamedTuple):
    """A change of an object that is no workload's: of a node, a queue, a pod of somebody else."""

    at: float
    kind: str
    key: str
    item: Any
    """None: it is gone."""


@dataclass(slots=True)
class Member:
    """One pod of a gang, and its successors."""

    pod: Pod
    """As it was first seen."""
    created_s: float
    uid: str
    """Of its last pod."""
    node: str = ""
    since_s: float | None = None
    """Time when its last pod got its node."""
    ended_s: float | None = None
    at_start: Pod | None = None
    """As it was on its node when the recording began."""
    vacant: bool = False
    """Its pod went without having ended, and no successor has come yet."""

    @property
    def runs_s(self) -> float | None:
        """How long its last pod ran; None if it never ran, or still did at the end."""
        return None if self.since_s is None or self.ended_s is None else max(self.ended_s - self.since_s, 0.0)

    @property
    def censored(self) -> bool:
        """True if it still ran at the end of the recording."""
        return self.since_s is not None and self.ended_s is None


@dataclass(slots=True)
class Workload:
    """A gang of the recording: one life of a PodGroup."""

    key: str
    """`namespace/name` of the gang."""
    kind: str
    """Of its PodGroup: Volcano's, or a native one."""
    group: Any
    """As it was when it came."""
    came_s: float
    queue: str = ""
    job: Job | None = None
    members: dict[object, Member] = field(default_factory=dict)
    """By slot, or by the name of a pod without one."""
    left_s: float | None = None
    """Time when its PodGroup went; None if it stayed."""
    started_s: float | None = None
    """Time when it had its minimum for the first time."""
    evictions: int = 0
    """Lives that an eviction ended."""
    evicted_s: float = 0.0
    """Time of the last one."""
    checkpoints: list[float] = field(default_factory=list)
    """Seconds of running after which it reported a checkpoint, in its last life."""
    ran_before: bool = False
    """It had its minimum when the recording began."""
    placement: Placement | None = None
    """As it was when the recording began."""
    minimum: int = 1

    @property
    def title(self) -> str:
        """The gang as its user calls it: namespace and name of its owner, else its own."""
        meta = self.group.metadata
        return f"{meta.namespace}/{owner.name}" if (owner := meta.controller) else self.key

    @property
    def running(self) -> int:
        """Members on nodes."""
        return sum(member.since_s is not None and member.ended_s is None for member in self.members.values())


@dataclass(slots=True)
class History:
    """All of a recording that a replay needs."""

    head: lines.Head
    since_s: float = 0.0
    """From here on the recording shows the whole cluster, in seconds since the epoch."""
    until_s: float = 0.0
    workloads: list[Workload] = field(default_factory=list)
    """In the order in which they came."""
    before: list[Change] = field(default_factory=list)
    """What existed when the recording began, apart from workloads."""
    changes: list[Change] = field(default_factory=list)
    configs: list[tuple[float, str]] = field(default_factory=list)
    """Changes of the scheduler configuration."""
    lost: int = 0
    sessions: int = 0
    _usual: dict[str, float] = field(default_factory=dict)

    def usual_s(self, workload: Workload) -> float | None:
        """Return how long a gang that never ran would have run: as it says itself, else as others of its queue did.

        That is their median, else that of all gangs; None: nobody knows, and it runs to the end.
        """
        said = declared_s(workload.group.metadata.annotations)
        if said is not None:
            return said
        if not self._usual:
            ran: dict[str, list[float]] = {"": []}
            for each in self.workloads:
                for runs_s in (member.runs_s for member in each.members.values()):
                    if runs_s is not None:
                        ran[""].append(runs_s)
                        ran.setdefault(each.queue, []).append(runs_s)
            self._usual = {queue: sorted(times)[len(times) // 2] for queue, times in ran.items() if times}
        return self._usual.get(workload.queue, self._usual.get(""))
