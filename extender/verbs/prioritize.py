"""The prioritize verb: the plugins' scores as kube-scheduler takes them."""

from collections.abc import Callable

import numpy as np

from extender.cluster import Cluster
from extender.framework.session import Session
from extender.verbs.ranks import MAX_PRIORITY, collapse, fullness
from muster.api.extender import ExtenderArgs, HostPriority


class Prioritize:
    """Ranks nodes. `session` is the last planning cycle, whose plugins score them."""

    def __init__(self, cluster: Cluster, *, session: Callable[[], Session | None] = lambda: None) -> None:
        self._cluster = cluster
        self._session = session

    def __call__(self, args: ExtenderArgs) -> list[HostPriority]:
        """The plugins' scores as ranks 0-10; without any, fuller nodes first, so that whole nodes are left to gangs."""
        nodes = args.node_names or []
        session = self._session()
        with self._cluster.lock:
            table = self._cluster.state.nodes
            cls = self._cluster.state.classes.of_pod(args.pod)
            columns = np.fromiter((table.index.get(name, -1) for name in nodes), dtype=np.int64, count=len(nodes))
            full = fullness(table, columns)
        scores = session.scores(cls) if session is not None else None
        if isinstance(scores, np.ndarray) and len(nodes) and columns.max() < len(scores):
            ranks = collapse(np.where(columns >= 0, scores[columns], 0.0))
        else:
            ranks = np.floor(np.where(columns >= 0, full, 0.0) * MAX_PRIORITY).astype(np.int64)
        return [HostPriority(host=name, score=int(rank)) for name, rank in zip(nodes, ranks, strict=True)]
