"""Predicates and scores per pod class and node: a cache for several cycles, and adapters for functions of one node."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.answers import Codes
from extender.planner.framework.hooks import Scores
from extender.planner.framework.nodelabels import Columns, carried_over
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.core import Node

Answers = NDArray[np.int16]


class PerNode:
    """Cache of a number for each pod class and node, int16 of shape (nodes,), recomputed for changed nodes."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[PodClass, tuple[Answers, int, object]] = WeakKeyDictionary()
        """Maps a pod class to its cached numbers, the generation of the nodes, and a marker of the other inputs."""

    def answers_for(
        self, cls: PodClass, snapshot: Snapshot, answer: Callable[[PodClass, Columns], Answers], *, other: object = None
    ) -> Answers:
        """Return the cached numbers, read-only; `other` must change when inputs other than the nodes change.

        The function `answer` computes the numbers for given columns; a column may have no node.
        """
        nothing = np.zeros(0, dtype=np.int16)
        answers, generation, before = self._known.get(cls, (nothing, -1, other))
        if before != other:
            answers, generation = nothing, -1
        if generation == snapshot.generation and len(answers) == len(snapshot.nodes):
            return answers
        fresh = np.zeros(len(snapshot.nodes), dtype=np.int16)
        columns = carried_over(answers, fresh, snapshot.changed > generation)
        fresh[columns] = answer(cls, columns)
        self._known[cls] = fresh, snapshot.generation, other
        return fresh


def per_node(fn: Callable[[PodClass, Node], str], session: Session) -> Callable[[PodClass], Codes]:
    """Convert `fn(class, node) -> message or ""` to a predicate over all nodes; slower than array operations."""

    def predicate(cls: PodClass) -> Codes:
        nodes = session.snapshot.nodes
        words = [fn(cls, node) if node else "" for node in nodes]
        return np.array([session.causes.code(word) for word in words], dtype=np.int16)

    return predicate


def per_node_score(fn: Callable[[PodClass, Node], float], session: Session) -> Callable[[PodClass], Scores]:
    """Convert `fn(class, node) -> score` to a score over all nodes."""

    def score(cls: PodClass) -> Scores:
        return np.array([fn(cls, node) if node else 0.0 for node in session.snapshot.nodes], dtype=np.float64)

    return score
