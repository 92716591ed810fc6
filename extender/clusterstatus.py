"""Writers of statuses: shares and usage of Queues, and members and problems of HyperNodes.

The extender writes the statuses of Queues and HyperNodes, because the planner computes their content anyway. The
controller would have to watch all nodes to compute this content. The controller writes the other fields of the Queue
status (state, counts, allocated). Extender and controller write a Queue's status with merge patches, each with only the
writer's own fields.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any

import structlog
from msgspec import to_builtins
from prometheus_client import Gauge

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.answers import StatusAmounts
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.queuepositions import waiting_by_queue
from extender.planner.state.access import parents_of
from extender.planner.state.spareentries import spares_by_queue
from extender.planner.topology.hypernodes import HyperNodes
from extender.planner.topology.nesting import HyperNodeProblem
from extender.writes import Lane, WriteContext, Writer
from muster.api.kubernetes.meta import Condition, format_time, readable_time
from muster.api.muster.pools import DEFAULT_POOL, pool_of
from muster.api.names import ROOT_QUEUE
from muster.api.volcano import scheduling, topology
from muster.resources.vector import Vector, to_quantities

log = structlog.get_logger()
INVALID = Gauge(
    "muster_hypernodes_invalid", "HyperNodes with an unusable part; the condition of each HyperNode gives the reason"
)
SHARES_EVERY_S = 5.0
USAGE_EVERY_S = 60.0
EVERY_S = 2.0
AGAIN_S = 600.0
"""Seconds after which a HyperNode's status that another controller has changed is written again."""
MAX_AT_ONCE = 100
"""Maximum number of objects of one kind whose statuses are written in one cycle; later cycles write the others."""
MAX_LOGGED = 20
"""Maximum number of HyperNodes' problems that are logged at once."""
MAX_RESOURCES = 64
"""Maximum number of node resources that are written into the status of the root queue; clusters have about ten."""
MESSAGE_CHARS = 4_096
VALID = "Valid"
"""Type of the condition in a HyperNode's status."""


class QueueStatusWriter(Writer):
    """Writer of Queue statuses, which writes shares every few seconds and usage once a minute."""

    def __init__(self, context: WriteContext) -> None:
        super().__init__(context)
        self._next = -inf

    def write(self, session: Session) -> None:
        """Write the statuses that have changed, unless the last write was only a short time ago."""
        now = self._wall_s()
        if self._monotonic_s() < self._next:
            return
        why, waiting = first_refusals(session), waiting_by_queue(session)
        due = []
        shares_by_queue = session.hooks.queue_standings.call()
        moments = largest_planned_at(session.snapshot)
        spares = spares_by_queue(session.snapshot.gangs, parents_of(session.snapshot.queues))
        for name in dict.fromkeys((*shares_by_queue, *moments)):
            queue, shares = session.snapshot.queues.get(name), shares_by_queue.get(name)
            patch: dict[str, object] = {}
            if queue and shares:
                kept = spares.get(name, {})
                patch = queue_difference(queue, shares, why.get(name, ""), waiting[name], now, kept)
            if queue and name in moments:
                patch |= largest_difference(queue, session.snapshot)
            if queue and patch:
                due.append((name, patch))
        for name, patch in due[:MAX_AT_ONCE]:
            self._writes.start(Lane.WORDS, "queue", name, partial(self._patch, name, patch))
        self._next = self._monotonic_s() + (SHARES_EVERY_S if len(due) <= MAX_AT_ONCE else 0.0)

    def _patch(self, name: str, patch: dict[str, object]) -> None:
        self._client.merge_patch(scheduling.QUEUES, name, {"status": patch}, subresource="status")


def largest_planned_at(snapshot: Snapshot) -> frozenset[str]:
    """Return the queues whose status has a node's largest amounts: `root`, or the root queues of a named node pool."""
    if snapshot.pool == DEFAULT_POOL:
        return frozenset({ROOT_QUEUE})
    queues = snapshot.queues
    return frozenset(name for name, queue in queues.items() if queue.spec.parent not in queues)


def queue_difference(
    queue: scheduling.Queue,
    shares: StatusAmounts,
    why: str,
    waiting: int,
    now: float,
    spares: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, object]:
    """Return the merge patch for the planner's fields of a Queue status; empty if these fields are up to date."""
    status = queue.status
    patch: dict[str, object] = {}
    for field, known, wanted in (
        ("fairShare", status.fair_share, shares.fair_share),
        ("deserved", status.deserved, shares.deserved),
        ("spares", status.spares, dict(spares)),
    ):
        if dict(known) != to_quantities(wanted):
            patch[field] = _replaced(known, wanted)
    if status.message != why:
        patch["message"] = why
    if status.waiting != waiting:
        patch["waiting"] = waiting
    if shares.usage is not None and not 0 <= now - (readable_time(status.usage_time) or 0.0) < USAGE_EVERY_S:
        patch |= {"usage": _replaced(status.usage, shares.usage), "usageTime": format_time(now)}
    return patch


