"""Labels, names and taints of all nodes as small integers, so that conditions are evaluated for all nodes at once.

For each label key, an array contains a number per node that represents the node's value. A condition is evaluated once
for each distinct value of its key, and the array maps the results to nodes. The evaluation of a user's condition
therefore runs no Python code per node. The arrays of label values are kept from cycle to cycle, and updated only for
nodes that have changed.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Mask
from muster.api.kubernetes.constraints import NodeSelector, Toleration
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.meta import LabelSelectorRequirement

Columns = NDArray[np.intp]
Domains = NDArray[np.intp]
"""Each node's number for its value of a label, in numpy's index type, which avoids conversions."""
MOST_CELLS = 2**23
"""Maximum number of cached label values (8 bytes each), one per node and key; the most recently used keys are kept."""
_NAME: Final = ""
"""The key that represents the node's name; the empty text is not a valid label key."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_CHARS = 256
_LARGEST = 2**63 - 1


class Taints(NamedTuple):
    """The taints of a node that repel pods, in the order in which the node lists the taints."""

    cordoned: bool = False
    taints: tuple[tuple[str, str, str], ...] = ()
    """Key, value and effect of each taint."""


@dataclass(slots=True)
class _Values:
    """The values of one label key at one generation of the nodes: a number per node, -1 without the label."""

    codes: Domains = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    values: dict[Hashable, int] = field(default_factory=dict)
    seen: int = -1
    integers: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Integers parsed from the label values, without values that are newer (`_with_integers`)."""
    written: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Mask of the label values that can be parsed as integers."""


