"""Required node affinity: terms are alternatives, the requirements of a term must all hold (core/v1 NodeSelector)."""

from muster.api.core import Node, NodeSelector, NodeSelectorTerm
from muster.api.meta import LabelSelectorRequirement


def matches(selector: NodeSelector, node: Node) -> bool:
    """Whether one of the terms matches; a term without requirements matches nothing."""
    return any(_term_matches(term, node) for term in selector.node_selector_terms)


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(requirement, node.metadata.labels) for requirement in term.match_expressions) and all(
        _holds(requirement, fields) for requirement in term.match_fields
    )


def _holds(requirement: LabelSelectorRequirement, labels: dict[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement.operator, value, values)
        case _:
            return False


def _compares(operator: str, value: str | None, values: list[str]) -> bool:
    """Both sides must be integers; anything else does not match, as in kube-scheduler."""
    try:
        left, right = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right
