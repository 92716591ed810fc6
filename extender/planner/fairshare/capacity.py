"""Refusals of a queue: over its limit, into guarantees of other queues, over its quota with gangs not preemptable.

Each queue from the gang's own up to the root is asked, only for the resources that are requested. Pods without a gang
are not planned: for them usage is added up here (`queue_full`), while kube-scheduler waits.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Final

import numpy as np

from extender.planner import reasons
from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.tree import Shares
from extender.planner.framework.answers import QueueRefusal
from extender.planner.framework.ordering import upwards
from extender.planner.ledger import QueueUse, Use
from extender.planner.reasons.queues import GUARANTEED, OVER_CAPABILITY, OVER_DESERVED
from extender.planner.state.amounts import Amounts
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import Vector, add, vector
from muster.volcano.queuelimits import QueueLimits, limits_of

_ANYBODY: Final = None
"""Stands for all users of a queue together."""


def over_capacity(allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts) -> QueueRefusal | None:
    """Return a refusal if the queue in `row` or one above would exceed its limit, or take guarantees of others."""
    tree = allocations.tree
    if not tree.bounded[row] and not tree.guaranteed:
        return None
    asked = np.flatnonzero(amounts > 0)
    for each in tree.chains[row]:
        over = asked[allocations.used[each, asked] + amounts[asked] > tree.limit[each, asked]]
        if len(over):
            column, used = int(over[0]), allocations.used[each]
            return _refusal(OVER_CAPABILITY, tree.names[each], axis, column, amounts, used, tree.limit[each])
    if not tree.guaranteed:
        return None
    for each, delta in allocations.growth(row, amounts):
        limit = tree.limit[each] if each else np.minimum(tree.limit[0], allocations.total)
        committed = allocations.committed[each]
        binds = committed > allocations.used[each]  # else room alone decides
        over = asked[(binds & (delta > 0) & (committed + delta > limit))[asked]]
        if len(over):
            return _refusal(GUARANTEED, tree.names[each], axis, int(over[0]), amounts, committed, limit)
    return None


def over_quota(allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts) -> QueueRefusal | None:
    """Return a refusal if gangs that are not preemptable would exceed what the queue (or one above) deserves."""
    quota = allocations.tree.quota
    asked = np.flatnonzero(amounts > 0)
    for each in allocations.tree.chains[row][:-1]:
        over = asked[allocations.fixed[each, asked] + amounts[asked] > quota[each, asked]]
        if len(over):
            name, used = allocations.tree.names[each], allocations.fixed[each]
            return _refusal(OVER_DESERVED, name, axis, int(over[0]), amounts, used, quota[each])
    return None


def _refusal(
    reason: str, queue: str, axis: Mapping[str, int], column: int, amounts: Amounts, use: Amounts, bounds: Shares
) -> QueueRefusal:
    resource = next((name for name, at in axis.items() if at == column), "")
    limit = int(bounds[column]) if isfinite(bounds[column]) else -1
    requested, used = int(amounts[column]), int(use[column])
    message = reasons.queues.refusal(reason, queue, resource, limit=limit, used=used, asked=requested)
    return QueueRefusal(reason, queue, resource, requested, used, limit, message)


def queue_full(queues: Mapping[str, Queue], uses: Mapping[str, Use], queue: str, requests: Vector) -> bool:
    """Return True if these requests would take the queue, or one above it, over its capability."""
    limits = {name: limit for name in upwards(queues, queue) if (limit := _limit(queues, name, requests))}
    used: Counter[tuple[str, str]] = Counter()
    for name, use in uses.items() if limits else ():
        for above in upwards(queues, name):
            for resource in limits.get(above, ()):
                used[above, resource] += use.staying.get(resource, 0) + use.leaving.get(resource, 0)
    return any(
        used[name, resource] + requests[resource] > most
        for name, limit in limits.items()
        for resource, most in limit.items()
    )


def limit_reached(
    queues: Mapping[str, Queue], uses: QueueUse, queue: str, user: str, requests: Vector, now: float
) -> bool:
    """Return True if these requests would take a user over what a queue allows each, or a queue over its window's."""
    said = {name: limits for name, limits in _said(queues, queue) if limits.per_user or limits.windows}
    used: dict[tuple[str, str | None], Vector] = {}
    for (name, who), use in uses.users.items() if said else ():
        for above in upwards(queues, name):
            if above in said:
                for key in ((above, who), (above, _ANYBODY)):
                    used[key] = add(add(used.get(key, {}), use.staying), use.leaving)
    return any(
        used.get(key, {}).get(resource, 0) + requests[resource] > most
        for name, limits in said.items()
        for key, bound in (
            ((name, user), limits.per_user),
            *(((name, _ANYBODY), window.limits) for window in limits.windows if window.until(now) is not None),
        )
        for resource, most in bound.items()
        if requests.get(resource, 0) > 0
    )


def limited(queues: Mapping[str, Queue], queue: str) -> bool:
    """Return True if the queue, or one above it, has a limit per user or by time window."""
    return any(limits.per_user or limits.windows for _, limits in _said(queues, queue))


def _said(queues: Mapping[str, Queue], queue: str) -> Iterator[tuple[str, QueueLimits]]:
    for name in upwards(queues, queue):
        known = queues.get(name)
        if known is not None:
            yield name, limits_of(known.metadata.annotations)


def bounded(queues: Mapping[str, Queue], queue: str) -> bool:
    """Return True if the queue, or one above it, has a capability."""
    return any(known.spec.capability for name in upwards(queues, queue) if (known := queues.get(name)))


def _limit(queues: Mapping[str, Queue], name: str, requests: Vector) -> Vector:
    """Return a queue's capability in the resources that are requested; one that cannot be read is none."""
    known = queues.get(name)
    if known is None or not known.spec.capability:
        return {}
    try:
        limit = vector(known.spec.capability)
    except ValueError:
        return {}
    return {resource: amount for resource, amount in limit.items() if requests.get(resource, 0) > 0}
