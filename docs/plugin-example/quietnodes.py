"""An example of a plugin of one's own: leave out nodes that an operator has labelled `quiet`, prefer unlabelled ones.

The extender finds it by its entry point; docs/writing-plugins.md walks through it, and a test runs it.
"""

from collections.abc import Mapping
from typing import Any

from extender.planner.framework.registry import refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.plugins.pernode import per_node, per_node_score
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.core import Node


class QuietNodes:
    """Argument `label`: the label's key, `example.com/quiet` unless given."""

    name = "quietnodes"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ("label",))
        self._label = str(arguments.get("label", "example.com/quiet"))

    def on_session_open(self, session: Session) -> None:
        """Register a predicate and a score; `per_node` lifts functions of one node to all of them."""
        session.hooks.predicate.add(per_node(self._refusal, session))
        session.hooks.node_order.add(per_node_score(self._score, session))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""

    def _refusal(self, _: PodClass, node: Node) -> str:
        """Return the reason against the node as a short text for `muster explain`, or nothing if the node fits."""
        return "quiet" if node.metadata.labels.get(self._label) == "yes" else ""

    def _score(self, _: PodClass, node: Node) -> float:
        return 0.0 if self._label in node.metadata.labels else 5.0
