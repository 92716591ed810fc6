"""The page of queues: the tree of queues with their usage, shares and limits, and the waiting gangs. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlencode

from msgspec import Struct

from extender.explain.queues import OwnQueue, QueueReport
from gangs.row import GangRow
from gangs.words import plain
from history.model import Scope
from history.usage import hours, is_bytewise
from muster.api.muster.states import WAITING
from muster.api.muster.usage import Period
from muster.resources.vector import CPU, PODS, Vector, add, amount_text, unit
from muster.volcano.queuelimits import NONE, QueueLimits
from web.views.gangs import address, shared_names
from web.views.parts import Bar, ListPart, Moment, bar, moment, part_of

PAGE_QUEUES = 100
"""Number of queues on one page."""
WAITERS = 5
"""Maximum number of waiting gangs that the page names per queue; a link leads to the list of all waiting gangs."""
WARNED = 0.8
"""Used fraction of a budget at which the page highlights the budget and the planner warns users."""
NO_LIMITS: Mapping[str, QueueLimits] = MappingProxyType({})
_NOT_SHOWN = frozenset({PODS, "ephemeral-storage"})
_MEMORY = "memory"


class Waiter(Struct, frozen=True):
    """A gang that waits."""

    title: str
    address: str
    since: Moment | None
    expected: Moment | None
    reason: str


class BudgetLine(Struct, frozen=True):
    """The budget of a queue for one resource."""

    words: str
    full: bool
    """True if so much of the budget is used that the page highlights the budget."""


class QueueLine(Struct, frozen=True):
    """One queue."""

    name: str
    depth: int
    """Depth of the queue in the tree, 0 for the root."""
    parent: str
    weight: int
    priority: int
    bars: list[Bar]
    """The bars of the queue, one per resource; GPUs come first."""
    waiting: int
    """Number of waiting gangs, from the Queue's status or else counted from the gangs that the caller may see."""
    waiters: list[Waiter]
    more: int
    """Number of the caller's waiting gangs that `waiters` leaves out."""
    gangs: str
    """Address of the list of the queue's waiting gangs."""
    message: str
    spares: str
    limits: tuple[str, ...]
    """The limits of the queue as text, except its capability."""
    budgets: list[BudgetLine]


class OwnLine(Struct, frozen=True):
    """A queue as shown to a caller who cannot list Queues; the data comes from the caller's own gangs."""

    name: str
    running: int
    waiting: int
    place: str
    expected: Moment | None
    gangs: str


class QueuesView(Struct, frozen=True):
    """The page."""

    lines: list[QueueLine]
    own: list[OwnLine]
    """Queues of the caller's gangs, instead of `lines`, if the caller is not allowed to list Queues."""
    waits: int
    """Number of waiting gangs in scope."""
    part: ListPart | None = None
    """Displayed part of the queues; None if the caller is not allowed to list Queues."""
    silence: str = ""
    """Warning that the recorder is down, if there are budgets; empty while the recorder is running."""


