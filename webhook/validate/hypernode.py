"""Validation of a HyperNode alone: its members can be read, and its patterns are RE2's and not too large.

Its place among other HyperNodes (one parent, no node twice in a tier) is not checked here, as they come and change one
by one, in any order. The planner reports that in the condition `Valid` of the HyperNode.
"""

from collections.abc import Iterator

from muster.api.fields import FieldError, Findings
from muster.api.volcano.topology import PATH, HyperNode, hyper_node_errors, idle_members
from webhook.objects.constraints import selector_errors
from webhook.review import reviewer_of

WARNINGS = 5
"""The most members without effect that warnings name."""


def findings(hyper_node: HyperNode) -> Findings:
    """Return what is wrong with a HyperNode, else warnings of members without effect."""
    errors = list(check(hyper_node))
    return Findings(errors, [] if errors else list(idle_members(hyper_node))[:WARNINGS])


def check(hyper_node: HyperNode) -> Iterator[FieldError]:
    """Yield everything that is wrong with a HyperNode."""
    yield from hyper_node_errors(hyper_node)
    for index, member in enumerate(hyper_node.spec.members):
        exact, path = member.selector.exact_match, f"{PATH}[{index}].selector"
        if member.type == "HyperNode" and exact and exact.name == hyper_node.metadata.name:
            yield FieldError(f"{path}.exactMatch.name", "a HyperNode can not be a member of itself", exact.name)
        if member.selector.label_match is not None:
            yield from selector_errors(member.selector.label_match, f"{path}.labelMatch")


review = reviewer_of(HyperNode, findings)
"""The handler for HyperNodes."""
