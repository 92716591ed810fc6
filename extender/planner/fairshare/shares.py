"""The fair share of every queue of a tree, and the past usage that lowers a queue's share.

The share of a parent queue is divided among its children, resource by resource. Past usage is a mean with a half-life,
in units of the resource. For example, a queue that has always used 8 GPUs has a mean of 8. Means are stored by the
names of queues and resources, because the rows and columns of arrays change. The means of past usage are saved in
Queue.status, so that they survive restarts.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.division import QueueClaim, Rounding, divide
from extender.planner.fairshare.tree import Shares
from muster.api.kubernetes.meta import parse_time
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import Vector, vector

NOTHING = 1e-3
"""Smallest mean usage that is stored, in units of the resource."""


@dataclass(slots=True)
class UsageMeans:
    """Mean usage of each queue and resource until the time `at`, in seconds since the epoch."""

    half_life_s: float
    at: float | None = None
    means: dict[str, dict[str, float]] = field(default_factory=dict)

    def load(self, queue: str, mean: Vector, at: float, now: float) -> None:
        """Load a queue's mean usage, which has decayed since it was stored as if the queue had used nothing."""
        factor = 0.5 ** (max(0.0, now - at) / self.half_life_s)
        self.means[queue] = {resource: amount * factor for resource, amount in mean.items()}

    def load_all(self, queues: Mapping[str, Queue], now: float) -> None:
        """Load the mean usage from the status of all queues; ignore means that cannot be parsed."""
        for name, queue in queues.items():
            with suppress(ValueError, OverflowError):
                if queue.status.usage and (at := parse_time(queue.status.usage_time)) is not None:
                    self.load(name, vector(queue.status.usage), at, now)

    def rounded(self, queue: str) -> Vector:
        """Return the mean usage of a queue, rounded to whole units."""
        return {name: round(amount) for name, amount in self.means.get(queue, {}).items() if round(amount)}

    def advance(self, now: float, allocated: Mapping[str, Vector]) -> None:
        """Advance the means to a later time, as if the current allocations had not changed since the previous time."""
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


def fair_shares(
    allocations: Allocations,
    rounding: Rounding = "exact",
    usage_weight: float = 1.0,
    usage: Mapping[str, Shares] | None = None,
) -> Shares:
    """Return the fair shares, float64 of shape (queues, resources).

    `usage` is the mean usage of each queue, including its descendants. KAI-Scheduler compares past usage with the size
    of the cluster at every level. The rounding `exact` compares past usage with the usage of all siblings.
    Past usage therefore also matters in small branches of the tree.
    """
    tree = allocations.tree
    fair = np.zeros(allocations.used.shape, dtype=np.float64)
    fair[0] = allocations.total
    requestable = allocations.request.astype(np.float64)
    if rounding == "exact":
        requestable = _within_limits(allocations)
    past = np.zeros_like(fair)
    for name, amounts in (usage or {}).items():
        if name in tree.index:
            past[tree.index[name]] = amounts
    for row, children in enumerate(tree.children):
        if not children:
            continue
        rows = list(children)
        asked = requestable[rows]
        whole = past[rows].sum(axis=0) if rounding == "exact" else allocations.total
        recent = np.divide(past[rows], whole, out=np.zeros_like(past[rows]), where=whole > 0)
        if rounding == "exact":
            beyond = (asked > tree.deserved[rows]) & (tree.weight[rows] == 0)  # at most what they deserve
            plenty = (asked.sum(axis=0) <= fair[row]) & ~beyond.any(axis=0)
            fair[rows] = np.where(plenty, asked, 0.0)
            scarce = np.flatnonzero(~plenty)
        else:
            scarce = np.arange(len(allocations.total))
        for column in scarce:
            unit = tree.units[column]
            claims = [
                QueueClaim(
                    deserved=float(tree.deserved[child, column]) / unit,
                    weight=float(tree.weight[child, column]),
                    request=float(asked[position, column]) / unit,
                    limit=float(tree.limit[child, column]) / unit,
                    priority=tree.priority[child],
                    usage=float(recent[position, column]),
                    guarantee=float(tree.guarantee[child, column]) / unit,
                    born=tree.born[child],
                )
                for position, child in enumerate(rows)
            ]
            divided = divide(float(fair[row, column]) / unit, claims, rounding, usage_weight)
            fair[rows, column] = [share * unit for share in divided]
    return fair


def _within_limits(allocations: Allocations) -> Shares:
    """Return the requests of every queue, capped at the limits of the queue and of its descendants."""
    tree = allocations.tree
    asked = allocations.request.astype(np.float64)
    for row in range(len(tree.names) - 1, 0, -1):
        own = allocations.request[row] - allocations.request[list(tree.children[row])].sum(axis=0)
        below = asked[list(tree.children[row])].sum(axis=0)
        asked[row] = np.minimum(tree.limit[row], own + below)
    return asked
