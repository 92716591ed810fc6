"""Required node affinity: terms are alternatives, the requirements of a term must all hold (core/v1 NodeSelector)."""

import re
from collections.abc import Mapping

from muster.api.kubernetes.constraints import NodeSelector, NodeSelectorTerm
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.meta import LabelSelectorRequirement

_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_CHARS = 256
_LARGEST = 2**63 - 1


def matches(selector: NodeSelector, node: Node) -> bool:
    """True if one of the terms matches; a term without requirements matches nothing."""
    fields = {"metadata.name": node.metadata.name}
    return any(_term_matches(term, node.metadata.labels, fields) for term in selector.node_selector_terms)


def matches_labels(selector: NodeSelector, labels: Mapping[str, str]) -> bool:
    """The same for a volume's node affinity, where kube-scheduler looks at labels only."""
    return any(_term_matches(term, labels, None) for term in selector.node_selector_terms)


def _term_matches(term: NodeSelectorTerm, labels: Mapping[str, str], fields: Mapping[str, str] | None) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_holds(requirement, labels) for requirement in term.match_expressions) and (
        fields is None or all(_holds(requirement, fields) for requirement in term.match_fields)
    )


def _holds(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists" | "DoesNotExist":
            return (value is None) == (requirement.operator == "DoesNotExist")
        case "Gt" | "Lt":
            left, right = _integer(value), _integer(values[0] if len(values) == 1 else None)
            if left is None or right is None:
                return False
            return left > right if requirement.operator == "Gt" else left < right
        case _:
            return False


def _integer(text: str | None) -> int | None:
    """The 64-bit integer that is written there; anything else matches nothing, as in kube-scheduler."""
    if text is None or len(text) > _MAX_CHARS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_LARGEST - 1 <= number <= _LARGEST else None
