"""Refusals of a queue: over a limit, into guarantees of other queues, over its quota with gangs not preemptable.

Each queue from the gang's own up to the root is asked, only for the resources that are requested.
"""

from collections.abc import Mapping
from math import isfinite

import numpy as np

from extender.planner import reasons
from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.tree import Shares
from extender.planner.framework.answers import QueueRefusal
from extender.planner.limits import Excess
from extender.planner.reasons.queues import GUARANTEED, OVER_DESERVED, OVER_USER_LIMIT, OVER_WINDOW
from extender.planner.state.amounts import Amounts


def refusal(excess: Excess, user: str) -> QueueRefusal:
    """Return the refusal of a gang of this user."""
    reason, queue, resource, asked, used, limit, until, budget = excess
    amounts = {"limit": limit, "used": used, "asked": asked}
    if budget is not None:
        message = reasons.queues.over_budget(queue, budget, until=until)
    elif reason == OVER_WINDOW:
        message = reasons.queues.over_window(queue, resource, until=until, **amounts)
    elif reason == OVER_USER_LIMIT:
        message = reasons.queues.over_user_limit(queue, resource, user=user, **amounts)
    else:
        message = reasons.queues.refusal(reason, queue, resource, **amounts)
    return QueueRefusal(reason, queue, resource, asked, used, limit, message)


def over_guarantee(allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts) -> Excess | None:
    """Return the guarantee of others that the queue in `row` would take."""
    tree = allocations.tree
    if not tree.guaranteed:
        return None
    asked = np.flatnonzero(amounts > 0)
    for each, delta in allocations.growth(row, amounts):
        limit = tree.limit[each] if each else np.minimum(tree.limit[0], allocations.total)
        committed = allocations.committed[each]
        binds = committed > allocations.used[each]  # else room alone decides
        over = asked[(binds & (delta > 0) & (committed + delta > limit))[asked]]
        if len(over):
            return _excess(GUARANTEED, tree.names[each], axis, int(over[0]), amounts, committed, limit)
    return None


def over_quota(allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts) -> Excess | None:
    """Return what the queue (or one above) deserves if gangs that are not preemptable would exceed it."""
    quota = allocations.tree.quota
    asked = np.flatnonzero(amounts > 0)
    for each in allocations.tree.chains[row][:-1]:
        over = asked[allocations.fixed[each, asked] + amounts[asked] > quota[each, asked]]
        if len(over):
            name, used = allocations.tree.names[each], allocations.fixed[each]
            return _excess(OVER_DESERVED, name, axis, int(over[0]), amounts, used, quota[each])
    return None


def _excess(
    reason: str, queue: str, axis: Mapping[str, int], column: int, amounts: Amounts, use: Amounts, bounds: Shares
) -> Excess:
    resource = next((name for name, at in axis.items() if at == column), "")
    limit = int(bounds[column]) if isfinite(bounds[column]) else -1
    return Excess(reason, queue, resource, int(amounts[column]), int(use[column]), limit)
