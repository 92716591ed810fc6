"""Network topology: Volcano's HyperNode (topology.volcano.sh/v1alpha1) and Kueue's Topology.

RE2 matches the patterns of users, as in Go, in a time that is linear in the length of the text. Python's own engine for
regular expressions backtracks, so a short pattern could keep it busy for years.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import re2
from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.fields import FieldError
from muster.api.kubernetes.meta import Condition, LabelSelector, Object
from muster.api.limits import MEMBERS, PATTERN_CHARS, PATTERN_STEPS, PATTERNS, SELECTOR_TERMS

MemberType = Literal["Node", "HyperNode"]
_MEMORY_BYTES: Final = 1 << 20
"""Memory for the compiled program of one pattern. A pattern exceeds the limit on steps long before it needs this
memory."""


class ExactMatch(Wire):
    """Selects one member by its name."""

    name: str
    """Name of a node or HyperNode, which need not exist yet."""


class RegexMatch(Wire):
    """Selects nodes by a pattern of their names."""

    pattern: str
    """A regular expression in RE2 syntax, searched for anywhere in the name: `node-1` also matches `node-10`."""


class MemberSelector(Wire):
    """A selector of nodes or HyperNodes; exactly one of the three fields is set."""

    exact_match: ExactMatch | None = None
    """Selects one member by name; HyperNodes can only be selected in this way."""
    regex_match: RegexMatch | None = None
    """Selects nodes whose names match a pattern."""
    label_match: LabelSelector | None = None
    """Selects nodes with these labels; an empty selector matches no node."""


class HyperNodeMember(Wire):
    """An entry of a HyperNode's members: a selector for nodes, or the name of another HyperNode."""

    type: MemberType
    """Type of the members: Node or HyperNode."""
    selector: MemberSelector = field(default_factory=MemberSelector)
    """Selector for the members."""


class HyperNodeSpec(Wire):
    """spec of a HyperNode."""

    tier: Annotated[int, Meta(ge=0)]
    """Level of the HyperNode in the network topology. The lower the tier, the closer the nodes are to each other."""
    tier_name: str = ""
    """Name of the network level, which users can write in place of its number."""
    members: list[HyperNodeMember] = field(default_factory=list)
    """Members: nodes, or HyperNodes of lower tiers."""


class HyperNodeStatus(Wire):
    """status of a HyperNode; the planner writes it."""

    conditions: list[Condition] = field(default_factory=list)
    """The condition `Valid`, which lists the errors of the HyperNode. It is absent until an error has occurred."""
    node_count: Annotated[int, Meta(ge=0)] = 0
    """Number of existing direct members: nodes, and HyperNodes (each counts as one)."""


class HyperNode(Object):
    """Nodes that are close to each other in the network, such as the nodes of a rack, a block or a switch."""

    spec: HyperNodeSpec = field(default_factory=lambda: HyperNodeSpec(tier=0))
    """Desired state."""
    status: HyperNodeStatus = field(default_factory=HyperNodeStatus)
    """Observed state; the planner writes it."""


class TopologyLevel(Wire):
    """One level of a Topology."""

    node_label: str
    """Key of a node label; nodes with equal values form one domain."""


class TopologySpec(Wire):
    """spec of a Topology."""

    levels: list[TopologyLevel] = field(default_factory=list)
    """The levels, from the outermost to the innermost."""


class Topology(Object):
    """Kueue's object that describes the network by levels of node labels.

    Muster reads Topologies if their CRD is installed.
    """

    spec: TopologySpec = field(default_factory=TopologySpec)
    """The levels of the topology."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Label keys of the levels, outermost first."""
        return tuple(level.node_label for level in self.spec.levels)


HYPER_NODES = Resource("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", HyperNode, namespaced=False)
TOPOLOGIES = Resource("kueue.x-k8s.io", "v1beta2", "topologies", "Topology", Topology, namespaced=False)
"""Kueue's Topology. Kueue also serves this kind in other versions; the fields that Muster reads are the same in all of
them."""


PATH = "spec.members"


def hyper_node_errors(hyper_node: HyperNode) -> Iterator[FieldError]:
    """Yield every error that prevents a HyperNode from being a domain."""
    members = hyper_node.spec.members
    if not members:
        yield FieldError(PATH, "member must have at least one member", [])
    yield from MEMBERS.exceeded_by(PATH, len(members))
    yield from PATTERNS.exceeded_by(PATH, sum(member.selector.regex_match is not None for member in members))
    if len(members) > MEMBERS.value:
        return
    for index, member in enumerate(members):
        yield from _member_errors(member, f"{PATH}[{index}]")


def _member_errors(member: HyperNodeMember, path: str) -> Iterator[FieldError]:
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
    """Yield a warning for each member that can match nothing; Volcano accepts such a member without a warning."""
    for index, member in enumerate(hyper_node.spec.members):
        selector, path = member.selector, f"{PATH}[{index}]"
        if member.type == "HyperNode" and selector.exact_match is None:
            yield f"{path} matches no HyperNode: use exactMatch, the only selector for HyperNodes"
        elif selector.label_match is not None and not _terms(selector.label_match):
            yield f"{path} matches no node: list labels, because an empty labelMatch matches no node"


def _terms(selector: LabelSelector) -> int:
    return len(selector.match_labels) + len(selector.match_expressions)


class PatternError(ValueError):
    """A pattern that cannot be used; the message explains why."""


def steps_of(pattern: str) -> int:
    """Return the number of steps in RE2's program for a pattern; raise PatternError for an unusable pattern."""
    if len(pattern) > PATTERN_CHARS.value:
        raise PatternError(
            f"the pattern has {len(pattern)} characters; {PATTERN_CHARS.value} are allowed ({PATTERN_CHARS.name})"
        )
    try:
        steps = int(re2.compile(pattern, options(_MEMORY_BYTES)).programsize)
    except re2.error as error:
        raise PatternError(_text(error)) from error
    except UnicodeEncodeError as error:
        raise PatternError("the pattern is not valid Unicode") from error
    if steps > PATTERN_STEPS.value:
        raise PatternError(f"the pattern takes {steps} steps; {PATTERN_STEPS.value} are allowed ({PATTERN_STEPS.name})")
    return steps


def options(memory_bytes: int) -> Any:
    """Return RE2's options: Go's semantics, without capture groups, and without output to the log."""
    found = re2.Options()
    found.max_mem = memory_bytes
    found.log_errors = False
    found.never_capture = True
    return found


def _text(error: Exception) -> str:
    """Return the message of an RE2 error as text, because RE2 raises it as bytes."""
    text = error.args[0] if error.args else ""
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text)
