"""Errors of a HyperNode alone; the planner checks its place among the others.

The webhook refuses HyperNodes with errors, in the words of Volcano's; the planner leaves those out of the tree that
were admitted without the webhook.
"""

from collections.abc import Iterator

from muster.api.fields import FieldError
from muster.api.kubernetes.meta import LabelSelector
from muster.api.limits import MEMBERS, PATTERNS, SELECTOR_TERMS
from muster.api.patterns import PatternError, steps_of
from muster.api.volcano.topology import HyperNode, Member

PATH = "spec.members"


def hyper_node_errors(hyper_node: HyperNode) -> Iterator[FieldError]:
    """Yield everything that keeps a HyperNode from being a domain."""
    members = hyper_node.spec.members
    if not members:
        yield FieldError(PATH, "member must have at least one member", [])
    yield from MEMBERS.exceeded_by(PATH, len(members))
    yield from PATTERNS.exceeded_by(PATH, sum(member.selector.regex_match is not None for member in members))
    if len(members) > MEMBERS.value:
        return
    for index, member in enumerate(members):
        yield from _member_errors(member, f"{PATH}[{index}]")


def _member_errors(member: Member, path: str) -> Iterator[FieldError]:
    selector, below = member.selector, f"{path}.selector"
    given = [each for each in (selector.exact_match, selector.regex_match, selector.label_match) if each is not None]
    if len(given) != 1:
        found = f"{len(given)} of them are" if given else "none of them is"
        yield FieldError(
            below, f"exactly one of exactMatch, regexMatch, or labelMatch must be set; {found}", len(given)
        )
    if selector.exact_match is not None and not selector.exact_match.name:
        yield FieldError(f"{below}.exactMatch.name", "member exactMatch name is required", "")
    if selector.regex_match is not None:
        yield from _pattern_errors(selector.regex_match.pattern, f"{below}.regexMatch.pattern")
    if selector.label_match is not None:
        yield from SELECTOR_TERMS.exceeded_by(f"{below}.labelMatch", _terms(selector.label_match))


def _pattern_errors(pattern: str, path: str) -> Iterator[FieldError]:
    if not pattern:
        yield FieldError(path, "member regexMatch pattern is required", pattern)
        return
    try:
        steps_of(pattern)
    except PatternError as error:
        yield FieldError(path, f"member regexMatch pattern is invalid: {error}", pattern)


def idle_members(hyper_node: HyperNode) -> Iterator[str]:
    """Yield a warning for each member that matches nothing, as in Volcano, which accepts them."""
    for index, member in enumerate(hyper_node.spec.members):
        selector, path = member.selector, f"{PATH}[{index}]"
        if member.type == "HyperNode" and selector.exact_match is None:
            yield f"{path} takes no HyperNode: they are taken by exactMatch only"
        elif selector.label_match is not None and not _terms(selector.label_match):
            yield f"{path} takes no node: an empty labelMatch matches none"


def _terms(selector: LabelSelector) -> int:
    return len(selector.match_labels) + len(selector.match_expressions)
