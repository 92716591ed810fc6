"""Writes what the planner knows of HyperNodes into their status: how many members exist, and what is wrong.

The planner is who finds the members anyway, knows nodes as they are, and is one process at a time; the controller would
have to watch all nodes for it. A status is written when what is to be said has changed since it was said last, so that
somebody else who writes the same fields (Volcano's controller beside us) gets no quarrel.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog
from msgspec import to_builtins
from prometheus_client import Gauge

from extender.planner.framework.session import Session
from extender.planner.topology.hypernodes import HyperNodes
from extender.planner.topology.nesting import Problem
from extender.writes import Lane, Writes
from muster.api.kubernetes.meta import Condition, format_time
from muster.api.volcano.topology import HYPER_NODES, HyperNode
from muster.kube.client import Client

log = structlog.get_logger()
INVALID = Gauge("muster_hypernodes_invalid", "HyperNodes of which a part cannot be used; their condition says why")
EVERY_S = 2.0
AGAIN_S = 600.0
"""What was said is said again after so long, if somebody has written something else there."""
MAX_AT_ONCE = 100
"""HyperNodes that are written in one cycle; the others come in the next ones."""
MAX_LOGGED = 20
"""Lines of log at once."""
MESSAGE_CHARS = 4_096
VALID = "Valid"
"""The type of the condition."""


class HyperNodeStatusWriter:
    """Remembers what it said; `wall_s` is seconds since the epoch."""

    def __init__(self, client: Client, writes: Writes, *, wall_s: Callable[[], float]) -> None:
        self._client = client
        self._writes = writes
        self._wall_s = wall_s
        self._next = 0.0
        self._said: dict[str, tuple[object, float]] = {}
        """Name → what was said of which HyperNode, and when."""
        self._logged: frozenset[tuple[str, Problem]] = frozenset()

    def write(self, session: Session) -> None:
        """Has what differs written, if it is time again."""
        now = self._wall_s()
        hyper_nodes = session.snapshot.hyper_nodes
        if now < self._next or not (hyper_nodes or self._said):
            return
        found = session.hyper_nodes
        self._tell(found)
        self._said = {name: said for name, said in self._said.items() if name in hyper_nodes}
        due = []
        for name, hyper_node in hyper_nodes.items():
            patch = difference(hyper_node, found.node_counts[name], found.problems.get(name, ()), now)
            words = (hyper_node.metadata.uid, found.node_counts[name], found.problems.get(name, ()))
            said, said_at = self._said.get(name, (None, 0.0))
            if patch and (said != words or now - said_at >= AGAIN_S):
                due.append((hyper_node, patch, words))
        for hyper_node, patch, words in due[:MAX_AT_ONCE]:
            write = partial(self._patch, hyper_node, patch, words, now=now)
            self._writes.start(Lane.WORDS, "hypernode", hyper_node.metadata.name, write)
        self._next = now + (EVERY_S if len(due) <= MAX_AT_ONCE else 0.0)

    def _patch(self, hyper_node: HyperNode, patch: dict[str, Any], words: object, *, now: float) -> None:
        meta = hyper_node.metadata
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": patch}
        self._client.merge_patch(HYPER_NODES, meta.name, body, subresource="status")
        self._said[meta.name] = (words, now)

    def _tell(self, found: HyperNodes) -> None:
        """Counts what is wrong, and logs each thing once."""
        INVALID.set(len(found.problems))
        wrong = frozenset((name, problem) for name, problems in found.problems.items() for problem in problems)
        fresh = sorted(wrong - self._logged, key=lambda each: (each[0], each[1].message))
        for name, problem in fresh[:MAX_LOGGED]:
            log.warning("a HyperNode is not right", name=name, reason=problem.reason, why=problem.message)
        if len(fresh) > MAX_LOGGED:
            log.warning("more HyperNodes are not right; their conditions say why", more=len(fresh) - MAX_LOGGED)
        self._logged = wrong


def difference(hyper_node: HyperNode, count: int, problems: Sequence[Problem], now: float) -> dict[str, Any]:
    """The merge patch of the status, with the conditions of others as they are; empty if all is as it should be."""
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


def _condition(known: Condition | None, problems: Sequence[Problem], generation: int, now: float) -> Condition | None:
    """What the condition should be, if it is to change; one that was never needed is left out."""
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
