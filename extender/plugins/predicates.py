"""Which nodes a pod can be on, as kube-scheduler decides it: cordon, taints, selectors and node affinity.

Resources are not in here: the session counts them, since they change with every decision. The answers depend only on
the node object, so they are kept per pod class and made anew only for nodes that changed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from extender.framework.hooks import Codes
from extender.framework.podclass import PodClass
from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.plugins.nodeselector import matches
from muster.api.core import Node, Taint, Toleration

CORDON_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Predicates:
    """Answers per class and node, cached by the node's generation."""

    name = "predicates"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)
        self._known: dict[bytes, tuple[Codes, int]] = {}

    def on_session_open(self, session: Session) -> None:
        """Register the predicate."""
        session.add("predicate", lambda cls: self._codes(session, cls))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up: what is known stays for the next cycle."""

    def _codes(self, session: Session, cls: PodClass) -> Codes:
        snapshot = session.snapshot
        codes, seen = self._known.get(cls.key, (np.zeros(0, dtype=np.int16), -1))
        size = len(snapshot.nodes)
        if seen == snapshot.generation and len(codes) == size:
            return codes
        fresh = np.zeros(size, dtype=np.int16)
        fresh[: len(codes)] = codes
        stale = snapshot.changed > seen
        stale[len(codes) :] = True
        for column in np.flatnonzero(stale):
            node = snapshot.nodes[column]
            fresh[column] = session.causes.code(refusal(cls, node) if node else "is gone")
        self._known[cls.key] = (fresh, snapshot.generation)
        return fresh


def refusal(cls: PodClass, node: Node) -> str:
    """Why the node does not take pods of this class, in a few words; empty if it does (room aside)."""
    if node.spec.unschedulable and not _tolerated(CORDON_TAINT, cls.tolerations):
        return "cordoned"
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in cls.node_selector.items()):
        return "does not match the node selector"
    required = cls.required_node_affinity
    if required is not None and not matches(required, node):
        return "does not match the node affinity"
    for taint in node.spec.taints:
        if taint.effect in {"NoSchedule", "NoExecute"} and not _tolerated(taint, cls.tolerations):
            return f"has the taint {taint.key}" + (f"={taint.value}" if taint.value else "")
    return ""


def _tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    return any(
        (not toleration.effect or toleration.effect == taint.effect)
        and (not toleration.key or toleration.key == taint.key)
        and (
            toleration.operator == "Exists"
            or (bool(toleration.key) and toleration.operator in {"", "Equal"} and toleration.value == taint.value)
        )
        for toleration in tolerations
    )