class LabelCache:
    """Values of labels by key, kept from cycle to cycle for the keys that were updated last."""

    def __init__(self) -> None:
        self.known: dict[str, _Values] = {}
        self.taints = _Values()
        self.present: set[str] = set()
        """Label keys that nodes have or had, including deleted nodes."""
        self._seen, self._changes = -1, 0

    def note_keys(self, nodes: Sequence[Node | None], changed: NDArray[np.int64], generation: int) -> None:
        """Record the label keys of nodes that have changed."""
        fresh: Columns = np.flatnonzero(changed > (self._seen if self._seen <= generation else -1))
        self._changes += len(fresh)
        if self._changes > 2 * len(nodes):  # most keys may belong to deleted nodes
            self.present, fresh, self._changes = set(), np.arange(len(nodes)), len(nodes)
        for column in fresh:
            node = nodes[column]
            if node is not None:
                self.present.update(node.metadata.labels)
        self._seen = generation

    def keep(self, key: str, values: _Values, nodes: int) -> None:
        """Store the values of a label key. Beyond `MOST_CELLS`, drop the keys that were updated least recently."""
        self.known.pop(key, None)
        while len(self.known) >= max(1, MOST_CELLS // max(1, nodes)):
            del self.known[next(iter(self.known))]
        self.known[key] = values


class NodeLabels:
    """The labels of one cycle's nodes, with the generations in which each node and any node last changed."""

    def __init__(
        self, cache: LabelCache, nodes: Sequence[Node | None], changed: NDArray[np.int64], generation: int
    ) -> None:
        self._cache, self._nodes, self._changed, self._generation = cache, nodes, changed, generation
        cache.note_keys(nodes, changed, generation)
        self._missing = _Values(np.full(len(nodes), -1, dtype=np.intp))

    def of(self, key: str) -> tuple[Domains, int]:
        """Return each node's value as a number (intp of shape (nodes,), -1: no label), and how many values exist."""
        known = self._of(key)
        return known.codes, len(known.values)

    def there(self, columns: Columns) -> Mask:
        """Return a mask of these columns that is True for columns of existing nodes."""
        return self._of(_NAME).codes[columns] >= 0

    def having(self, requirement: LabelSelectorRequirement, columns: Columns, key: str | None = None) -> Mask:
        """Return the mask of these nodes, True for nodes whose labels meet a condition.

        `key`, if given, replaces the key of the condition.
        """
        known = self._of(requirement.key if key is None else key)
        there = np.zeros(len(known.values) + 1, dtype=np.bool_)  # -1 (no such label) reads the last entry
        match requirement.operator:
            case "In" | "NotIn":
                there[[number for each in requirement.values if (number := known.values.get(each)) is not None]] = True
                if requirement.operator == "NotIn":
                    there = ~there
            case "Exists":
                there[:-1] = True
            case "DoesNotExist":
                there[-1] = True
            case "Gt" | "Lt":
                bound = _integer(requirement.values[0] if len(requirement.values) == 1 else None)
                if bound is not None:
                    _with_integers(known)
                    least = known.integers > bound if requirement.operator == "Gt" else known.integers < bound
                    there[:-1] = known.written & least
            case _:
                pass
        return there[known.codes[columns]]

    def selected(self, labels: Mapping[str, str], columns: Columns) -> Mask:
        """Return the mask of these nodes, True for nodes that have all the given labels."""
        conditions = (LabelSelectorRequirement(key, "In", [value]) for key, value in labels.items())
        return self._all((self.having(each, columns) for each in conditions), columns)

    def matching(self, selector: NodeSelector, columns: Columns, *, labels_only: bool = False) -> Mask:
        """Return the mask of nodes that match one of the terms; a term without requirements matches no node.

        With `labels_only`, requirements on node fields are ignored, as kube-scheduler does for the node affinity of
        volumes.
        """
        found: Mask = np.zeros(len(columns), dtype=np.bool_)
        for term in selector.node_selector_terms:
            if term.match_expressions or term.match_fields:
                fields = () if labels_only else term.match_fields
                by_fields = (self.having(each, columns, _field(each.key)) for each in fields)
                by_labels = (self.having(each, columns) for each in term.match_expressions)
                found |= self._all(by_labels, columns) & self._all(by_fields, columns)
        return found & self.there(columns)

    def by_taints(self, answer: Callable[[Taints | None], int], columns: Columns) -> NDArray[np.int16]:
        """Call `answer` with the taints of each of these nodes; return the results.

        Each distinct set of taints is evaluated once; `answer` receives None for columns without a node.
        """
        known = self._cache.taints = self._renewed(self._cache.taints, _taints_of)
        answers = np.array([*map(answer, known.values), answer(None)], dtype=np.int16)  # type: ignore[arg-type]
        return answers[known.codes[columns]]

    @staticmethod
    def _all(masks: Iterable[Mask], columns: Columns) -> Mask:
        found: Mask = np.ones(len(columns), dtype=np.bool_)
        for each in masks:
            found &= each
        return found

    def _of(self, key: str) -> _Values:
        if key != _NAME and key not in self._cache.present:  # users can name unknown keys
            return self._missing
        before = self._cache.known.get(key) or _Values()
        known = self._renewed(
            before, lambda node: node.metadata.labels.get(key) if key != _NAME else node.metadata.name
        )
        if known is not before:
            self._cache.keep(key, known, len(self._nodes))
        return known

    def _renewed(self, known: _Values, value_of: Callable[[Node], Hashable]) -> _Values:
        """Return the known values, updated for nodes that have changed; do not modify `known` itself."""
        size = len(self._nodes)
        if known.seen == self._generation and len(known.codes) == size:
            return known
        if len(known.values) > 2 * size or known.seen >= self._generation:  # most values may belong to deleted nodes
            known = _Values()
        fresh: Domains = np.full(size, -1, dtype=np.intp)
        values = dict(known.values)  # a verb in another thread may read the old map
        for column in carried_over(known.codes, fresh, self._changed > known.seen):
            node = self._nodes[column]
            value = value_of(node) if node else None
            fresh[column] = -1 if value is None else values.setdefault(value, len(values))
        return replace(known, codes=fresh, values=values, seen=self._generation)


def _with_integers(known: _Values) -> None:
    """Parse the label values as integers, unless all label values have already been parsed."""
    if len(known.integers) < len(known.values):
        found = [_integer(value) for value in known.values]
        known.written = np.array([each is not None for each in found], dtype=np.bool_)
        known.integers = np.array([each or 0 for each in found], dtype=np.int64)


def carried_over(known: NDArray[Any], fresh: NDArray[Any], changed: Mask) -> Columns:
    """Copy the known values; return the columns of changed and new nodes, whose values must be computed."""
    fresh[: len(known)] = known
    changed[len(known) :] = True
    return np.flatnonzero(changed)


def tolerated_by(tolerations: Iterable[Toleration]) -> Callable[[tuple[str, str, str]], bool]:
    """Return a function that is True for a taint (key, value, effect) that one of these tolerations covers."""
    by_key: dict[str, list[Toleration]] = {}
    for each in tolerations:
        by_key.setdefault(each.key, []).append(each)
    any_key = [each for each in by_key.pop("", ()) if each.operator == "Exists"]

    def covered(taint: tuple[str, str, str]) -> bool:
        key, value, effect = taint
        return any(
            (not each.effect or each.effect == effect)
            and (each.operator == "Exists" or (each.operator in {"", "Equal"} and each.value == value))
            for each in (*by_key.get(key, ()), *any_key)
        )

    return covered


def _field(key: str) -> str:
    """Return the key that represents a node field.

    For a field that kube-scheduler does not know, the result is a key that no node has.
    """
    return _NAME if key == "metadata.name" else "\0"


def _taints_of(node: Node) -> Taints:
    return Taints(node.spec.unschedulable, tuple((each.key, each.value, each.effect) for each in node.spec.taints))


def _integer(text: object) -> int | None:
    """Return the 64-bit integer that a text contains; None, which no comparison matches, for any other text."""
    if not isinstance(text, str) or len(text) > _MAX_CHARS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_LARGEST - 1 <= number <= _LARGEST else None
