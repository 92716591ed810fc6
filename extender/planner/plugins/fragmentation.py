"""Plugin that scores nodes and GPUs by least expected fragmentation.

The method follows "Beware of Fragmentation" (USENIX ATC 2023). A free GPU is useless to a pod if the node lacks free
CPUs, memory or other GPUs for the pod. The value of a node is the amount of its free GPUs that the next pod can use,
averaged over the kinds of recent pods. A pod is placed on the node whose value it reduces least. By default, one tenth
of the value is based on filling the node with pods of one kind. With the paper's definition alone, nodes would run out
of CPUs. The mix of pods is estimated from the gangs that arrive.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.hooks import Scores
from extender.planner.framework.registry import number, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.plugins.scores import DENSITY, GPU_DENSITY
from extender.planner.plugins.worth import LARGE, Mix, NodeState, PodKind, kind_of
from extender.planner.state.amounts import Amounts
from extender.planner.state.podclass import PodClass
from muster.resources.vector import WHOLE

MOST_SEEN = 100_000
"""Number of counted pods at which all counts are halved, so that the mix of pods follows recent gangs."""
GROWTH = 1.1
"""Factor by which the number of counted pods must grow before the mix of pods is computed again."""


class Fragmentation:
    """Scores of nodes and GPUs; a smaller loss of GPUs that future pods can use gives a higher score.

    The argument `fill` (0 to 1) is the weight of the capacity for filling a node with pods of one kind. The capacity
    for just the next pod has the weight 1 - `fill`. Only the most frequent kinds of pods are used: as many as cover the
    fraction `coverage` of the counted pods, but at most `kinds`.
    """

    name = "fragmentation"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ("fill", "coverage", "kinds"))
        self._fill = number(self.name, arguments, "fill", 0.1)
        self._coverage = number(self.name, arguments, "coverage", 0.95)
        self._kinds = number(self.name, arguments, "kinds", 64)
        for name, value in (("fill", self._fill), ("coverage", self._coverage)):
            if value > 1:
                raise ValueError(f"plugin {self.name!r}: {name} is {value}; the value must be from 0 to 1")
        self._seen: Counter[PodKind] = Counter()
        self._gangs: set[str] = set()
        """UIDs of the gangs that have been counted."""
        self._counted, self._mixed_at = 0, 0
        self._mix: Mix | None = None
        self._nodes: NodeState | None = None
        self._stale = False
        """True if nodes have changed since their values were computed. Values are computed on demand, because most
        cycles place no pod."""
        self._worth: Scores = np.zeros(0)
        self._stamps: Amounts = np.zeros(0, dtype=np.int64)
        self._now = 0
        self._dirty: set[int] = set()
        self._caught: set[int] = set()
        """Columns of nodes whose value includes tentative placements, so that it must be computed again in the next
        cycle.
        """
        self._version = (-1, -1)
        self._losses: dict[bytes, tuple[int, Scores]] = {}
        """Maps a pod class to each node's loss of value by one more pod, and to the version for which the loss was
        computed."""

    def on_session_open(self, session: Session) -> None:
        """Read new gangs and changed nodes, and register the scores for nodes and for GPUs."""
        self._learn(session)
        snapshot = session.snapshot
        version = snapshot.version, snapshot.generation
        same = version == self._version and self._nodes is not None
        self._dirty, self._caught, self._version = (self._caught if same else set()), set(), version
        self._stale = self._stale or not same
        session.hooks.node_order.add(lambda cls: self._scores(session, cls))
        session.hooks.gpu_order.add(lambda cls, column, used: self._devices(session, cls, column, used))
        session.hooks.follow(lambda entry, _sign: self._dirty.add(entry.column))

    def on_session_close(self, session: Session) -> None:
        """Drop all cached losses if they belong to too many pod classes."""
        self._caught |= self._dirty
        if len(self._losses) > 2 * len(session.snapshot.gangs) + 256:
            self._losses.clear()

    def _learn(self, session: Session) -> None:
        fresh = Counter[PodKind]()
        for gang in session.snapshot.gangs:
            if gang.uid not in self._gangs:
                for pod_set in gang.pod_sets:
                    if pod_set.cls is not None:
                        fresh[kind_of(pod_set.cls, session.snapshot)] += max(pod_set.replicas, len(pod_set.waiting))
        self._gangs = {gang.uid for gang in session.snapshot.gangs}
        self.learn(fresh)

    def learn(self, fresh: Mapping[PodKind, int]) -> None:
        """Count new pods; compute the mix of pods again once the number of counted pods has grown by `GROWTH`."""
        self._seen.update(fresh)
        self._counted += sum(fresh.values())
        if self._counted > MOST_SEEN:
            self._seen = Counter({kind: count // 2 for kind, count in self._seen.items() if count > 1})
            self._counted = self._mixed_at = self._seen.total()
        if self._counted >= max(self._mixed_at * GROWTH, 1) and self._counted > self._mixed_at:
            self._mixed_at = self._counted
            self._mix = Mix.most_frequent(self._seen, self._coverage, int(self._kinds), self._fill)
            self._nodes = None

    def _catch_up(self, session: Session) -> None:
        """Compute the values of nodes that have changed in the cluster or by tentative placements of this cycle."""
        if self._mix is None:
            return
        if self._stale or self._nodes is None:
            columns = np.arange(len(session.snapshot.nodes))
            nodes, before, self._stale = NodeState.from_snapshot(session.snapshot, columns), self._nodes, False
            if before is None or before.partly.shape != nodes.partly.shape:
                self._losses.clear()
                self._stamps, self._worth = np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes))
            else:
                columns = nodes.unlike(before)
            self._nodes = nodes
        elif self._dirty:
            columns = np.fromiter(self._dirty, dtype=np.int64, count=len(self._dirty))
            self._nodes.update(session.snapshot, columns)
        else:
            return
        self._caught |= self._dirty
        self._dirty.clear()
        self._now += 1
        self._stamps[columns] = self._now
        self._worth[columns] = self._mix.worth(self._nodes.at(columns))

    def worth(self, session: Session) -> Scores:
        """Return the free GPUs of each node that future pods can use on average, in thousandths; read-only."""
        self._catch_up(session)
        return self._worth

    def losses(self, session: Session, cls: PodClass) -> Scores:
        """Return each node's loss of value by one more pod of this class; 0 for nodes without GPUs or free capacity."""
        self._catch_up(session)
        if self._nodes is None or self._mix is None:
            return np.zeros(len(session.snapshot.nodes))
        stamp, loss = self._losses.get(cls.key, (-1, np.zeros(len(self._nodes))))
        columns = np.flatnonzero((self._stamps > stamp) & (self._nodes.gpus > 0))
        if len(columns):
            after = self._mix.worth_after(self._nodes.at(columns), kind_of(cls, session.snapshot))
            loss[columns] = self._worth[columns] - after
        self._losses[cls.key] = self._now, loss
        return loss

    def _scores(self, session: Session, cls: PodClass) -> Scores | float:
        if self._mix is None:
            return 0.0
        loss = self.losses(session, cls)
        fits = loss < LARGE
        high, low = float(loss[fits].max(initial=0.0)), float(loss[fits].min(initial=0.0))
        scores: Scores = np.where(fits, high - loss, 0.0) * (GPU_DENSITY / ((high - low) or 1.0))
        return scores

    def _devices(self, session: Session, cls: PodClass, column: int, used: Amounts) -> NDArray[np.float64]:
        """Return the score of each GPU of a node: the node's value after the pod has been placed on the GPU."""
        self._catch_up(session)
        if self._nodes is None or self._mix is None or cls.gpu is None:
            return np.zeros(len(used))
        portion = session.snapshot.devices.portion(cls.gpu, column)
        worth = self._mix.worth_by_device(self._nodes.at(np.array([column])), kind_of(cls, session.snapshot), used)
        return np.where(used + portion <= WHOLE, worth / max(float(np.abs(worth).max(initial=1.0)), 1.0) * DENSITY, 0.0)
