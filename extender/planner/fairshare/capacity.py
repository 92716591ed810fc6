"""Refusals of a queue: over its limit, into what others are guaranteed, over its quota with what cannot be moved.

Asked of every queue from the gang's own up to the root, and only for the resources that are asked for.
"""

from collections.abc import Mapping
from math import isfinite

import numpy as np

from extender.planner import reasons
from extender.planner.fairshare.allocations import Allocations
from extender.planner.framework.answers import QueueRefusal
from extender.planner.reasons.queues import GUARANTEED, OVER_CAPABILITY, OVER_DESERVED
from extender.planner.state.amounts import Amounts


def over_capacity(allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts) -> QueueRefusal | None:
    """Whether the queue in `row` or one above would have more than its limit, or what others are guaranteed."""
    tree = allocations.tree
    if not tree.bounded[row] and not tree.guaranteed:
        return None
    asked = np.flatnonzero(amounts > 0)
    for each in tree.chains[row]:
        over = asked[allocations.used[each, asked] + amounts[asked] > tree.limit[each, asked]]
        if len(over):
            return _refusal(allocations, axis, OVER_CAPABILITY, each, int(over[0]), amounts)
    if not tree.guaranteed:
        return None
    for each, delta in allocations.growth(row, amounts):
        limit = tree.limit[each] if each else np.minimum(tree.limit[0], allocations.total)
        committed = allocations.committed[each]
        binds = committed > allocations.used[each]  # else room alone decides
        over = asked[(binds & (delta > 0) & (committed + delta > limit))[asked]]
        if len(over):
            return _refusal(allocations, axis, GUARANTEED, each, int(over[0]), amounts)
    return None


def over_quota(allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts) -> QueueRefusal | None:
    """Whether gangs that may not be displaced would have more than what the queue (or one above) deserves."""
    quota = allocations.tree.quota
    asked = np.flatnonzero(amounts > 0)
    for each in allocations.tree.chains[row][:-1]:
        over = asked[allocations.fixed[each, asked] + amounts[asked] > quota[each, asked]]
        if len(over):
            return _refusal(allocations, axis, OVER_DESERVED, each, int(over[0]), amounts)
    return None


def _refusal(
    allocations: Allocations, axis: Mapping[str, int], reason: str, row: int, column: int, amounts: Amounts
) -> QueueRefusal:
    tree = allocations.tree
    queue = tree.names[row]
    resource = next((name for name, at in axis.items() if at == column), "")
    used = {
        OVER_CAPABILITY: allocations.used[row, column],
        GUARANTEED: allocations.committed[row, column],
        OVER_DESERVED: allocations.fixed[row, column],
    }[reason]
    bound = tree.quota[row, column] if reason == OVER_DESERVED else tree.limit[row, column]
    if reason == GUARANTEED and row == 0:
        bound = min(bound, float(allocations.total[column]))
    limit = int(bound) if isfinite(bound) else -1
    requested, used = int(amounts[column]), int(used)
    message = reasons.queues.refusal(reason, queue, resource, limit=limit, used=used, asked=requested)
    return QueueRefusal(reason, queue, resource, requested, used, limit, message)
