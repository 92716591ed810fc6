"""Reports of queues: allocated resources, fair shares, and waiting gangs with their reasons.

A user who is not allowed to list the whole cluster gets the statuses of Queues, or the queues of the gangs in one
namespace.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from extender.explain.members import gang_text
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner.fairshare.budgets import BudgetUsage, budgets_of
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.access import parents_of
from extender.planner.state.spareentries import spares_by_queue
from muster.api.kubernetes.meta import format_time
from muster.api.muster.queuepositions import place_text
from muster.api.muster.usage import Period
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.scheduling import PodGroup, Queue, QueueStatus
from muster.resources.vector import GPU, PODS, Vector, add, amount_text, vector
from muster.volcano.queuelimits import limits_of

SHOWN = 3
"""Maximum number of waiting gangs that a report names per queue."""


class WaitingGang(Struct, frozen=True, rename="camel"):
    """A gang that waits in a queue, with the reason why it waits."""

    gang: str
    reason: str
    message: str
    workload: str = ""
    """Kind and name of the gang's owner, such as `Job ns/name`."""


class BudgetUse(Struct, frozen=True, rename="camel"):
    """The used part of a queue's budget in the current period."""

    resource: str
    period: Period
    used: float | None
    """The used fraction of the budget, 1 for the whole budget; None if the usage is unknown."""


class QueueReport(Struct, frozen=True, rename="camel"):
    """The report of one queue and the queues below it; cpu in milli-CPU, every other resource in base units."""

    queue: str
    parent: str
    depth: int
    allocated: Vector
    fair_share: Vector
    """The queue's current fair share, which depends on the demands of all queues."""
    deserved: Vector
    capability: Vector
    guarantee: Vector
    weight: int
    priority: int
    waiting: int
    """Number of gangs that wait in the queue."""
    first: tuple[WaitingGang, ...]
    """The first waiting gangs in scheduling order; empty if the user is not allowed to list gangs."""
    message: str = ""
    """The reason, without names, why the first gang waits; set only if the user is not allowed to list gangs."""
    spares: Vector = {}
    """The part of the allocated resources that spare slots hold."""
    limits: tuple[str, ...] = ()
    """The limits of the queue as text, except its capability."""
    budgets: tuple[BudgetUse, ...] = ()
    """The used parts of the queue's budgets."""

    def share(self, resource: str) -> float:
        """Return the ratio of a resource's allocated amount to the queue's fair share of it."""
        fair = self.fair_share.get(resource, 0)
        return self.allocated.get(resource, 0) / fair if fair else 0.0


def queue_reports(what_if: WhatIf) -> list[QueueReport]:
    """Return all queues' reports, parents first. Raises UnknownNameError if no plugin computes shares."""
    session, waits = what_if.decided()
    parents = parents_of(session.snapshot.queues)
    refused = {each.gang.key: each for each in session.decided(decisions.Unschedulable)}
    placed = {each.gang.key for each in session.decided(decisions.Place)}
    first: dict[str, list[WaitingGang]] = {}
    counts: Counter[str] = Counter()
    for gang in waits:
        if gang.key in placed:
            continue
        counts[gang.queue] += 1
        why = refused.get(gang.key)
        if why is not None and len(first.setdefault(gang.queue, [])) < SHOWN:
            first[gang.queue].append(WaitingGang(gang.key, why.reason, why.message, gang_text(gang)))
    session = what_if.session()  # of the present cluster, without the decisions of a cycle
    spares = spares_by_queue(session.snapshot.gangs, parents)
    budgets = budgets_of(session.snapshot, session.now, session.inputs.usage)
    return [
        replace(
            _queue_report(session, name, depth, parents[name], counts[name], tuple(first.get(name, ()))),
            spares=spares.get(name, {}),
            budgets=_budgets(session.snapshot.queues[name], budgets[name]) if name in budgets else (),
        )
        for name, depth in _in_order(parents)
    ]


def _budgets(queue: Queue, state: BudgetUsage) -> tuple[BudgetUse, ...]:
    budgets = limits_of(queue.metadata.annotations).budgets
    return tuple(BudgetUse(each.resource, each.period, state.ratios.get(each)) for each in budgets)


def queue_reports_of(queues: Iterable[Queue]) -> list[QueueReport]:
    """Return reports of queues from the queues' statuses, parents first; an amount missing in a status is 0."""
    known = {queue.metadata.name: queue for queue in queues}
    parents = parents_of(known)
    return [
        QueueReport(
            queue=name,
            parent=parents[name],
            depth=depth,
            allocated={name: amount for name, amount in _held(queue.status).items() if amount},
            spares=_vector_of(queue.status.spares),
            fair_share=_vector_of(queue.status.fair_share),
            deserved=_vector_of(queue.status.deserved),
            capability=_vector_of(queue.spec.capability),
            guarantee=_vector_of(queue.spec.guarantee.resource),
            weight=queue.spec.weight,
            priority=queue.spec.priority,
            waiting=queue.status.waiting,
            first=(),
            message=queue.status.message,
        )
        for name, depth in _in_order(parents)
        if (queue := known.get(name))
    ]


