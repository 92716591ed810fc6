"""The prioritize verb, which returns the plugins' scores as whole numbers from 0 to 10."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from extender.cluster import Live
from extender.planner.framework.hooks import Scores
from extender.planner.framework.session import Session
from extender.planner.state.nodes import NodeTable
from muster.api.kubernetes.extender import ExtenderArgs, HostPriority

Ranks = NDArray[np.int64]
MAX_PRIORITY = 10


class Prioritize:
    """The prioritize verb, which ranks nodes by the plugins of the last planning cycle, `session`."""

    def __init__(self, cluster: Live, *, session: Callable[[], Session | None] = lambda: None) -> None:
        self._cluster = cluster
        self._session = session

    def __call__(self, args: ExtenderArgs) -> list[HostPriority]:
        """Return the plugins' scores of the nodes as ranks; without scores, fuller nodes come first."""
        nodes = args.node_names or []
        session = self._session()
        table = self._cluster.state.nodes
        cls = self._cluster.state.classes.of_pod(args.pod)
        columns = np.fromiter((table.index.get(name, -1) for name in nodes), dtype=np.int64, count=len(nodes))
        full = fullness(table, columns)
        scores = None
        if session is not None:
            known = (columns >= 0) & (columns < len(session.snapshot.nodes))
            session.hooks.node_pre_order.call(cls, columns[known])
            scores = session.scores(cls)
        if isinstance(scores, np.ndarray) and len(nodes) and columns.max() < len(scores):
            ranks = collapse(np.where(columns >= 0, scores[columns], 0.0))
        else:
            ranks = np.floor(np.where(columns >= 0, full, 0.0) * MAX_PRIORITY).astype(np.int64)
        return [HostPriority(host=name, score=int(rank)) for name, rank in zip(nodes, ranks, strict=True)]


def collapse(scores: Scores) -> Ranks:
    """Return scores of any magnitude as ranks from 0 to 10 (best) in the same order; close scores may share a rank."""
    levels, position = np.unique(scores, return_inverse=True)
    if len(levels) == 1:
        return np.zeros(len(scores), dtype=np.int64)
    ranks: Ranks = position * MAX_PRIORITY // (len(levels) - 1)
    return ranks


def fullness(table: NodeTable, columns: Ranks) -> Scores:
    """Return the used fraction, from 0 to 1, of each node's most used resource."""
    allocatable, used = table.allocatable[:, columns], table.used[:, columns]
    share: Scores = np.where(allocatable > 0, used / np.maximum(allocatable, 1), 0.0).max(axis=0, initial=0.0)
    return np.clip(share, 0.0, 1.0)
