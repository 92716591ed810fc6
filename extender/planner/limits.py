"""Limits of queues and the usage that counts against them: capability, limits per user, time windows, budgets.

All checks of limits use `LimitedUse`. For gangs, the plugin `proportion` checks all limits, with a copy of the usage
that includes the trials of a cycle. For gangs, the writer of placements checks the capability, limits per user and time
windows again. For pods without a gang, the filter and bind verbs check the capability, limits per user and time
windows. Used-up budgets refuse only gangs, through the plugin `proportion`. A limit applies to a queue together with
all its descendants. Usage is counted only for queues with a limit, to save time. Checking a limit takes one step per
ancestor of the queue. The module does no I/O and reads no clock.

Of these limits, fair shares depend only on the capability. The start of a time window, a lowered limit per user or a
used-up budget therefore causes no eviction.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from extender.planner.reasons.queues import OVER_BUDGET, OVER_CAPABILITY, OVER_USER_LIMIT, OVER_WINDOW
from extender.planner.state.access import parents_of
from extender.planner.state.amounts import put_entry, put_member, tally
from extender.planner.state.minimums import MinResources
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import Vector, subtract, vector
from muster.volcano.queuelimits import QueueLimits, UsageBudget, UsageWindow, limits_of


class Bounds(NamedTuple):
    """The limits of one queue."""

    queue: str
    capability: Vector
    """The queue's capability; empty if it cannot be parsed, which happens only if the webhook was bypassed."""
    unreadable: str
    """The error in the queue's capability; empty if the capability can be parsed."""
    annotated: QueueLimits


class Excess(NamedTuple):
    """A limit that would be exceeded; amounts are in milli-CPU or base units."""

    reason: str
    """The reason of the condition, a CamelCase word."""
    queue: str
    resource: str
    asked: int
    used: int
    limit: int
    until: float = 0.0
    """Time at which the limit ceases to apply: the end of the time window or of the budget's period, in seconds since
    the epoch."""
    budget: UsageBudget | None = None


