"""What queues used over time, with a half-life: what was used that long ago counts half of what is used now.

The mean is weighted so, in units of the resource: a queue that has always used 8 GPUs has a mean of 8. It is by name of
queue and resource, since rows and columns come and go, and stands in Queue.status between two lives of the process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.resources.vector import Vector

NOTHING = 1e-3
"""Of a unit; means below it are forgotten."""


@dataclass(slots=True)
class UsageBook:
    """Means by queue; `at` is the moment up to which they are known, in seconds since the epoch."""

    half_life_s: float
    at: float | None = None
    means: dict[str, dict[str, float]] = field(default_factory=dict)

    def load(self, queue: str, mean: Vector, at: float, now: float) -> None:
        """What was known of a queue at an earlier moment; nobody is taken to have used anything since."""
        factor = 0.5 ** (max(0.0, now - at) / self.half_life_s)
        self.means[queue] = {resource: amount * factor for resource, amount in mean.items()}

    def advance(self, now: float, allocated: Mapping[str, Vector]) -> None:
        """Goes on to a later moment; what is allocated now is taken to have been so since the last one."""
        if self.at is not None and now > self.at:
            factor = 0.5 ** ((now - self.at) / self.half_life_s)
            for queue in self.means.keys() | allocated.keys():
                before, has = self.means.get(queue, {}), allocated.get(queue, {})
                after = {
                    resource: before.get(resource, 0.0) * factor + has.get(resource, 0) * (1 - factor)
                    for resource in before.keys() | has.keys()
                }
                self.means[queue] = {resource: amount for resource, amount in after.items() if amount >= NOTHING}
            self.means = {queue: mean for queue, mean in self.means.items() if mean}
        self.at = max(now, self.at or now)
