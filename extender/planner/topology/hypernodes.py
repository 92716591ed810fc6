"""The tree of HyperNodes, updated when HyperNodes, or names or labels of nodes, change.

Start reading at `HyperNodeTree.tree_of`. `members` finds the nodes of HyperNodes, and `nesting` builds the tree. A
HyperNode with a problem is excluded from the tree with a reason; the rest of the tree stays usable.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

import numpy as np

from extender.planner import reasons
from extender.planner.state.amounts import Amounts
from extender.planner.topology.members import HyperNodeMembers, Matcher, Numbers, members_of
from extender.planner.topology.nesting import Described, HyperNodeProblem, Nesting, Problems
from extender.planner.topology.tree import Tree
from muster.api.kubernetes.core import Node
from muster.api.limits import ALL_PATTERNS, TIERS
from muster.api.volcano.topology import HyperNode, hyper_node_errors

ERRORS = 3
"""Maximum number of errors that a message about one HyperNode's spec lists."""


class _Seen(Protocol):
    """Interface to the HyperNodes and nodes of a snapshot (`planner.framework.snapshot`)."""

    @property
    def hyper_nodes(self) -> Mapping[str, HyperNode]: ...
    @property
    def hyper_nodes_version(self) -> int: ...
    @property
    def nodes(self) -> Sequence[Node | None]: ...
    @property
    def index(self) -> Mapping[str, int]: ...
    @property
    def changed(self) -> Amounts: ...
    @property
    def generation(self) -> int: ...
    def name(self, column: int) -> str: ...


@dataclass(frozen=True, slots=True)
class HyperNodes:
    """The tree of HyperNodes, and the problems and members of HyperNodes."""

    tree: Tree
    problems: Mapping[str, tuple[HyperNodeProblem, ...]]
    """Maps a HyperNode to its problems; HyperNodes without problems are left out."""
    node_counts: Mapping[str, int]
    """Maps a HyperNode to the number of its existing direct members; a member HyperNode counts as one."""
    missing: Mapping[str, tuple[str, ...]]
    """Maps a HyperNode to missing members that it names; HyperNodes without any are left out."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The last version of a HyperNode that was read."""

    hyper_node: HyperNode
    members: HyperNodeMembers
    wrong: str = ""