def largest_difference(root: scheduling.Queue, snapshot: Snapshot) -> dict[str, object]:
    """Return the merge patch with the largest amount of each resource on a node.

    From these amounts, admission finds pods that fit on no node. The patch is empty if there are no nodes or too many
    resources. Claimed devices are not included.
    """
    most = snapshot.allocatable.max(axis=1, initial=0)
    found = dict.fromkeys(snapshot.claimed_resources, 0)
    found |= {name: int(most[row]) for name, row in snapshot.axis.items()}
    wanted = found if snapshot.index and len(found) <= MAX_RESOURCES else {}
    known = root.status.largest_node
    return {} if dict(known) == to_quantities(wanted) else {"largestNode": _replaced(known, wanted)}


def _replaced(known: Mapping[str, object], wanted: Vector) -> dict[str, str | None]:
    """Return a merge patch that sets the amounts of the wanted resources and removes all other known resources."""
    return dict.fromkeys(known, None) | dict(to_quantities(wanted))


def first_refusals(session: Session) -> dict[str, str]:
    """Return a mapping from each queue to the reason why the queue's first waiting gang waits."""
    waits = {each.gang.key: each for each in session.decided(decisions.Unschedulable)}
    result: dict[str, str] = {}
    for each in waits.values():
        if not each.gang.started:
            result.setdefault(each.gang.queue, reasons.queues.first_waits(reason=each.reason))
    return result


class HyperNodeStatusWriter(Writer):
    """Writer of the HyperNode statuses that have changed; Volcano's controller may write the same fields."""

    def __init__(self, context: WriteContext) -> None:
        super().__init__(context)
        self._next = -inf
        self._written: dict[str, tuple[object, float]] = {}
        """Maps a HyperNode's name to its UID, the last written status, and the time of the write."""
        self._logged: frozenset[tuple[str, HyperNodeProblem]] = frozenset()

    def write(self, session: Session) -> None:
        """Write the statuses that have changed, unless the last write was only a short time ago."""
        now, at = self._wall_s(), self._monotonic_s()
        snapshot = session.snapshot
        hyper_nodes = {
            name: each for name, each in snapshot.hyper_nodes.items() if pool_of(each.metadata) == snapshot.pool
        }  # each field has a single writer
        if at < self._next or not (hyper_nodes or self._written):
            return
        found = session.hyper_nodes
        self._report(found)
        self._written = {name: written for name, written in self._written.items() if name in hyper_nodes}
        due = []
        for name, hyper_node in hyper_nodes.items():
            count, problems = found.node_counts[name], found.problems.get(name, ())
            patch = hyper_node_difference(hyper_node, count, problems, now)
            words = (hyper_node.metadata.uid, count, problems)
            written, written_at = self._written.get(name, (None, -inf))
            if patch and (written != words or at - written_at >= AGAIN_S):
                due.append((hyper_node, patch, words))
        for hyper_node, patch, words in due[:MAX_AT_ONCE]:
            write = partial(self._patch, hyper_node, patch, words)
            self._writes.start(Lane.WORDS, "hypernode", hyper_node.metadata.name, write)
        self._next = at + (EVERY_S if len(due) <= MAX_AT_ONCE else 0.0)

    def _patch(self, hyper_node: topology.HyperNode, patch: dict[str, Any], words: object) -> None:
        meta = hyper_node.metadata
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": patch}
        self._client.merge_patch(topology.HYPER_NODES, meta.name, body, subresource="status")
        self._written[meta.name] = (words, self._monotonic_s())

    def _report(self, found: HyperNodes) -> None:
        """Count the problems of HyperNodes in a metric, and log each problem once."""
        INVALID.set(len(found.problems))
        wrong = frozenset((name, problem) for name, problems in found.problems.items() for problem in problems)
        fresh = sorted(wrong - self._logged, key=lambda each: (each[0], each[1].message))
        for name, problem in fresh[:MAX_LOGGED]:
            log.warning("a HyperNode has an error", name=name, reason=problem.reason, why=problem.message)
        if len(fresh) > MAX_LOGGED:
            log.warning(
                "more HyperNodes have errors; their conditions contain the reasons", more=len(fresh) - MAX_LOGGED
            )
        self._logged = wrong


def hyper_node_difference(
    hyper_node: topology.HyperNode, count: int, problems: Sequence[HyperNodeProblem], now: float
) -> dict[str, Any]:
    """Return the merge patch for a HyperNode's status; empty if nothing has changed.

    The conditions of other writers stay unchanged.
    """
    patch: dict[str, Any] = {}
    if hyper_node.status.node_count != count:
        patch["nodeCount"] = count
    conditions = hyper_node.status.conditions
    known = next((each for each in conditions if each.type == VALID), None)
    wanted = _condition(known, problems, hyper_node.metadata.generation, now)
    if wanted is not None:
        kept = [each for each in conditions if each.type != VALID]
        patch["conditions"] = to_builtins([*kept, wanted])
    return patch


def _condition(
    known: Condition | None, problems: Sequence[HyperNodeProblem], generation: int, now: float
) -> Condition | None:
    """Return the condition for the HyperNode's status; None if the status need not change."""
    if not problems and (known is None or known.status == "True"):
        return None
    status, reason = ("False", problems[0].reason) if problems else ("True", "Resolved")
    message = "; ".join(problem.message for problem in problems)[:MESSAGE_CHARS]
    if known is not None and (known.status, known.reason, known.message) == (status, reason, message):
        return None
    since = known.last_transition_time if known is not None and known.status == status else format_time(now)
    return Condition(
        type=VALID,
        status="False" if problems else "True",
        last_transition_time=since,
        reason=reason,
        message=message,
        observed_generation=generation or None,
    )