class Limits:
    """The limits of all queues; immutable."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self.bounds = {name: bounds for name, queue in queues.items() if (bounds := _bounds(name, queue))}
        """Maps a queue to its limits; queues without a limit are left out."""
        parents = parents_of(queues) if self.bounds else {}
        self._above = {name: tuple(self._upwards(name, parents)) for name in parents}

    def _upwards(self, name: str, parents: Mapping[str, str]) -> Iterator[Bounds]:
        while name:
            if name in self.bounds:
                yield self.bounds[name]
            name = parents[name]

    def above(self, queue: str) -> tuple[Bounds, ...]:
        """Return the limits of a queue and of its ancestors, starting with the queue's own limits.

        For an unknown queue, return the limits of the root.
        """
        known = self._above.get(queue)
        return self._above.get(ROOT_QUEUE, ()) if known is None else known


Used = dict[tuple[str, str | None], Vector]
"""Usage by queue and user. The entry with the user None is the usage of the whole queue. Entries with a user exist only
in queues with limits per user. Usage of 0 is omitted."""


ClaimUse = tuple[bool, str, tuple[tuple[str, int], ...]]
"""One pod's use of a claim: whether the pod is being deleted, the pod's gang, and the claim's devices. Of all uses of a
claim in one queue, the smallest tuple is stored."""


class ClaimQueues:
    """The queues whose pods use each device claim.

    If the usage of child queues were simply added, the devices of a shared claim would count once per child. In the
    parent, the devices of a shared claim must count only once.
    """

    def __init__(self) -> None:
        self.uses: dict[str, dict[str, ClaimUse]] = {}
        """Maps a claim and a queue to the smallest use of the claim in the queue; claims without users are omitted."""
        self.several: set[str] = set()
        """Claims that are used by pods of several queues."""

    def set_user(self, claim: str, queue: str, use: ClaimUse | None) -> None:
        """Store the smallest use of a claim in a queue; None if the queue no longer uses the claim."""
        queues = self.uses.setdefault(claim, {})
        put_entry(queues, queue, use)
        if not queues:
            del self.uses[claim]
        put_member(self.several, claim, present=len(queues) > 1)

    def devices(self, claim: str) -> Vector:
        """Return the devices of a claim that is in use."""
        return dict(next(iter(self.uses[claim].values()))[2])

    def copy(self) -> "ClaimQueues":
        """Return a copy of the users of claims."""
        other = ClaimQueues()
        other.uses, other.several = {key: dict(queues) for key, queues in self.uses.items()}, set(self.several)
        return other


class LimitedUse:
    """The usage that counts against the limits of queues."""

    def __init__(self, limits: Limits, claims: ClaimQueues, minimums: MinResources, used: Used | None = None) -> None:
        self.limits = limits
        self.claims = claims
        self.minimums = minimums
        self.spent: Mapping[str, Sequence[tuple[UsageBudget, float]]] = {}
        """Maps a queue to its used-up enforced budgets and the ends of their periods; set by `proportion`."""
        self.used: Used = used or {}
        self._now = 0.0
        self._open: dict[str, list[tuple[UsageWindow, float]]] = {}

    def copy(self) -> "LimitedUse":
        """Return a copy of the usage, with the same limits."""
        used = {key: dict(amounts) for key, amounts in self.used.items()}
        return LimitedUse(self.limits, self.claims.copy(), self.minimums.copy(), used)

    def place(self, queue: str, user: str, amounts: Mapping[str, int], sign: int = 1, claim: str = "") -> None:
        """Add the resources of one user in a queue; with sign -1, subtract them.

        The devices of a `claim` count in full for the user, but only once in a common parent of several queues that use
        the claim.
        """
        known = self._known(claim, queue) if claim else ()
        for bounds in self.limits.above(queue):
            if bounds.queue not in known:
                self._count_use((bounds.queue, None), amounts, sign)
            if bounds.annotated.per_user:
                self._count_use((bounds.queue, user), amounts, sign)

    def _known(self, claim: str, queue: str) -> set[str]:
        """Return the limited queues that already count a claim's devices because another queue uses the claim."""
        others = self.claims.uses.get(claim, {}).keys() - {queue}
        return {bounds.queue for other in others for bounds in self.limits.above(other)}

    def count_once(self) -> None:
        """Subtract the devices of shared claims that a queue counts several times through its child queues."""
        for claim in self.claims.several:
            known = set[str]()
            for queue, (_, _, devices) in self.claims.uses[claim].items():
                chain = {bounds.queue for bounds in self.limits.above(queue)}
                for each in chain & known:
                    self._count_use((each, None), dict(devices), -1)
                known |= chain

    def _count_use(self, key: tuple[str, str | None], amounts: Mapping[str, int], sign: int) -> None:
        used = self.used.setdefault(key, {})
        for resource, amount in amounts.items():
            tally(used, resource, sign * amount)
        if not used:
            del self.used[key]

    def exceeded(
        self, queue: str, user: str, asked: Mapping[str, int], now: float, named: Collection[str] = ()
    ) -> Excess | None:
        """Return a limit that these additional requests of a user would exceed; capabilities are checked first.

        `asked` includes the devices of the claims in `named`, which no pod of the queue uses yet.
        """
        return self.over_capability(queue, asked, named) or self.over_limit(queue, user, asked, now, named)

    def over_capability(self, queue: str, asked: Mapping[str, int], named: Collection[str] = ()) -> Excess | None:
        """Return the first capability, from the queue up to the root, that these requests would exceed."""
        for bounds, new in self._upwards(queue, asked, named):
            if found := self._excess(OVER_CAPABILITY, bounds, bounds.capability, new):
                return found
        return None

    def _upwards(
        self, queue: str, asked: Mapping[str, int], named: Collection[str]
    ) -> Iterator[tuple[Bounds, Mapping[str, int]]]:
        """Yield the limits of each queue from this queue up to the root, with the growth of the queue's usage."""
        shared = [(self.claims.devices(claim), known) for claim in named if (known := self._known(claim, queue))]
        for bounds in self.limits.above(queue):
            new = asked
            for devices, known in shared:
                new = subtract(new, devices) if bounds.queue in known else new
            yield bounds, new

    def over_limit(
        self, queue: str, user: str, asked: Mapping[str, int], now: float, named: Collection[str] = ()
    ) -> Excess | None:
        """Return the first limit other than a capability, from the queue up to the root, that would be exceeded."""
        for bounds, new in self._upwards(queue, asked, named):
            found = (
                self._excess(OVER_USER_LIMIT, bounds, bounds.annotated.per_user, asked, user)
                or self._over_window(bounds, new, now)
                or self._over_budget(bounds.queue, new)
            )
            if found is not None:
                return found
        return None

    def _excess(
        self, reason: str, bounds: Bounds, most: Vector, asked: Mapping[str, int], user: str | None = None
    ) -> Excess | None:
        """Return the limit if the requests would exceed it; resources that are not requested are not compared.

        A queue that has used up one resource can still use other resources.
        """
        used = self.used.get((bounds.queue, user), {}) if most else {}
        for resource, amount in asked.items() if most else ():
            limit, there = most.get(resource), used.get(resource, 0)
            if limit is not None and amount > 0 and there + amount > limit:
                return Excess(reason, bounds.queue, resource, amount, there, limit)
        return None

    def _over_window(self, bounds: Bounds, asked: Mapping[str, int], now: float) -> Excess | None:
        if not bounds.annotated.windows:
            return None
        if now != self._now:
            self._now, self._open = now, {}
        if bounds.queue not in self._open:  # a cycle checks many gangs at the same time
            ends = ((window, window.until(now)) for window in bounds.annotated.windows)
            self._open[bounds.queue] = [(window, end) for window, end in ends if end is not None]
        for window, end in self._open[bounds.queue]:
            if found := self._excess(OVER_WINDOW, bounds, window.limits, asked):
                return found._replace(until=end)
        return None

    def _over_budget(self, queue: str, asked: Mapping[str, int]) -> Excess | None:
        for budget, end in self.spent.get(queue, ()):
            if (amount := asked.get(budget.resource, 0)) > 0:
                return Excess(OVER_BUDGET, queue, budget.resource, amount, budget.most, budget.most, end, budget)
        return None


def _bounds(name: str, queue: Queue) -> Bounds | None:
    """Return the limits of a queue; None for a queue without limits."""
    annotated = limits_of(queue.metadata.annotations)
    capability, unreadable = _capability(tuple(queue.spec.capability.items()))
    return Bounds(name, capability, unreadable, annotated) if capability or unreadable or annotated else None


@lru_cache(maxsize=4096)
def _capability(quantities: tuple[tuple[str, str | int | float], ...]) -> tuple[Vector, str]:
    """Return a parsed capability or the error; cached, because each change of a queue reads all capabilities."""
    try:
        return vector(dict(quantities)), ""
    except ValueError as error:
        return {}, str(error)
