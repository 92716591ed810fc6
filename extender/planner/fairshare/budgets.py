"""Usage budgets of queues: the usage in the current period, and the enforced budgets that are used up."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from extender.planner.framework.snapshot import Snapshot
from muster.api.muster.usage import AHEAD_S, Period, PublishedUsage, period_of
from muster.resources.vector import unit
from muster.volcano.queuelimits import UsageBudget


@dataclass(frozen=True, slots=True)
class BudgetUsage:
    """The usage of a queue and its descendants in the current periods of the queue's budgets."""

    ratios: Mapping[UsageBudget, float]
    """Maps a budget to the fraction of it that is used; budgets whose usage is unknown are left out."""
    known: bool
    """False if the usage is unknown or implausible. Budgets are then enforced only if `left_out` is true."""
    enforced: bool
    left_out: bool = False
    """True if the published data had no space for this queue's usage, so that its budgets cannot be checked."""


def spent_budgets(
    snapshot: Snapshot, now: float, usage: PublishedUsage | None
) -> dict[str, list[tuple[UsageBudget, float]]]:
    """Return each queue's used-up enforced budgets with the ends of their periods, the latest end first.

    For queues whose usage was left out of the published data, the end of the period is infinite.
    """
    found: dict[str, list[tuple[UsageBudget, float]]] = {}
    for name, state in budgets_of(snapshot, now, usage).items():
        full = [budget for budget, ratio in state.ratios.items() if ratio >= 1 and state.enforced]
        ends = [(budget, period_of(budget.period, now).end) for budget in full]
        if state.left_out and state.enforced:
            ends += [(budget, np.inf) for budget in snapshot.limited.limits.bounds[name].annotated.budgets]
        found[name] = sorted(ends, key=lambda each: each[1], reverse=True)
    return found


def budgets_of(snapshot: Snapshot, now: float, usage: PublishedUsage | None) -> dict[str, BudgetUsage]:
    """Return the usage of all queues with a budget: recorded usage plus the usage since the last record."""
    annotated = ((name, bounds.annotated) for name, bounds in snapshot.limited.limits.bounds.items())
    budgets = {name: limits for name, limits in annotated if limits.budgets}
    if not budgets:
        return {}
    believed = usage if usage is not None and usage.until <= now + AHEAD_S else None
    wanted: dict[Period, set[str]] = {}
    for limits in budgets.values():
        for budget in limits.budgets:
            wanted.setdefault(budget.period, set()).add(budget.resource)
    used = {
        period: _used_in(snapshot, period, resources, now, believed)
        for period, resources in wanted.items()
        if believed is not None and period in believed.periods
    }
    left_out = _left_out(snapshot, believed)
    return {
        name: BudgetUsage({}, known=False, enforced=limits.enforced, left_out=True)
        if name in left_out
        else BudgetUsage(
            {
                budget: used[budget.period][name, budget.resource] / budget.most if budget.most else np.inf
                for budget in limits.budgets
                if budget.period in used
            },
            all(budget.period in used for budget in limits.budgets),
            limits.enforced,
        )
        for name, limits in budgets.items()
    }


def _left_out(snapshot: Snapshot, usage: PublishedUsage | None) -> set[str]:
    """Return the queues whose usage is missing from the published data, and the ancestors of these queues."""
    limits = snapshot.limited.limits
    names = usage.left_out if usage is not None else ()
    if "" in names:
        return set(limits.bounds)
    return {bounds.queue for name in names for bounds in limits.above(name)}


def held_now(snapshot: Snapshot, resources: AbstractSet[str]) -> Counter[tuple[str, str]]:
    """Return the quantity that each queue holds of each given resource, including pods that are being deleted."""
    held: Counter[tuple[str, str]] = Counter()
    for queue, use in snapshot.queue_use.items():
        for amounts in (use.staying, use.leaving):
            for resource in resources & amounts.keys():
                held[queue, resource] += amounts[resource]
    return held


def _used_in(
    snapshot: Snapshot, period: Period, resources: AbstractSet[str], now: float, usage: PublishedUsage
) -> defaultdict[tuple[str, str], float]:
    """Return the usage from the start of a period until now, keyed by queue and resource; ancestors are included."""
    span = period_of(period, now)
    seconds = now - max(span.begin, min(usage.until, now))
    held: defaultdict[tuple[str, str], float] = defaultdict(float)
    for queue, one in usage.queues.items():
        recorded = one.within(period, span.name)
        for resource in resources & recorded.keys():
            held[queue, resource] = recorded[resource] * unit(resource)
    for key, amount in held_now(snapshot, resources).items():
        held[key] += amount * seconds
    used: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (queue, resource), spent in held.items():
        for bounds in snapshot.limited.limits.above(queue):
            used[bounds.queue, resource] += spent
    return used
