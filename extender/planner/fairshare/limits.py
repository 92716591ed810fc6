"""Limits of queues beyond their capability, in one session: per user, by time window, and budgets (docs/queues.md).

They are asked wherever capability is, for the gang's own queue and those above it, and follow trials as it does. Fair
shares go on by the capability: nothing is evicted because a window begins, a limit is lowered or a budget is used up.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.planner import reasons
from extender.planner.fairshare.tree import QueueTree, Shares
from extender.planner.framework.answers import QueueRefusal
from extender.planner.framework.ordering import upwards
from extender.planner.framework.snapshot import Snapshot
from extender.planner.reasons.queues import OVER_BUDGET, OVER_USER_LIMIT, OVER_WINDOW
from extender.planner.state.amounts import Amounts, sum_along
from muster.api.muster.usage import AHEAD_S, Usage, month_of
from muster.resources.vector import Vector, unit
from muster.volcano.queuelimits import QueueLimits, limits_of


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
        for resource, until in self._budgets.get(row, ()):
            column = self._axis.get(resource, -1)
            if column in asked:
                queue, budget = self._tree.names[row], self._said[row].budget[resource]
                message = reasons.queues.over_budget(queue, resource, budget=budget, until=until)
                return QueueRefusal(OVER_BUDGET, queue, resource, int(amounts[column]), budget, budget, message)
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

    def _used_up(self, snapshot: Snapshot, now: float, usage: Usage | None) -> dict[int, list[tuple[str, float]]]:
        """Return the rows of enforced budgets that are used up, with the resource and the end of the month."""
        enforced = any(limits.enforced and limits.budget for limits in self._said.values())
        standings = budgets_of(snapshot, now, usage) if enforced else {}
        until = month_of(now)[2]
        found: dict[int, list[tuple[str, float]]] = {}
        for name, standing in standings.items():
            row = self._tree.row(name)
            if self._said[row].enforced and standing.known:
                full = [(resource, until) for resource, ratio in standing.ratios.items() if ratio >= 1]
                if full:
                    found[row] = full
        return found


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """How much of its budget a queue, with those below it, has used this month."""

    ratios: Mapping[str, float]
    """Resource → used by budget."""
    known: bool
    """False without usage that can be believed: nothing is enforced then."""
    enforced: bool


def budgets_of(snapshot: Snapshot, now: float, usage: Usage | None) -> dict[str, BudgetStanding]:
    """Return where the queues with a budget stand: what the history says, and what has been held since then."""
    said = {name: limits_of(queue.metadata.annotations) for name, queue in snapshot.queues.items()}
    budgets = {name: limits for name, limits in said.items() if limits.budget}
    if not budgets:
        return {}
    month, begin, _ = month_of(now)
    known = usage is not None and usage.until <= now + AHEAD_S
    since = max(begin, min(usage.until, now)) if usage is not None and known else now
    used: dict[str, dict[str, float]] = {}
    for name, use in snapshot.queue_use.items():
        for resource, amount in use.staying.items():
            _add(used, snapshot, name, resource, amount * (now - since))
    for name, one in usage.queues.items() if usage is not None and known else ():
        for resource, seconds in one.seconds.items() if one.month == month else ():
            _add(used, snapshot, name, resource, seconds * unit(resource))
    return {
        name: BudgetStanding(
            {
                resource: used.get(name, {}).get(resource, 0.0) / budget if budget else np.inf
                for resource, budget in limits.budget.items()
            },
            known,
            limits.enforced,
        )
        for name, limits in budgets.items()
    }


def _add(used: dict[str, dict[str, float]], snapshot: Snapshot, queue: str, resource: str, seconds: float) -> None:
    for name in upwards(snapshot.queues, queue):
        amounts = used.setdefault(name, {})
        amounts[resource] = amounts.get(resource, 0.0) + seconds
