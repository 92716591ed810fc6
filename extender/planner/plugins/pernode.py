"""Answers per pod class and node: functions of one node lifted to all nodes, and caches from cycle to cycle."""

from collections.abc import Callable
from typing import Any
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


class PerNode:
    """`answer(class, node)` for every node, int16 of shape (nodes,); a column without node is asked with None."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[PodClass, tuple[Answers, int, object]] = WeakKeyDictionary()
        """Class → answers, the generation of the nodes that they are about, and what else they depend on."""

    def of(
        self, cls: PodClass, snapshot: Snapshot, answer: Callable[[PodClass, Node | None], int], *, other: object = None
    ) -> Answers:
        """Return the answers, read-only; `other` differs whenever anything else that they depend on does."""
        nothing = np.zeros(0, dtype=np.int16)
        answers, generation, before = self._known.get(cls, (nothing, -1, other))
        if before != other:
            answers, generation = nothing, -1
        if generation == snapshot.generation and len(answers) == len(snapshot.nodes):
            return answers
        fresh = np.zeros(len(snapshot.nodes), dtype=np.int16)
        for column in _carried_over(answers, fresh, snapshot.changed > generation):
            fresh[column] = answer(cls, snapshot.nodes[column])
        self._known[cls] = fresh, snapshot.generation, other
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
        for column in _carried_over(codes, fresh, snapshot.changed > seen):
            node = snapshot.nodes[column]
            value = node.metadata.labels.get(key) if node else None
            fresh[column] = -1 if value is None else values.setdefault(value, len(values))
        self._known[key] = fresh, values, snapshot.generation
        return fresh, len(values)


def _carried_over(known: NDArray[Any], fresh: NDArray[Any], changed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Copy what is known of columns, and return those to ask for: the changed and the new ones."""
    fresh[: len(known)] = known
    changed[len(known) :] = True
    return np.flatnonzero(changed)


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
