"""Validation of a HyperNode alone: its members can be read, and its patterns are RE2's and not too large.

Its place among other HyperNodes (one parent, no node twice in a tier) is not checked here, as they come and change one
by one, in any order: the planner reports that in the condition `Valid` of the HyperNode.
"""

from collections.abc import Iterator

from msgspec.json import Decoder

from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.volcano.topology import PATH, HyperNode, hyper_node_errors, idle_members
from webhook.objects.constraints import selector_errors
from webhook.review import Verdict, decode, leaves_spec

_HYPER_NODE = Decoder(HyperNode)
WARNINGS = 5
"""The most members without effect that warnings name."""


def review(request: AdmissionRequest) -> Verdict:
    """Review a HyperNode on CREATE and UPDATE."""
    hyper_node = decode(request.object, _HYPER_NODE)
    if leaves_spec(request, hyper_node, _HYPER_NODE):
        return Verdict()
    errors = list(check(hyper_node))
    return Verdict(errors=errors, warnings=[] if errors else list(idle_members(hyper_node))[:WARNINGS])


def check(hyper_node: HyperNode) -> Iterator[FieldError]:
    """Yield everything that is wrong with a HyperNode."""
    yield from hyper_node_errors(hyper_node)
    for index, member in enumerate(hyper_node.spec.members):
        exact, path = member.selector.exact_match, f"{PATH}[{index}].selector"
        if member.type == "HyperNode" and exact and exact.name == hyper_node.metadata.name:
            yield FieldError(f"{path}.exactMatch.name", "a HyperNode can not be a member of itself", exact.name)
        if member.selector.label_match is not None:
            yield from selector_errors(member.selector.label_match, f"{path}.labelMatch")
