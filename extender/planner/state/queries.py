"""Queries: label selectors over pods, the queries that a pod matches, and the number of matching pods on every node.

A *query* is the selector of an affinity term or a spread constraint: pods in some namespaces with some labels. Queries
are interned and die with the last pod class that has them. Each has a *mark*; a pod class carries the marks of all
queries that its pods match, so that counting pods per mark needs no labels.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from weakref import WeakValueDictionary, ref

import msgspec
import numpy as np
from numpy.typing import NDArray

from muster.api.kubernetes.meta import LabelSelector
from muster.resources.labels import Requirement, Requirements

Mark = tuple[Hashable, ...]
Labels = Mapping[str, str]
_SLACK = 100


def requirements(selector: LabelSelector) -> Requirements:
    """Return the conditions of a selector; without any it matches everything."""
    equal = (Requirement(key, "In", frozenset((value,))) for key, value in selector.match_labels.items())
    rest = (Requirement(one.key, one.operator, frozenset(one.values)) for one in selector.match_expressions)
    return tuple(sorted({*equal, *rest}, key=str))


@dataclass(frozen=True, slots=True)
class Part:
    """Pods with these labels in these namespaces, or in namespaces with these labels."""

    labels: Requirements
    namespaces: frozenset[str]
    namespace_labels: Requirements | None = None

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Return True if it matches a pod."""
        return all(one.holds(labels) for one in self.labels) and (
            namespace in self.namespaces
            or (self.namespace_labels is not None and all(one.holds(namespace_labels) for one in self.namespace_labels))
        )


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Query:
    """Pods that match every part, interned by `QueryTable`: compare queries by identity.

    The mark of a query that leaves out pods which are being deleted begins with "staying", that of others with "all".
    """

    key: bytes
    mark: Mark
    parts: tuple[Part, ...]
    pair: tuple[str, str] | None
    """A label that every matching pod has; None if there is none."""

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Return True if it matches a pod with these labels in this namespace."""
        if self.pair is not None and labels.get(self.pair[0]) != self.pair[1]:
            return False
        return all(part.matches(namespace, labels, namespace_labels) for part in self.parts)

    def __str__(self) -> str:
        return " and ".join(", ".join(map(str, part.labels)) or "any" for part in self.parts)


class QueryTable:
    """All queries in use, found by a label that their pods must have."""

    def __init__(self) -> None:
        self.namespaces: dict[str, Labels] = {}
        self.fresh: list[Query] = []
        """New queries, with which known pods have not been compared."""
        self._queries: WeakValueDictionary[bytes, Query] = WeakValueDictionary()
        self._by_pair: dict[tuple[str, str] | None, list[ref[Query]]] = {}
        self._indexed = 0
        self._numbers = count(1)

    def on_namespace(self, name: str, labels: Labels | None) -> bool:
        """Take the labels of a namespace (None: it is gone); return True if that may change matches of a query."""
        if labels is None:
            self.namespaces.pop(name, None)
        elif self.namespaces.get(name) == labels:
            return False
        else:
            self.namespaces[name] = labels
        return any(part.namespace_labels for query in self.alive() for part in query.parts)

    def intern(self, parts: Iterable[Part], *, staying: bool = False) -> Query:
        """Return the query with these parts; `staying` leaves out pods that are being deleted."""
        parts = tuple(parts)
        key = msgspec.msgpack.encode([staying, [_plain(part) for part in parts]])
        known = self._queries.get(key)
        if known is None:
            pairs = (
                (one.key, next(iter(one.values)))
                for part in parts
                for one in part.labels
                if one.operator == "In" and len(one.values) == 1
            )
            mark = ("staying" if staying else "all", next(self._numbers))
            known = self._queries[key] = Query(key, mark, parts, next(pairs, None))
            self.fresh.append(known)
            self._index(known)
        return known

    def matching(self, namespace: str, labels: Labels) -> frozenset[Mark]:
        """Return the marks of all queries that match a pod with these labels in this namespace."""
        if not self._queries:
            return frozenset()
        namespace_labels = self.namespaces.get(namespace, {})
        found = []
        for pair in (None, *labels.items()):
            for weak in self._by_pair.get(pair, ()):
                query = weak()
                if query is not None and query.matches(namespace, labels, namespace_labels):
                    found.append(query.mark)
        return frozenset(found)

    def means(self, query: Query, namespace: str, labels: Labels) -> bool:
        """Return True if the query matches a pod with these labels in this namespace."""
        return query.matches(namespace, labels, self.namespaces.get(namespace, {}))

    def alive(self) -> list[Query]:
        """Return all queries that pod classes have."""
        return list(self._queries.values())

    def _index(self, query: Query) -> None:
        self._by_pair.setdefault(query.pair, []).append(ref(query))
        self._indexed += 1
        if self._indexed > 2 * len(self._queries) + _SLACK:  # most of the index is of queries that are gone
            alive = self.alive()
            self._by_pair, self._indexed = {}, 0
            for one in alive:
                self._index(one)


def _plain(part: Part) -> list[object]:
    def plain(conditions: Requirements | None) -> object:
        return conditions and [[one.key, one.operator, sorted(one.values)] for one in conditions]

    return [plain(part.labels), sorted(part.namespaces), plain(part.namespace_labels), part.namespace_labels is None]


Counts = NDArray[np.int32]


@dataclass(slots=True)
class _Tally:
    counts: Counts
    total: int = 0
    shared: bool = False


class PodCounts:
    """Pods per mark on every node, int32 of shape (nodes,); arrays that a snapshot shares are copied on write."""

    def __init__(self) -> None:
        self._size = 0
        self._tallies: dict[Mark, _Tally] = {}

    def grow(self, size: int) -> None:
        """Grow to so many nodes."""
        for tally in self._tallies.values():
            tally.counts = np.pad(tally.counts, (0, size - self._size))
            tally.shared = False
        self._size = size

    def add(self, marks: Iterable[Mark], column: int, pods: int) -> None:
        """Count so many more (or fewer) pods with these marks on the node in `column`."""
        for mark in marks:
            tally = self._tallies.get(mark)
            if tally is None:
                tally = self._tallies[mark] = _Tally(np.zeros(self._size, dtype=np.int32))
            elif tally.shared:
                tally.counts, tally.shared = tally.counts.copy(), False
            tally.counts[column] += pods
            tally.total += pods
            if not tally.total:
                del self._tallies[mark]

    def share(self) -> dict[Mark, Counts]:
        """Return the counts as they are now; they are not changed afterwards and may not be changed."""
        for tally in self._tallies.values():
            tally.shared = True
        return {mark: tally.counts for mark, tally in self._tallies.items()}
