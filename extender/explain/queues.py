"""Where every queue stands: what it has, what it is due, what waits in it and why."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf, waits
from extender.planner.framework import decisions
from extender.planner.framework.ordering import parents_of
from extender.planner.framework.session import Session
from muster.api.names import ROOT_QUEUE
from muster.resources.vector import PODS, Vector, vector

SHOWN = 3
"""Gangs that are told of one queue."""


class WaitingGang(Struct, frozen=True, rename="camel"):
    """A gang that waits in a queue, and why."""

    gang: str
    reason: str
    message: str


class QueueReport(Struct, frozen=True, rename="camel"):
    """One queue; amounts are in milli-CPU and base units, and count the queues below it."""

    queue: str
    parent: str
    depth: int
    allocated: Vector
    fair_share: Vector
    """What it is due now, by what all queues ask for."""
    deserved: Vector
    capability: Vector
    guarantee: Vector
    weight: int
    priority: int
    waiting: int
    """Gangs that wait in it."""
    first: tuple[WaitingGang, ...]
    """The first of them, in the order in which they are tried."""

    def share(self, resource: str) -> float:
        """What it has of what it is due."""
        fair = self.fair_share.get(resource, 0)
        return self.allocated.get(resource, 0) / fair if fair else 0.0

    @property
    def dominant(self) -> str:
        """The resource of which it has most of what it is due; of pods only if there is nothing else."""
        named = [name for name in {**self.fair_share, **self.allocated} if name != PODS]
        return max(sorted(named), key=self.share, default=PODS)


def queue_reports(what_if: WhatIf) -> list[QueueReport]:
    """All queues, each after the one above it. Raises UnknownNameError where no plugin knows shares."""
    session = what_if.cycle()
    parents = parents_of(session.snapshot.queues)
    told = {each.gang.key: each for each in session.decided(decisions.Unschedulable)}
    waiting = session.ordered_gangs([gang for gang in session.snapshot.gangs if waits(session, gang)])
    placed = {each.gang.key for each in session.decided(decisions.Place)}
    first: dict[str, list[WaitingGang]] = {}
    counts: Counter[str] = Counter()
    for gang in waiting:
        if gang.key in placed:
            continue
        counts[gang.queue] += 1
        why = told.get(gang.key)
        if why is not None and len(first.setdefault(gang.queue, [])) < SHOWN:
            first[gang.queue].append(WaitingGang(gang.key, why.reason, why.message))
    session = what_if.session()  # as things are, without what the cycle would place
    return [
        _report(session, name, depth, parents[name], counts[name], tuple(first.get(name, ())))
        for name, depth in _in_order(parents)
    ]


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


def _report(
    session: Session, name: str, depth: int, parent: str, waiting: int, first: tuple[WaitingGang, ...]
) -> QueueReport:
    queue = session.snapshot.queues.get(name)
    allocated = session.hooks.get_queue_allocated_resources.call(name)
    if allocated is None:
        raise UnknownNameError("no plugin of the scheduler configuration knows shares of queues; add `proportion`")
    return QueueReport(
        queue=name,
        parent=parent,
        depth=depth,
        allocated=_vector(session, allocated),
        fair_share=_vector(session, session.hooks.get_queue_fair_share.call(name)),
        deserved=_vector(session, session.hooks.get_queue_deserved_resources.call(name)),
        capability=_read(queue.spec.capability) if queue else {},
        guarantee=_read(queue.spec.guarantee.resource) if queue else {},
        weight=queue.spec.weight if queue else 1,
        priority=queue.spec.priority if queue else 0,
        waiting=waiting,
        first=first,
    )


def _vector(session: Session, amounts: NDArray[np.number[Any]] | None) -> Vector:
    """The amounts that are not 0, by resource; none where no plugin says any."""
    if amounts is None:
        return {}
    return {name: int(amounts[row]) for name, row in session.snapshot.axis.items() if amounts[row]}


def _read(quantities: Mapping[str, str | int | float]) -> Vector:
    try:
        return vector(quantities)
    except ValueError:
        return {}
