"""Which nodes a pod can be on, as kube-scheduler decides it (docs/predicates.md lists what is modelled).

Resources are not in here: the session counts them. What the node alone decides (cordon, taints, selectors, node
affinity) and what the pod's volumes decide is kept per pod class and made anew only for nodes that changed; what the
pods that are there decide is `planner.plugins.interpodaffinity`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from extender.planner import reasons
from extender.planner.framework.causes import Causes, Codes
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.plugins.interpodaffinity import InterPodAffinity, Mask
from extender.planner.plugins.nodeselector import matches
from extender.planner.plugins.pernode import Domains, PerNode
from extender.planner.plugins.volumes import volume_refusal
from extender.planner.state.neighbours import Spread
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.constraints import Toleration
from muster.api.kubernetes.core import Node, Taint

CORDON_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_SELECTED, _TOLERATED = 1, 2


class Predicates(PlainPlugin):
    """Registers both kinds of predicate; its caches live from cycle to cycle."""

    name = "predicates"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._by_node, self._by_volumes, self._inclusion = PerNode(), PerNode(), PerNode()
        self._domains = Domains()
        self._causes: Causes | None = None

    def on_session_open(self, session: Session) -> None:
        """Registers the predicates, and to be told of what changes the second kind's answers."""
        snapshot = session.snapshot
        if self._causes is not session.causes:  # what is kept are codes of these causes
            self._by_node, self._by_volumes, self._causes = PerNode(), PerNode(), session.causes
        interpodaffinity = InterPodAffinity(
            session, self._domains, lambda cls, spread: self._eligible(snapshot, cls, spread)
        )
        session.hooks.predicate.add(lambda cls: self._codes(session, cls))
        session.hooks.neighbour_predicate.add(interpodaffinity.codes)
        session.hooks.allocated.add(interpodaffinity.placed)
        session.hooks.deallocated.add(interpodaffinity.taken_back)
        session.hooks.evicted.add(interpodaffinity.taken_back)
        session.hooks.unevicted.add(interpodaffinity.placed)

    def _codes(self, session: Session, cls: PodClass) -> Codes:
        snapshot, causes = session.snapshot, session.causes

        def by_node(cls: PodClass, node: Node | None) -> int:
            return causes.code(refusal(cls, node) if node else reasons.cause.GONE)

        def by_volumes(cls: PodClass, node: Node | None) -> int:
            return causes.code(volume_refusal(cls, node, snapshot.volumes) if node else reasons.cause.GONE)

        codes = self._by_node.of(cls, snapshot, by_node)
        if not cls.claims:
            return codes
        volumes = self._by_volumes.of(cls, snapshot, by_volumes, other=snapshot.volumes.generation)
        return np.where(codes == 0, volumes, codes)

    def _eligible(self, snapshot: Snapshot, cls: PodClass, spread: Spread) -> Mask:
        """Nodes on which the constraint counts pods: those that its inclusion policies leave."""
        bits = self._inclusion.of(cls, snapshot, _inclusion)
        wanted = _SELECTED * spread.honor_affinity | _TOLERATED * spread.honor_taints
        mask: Mask = (bits & wanted) == wanted
        return mask


def refusal(cls: PodClass, node: Node) -> str:
    """Why the node does not take pods of this class, in a few words; empty if it does (room and others aside)."""
    if node.spec.unschedulable and not tolerated(CORDON_TAINT, cls.tolerations):
        return reasons.cause.CORDONED
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in cls.node_selector.items()):
        return reasons.cause.NODE_SELECTOR
    required = cls.required_node_affinity
    if required is not None and not matches(required, node):
        return reasons.cause.NODE_AFFINITY
    taint = _untolerated(cls, node)
    return reasons.cause.taint(taint.key, taint.value) if taint else ""


def _inclusion(cls: PodClass, node: Node | None) -> int:
    """Bits: the pod's node selector and affinity match, its tolerations cover the taints."""
    if node is None:
        return 0
    labels, required = node.metadata.labels, cls.required_node_affinity
    selected = all(labels.get(key) == value for key, value in cls.node_selector.items()) and (
        required is None or matches(required, node)
    )
    return _SELECTED * selected | _TOLERATED * (_untolerated(cls, node) is None)


def _untolerated(cls: PodClass, node: Node) -> Taint | None:
    return next(
        (
            taint
            for taint in node.spec.taints
            if taint.effect in {"NoSchedule", "NoExecute"} and not tolerated(taint, cls.tolerations)
        ),
        None,
    )


def tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    """True if one of the tolerations covers the taint."""
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (not toleration.key or toleration.key == taint.key)
        and (
            toleration.operator == "Exists"
            or (bool(toleration.key) and toleration.operator in {"", "Equal"} and toleration.value == taint.value)
        )
        for toleration in tolerations
    )
