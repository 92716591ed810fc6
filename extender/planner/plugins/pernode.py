"""Answers per pod class and node: functions of one node lifted to all nodes, and caches from cycle to cycle."""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.answers import Codes
from extender.planner.framework.hooks import Scores
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.core import Node

Answers = NDArray[np.int16]
MOST_KEYS = 256
"""Label keys whose domains are kept, those that were asked for last."""


@dataclass(slots=True)
class _Known:
    answers: Answers
    generation: int
    other: object


class PerNode:
    """`answer(class, node)` for every node, int16 of shape (nodes,); a column without node is asked with None."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[PodClass, _Known] = WeakKeyDictionary()

    def of(
        self, cls: PodClass, snapshot: Snapshot, answer: Callable[[PodClass, Node | None], int], *, other: object = None
    ) -> Answers:
        """Return the answers, read-only; `other` differs whenever anything else that they depend on does."""
        size = len(snapshot.nodes)
        known = self._known.get(cls)
        if known is None or known.other != other:
            known = _Known(np.zeros(0, dtype=np.int16), -1, other)
        if known.generation == snapshot.generation and len(known.answers) == size:
            return known.answers
        fresh = np.zeros(size, dtype=np.int16)
        fresh[: len(known.answers)] = known.answers
        stale = snapshot.changed > known.generation
        stale[len(known.answers) :] = True
        for column in np.flatnonzero(stale):
            fresh[column] = answer(cls, snapshot.nodes[column])
        self._known[cls] = _Known(fresh, snapshot.generation, other)
        return fresh


class Domains:
    """Node labels as domains: per key, small numbers for the values, -1 for nodes without that label."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[NDArray[np.int64], dict[str, int], int]] = {}

    def of(self, key: str, snapshot: Snapshot) -> tuple[NDArray[np.int64], int]:
        """Return the number of each node's domain, int64 of shape (nodes,), read-only; and the number of domains."""
        size = len(snapshot.nodes)
        codes, values, seen = self._known.pop(key, (np.zeros(0, dtype=np.int64), {}, -1))
        if len(self._known) >= MOST_KEYS:  # anybody can name a key that no node has
            del self._known[next(iter(self._known))]
        self._known[key] = codes, values, seen
        if seen == snapshot.generation and len(codes) == size:
            return codes, len(values)
        if len(values) > 2 * size:  # most of them are of nodes that are gone
            codes, values, seen = np.zeros(0, dtype=np.int64), {}, -1
        fresh = np.full(size, -1, dtype=np.int64)
        fresh[: len(codes)] = codes
        stale = snapshot.changed > seen
        stale[len(codes) :] = True
        for column in np.flatnonzero(stale):
            node = snapshot.nodes[column]
            value = node.metadata.labels.get(key) if node else None
            fresh[column] = -1 if value is None else values.setdefault(value, len(values))
        self._known[key] = fresh, values, snapshot.generation
        return fresh, len(values)


def per_node(fn: Callable[[PodClass, Node], str], session: Session) -> Callable[[PodClass], Codes]:
    """Lift `fn(class, node) -> words or ""` to a predicate over all nodes; slower than arrays."""

    def predicate(cls: PodClass) -> Codes:
        nodes = session.snapshot.nodes
        words = [fn(cls, node) if node else "" for node in nodes]
        return np.array([session.causes.code(word) for word in words], dtype=np.int16)

    return predicate


def per_node_score(fn: Callable[[PodClass, Node], float], session: Session) -> Callable[[PodClass], Scores]:
    """Lift `fn(class, node) -> score` to a score over all nodes."""

    def score(cls: PodClass) -> Scores:
        return np.array([fn(cls, node) if node else 0.0 for node in session.snapshot.nodes], dtype=np.float64)

    return score
