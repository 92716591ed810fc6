"""Workloads and other changes as a recording has them, and what ended when: what a replay plays."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from extender.record import lines
from extender.simulate.members import SimulatedWorkload
from muster.resources.runtime import declared_s


class ReplayedChange(NamedTuple):
    """A change of an object that is no workload's: of a node, a queue, a pod that Muster does not manage."""

    at: float
    kind: str
    key: str
    item: Any
    """None: it is gone."""


@dataclass(slots=True)
class History:
    """All of a recording that a replay needs."""

    head: lines.Head
    since_s: float = 0.0
    """From here on the recording shows the whole cluster, in seconds since the epoch."""
    until_s: float = 0.0
    workloads: list[SimulatedWorkload] = field(default_factory=list)
    """In the order in which they came."""
    before: list[ReplayedChange] = field(default_factory=list)
    """Objects at the beginning of the recording, apart from workloads."""
    changes: list[ReplayedChange] = field(default_factory=list)
    configs: list[tuple[float, str]] = field(default_factory=list)
    """Changes of the scheduler configuration."""
    lost: int = 0
    _usual: dict[str, float] = field(default_factory=dict)

    def usual_s(self, workload: SimulatedWorkload) -> float | None:
        """Return how long a gang that never ran would have run: as it says itself, else as others of its queue did.

        That is their median, else that of all gangs; None: unknown, and it runs to the end.
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
