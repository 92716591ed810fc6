"""Direct members of HyperNodes: nodes by name, by patterns of names, or by labels, as in Volcano.

For any number of HyperNodes, the cost is proportional to the listed names, plus one pass over the nodes for all
patterns and labels. Names are looked up in a table. Patterns are combined into sets, and RE2 compares a name with all
patterns of a set at once, with limited memory. Label selectors are indexed by a required label.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import re2
from numpy.typing import NDArray

from extender.planner.state.queries import requirements
from muster.api.kubernetes.core import Node
from muster.api.limits import PLACES
from muster.api.volcano.topology import HyperNodeSpec, options, steps_of
from muster.resources.labels import Requirements

MOST_PATTERNS: Final = 256
MOST_STEPS: Final = 50_000
"""Maximum number of steps of all patterns in a set of patterns. With this number of steps, each of RE2's many states
takes a few hundred KB."""
_MEMORY_BYTES: Final = 64 << 20
_CANARY: Final = "\x00canary"
"""A test name, added to every set of patterns, that no node has. If a set does not match the test name, it needs more
memory than RE2 is allowed to use, and would match no node."""


class PatternSet:
    """Valid patterns of node names, numbered by their position in the list."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._sets: list[tuple[Any, list[int]]] = []
        self._single: list[tuple[Any, int]] = []
        """Patterns that are too large even for a set of their own; RE2 can still match such patterns individually."""
        if patterns:
            self._add(patterns, list(range(len(patterns))))

    def found_in(self, name: str) -> list[int]:
        """Return the indexes of the patterns that match anywhere in the name."""
        text = name.encode(errors="replace")
        found = [
            numbers[place] for one, numbers in self._sets for place in one.Match(text) or () if place < len(numbers)
        ]
        return [*found, *(number for one, number in self._single if one.search(text))] if self._single else found

    def _add(self, patterns: Sequence[str], numbers: list[int]) -> None:
        """Build a set of these patterns, or two sets if a single set has too many steps or needs too much memory."""
        few = len(numbers) <= MOST_PATTERNS and sum(steps_of(patterns[number]) for number in numbers) <= MOST_STEPS
        if few and (one := _set_of([patterns[number] for number in numbers])) is not None:
            self._sets.append((one, numbers))
        elif len(numbers) > 1:
            half = len(numbers) // 2
            self._add(patterns, numbers[:half])
            self._add(patterns, numbers[half:])
        else:
            self._single.append((re2.compile(patterns[numbers[0]], options(_MEMORY_BYTES)), numbers[0]))


def _set_of(patterns: Sequence[str]) -> Any | None:
    """Return a set of these patterns; None if the set needs more memory than RE2 is allowed to use."""
    one = re2.Set.SearchSet(options(_MEMORY_BYTES))
    for pattern in patterns:
        one.Add(pattern)
    canary = one.Add(re2.escape(_CANARY))
    try:
        one.Compile()
    except re2.error:
        return None
    return one if canary in (one.Match(_CANARY) or ()) else None


Numbers = NDArray[np.int32]
_Selected = list[tuple[int, Requirements]]


@dataclass(frozen=True, slots=True)
class HyperNodeMembers:
    """The members of one HyperNode, as listed in its spec; named nodes and HyperNodes need not exist."""

    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    selectors: tuple[Requirements, ...] = ()
    children: tuple[str, ...] = ()
    """Names of member HyperNodes."""


def members_of(spec: HyperNodeSpec) -> HyperNodeMembers:
    """Return the members in a HyperNode's spec.

    Member HyperNodes are selected only by name, and an empty selector selects nothing.
    """
    of_nodes = [member.selector for member in spec.members if member.type == "Node"]
    children = [member.selector.exact_match for member in spec.members if member.type == "HyperNode"]
    selectors = [requirements(each.label_match) for each in of_nodes if each.label_match]
    return HyperNodeMembers(
        tuple(dict.fromkeys(each.exact_match.name for each in of_nodes if each.exact_match)),
        tuple(dict.fromkeys(each.regex_match.pattern for each in of_nodes if each.regex_match)),
        tuple(each for each in selectors if each),
        tuple(dict.fromkeys(each.name for each in children if each)),
    )


class Matcher:
    """Matcher that finds the member nodes of HyperNodes, which are represented by indexes."""

    def __init__(self, members: Mapping[int, HyperNodeMembers]) -> None:
        self._named: dict[str, list[int]] = {}
        self._by_label: dict[str, dict[str | None, _Selected]] = {}
        """Maps a label key and a value (None: any value) to the selectors that require this label."""
        self._other_selectors: _Selected = []
        """Selectors that require no label, so that they are compared with every node."""
        by_pattern: dict[str, list[int]] = {}
        for number, each in members.items():
            for name in each.names:
                self._named.setdefault(name, []).append(number)
            for pattern in each.patterns:
                by_pattern.setdefault(pattern, []).append(number)
            for selector in each.selectors:
                self._file(number, selector)
        self._patterns = PatternSet(list(by_pattern))
        self._with_pattern = list(by_pattern.values())
        self._selects = bool(by_pattern or self._by_label or self._other_selectors)

    def pairs(
        self, nodes: Sequence[Node | None], index: Mapping[str, int], columns: Sequence[int] | None = None
    ) -> tuple[Numbers, Numbers]:
        """Return distinct pairs of a HyperNode and a member node's column, at most `PLACES` + 1 pairs per node."""
        numbers: list[int] = []
        found_in: list[int] = []
        if columns is None and not self._selects:  # with names only, the cost does not depend on the nodes
            columns = sorted({index[name] for name in self._named if name in index})
        for column in range(len(nodes)) if columns is None else columns:
            node = nodes[column]
            if node is None:
                continue
            found = self._of(node)
            numbers.extend(found)
            found_in.extend([column] * len(found))
        return np.array(numbers, dtype=np.int32), np.array(found_in, dtype=np.int32)

    def _of(self, node: Node) -> list[int]:
        name, labels = node.metadata.name, node.metadata.labels
        found = list(self._named.get(name, ()))
        if self._selects:
            for number in self._patterns.found_in(name):
                found += self._with_pattern[number]
            for selectors in self._likely(labels):
                found += [number for number, selector in selectors if all(each.holds(labels) for each in selector)]
            if len(found) > 1:
                found = list(dict.fromkeys(found))
        return found[: PLACES.value + 1]

    def _likely(self, labels: Mapping[str, str]) -> Iterable[_Selected]:
        """Yield the selectors that may match a node with these labels."""
        yield self._other_selectors
        keys = labels if len(labels) < len(self._by_label) else self._by_label
        for key in keys:
            if key in labels and (by_value := self._by_label.get(key)):
                yield by_value.get(labels[key], [])
                yield by_value.get(None, [])

    def _file(self, number: int, selector: Requirements) -> None:
        """Add a selector to the index under a label value that the selector requires, otherwise under a label key."""
        asked = [each for each in selector if each.operator == "In" and each.values]
        exists = [each for each in selector if each.operator == "Exists"]
        if asked:
            one = min(asked, key=lambda each: len(each.values))
            for value in one.values:
                self._by_label.setdefault(one.key, {}).setdefault(value, []).append((number, selector))
        elif exists:
            self._by_label.setdefault(exists[0].key, {}).setdefault(None, []).append((number, selector))
        else:
            self._other_selectors.append((number, selector))