class HyperNodeTree:
    """Members of HyperNodes, remembered from call to call; each call evaluates only changes since the last call."""

    def __init__(self) -> None:
        self._known: HyperNodes | None = None
        self._stamp = -1, -1, 0
        """Version of the HyperNodes, generation of the nodes, and number of columns at the last call."""
        self._read: dict[str, _Read] = {}
        self._described: dict[int, Described] = {}
        self._number: dict[str, int] = {}
        self._free: list[int] = []
        self._matcher: Matcher | None = None
        """Matcher of all HyperNodes, built when a node changes."""
        self._seen: list[Node | None] = []
        empty = np.zeros(0, dtype=np.int32)
        self._members: tuple[Numbers, Numbers] = (empty, empty)
        """Pairs of a HyperNode's index and a direct node's column, as two arrays."""
        self._left_out: dict[str, HyperNodeProblem] = {}

    def tree_of(self, seen: _Seen) -> HyperNodes:
        """Return the tree of HyperNodes with their problems; the result is the same object until a relevant change."""
        stamp = seen.hyper_nodes_version, seen.generation, len(seen.nodes)
        if self._known is None or self._stamp != stamp:
            version, generation, size = self._stamp
            others = seen.hyper_nodes_version != version
            read = self._read_again(seen.hyper_nodes) if others else set()
            moved = self._moved(seen, generation)
            if self._known is None or others or moved or len(seen.nodes) != size:
                self._find(seen, read, moved)
                self._known = self._made(seen)
            self._stamp = stamp
        return self._known

    def _read_again(self, hyper_nodes: Mapping[str, HyperNode]) -> set[int]:
        """Read changed HyperNodes; return the indexes of HyperNodes with members to determine again or to remove."""
        for name in self._read.keys() - hyper_nodes.keys():
            del self._read[name]
        for name, hyper_node in hyper_nodes.items():
            known = self._read.get(name)
            if known is None or known.hyper_node.spec != hyper_node.spec:
                self._read[name] = _reading(hyper_node)
        wanted = {each.name: each for each in self._usable()}
        changed = {number for name, number in self._number.items() if wanted.get(name) != self._described[number]}
        for name in [name for name in self._number if name not in wanted]:
            number = self._number.pop(name)
            del self._described[number]
            self._free.append(number)
        for name, each in wanted.items():
            if name not in self._number:
                self._number[name] = self._free.pop() if self._free else len(self._number)
                changed.add(self._number[name])
            self._described[self._number[name]] = each
        if changed:
            self._matcher = None
        return changed

    def _usable(self) -> Iterator[Described]:
        """Yield the usable HyperNodes; add the problems with unusable HyperNodes to `_left_out`."""
        self._left_out = {
            name: HyperNodeProblem("Invalid", each.wrong) for name, each in self._read.items() if each.wrong
        }
        rest = {name: each for name, each in self._read.items() if not each.wrong}
        lowest = sorted({each.hyper_node.spec.tier for each in rest.values()})[: TIERS.value]
        patterns: set[str] = set()
        by_age = sorted(rest.items(), key=lambda item: (item[1].hyper_node.metadata.creation_timestamp or "", item[0]))
        for name, each in by_age:
            spec = each.hyper_node.spec
            if spec.tier > lowest[-1]:
                why = reasons.topology.too_many_tiers(most=TIERS.value, limit=TIERS.name, last=lowest[-1])
                self._left_out[name] = HyperNodeProblem("TooMany", why)
                continue
            if each.members.patterns:
                with_its = patterns.union(each.members.patterns)
                if len(with_its) > ALL_PATTERNS.value:
                    why = reasons.topology.too_many_patterns(most=ALL_PATTERNS.value, limit=ALL_PATTERNS.name)
                    self._left_out[name] = HyperNodeProblem("TooMany", why)
                    continue
                patterns = with_its
            yield Described(name, spec.tier, spec.tier_name, each.members)

    def _moved(self, seen: _Seen, generation: int) -> list[int]:
        """Return the columns of which the node or the node's labels have changed since this generation."""
        self._seen += [None] * (len(seen.nodes) - len(self._seen))
        moved = []
        for column in np.flatnonzero(seen.changed > generation).tolist():
            node, known = seen.nodes[column], self._seen[column]
            self._seen[column] = node
            before, after = (each and (each.metadata.name, each.metadata.labels) for each in (known, node))
            if before != after:
                moved.append(column)
        return moved

    def _find(self, seen: _Seen, read: set[int], moved: list[int]) -> None:
        """Find the members of changed HyperNodes among all nodes, and members of all HyperNodes among changed nodes."""
        numbers, columns = self._members
        rest = {number: each.members for number, each in self._described.items() if number not in read}
        stale = np.zeros(len(seen.nodes), dtype=np.bool_)
        stale[moved] = True
        kept = ~(np.isin(numbers, list(read)) | stale[columns])
        found = [(numbers[kept], columns[kept])]
        if read:
            mine = {number: self._described[number].members for number in read if number in self._described}
            found.append(Matcher(mine).pairs(seen.nodes, seen.index))
        if moved and rest:
            matcher = self._matcher or Matcher(rest)
            if not read:
                self._matcher = matcher
            found.append(matcher.pairs(seen.nodes, seen.index, moved))
        self._members = (np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found]))

    def _made(self, seen: _Seen) -> HyperNodes:
        problems = Problems()
        for name, problem in self._left_out.items():
            problems.add(name, problem.reason, problem.message)
        tree = Nesting(self._described, *self._members, len(seen.nodes), seen.name, problems).tree()
        own = np.bincount(self._members[0], minlength=len(self._number) + len(self._free))
        counts, missing = dict.fromkeys(self._read, 0), {}
        for name, number in self._number.items():
            children = self._described[number].members.children
            exist = [child for child in children if child in self._read]
            counts[name] = int(own[number]) + len(exist)
            if len(exist) < len(children):
                missing[name] = tuple(child for child in children if child not in self._read)
        return HyperNodes(tree, problems.all(), counts, missing)


def _reading(hyper_node: HyperNode) -> _Read:
    try:
        errors = [str(error) for error in islice(hyper_node_errors(hyper_node), ERRORS)]
        return _Read(hyper_node, HyperNodeMembers() if errors else members_of(hyper_node.spec), "; ".join(errors))
    except Exception as error:  # noqa: BLE001 - an error in one HyperNode must not affect the others
        return _Read(hyper_node, HyperNodeMembers(), reasons.exclusions.error_text(error))
