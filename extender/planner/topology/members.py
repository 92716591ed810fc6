"""Which nodes are direct members of which HyperNodes: by name, by patterns of names, by labels (as in Volcano).

What it costs is in proportion to the names that are listed, plus a look at each node where there are patterns or
labels, whatever the number of HyperNodes: names are looked up, all patterns are compared in one pass, and label
selectors are found by a label that they ask for.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.queries import Requirements, requirements
from extender.planner.topology.patternset import PatternSet
from muster.api.kubernetes.core import Node
from muster.api.limits import PLACES
from muster.api.volcano.topology import HyperNodeSpec

Numbers = NDArray[np.int32]
_Selected = list[tuple[int, Requirements]]


@dataclass(frozen=True, slots=True)
class Members:
    """The members of one HyperNode."""

    names: tuple[str, ...] = ()
    """Of nodes, each once; they need not exist."""
    patterns: tuple[str, ...] = ()
    selectors: tuple[Requirements, ...] = ()
    children: tuple[str, ...] = ()
    """Of HyperNodes, each once; they need not exist."""


def members_of(spec: HyperNodeSpec) -> Members:
    """The members as a spec names them; HyperNodes are taken by name only, and an empty selector takes nothing."""
    of_nodes = [member.selector for member in spec.members if member.type == "Node"]
    children = [member.selector.exact_match for member in spec.members if member.type == "HyperNode"]
    selectors = [requirements(each.label_match) for each in of_nodes if each.label_match]
    return Members(
        tuple(dict.fromkeys(each.exact_match.name for each in of_nodes if each.exact_match)),
        tuple(dict.fromkeys(each.regex_match.pattern for each in of_nodes if each.regex_match)),
        tuple(each for each in selectors if each),
        tuple(dict.fromkeys(each.name for each in children if each)),
    )


class Matcher:
    """Finds the nodes of some HyperNodes, which are numbers here."""

    def __init__(self, members: Mapping[int, Members]) -> None:
        self._named: dict[str, list[int]] = {}
        self._by_label: dict[str, dict[str | None, _Selected]] = {}
        """Key → value → selectors that ask for it; under None those that take any value."""
        self._other_selectors: _Selected = []
        """Selectors that ask for no label: they are compared with every node."""
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
        self._looks = bool(by_pattern or self._by_label or self._other_selectors)

    def pairs(
        self, nodes: Sequence[Node | None], index: Mapping[str, int], columns: Sequence[int] | None = None
    ) -> tuple[Numbers, Numbers]:
        """Numbers of HyperNodes, and columns of their nodes, each pair once; of these columns, or of all.

        Of a node that is in more than `PLACES` of them, only that many and one are told.
        """
        numbers, found_in = array("i"), array("i")
        if columns is None and not self._looks:  # names only: what they cost does not depend on the nodes
            columns = sorted({index[name] for name in self._named if name in index})
        for column in range(len(nodes)) if columns is None else columns:
            node = nodes[column]
            if node is None:
                continue
            found = self._of(node)
            numbers.extend(found)
            found_in.extend([column] * len(found))
        return _array(numbers), _array(found_in)

    def _of(self, node: Node) -> list[int]:
        name, labels = node.metadata.name, node.metadata.labels
        found = list(self._named.get(name, ()))
        if self._looks:
            for number in self._patterns.found_in(name):
                found += self._with_pattern[number]
            for selectors in self._likely(labels):
                found += [number for number, selector in selectors if all(each.holds(labels) for each in selector)]
            if len(found) > 1:
                found = list(dict.fromkeys(found))
        return found[: PLACES.value + 1]

    def _likely(self, labels: Mapping[str, str]) -> Iterable[_Selected]:
        """The selectors that these labels may match."""
        yield self._other_selectors
        keys = labels if len(labels) < len(self._by_label) else self._by_label
        for key in keys:
            if key in labels and (by_value := self._by_label.get(key)):
                yield by_value.get(labels[key], [])
                yield by_value.get(None, [])

    def _file(self, number: int, selector: Requirements) -> None:
        """Puts a selector where the fewest nodes come by: under a value, else under a key, that it asks for."""
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


def _array(numbers: "array[int]") -> Numbers:
    return np.frombuffer(numbers, dtype=np.int32) if numbers else np.zeros(0, dtype=np.int32)
