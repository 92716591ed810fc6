"""Validation of a single HyperNode: members must be well-formed, and patterns must be valid RE2 of limited size.

The webhook does not check relations between HyperNodes (one parent, no node twice in a tier), because HyperNodes are
created and changed one by one, in any order. The planner reports such conflicts in the condition `Valid` of the
HyperNode.
"""

from collections.abc import Iterator

from muster.api.fields import FieldError, Findings
from muster.api.volcano.topology import PATH, HyperNode, hyper_node_errors, idle_members
from webhook.objects.constraints import selector_errors
from webhook.review import reviewer_of

WARNINGS = 5
"""Maximum number of members without effect that warnings list."""


def findings(hyper_node: HyperNode) -> Findings:
    """Return the errors of a HyperNode, or else warnings about members without effect."""
    errors = list(check_hyper_node(hyper_node))
    return Findings(errors, [] if errors else list(idle_members(hyper_node))[:WARNINGS])


def check_hyper_node(hyper_node: HyperNode) -> Iterator[FieldError]:
    """Yield all errors of a HyperNode."""
    yield from hyper_node_errors(hyper_node)
    for index, member in enumerate(hyper_node.spec.members):
        exact, path = member.selector.exact_match, f"{PATH}[{index}].selector"
        if member.type == "HyperNode" and exact and exact.name == hyper_node.metadata.name:
            yield FieldError(f"{path}.exactMatch.name", "a HyperNode cannot be a member of itself", exact.name)
        if member.selector.label_match is not None:
            yield from selector_errors(member.selector.label_match, f"{path}.labelMatch")


review = reviewer_of(HyperNode, findings)
"""The handler for HyperNodes."""
