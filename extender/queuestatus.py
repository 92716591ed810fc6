"""Writes what the planner knows of queues into their status: shares every few seconds, usage once a minute.

The controller writes the other fields (state, counts, allocated). Each writes only its own, by merge patches.
"""

from collections.abc import Callable, Mapping
from functools import partial

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.answers import QueueStanding
from extender.planner.framework.session import Session
from extender.writes import Lane, Writes
from muster.api.kubernetes.meta import format_time, readable_time
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.resources.vector import Vector, to_quantities

SHARES_EVERY_S = 5.0
USAGE_EVERY_S = 60.0
MAX_AT_ONCE = 100
"""Queues that are written in one cycle; the others come in the next ones."""


class QueueStatusWriter:
    """Remembers when it looked last; `wall_s` is seconds since the epoch."""

    def __init__(self, client: Client, writes: Writes, *, wall_s: Callable[[], float]) -> None:
        self._client = client
        self._writes = writes
        self._wall_s = wall_s
        self._next = 0.0

    def write(self, session: Session) -> None:
        """Has what differs written, if it is time again."""
        now = self._wall_s()
        if now < self._next:
            return
        standings = session.hooks.queue_standings.call()
        why = _first_refusals(session)
        due = []
        for name, standing in standings.items():
            queue = session.snapshot.queues.get(name)
            patch = difference(queue, standing, why.get(name, ""), now) if queue else {}
            if queue and patch:
                due.append((queue, patch))
        for queue, patch in due[:MAX_AT_ONCE]:
            self._writes.start(Lane.WORDS, "queue", queue.metadata.name, partial(self._patch, queue, patch))
        self._next = now + (SHARES_EVERY_S if len(due) <= MAX_AT_ONCE else 0.0)

    def _patch(self, queue: Queue, patch: dict[str, object]) -> None:
        self._client.merge_patch(QUEUES, queue.metadata.name, {"status": patch}, subresource="status")


def difference(queue: Queue, standing: QueueStanding, why: str, now: float) -> dict[str, object]:
    """The merge patch of the fields that are the planner's; empty if they are as they should be."""
    status = queue.status
    patch: dict[str, object] = {}
    for field, known, wanted in (
        ("fairShare", status.fair_share, standing.fair_share),
        ("deserved", status.deserved, standing.deserved),
    ):
        if dict(known) != to_quantities(wanted):
            patch[field] = _replaced(known, wanted)
    if status.message != why:
        patch["message"] = why
    if standing.usage is not None and now - (readable_time(status.usage_time) or 0.0) >= USAGE_EVERY_S:
        patch |= {"usage": _replaced(status.usage, standing.usage), "usageTime": format_time(now)}
    return patch


def _replaced(known: Mapping[str, object], wanted: Vector) -> dict[str, str | None]:
    """As a merge patch: what is not wanted any more is taken out."""
    return dict.fromkeys(known, None) | dict(to_quantities(wanted))


def _first_refusals(session: Session) -> dict[str, str]:
    """Why the first gang of each queue waits."""
    waits = {each.gang.key: each for each in session.decided(decisions.Unschedulable)}
    result: dict[str, str] = {}
    for each in waits.values():
        if not each.gang.started:
            result.setdefault(each.gang.queue, reasons.queues.first_waits(gang=each.gang.key, message=each.message))
    return result
