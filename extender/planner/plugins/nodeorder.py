"""Volcano's scores of nodes: `nodeorder` (kube-scheduler's scores with weights) and `binpack`.

Each of kube-scheduler's scores contributes 0 to 100 times its weight. The scores of nodeorder and binpack are added, as
in Volcano.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.hooks import Scores
from extender.planner.framework.nodelabels import Columns, NodeLabels, Taints, tolerated_by
from extender.planner.framework.registry import number, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.plugins.pernode import PerNode
from extender.planner.plugins.scores import NodeScore, PodAffinityScore
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.constraints import NodeSelector
from muster.resources.vector import GPU

FULL = 100.0
"""Highest value of one of kube-scheduler's scores, before its weight is applied."""
WEIGHTS = {
    "leastrequested": 1.0,
    "mostrequested": 0.0,
    "nodeaffinity": 2.0,
    "podaffinity": 2.0,
    "balancedresource": 1.0,
    "tainttoleration": 3.0,
}
"""Weights of the scores of nodeorder, with Volcano's defaults."""
_MOST = np.iinfo(np.int16).max


class NodeOrder(NodeScore):
    """kube-scheduler's scores: used resources, balance of resources, preferred affinity and PreferNoSchedule taints."""

    name = "nodeorder"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        keys = {part: f"{part}.weight" for part in WEIGHTS}
        refuse_arguments(self.name, arguments, tuple(keys.values()))
        self._weights = {part: number(self.name, arguments, key, WEIGHTS[part]) for part, key in keys.items()}
        self._affinity, self._taints = PerNode(), PerNode()  # kept from cycle to cycle
        self._neighbours = PodAffinityScore({})

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        parts: dict[str, Callable[[], Scores]] = {
            "leastrequested": lambda: 1 - _requested(session, cls),
            "mostrequested": lambda: _requested(session, cls),
            "balancedresource": lambda: _balance(session, cls),
            "nodeaffinity": lambda: _scaled(self._wished(session, cls)),
            "podaffinity": lambda: self._neighbours.shares(session, cls),
            "tainttoleration": lambda: 1 - _scaled(self._advised_against(session, cls)),
        }
        total = np.zeros(len(session.snapshot.nodes))
        for part, shares in parts.items():
            if self._weights[part]:
                total += shares() * FULL * self._weights[part]
        return total

    def _wished(self, session: Session, cls: PodClass) -> NDArray[np.int16]:
        return self._affinity.answers_for(cls, session.snapshot, partial(_wished, session.labels))

    def _advised_against(self, session: Session, cls: PodClass) -> NDArray[np.int16]:
        return self._taints.answers_for(cls, session.snapshot, partial(_advised_against, session.labels))


class Preferences(NodeOrder):
    """Scores by preferred affinity and PreferNoSchedule taints alone, with Volcano's weights.

    kube-scheduler cannot apply such preferences to a pinned pod, because it considers only the node to which the pod is
    pinned.
    """

    name = "preferences"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ())
        super().__init__({"leastrequested.weight": 0, "balancedresource.weight": 0})

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        affinity = cls.affinity.node_affinity if cls.affinity else None
        wishes = bool(affinity and affinity.preferred) or bool(cls.neighbours.preferences)
        if not wishes and not self._advised_against(session, cls).any():
            return np.zeros(len(session.snapshot.nodes))
        return super()._scores(session, cls)


class Binpack(NodeScore):
    """Score that prefers full nodes: the weighted mean of resources' used fractions; 0 if the pod does not fit."""

    name = "binpack"
    _LISTED = "binpack.resources"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        own = ("binpack.weight", "binpack.cpu", "binpack.memory", self._LISTED)
        named = tuple(key for key in arguments if key.startswith(f"{self._LISTED}."))
        refuse_arguments(self.name, arguments, (*own, f"{self._LISTED}.<resource>", *named))
        self._weight = number(self.name, arguments, "binpack.weight", 1.0)
        listed = [each.strip() for each in str(arguments.get(self._LISTED, "")).split(",") if each.strip()]
        keys = {"cpu": "binpack.cpu", "memory": "binpack.memory"} | {each: f"{self._LISTED}.{each}" for each in listed}
        self._weights = {resource: number(self.name, arguments, key, 1.0) for resource, key in keys.items()}

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        size = len(session.snapshot.nodes)
        total, weights, fits = np.zeros(size), 0.0, np.ones(size, dtype=np.bool_)
        for resource, weight in self._weights.items():
            if cls.requests.get(resource, 0) > 0 and resource in session.snapshot.axis:
                share = _share(session, cls, resource)
                total += share * weight
                weights += weight
                fits &= share <= 1
        scores: Scores = np.where(fits, total, 0.0) / (weights or 1.0) * FULL * self._weight
        return scores


def _share(session: Session, cls: PodClass, resource: str) -> NDArray[np.float64]:
    """Return the used fraction of a resource with one more pod of this class; above 1 if the pod does not fit."""
    snapshot = session.snapshot
    row = snapshot.axis.get(resource)
    if row is None:
        return np.full(len(snapshot.nodes), 2.0)
    total = snapshot.allocatable[row]
    used = total - snapshot.free[row] + snapshot.row_of(cls)[row]
    share: NDArray[np.float64] = np.where(total > 0, used / np.maximum(total, 1), 2.0)
    return share


def _requested(session: Session, cls: PodClass) -> Scores:
    """Return the mean of the used fractions of cpu and memory on each node, from 0 to 1."""
    shares: Scores = (np.clip(_share(session, cls, "cpu"), 0, 1) + np.clip(_share(session, cls, "memory"), 0, 1)) / 2
    return shares


def _balance(session: Session, cls: PodClass) -> Scores:
    """Return 1 minus the standard deviation of the used fractions of each node's resources."""
    resources = ["cpu", "memory", *([GPU] if cls.requests.get(GPU) else [])]
    spread: Scores = np.stack([np.clip(_share(session, cls, each), 0, 1) for each in resources]).std(axis=0)
    return 1 - spread


def _scaled(values: NDArray[np.int16]) -> Scores:
    """Return the values, scaled so that the largest value is 1; all values are 0 if no value is above 0."""
    highest = int(values.max(initial=0))
    return values / highest if highest > 0 else np.zeros(len(values))


def _wished(labels: NodeLabels, cls: PodClass, columns: Columns) -> NDArray[np.int16]:
    """Return the sum of the weights of the preferred node affinity terms that each node meets."""
    met = np.zeros(len(columns), dtype=np.int64)
    for wish in cls.affinity.node_affinity.preferred if cls.affinity and cls.affinity.node_affinity else ():
        met += labels.matching(NodeSelector([wish.preference]), columns) * np.int64(wish.weight)
    return np.minimum(met, _MOST).astype(np.int16)


def _advised_against(labels: NodeLabels, cls: PodClass, columns: Columns) -> NDArray[np.int16]:
    """Return the number of each node's PreferNoSchedule taints that the pod does not tolerate."""
    tolerated = tolerated_by(cls.tolerations)

    def untolerated(of: Taints | None) -> int:
        advice = (taint for taint in (of.taints if of else ()) if taint[2] == "PreferNoSchedule")
        return min(sum(not tolerated(taint) for taint in advice), _MOST)

    return labels.by_taints(untolerated, columns)