def queues_view(
    reports: Sequence[QueueReport],
    rows: Sequence[GangRow],
    scope: Scope,
    now: float,
    page: int = 1,
    *,
    limits: Mapping[str, QueueLimits] = NO_LIMITS,
    used: Mapping[Period, Mapping[str, Vector]] | None = None,
    silence: str = "",
) -> QueuesView:
    """Return one page of the tree of queues; gangs outside the scope are not named.

    `used` has the usage of each queue, without its descendants, in the periods of budgets, in unit-seconds. It is None
    if there is no history.
    """
    spent = None if used is None else {period: spent_below(reports, each) for period, each in used.items()}
    waiters: dict[str, list[GangRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (-(row.priority or 0), row.created)):
        if row.state in WAITING and scope.has(row.namespace):
            waiters[row.queue].append(row)
    twice = shared_names(row for row in rows if scope.has(row.namespace))
    shown, part = part_of(reports, PAGE_QUEUES, page, lambda number: f"/queues?page={number}")
    lines = [
        _line(report, waiters[report.queue], _budgets(report.queue, limits, spent), scope, twice, now)
        for report in shown
    ]
    return QueuesView(lines, [], sum(map(len, waiters.values())), part, silence)


def own_queues_view(queues: Sequence[OwnQueue], now: float) -> QueuesView:
    """Return the page for a caller who cannot list Queues: the queues of the caller's gangs, with positions."""
    own = [
        OwnLine(each.queue, each.running, each.waiting, each.place, moment(each.expected_start, now), _all(each.queue))
        for each in queues
    ]
    return QueuesView([], own, sum(each.waiting for each in queues))


def _line(
    report: QueueReport,
    waiters: Sequence[GangRow],
    budgets: Iterable[BudgetLine],
    scope: Scope,
    twice: frozenset[tuple[str, str]],
    now: float,
) -> QueueLine:
    messages = {each.gang: each.message for each in report.first if scope.has(each.gang.partition("/")[0])}
    named = [
        Waiter(
            row.title,
            address(row, twice),
            moment(row.created, now),
            moment(row.expected_start, now),
            plain(messages.get(f"{row.namespace}/{row.gang}") or row.message or row.reason),
        )
        for row in waiters[:WAITERS]
    ]
    kept = [f"{amount_text(name, amount)} {name}" for name, amount in sorted(report.spares.items()) if name != PODS]
    return QueueLine(
        name=report.queue,
        depth=report.depth,
        parent=report.parent,
        weight=report.weight,
        priority=report.priority,
        bars=[_bar(report, name) for name in resources(report)],
        waiting=max(report.waiting, len(waiters)),
        waiters=named,
        more=len(waiters) - len(named),
        gangs=_all(report.queue),
        message=plain(report.message),
        spares=", ".join(kept),
        limits=report.limits,
        budgets=list(budgets),
    )


def spent_below(reports: Sequence[QueueReport], used: Mapping[str, Vector]) -> dict[str, Vector]:
    """Return the usage of queues including their descendants; in the input, parents come before their children."""
    total = {report.queue: dict(used.get(report.queue, {})) for report in reports}
    for report in reversed(reports):
        if report.parent in total:
            total[report.parent] = add(total[report.parent], total[report.queue])
    return total


def _budgets(
    queue: str, limits: Mapping[str, QueueLimits], spent: Mapping[Period, Mapping[str, Vector]] | None
) -> Iterator[BudgetLine]:
    own = limits.get(queue, NONE)
    for resource, period, most in own.budgets:
        name = f"{resource} {'GiB ' if is_bytewise(resource) else ''}hours"
        text = f"budget of {hours(resource, most / unit(resource)):,.6g} {name} a {period}"
        text += ", beyond which gangs wait" if own.enforced else ""
        if spent is None:
            yield BudgetLine(f"{text}; without a history the usage is unknown", full=False)
        else:
            share = spent.get(period, {}).get(queue, {}).get(resource, 0) / most if most else 1.0
            yield BudgetLine(f"{text}: {share:.0%} used", full=share >= WARNED)


def resources(report: QueueReport) -> list[str]:
    """Return the resources of a queue that a gang or a quota names: GPUs of all vendors, CPUs, memory, then others."""
    amounts = (report.allocated, report.fair_share, report.deserved, report.guarantee, report.capability)
    there = {name for each in amounts for name in each} - _NOT_SHOWN
    return sorted(there, key=lambda name: (name in {CPU, _MEMORY}, name == _MEMORY, name))


def _bar(report: QueueReport, name: str) -> Bar:
    marks = {
        "fair share": report.fair_share.get(name, 0),
        "deserved": report.deserved.get(name),
        "guarantee": report.guarantee.get(name),
        "capability": report.capability.get(name),
    }
    return bar(name, report.allocated.get(name, 0), marks, part=report.spares.get(name, 0))


def _all(queue: str) -> str:
    return f"/gangs?{urlencode({'queue': queue})}"
