"""Queries, which are label selectors over pods, and the queries that a pod matches.

A *query* is the selector of an affinity term or a spread constraint: pods in some namespaces with some labels. Queries
are interned; a query is freed with the last pod class that uses it. Each query has a *mark*. A pod class has the marks
of all queries that its pods match. `planner.state.podcounts` can therefore count the pods per mark without evaluating
labels.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from weakref import WeakValueDictionary, ref

import msgspec

from extender.planner.state.amounts import tally
from muster.api.kubernetes.meta import LabelSelector
from muster.api.limits import OWN_QUERIES, TOPOLOGY_KEYS, WIDE_QUERIES
from muster.resources.labels import Requirement, Requirements

Mark = tuple[Hashable, ...]
Labels = Mapping[str, str]


def requirements(selector: LabelSelector) -> Requirements:
    """Return the conditions of a selector; a selector without conditions matches everything."""
    equal = (Requirement(key, "In", frozenset((value,))) for key, value in selector.match_labels.items())
    rest = (Requirement(one.key, one.operator, frozenset(one.values)) for one in selector.match_expressions)
    return tuple(sorted({*equal, *rest}, key=str))


Anchor = tuple[str, str | None] | None
"""A label that every pod that matches a query has, with the value if it is fixed; None if there is no such label."""

Account = tuple[str, bool]
"""Namespace of the pods that use the query, and True if the query is only about pods of the same namespace."""
_BY_LABELS: Account = "", False
"""Account under which queries that depend on labels of namespaces are counted."""


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Selector of pods by labels, in listed namespaces or in namespaces with certain labels."""

    labels: Requirements
    namespaces: frozenset[str]
    namespace_labels: Requirements | None = None

    def reaches(self, namespace: str, namespace_labels: Labels) -> bool:
        """Return True if the selector may match pods of a namespace with these labels."""
        return namespace in self.namespaces or (
            self.namespace_labels is not None and all(one.holds(namespace_labels) for one in self.namespace_labels)
        )

    @property
    def conditions(self) -> int:
        """Cost of a comparison with the selector: the number of conditions on labels, and of listed namespaces."""
        return len(self.labels) + len(self.namespaces) + len(self.namespace_labels or ())


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Query:
    """Selection of the pods that match all selectors in `parts`; `QueryTable` interns queries.

    The mark of a query begins with "staying" if the query excludes pods that are being deleted, otherwise with "all".
    """

    key: bytes
    mark: Mark
    parts: tuple[PodSelector, ...]
    account: Account
    places: frozenset[str] | None
    """The only namespaces in which pods can match the query; None if labels select the namespaces."""
    anchor: Anchor
    work: int
    """Cost of comparing a pod with the query: 1, plus the number of conditions to check."""
    topology_keys: set[str] = field(default_factory=set)
    """Topology keys of the rules that use this query."""

    def takes(self, topology_key: str) -> bool:
        """Return True if a rule with this topology key may use the query; the number of keys per query is limited."""
        if len(self.topology_keys) < TOPOLOGY_KEYS.value:
            self.topology_keys.add(topology_key)
        return topology_key in self.topology_keys

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Return True if the query matches a pod with these labels in this namespace."""
        if self.anchor is not None:
            key, value = self.anchor
            if key not in labels or (value is not None and labels[key] != value):
                return False
        for part in self.parts:  # `all()` would take twice the time
            for one in part.labels:
                if not one.holds(labels):
                    return False
            if namespace not in part.namespaces and not part.reaches(namespace, namespace_labels):
                return False
        return True

    def reaches(self, namespace: str, namespace_labels: Labels) -> bool:
        """Return True if the query may match pods of a namespace with these labels."""
        return all(part.reaches(namespace, namespace_labels) for part in self.parts)

    def __str__(self) -> str:
        return " and ".join(", ".join(map(str, part.labels)) or "any" for part in self.parts)


def anchors_of(labels: Labels) -> list[Anchor]:
    """Return the anchors of queries that may match a pod with these labels."""
    return [None, *labels.items(), *((key, None) for key in labels)]


class Marks(tuple[Mark, ...]):
    """A sorted set of marks that needs an eighth of the memory of a `set`; a pod may have a thousand marks."""

    __slots__ = ()

    def __contains__(self, mark: object) -> bool:
        place = bisect_left(self, mark)  # type: ignore[call-overload]  # marks can be compared
        return place < len(self) and self[place] == mark


NO_MARKS = Marks()


class QueryTable:
    """All queries in use, indexed by namespace and by a label that matching pods must have.

    The number of queries that pods of one namespace may have is limited, because each query may also be compared with
    the pods of other namespaces.
    """

    def __init__(self) -> None:
        self.namespaces: dict[str, Labels] = {}
        self.fresh: list[Query] = []
        """New queries that have not been compared with the existing pods yet."""
        self._queries: WeakValueDictionary[bytes, Query] = WeakValueDictionary()
        self._known: dict[Mark, tuple[tuple[Account, ...], tuple[str | None, ...], Anchor]] = {}
        """Maps a mark to the accounts, namespaces and anchor under which the mark's query is in the index."""
        self._gone: deque[Mark] = deque()
        """Marks of queries that no pod uses any more but that are still in the index."""
        self._index: dict[str | None, dict[Anchor, dict[Mark, ref[Query]]]] = {}
        """Maps a namespace (None: any namespace), an anchor and a mark to the query."""
        self._asked: Counter[Account] = Counter()
        self._numbers = count(1)

    def on_namespace(self, name: str, labels: Labels | None) -> bool:
        """Update a namespace's labels (None: the namespace is gone); return True if matches of queries may change."""
        if labels is None:
            self.namespaces.pop(name, None)
        elif self.namespaces.get(name) == labels:
            return False
        else:
            self.namespaces[name] = labels
        self._sweep()
        return bool(self._asked[_BY_LABELS])

    def near(self, namespace: str) -> int:
        """Return the approximate number of queries with which a pod of this namespace is compared."""
        return sum(len(queries) for place in (namespace, None) for queries in self._index.get(place, {}).values())

    def intern(self, parts: Iterable[PodSelector], owner: str, *, staying: bool = False) -> Query | None:
        """Return the query with these parts for pods in namespace `owner`; None if the namespace has too many queries.

        With `staying`, the query excludes pods that are being deleted.
        """
        parts = tuple(parts)
        key = msgspec.msgpack.encode([owner, staying, [_plain(part) for part in parts]])
        known = self._queries.get(key)
        if known is None:
            self._sweep()
            places = _places(parts)
            account = owner, places == frozenset((owner,))
            if self._asked[account] >= (OWN_QUERIES if account[1] else WIDE_QUERIES).value:
                return None
            mark = ("staying" if staying else "all", next(self._numbers))
            work = 1 + sum(part.conditions for part in parts)
            known = self._queries[key] = Query(key, mark, parts, account, places, _anchor(parts), work)
            self._enter(known)
            self.fresh.append(known)
        return known

    def matching(self, namespace: str, labels: Labels) -> Marks:
        """Return the marks of all queries that match a pod with these labels in the namespace."""
        self._sweep()
        tables = [table for place in (namespace, None) if (table := self._index.get(place)) is not None]
        if not tables:
            return NO_MARKS
        namespace_labels = self.namespaces.get(namespace, {})
        found = []
        for anchor in anchors_of(labels):
            for table in tables:
                for weak in table.get(anchor, {}).values():
                    query = weak()
                    if query is not None and query.matches(namespace, labels, namespace_labels):
                        found.append(query.mark)
        return Marks(sorted(found)) if found else NO_MARKS

    def alive(self) -> list[Query]:
        """Return all queries that pod classes use."""
        return list(self._queries.values())

    def still(self, marks: Iterable[Mark]) -> Iterator[Mark]:
        """Yield the marks whose queries pod classes still use."""
        self._sweep()
        return (mark for mark in marks if mark in self._known)

    def _enter(self, query: Query) -> None:
        """Add a query to the index.

        When a query is freed, possibly in the planner's thread, only its mark is recorded for later removal.
        """
        mark, anchor = query.mark, query.anchor
        by_labels = any(part.namespace_labels for part in query.parts)
        accounts = (query.account, _BY_LABELS) if by_labels else (query.account,)
        places = (None,) if query.places is None else tuple(query.places)
        self._known[mark] = accounts, places, anchor
        weak = ref(query, lambda _: self._gone.append(mark))
        for account in accounts:
            self._asked[account] += 1
        for place in places:
            self._index.setdefault(place, {}).setdefault(anchor, {})[mark] = weak

    def _sweep(self) -> None:
        """Remove queries that no pod uses any more from the index."""
        while self._gone:
            mark = self._gone.popleft()
            accounts, places, anchor = self._known.pop(mark)
            for account in accounts:
                tally(self._asked, account, -1)
            for place in places:
                table = self._index[place]
                del table[anchor][mark]
                if not table[anchor]:
                    del table[anchor]
                if not table:
                    del self._index[place]


def _places(parts: tuple[PodSelector, ...]) -> frozenset[str] | None:
    """Return the namespaces to which a query is limited: the shortest list among its parts; None without a list."""
    return min((part.namespaces for part in parts if part.namespace_labels is None), key=len, default=None)


def _anchor(parts: tuple[PodSelector, ...]) -> Anchor:
    """Return a label that all pods that match the parts have, preferably a label with a fixed value."""
    having = [one for part in parts for one in part.labels if one.operator in {"In", "Exists"}]
    pairs = ((one.key, next(iter(one.values))) for one in having if one.operator == "In" and len(one.values) == 1)
    keys = ((one.key, None) for one in having)
    return next(pairs, None) or next(keys, None)


def _plain(part: PodSelector) -> list[object]:
    def plain(conditions: Requirements | None) -> object:
        return conditions and [[one.key, one.operator, sorted(one.values)] for one in conditions]

    return [plain(part.labels), sorted(part.namespaces), plain(part.namespace_labels), part.namespace_labels is None]