def _held(status: QueueStatus) -> Vector:
    """Return the resources of a queue's pods and of its spare slots together, because both count as used."""
    return add(_vector_of(status.allocated), _vector_of(status.spares))


def changed_shares(before: Sequence[QueueReport], after: Sequence[QueueReport]) -> Iterator[str]:
    """Yield a line for each resource of a queue whose fair share changes."""
    known = {report.queue: report.fair_share for report in before}
    for report in after:
        was = known.get(report.queue, {})
        for name in sorted({*was, *report.fair_share} - {PODS}):
            old, new = was.get(name, 0), report.fair_share.get(name, 0)
            if old != new:
                words = f"{amount_text(name, old)} -> {amount_text(name, new)} {name}"
                yield f"queue {report.queue}: fair share {words}"


class OwnQueue(Struct, frozen=True, rename="camel"):
    """The properties of a queue that can be derived from the gangs of one namespace."""

    queue: str
    running: int
    waiting: int
    place: str
    """The queue position of the namespace's first waiting gang, as text; empty if unknown."""
    expected_start: str
    """The earliest expected start of one of the namespace's gangs (RFC 3339)."""


def own_queues(groups: Iterable[PodGroup]) -> list[OwnQueue]:
    """Return what the given gangs show about their queues, sorted by the queues' names."""
    by_queue: dict[str, list[PodGroup]] = {}
    for group in groups:
        if group.status.phase != "Completed":
            by_queue.setdefault(group.spec.queue or "default", []).append(group)
    return [_own(name, gangs) for name, gangs in sorted(by_queue.items())]


def _own(name: str, gangs: Sequence[PodGroup]) -> OwnQueue:
    running = sum(group.status.phase in {"Running", "Unknown"} for group in gangs)
    places = [group.status.place for group in gangs if group.status.place]
    starts = [group.status.expected_start for group in gangs if group.status.expected_start]
    place = place_text(min(places)) if places else ""
    return OwnQueue(name, running, len(gangs) - running, place, min(starts, default=""))


def _in_order(parents: Mapping[str, str]) -> list[tuple[str, int]]:
    below: dict[str, list[str]] = {}
    for name in sorted(parents, reverse=True):
        below.setdefault(parents[name], []).append(name)
    result, left = [], [(ROOT_QUEUE, 0)]
    while left:
        name, depth = left.pop()
        result.append((name, depth))
        left += [(child, depth + 1) for child in below.get(name, ())]
    return result


def _queue_report(
    session: Session, name: str, depth: int, parent: str, waiting: int, first: tuple[WaitingGang, ...]
) -> QueueReport:
    queue = session.snapshot.queues.get(name) or Queue()
    allocated = session.hooks.get_queue_allocated_resources.call(name)
    if allocated is None:
        raise UnknownNameError("no plugin of the scheduler configuration computes shares of queues; add `proportion`")
    vector_of = session.snapshot.vector
    return QueueReport(
        queue=name,
        parent=parent,
        depth=depth,
        allocated=vector_of(allocated),
        fair_share=vector_of(session.hooks.get_queue_fair_share.call(name)),
        deserved=vector_of(session.hooks.get_queue_deserved_resources.call(name)),
        capability=_vector_of(queue.spec.capability),
        guarantee=_vector_of(queue.spec.guarantee.resource),
        weight=queue.spec.weight,
        priority=queue.spec.priority,
        waiting=waiting,
        first=first,
        limits=limit_texts(queue, session.now),
    )


def limit_texts(queue: Queue, now: float) -> tuple[str, ...]:
    """Return the limits of a queue as text, except its capability."""
    limits = limits_of(queue.metadata.annotations)
    per_user = [f"one user may use {_listed(limits.per_user)}"] if limits.per_user else []
    models = ", ".join(f"{amount_text(GPU, most)} of model {model}" for model, most in sorted(limits.by_model.items()))
    windows = []
    for window in limits.windows:
        until = window.until(now)
        state = f"open until {format_time(until)}" if until is not None else "not open now"
        windows.append(f"{window.text}: the queue may use {_listed(window.limits)} ({state})")
    return (*per_user, *([f"the queue may use {models}"] if models else []), *windows)


def _listed(amounts: Vector) -> str:
    return ", ".join(f"{amount_text(name, amount)} {name}" for name, amount in sorted(amounts.items()))


def _vector_of(quantities: Mapping[str, str | int | float]) -> Vector:
    try:
        return vector(quantities)
    except ValueError:
        return {}
