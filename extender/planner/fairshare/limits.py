"""Limits of queues beyond their capability, in one session: per user, by time window, and budgets (docs/queues.md).

They are asked wherever capability is, for the gang's own queue and those above it, and follow trials as it does. Fair
shares go on by the capability: nothing is evicted because a window begins, a limit is lowered or a budget is used up.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from extender.planner import reasons
from extender.planner.fairshare.tree import QueueTree, Shares
from extender.planner.framework.answers import QueueRefusal
from extender.planner.framework.ordering import upwards
from extender.planner.framework.snapshot import Snapshot
from extender.planner.reasons.queues import OVER_BUDGET, OVER_USER_LIMIT, OVER_WINDOW
from extender.planner.state.amounts import Amounts, sum_along
from muster.api.muster.usage import AHEAD_S, Period, Usage, period_of
from muster.resources.vector import Vector, unit
from muster.volcano.queuelimits import Budget, QueueLimits, limits_of


@dataclass(frozen=True, slots=True)
class _Bound:
    """The most of each resource along the axis, `inf` where there is no limit, and until when."""

    most: Shares
    until: float


class Limits:
    """The limits of a session; without any they cost nothing."""

    def __init__(self, tree: QueueTree, snapshot: Snapshot, now: float, usage: Usage | None = None) -> None:
        self._tree, self._axis, self._resources = tree, snapshot.axis, snapshot.free.shape[0]
        said = {name: limits_of(queue.metadata.annotations) for name, queue in snapshot.queues.items()}
        self._said = {tree.row(name): limits for name, limits in said.items() if limits}
        self._per_user = {row: self._most(limits.per_user) for row, limits in self._said.items() if limits.per_user}
        self._windows = {row: found for row, limits in self._said.items() if (found := self._open(limits, now))}
        self._users: dict[tuple[int, str], Amounts] = {}
        for (queue, user), use in snapshot.user_use.items() if self._per_user else ():
            for vector in (use.staying, use.leaving):
                self.place(tree.row(queue), user, sum_along(self._axis, self._resources, vector), 1)
        self._budgets = self._used_up(snapshot, now, usage)

    def _most(self, limits: Vector) -> Shares:
        most = np.full(self._resources, np.inf)
        for resource, amount in limits.items():
            if resource in self._axis:
                most[self._axis[resource]] = amount
        return most

    def _open(self, limits: QueueLimits, now: float) -> list[_Bound]:
        ends = ((window, window.until(now)) for window in limits.windows)
        return [_Bound(self._most(window.limits), end) for window, end in ends if end is not None]

    def place(self, row: int, user: str, amounts: Amounts, sign: int) -> None:
        """Add these amounts to what a user has in a queue and those above it (with sign -1: take them off)."""
        for each in self._tree.chains[row] if self._per_user else ():
            if each in self._per_user:
                known = self._users.get((each, user))
                self._users[each, user] = sign * amounts if known is None else known + sign * amounts

    def refusal(self, row: int, user: str, amounts: Amounts, used: Amounts) -> QueueRefusal | None:
        """Return the refusal of the first queue that lets this user not have these amounts more.

        `used` is what queues use, of shape (queues, resources).
        """
        if not self._said:
            return None
        asked = np.flatnonzero(amounts > 0)
        for each in self._tree.chains[row]:
            if each not in self._said:
                continue
            found = (
                self._over_user_limit(each, user, amounts, asked)
                or self._over_window(each, amounts, asked, used[each])
                or self._over_budget(each, asked, amounts)
            )
            if found is not None:
                return found
        return None

    def _over_user_limit(self, row: int, user: str, amounts: Amounts, asked: Amounts) -> QueueRefusal | None:
        if row not in self._per_user:
            return None
        most, used = self._per_user[row], self._users.get((row, user), np.zeros_like(amounts))
        over = asked[used[asked] + amounts[asked] > most[asked]]
        if not len(over):
            return None
        return self._refusal(OVER_USER_LIMIT, row, int(over[0]), amounts, used, most, user=user)

    def _over_window(self, row: int, amounts: Amounts, asked: Amounts, used: Amounts) -> QueueRefusal | None:
        for bound in self._windows.get(row, ()):
            over = asked[used[asked] + amounts[asked] > bound.most[asked]]
            if len(over):
                return self._refusal(OVER_WINDOW, row, int(over[0]), amounts, used, bound.most, until=bound.until)
        return None

    def _over_budget(self, row: int, asked: Amounts, amounts: Amounts) -> QueueRefusal | None:
        for budget, until in self._budgets.get(row, ()):
            column = self._axis.get(budget.resource, -1)
            if column in asked:
                queue, most = self._tree.names[row], budget.most
                message = reasons.queues.over_budget(queue, budget, until=until)
                return QueueRefusal(OVER_BUDGET, queue, budget.resource, int(amounts[column]), most, most, message)
        return None

    def _refusal(
        self, reason: str, row: int, column: int, amounts: Amounts, used: Amounts, most: Shares, *,
        user: str = "", until: float = 0.0,
    ) -> QueueRefusal:  # fmt: skip
        queue = self._tree.names[row]
        resource = next(name for name, at in self._axis.items() if at == column)
        numbers = {"limit": int(most[column]), "used": int(used[column]), "asked": int(amounts[column])}
        if reason == OVER_WINDOW:
            message = reasons.queues.over_window(queue, resource, until=until, **numbers)
        else:
            message = reasons.queues.over_user_limit(queue, resource, user=user, **numbers)
        return QueueRefusal(reason, queue, resource, numbers["asked"], numbers["used"], numbers["limit"], message)

    def _used_up(self, snapshot: Snapshot, now: float, usage: Usage | None) -> dict[int, list[tuple[Budget, float]]]:
        """Return the rows of enforced budgets that are used up, with the end of their periods, the last one first."""
        enforced = any(limits.enforced and limits.budgets for limits in self._said.values())
        standings = budgets_of(snapshot, now, usage) if enforced else {}
        found: dict[int, list[tuple[Budget, float]]] = {}
        for name, standing in standings.items():
            full = [budget for budget, ratio in standing.ratios.items() if ratio >= 1 and standing.enforced]
            ends = [(budget, period_of(budget.period, now).end) for budget in full]
            if ends:
                found[self._tree.row(name)] = sorted(ends, key=lambda each: each[1], reverse=True)
        return found


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """How much of its budgets a queue, with those below it, has used in the periods that go on."""

    ratios: Mapping[Budget, float]
    """Used by budget, of the budgets of which it is known."""
    known: bool
    """False if there is one without usage that can be believed: that is not enforced then."""
    enforced: bool


def budgets_of(snapshot: Snapshot, now: float, usage: Usage | None) -> dict[str, BudgetStanding]:
    """Return where the queues with a budget stand: what the history says, and what has been held since then."""
    said = {name: limits_of(queue.metadata.annotations) for name, queue in snapshot.queues.items()}
    budgets = {name: limits for name, limits in said.items() if limits.budgets}
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
    return {
        name: BudgetStanding(
            {
                budget: used[budget.period].get((name, budget.resource), 0.0) / budget.most if budget.most else np.inf
                for budget in limits.budgets
                if budget.period in used
            },
            all(budget.period in used for budget in limits.budgets),
            limits.enforced,
        )
        for name, limits in budgets.items()
    }


def _used_in(
    snapshot: Snapshot, period: Period, resources: AbstractSet[str], now: float, usage: Usage
) -> dict[tuple[str, str], float]:
    """Return queue and resource → what was held in a period until now, in that queue and those below it."""
    span = period_of(period, now)
    seconds = now - max(span.begin, min(usage.until, now))
    held: dict[str, dict[str, float]] = {}
    for name, one in usage.queues.items():
        told = one.within(period, span.name)
        held[name] = {resource: told[resource] * unit(resource) for resource in resources & told.keys()}
    for name, use in snapshot.queue_use.items() if seconds else ():
        of_queue = held.setdefault(name, {})
        for amounts in (use.staying, use.leaving):
            for resource in resources & amounts.keys():
                of_queue[resource] = of_queue.get(resource, 0.0) + amounts[resource] * seconds
    used: dict[tuple[str, str], float] = {}
    for queue, of_queue in held.items():
        for name in upwards(snapshot.queues, queue) if of_queue else ():
            for resource, amount in of_queue.items():
                used[name, resource] = used.get((name, resource), 0.0) + amount
    return used
