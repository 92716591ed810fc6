"""The input of a replay: the recorded workloads with their running times, and all other changes."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from extender.record import lines
from extender.simulate.members import SimulatedWorkload
from muster.resources.runtime import declared_s


class ReplayedChange(NamedTuple):
    """A change of an object that belongs to no workload: a node, a queue, or a pod that Muster does not manage."""

    at: float
    kind: str
    key: str
    item: Any
    """The object after the change; None if the object was deleted."""


@dataclass(slots=True)
class History:
    """The content of a recording, in the form that replays need."""

    head: lines.Head
    since_s: float = 0.0
    """Time from which on the recording contains the whole cluster, in seconds since the epoch."""
    until_s: float = 0.0
    workloads: list[SimulatedWorkload] = field(default_factory=list)
    """Workloads in the order of their arrival."""
    before: list[ReplayedChange] = field(default_factory=list)
    """Objects at the beginning of the recording that belong to no workload."""
    changes: list[ReplayedChange] = field(default_factory=list)
    configs: list[tuple[float, str]] = field(default_factory=list)
    """Changes of the scheduler configuration, each with its time and the new text."""
    lost: int = 0
    _usual: dict[str, float] = field(default_factory=dict)

    def usual_s(self, workload: SimulatedWorkload) -> float | None:
        """Return the expected running time of a gang that never ran: its declared time, or the median in its queue.

        If no gang of the queue has ended, the median of all gangs is used. The result None means that the gang runs
        until the end of the replay.
        """
        declared = declared_s(workload.group.metadata.annotations)
        if declared is not None:
            return declared
        if not self._usual:
            ran: dict[str, list[float]] = {"": []}
            for each in self.workloads:
                for runs_s in (member.runs_s for member in each.members.values()):
                    if runs_s is not None:
                        ran[""].append(runs_s)
                        ran.setdefault(each.queue, []).append(runs_s)
            self._usual = {queue: sorted(times)[len(times) // 2] for queue, times in ran.items() if times}
        return self._usual.get(workload.queue, self._usual.get(""))
