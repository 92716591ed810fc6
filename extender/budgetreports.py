"""Reports about the usage budgets of queues: metrics, and an Event at each threshold."""

from collections.abc import Callable
from math import inf
from typing import Final

from msgspec import structs
from prometheus_client import Gauge

from extender.planner import reasons
from extender.planner.fairshare.budgets import BudgetUsage, budgets_of
from extender.planner.framework.session import Session
from extender.queuemetrics import Series
from muster.api.muster.usage import PublishedUsage
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.events import EventWriter
from muster.volcano.queuelimits import UsageBudget

RATIO: Final = Gauge(
    "muster_queue_budget_ratio",
    "Fraction of a queue's budget that the queue and its descendants have used this month, week or day (period)",
    ["queue", "resource", "period"],
)
KNOWN: Final = Gauge(
    "muster_queue_budget_known", "1 while the usage for a queue's budget is known and up to date, else 0", ["queue"]
)
NEAR: Final = 0.8
"""Used fraction of a budget at which a warning Event is sent."""
EVERY_S: Final = 5.0
_UNKNOWN_AFTER_S: Final = 60.0
"""Time in seconds after the extender's start before a warning Event reports that the usage is unknown."""

LATE_S: Final = 600.0
"""Seconds within which the history recorder must publish that members have started or ended; usually it takes a few."""


class BudgetReporter:
    """Reporter of the usage of queues' budgets; it remembers its last reports, and reports each threshold once."""

    def __init__(self, recorder: EventWriter, *, wall_s: Callable[[], float]) -> None:
        self._recorder = recorder
        self._wall_s = wall_s
        self._began = wall_s()
        self._next = -inf
        self._reported: dict[str, str] = {}
        """Maps a queue to the reason of the last Event about the queue."""
        self._ratios, self._known = Series(RATIO), Series(KNOWN)
        self._held: frozenset[tuple[str, int]] = frozenset()
        """UID of each gang with members on nodes at the last report, and the number of its members on nodes."""
        self._held_before = False
        """True after the first report."""
        self._changed: float | None = None
        """Time of the first change that the published usage does not contain yet; None if it contains all changes."""

    def believed(self, usage: PublishedUsage | None) -> PublishedUsage | None:
        """Return the published usage of queues; None if the history recorder, which writes the usage, seems to be down.

        The recorder seems to be down if the published usage has lacked a known change for too long. The age of the last
        write does not show if the recorder is down, because the recorder writes only after changes.
        """
        if self._changed is not None:  # because the clock may have been set back
            self._changed = min(self._changed, self._wall_s())
        if usage is not None and self._changed is not None and usage.until > self._changed:
            self._changed = None
        late = self._changed is not None and self._wall_s() - self._changed > LATE_S
        return None if late else usage

    def _follow(self, session: Session) -> None:
        held = frozenset((gang.uid, gang.taken) for gang in session.snapshot.gangs if gang.taken)
        if held != self._held and self._held_before and self._changed is None:
            self._changed = session.now
        self._held, self._held_before = held, True

    def report(self, session: Session) -> None:
        """Report the used part of all budgets, unless the last report was only a short time ago."""
        now = self._wall_s()
        if 0 <= self._next - now <= EVERY_S:
            return
        self._next = now + EVERY_S
        states = budgets_of(session.snapshot, session.now, session.inputs.usage)
        if states:
            self._follow(session)
        self._ratios.set(
            {
                (name, budget.resource, budget.period): ratio
                for name, state in states.items()
                for budget, ratio in state.ratios.items()
            }
        )
        self._known.set({(name,): float(state.known) for name, state in states.items()})
        self._reported = {name: reason for name, reason in self._reported.items() if name in states}
        for name, state in states.items():
            reason, budget = step(state)
            if reason == reasons.queues.BUDGET_UNKNOWN and now - self._began < _UNKNOWN_AFTER_S:
                continue
            if reason and self._reported.get(name, "") != reason:
                self._send(session.snapshot.queues[name], reason, budget, state)
            self._reported[name] = reason

    def _send(self, queue: Queue, reason: str, budget: UsageBudget | None, state: BudgetUsage) -> None:
        name = queue.metadata.name
        ratio = 0.0 if budget is None else state.ratios[budget]
        message = reasons.queues.budget_step(
            reason, name, budget, ratio=ratio, enforced=state.enforced, left_out=state.left_out
        )
        about = structs.replace(queue, api_version=QUEUES.api_version, kind=QUEUES.kind)
        self._recorder.event(about, "Warning", reason, message)


def step(state: BudgetUsage) -> tuple[str, UsageBudget | None]:
    """Return the reason of the Event to send, and the most used budget; below 80 % usage, the reason is empty."""
    budget = max(state.ratios, key=lambda each: state.ratios[each], default=None)
    ratio = 0.0 if budget is None else state.ratios[budget]
    if ratio >= 1:
        return reasons.queues.BUDGET_USED, budget
    if not state.known:
        return reasons.queues.BUDGET_UNKNOWN, None
    return (reasons.queues.BUDGET_NEAR, budget) if ratio >= NEAR else ("", budget)
