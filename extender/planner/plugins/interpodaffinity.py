"""Filters of nodes by existing pods: host ports, claims in use, required (anti-)affinity and topology spread.

The filters follow kube-scheduler's plugins NodePorts, VolumeRestrictions, PodTopologySpread and InterPodAffinity. The
counts start with the snapshot's pods and placed slots, and change with the session's decisions and rollbacks.
"""

from collections.abc import Callable, Hashable, Iterator

import numpy as np

from extender.planner import reasons
from extender.planner.framework.answers import Codes
from extender.planner.framework.operations import Eviction, Operation
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Mask
from extender.planner.state.neighbours import Spread
from extender.planner.state.podclass import PodClass
from extender.planner.state.podcounts import Counts
from extender.planner.state.podshape import ANY_ADDRESS
from extender.planner.state.queries import Mark
from muster.api.muster.reason import Reason

Refusal = tuple[Reason, Mask]
Eligible = Callable[[PodClass, Spread], Mask]
"""Type of a function that returns the nodes on which a spread constraint counts pods, regardless of existing pods."""
NAMED = 8
"""Maximum number of anti-affinity terms of existing pods, per topology key, that are compared one by one."""


class InterPodAffinity:
    """Counts of pods on nodes during one session, and the nodes that existing pods exclude."""

    def __init__(self, session: Session, eligible: Eligible) -> None:
        self._session = session
        self._snapshot = session.snapshot
        self._labels = session.labels
        self._eligible = eligible
        self._counts = dict(session.snapshot.pod_counts)
        self._claims = dict(session.snapshot.exclusive_claims)
        self._index: dict[Hashable, list[Mark]] | None = None

    def count(self, entry: Operation | Eviction, sign: int) -> None:
        """Update the numbers of pods on nodes by one step of a trial."""
        pods = sign * entry.size
        for mark in entry.marks:
            known = self._counts.get(mark)
            if known is None:
                self._index = None
                self._counts[mark] = np.zeros(len(self._snapshot.nodes), dtype=np.int32)
            elif known is self._snapshot.pod_counts.get(mark):
                self._counts[mark] = known.copy()
            self._counts[mark][entry.column] += pods
        for claim in entry.cls.claims:
            if claim.key in self._claims:
                self._claims[claim.key] += pods

    def codes(self, cls: PodClass) -> Codes | None:
        """Return each node's refusal code due to existing pods; None for a pod class to which no rule applies."""
        if not (cls.marks or cls.neighbours or cls.claims):
            return None
        codes = np.zeros(len(self._snapshot.nodes), dtype=np.int16)
        for words, refused in self._refusals(cls):
            fresh = refused & (codes == 0)
            if fresh.any():
                codes[fresh] = self._session.causes.code(words)
        return codes

    def _refusals(self, cls: PodClass) -> Iterator[Refusal]:
        yield from self._ports(cls)
        yield from self._claims_in_use(cls)
        yield from self._spread(cls)
        yield from self._together(cls)
        yield from self._apart(cls)

    def _ports(self, cls: PodClass) -> Iterator[Refusal]:
        for address, protocol, number in cls.host_ports:
            for mark in self._marks().get((protocol, number), ()):
                if ANY_ADDRESS in {address, mark[1]} or mark[1] == address:
                    yield reasons.cause.port_taken(port=number), self._counts[mark] > 0

    def _claims_in_use(self, cls: PodClass) -> Iterator[Refusal]:
        for claim in cls.claims:
            if self._claims.get(claim.key):
                yield reasons.cause.claim_in_use(claim=claim.key), np.ones(len(self._snapshot.nodes), dtype=np.bool_)

    def _spread(self, cls: PodClass) -> Iterator[Refusal]:
        spreads = cls.neighbours.spreads
        if not spreads:
            return
        domains = [self._labels.of(spread.topology_key) for spread in spreads]
        labelled = np.ones(len(self._snapshot.nodes), dtype=np.bool_)
        for codes, _ in domains:
            labelled &= codes >= 0
        for spread, (codes, number) in zip(spreads, domains, strict=True):
            yield reasons.cause.spread_label(key=spread.topology_key), codes < 0
            counted = self._eligible(cls, spread) & labelled  # a node counts only if it has all labels
            present = np.bincount(codes[counted], minlength=number) > 0
            pods = np.zeros(number, dtype=np.int64)
            counts = self._counts.get(spread.query.mark) if spread.query else None
            if counts is not None:
                pods = np.bincount(codes[counted], weights=counts[counted], minlength=number).astype(np.int64)
            least = int(pods[present].min()) if np.count_nonzero(present) >= spread.min_domains else 0
            itself = spread.query.mark in cls.matched if spread.query else spread.empty_selector
            full = np.append(pods + itself - least > spread.max_skew, False)  # -1 (no label) is the last entry
            yield reasons.cause.spread_skew(key=spread.topology_key, skew=spread.max_skew), full[codes]

    def _together(self, cls: PodClass) -> Iterator[Refusal]:
        query, keys = cls.neighbours.together, cls.neighbours.together_keys
        if query is None:
            return
        with_pods = [self._domains_with(key, self._counts.get(query.mark)) for key in keys]
        first = query.mark in cls.matched and not any(mask.any() for mask in with_pods)
        for key, there in zip(keys, with_pods, strict=True):
            yield reasons.cause.affinity_label(key=key), self._labels.of(key)[0] < 0
            if not first:
                yield reasons.cause.affinity(query=query, key=key), ~there

    def _apart(self, cls: PodClass) -> Iterator[Refusal]:
        for rule in cls.neighbours.apart:
            there = self._domains_with(rule.topology_key, self._counts.get(rule.query.mark))
            yield reasons.cause.anti_affinity(query=rule.query, key=rule.topology_key), there
        yield from self._apart_from_others(cls)

    def _apart_from_others(self, cls: PodClass) -> Iterator[Refusal]:
        """Yield refusals due to existing pods' anti-affinity; more than `NAMED` terms per key are checked together."""
        marks: dict[str, list[Mark]] = {}
        for query_mark in cls.matched:
            for mark in self._marks().get(query_mark, ()):
                marks.setdefault(str(mark[2]), []).append(mark)
        for key, alike in marks.items():
            for mark in alike[:NAMED]:
                there = self._domains_with(key, self._counts[mark])
                yield reasons.cause.anti_affinity_of_others(key=key, query=mark[3]), there
            if rest := alike[NAMED:]:
                counts = self._counts[rest[0]].copy()
                for mark in rest[1:]:
                    counts += self._counts[mark]
                yield reasons.cause.anti_affinity_of_many(key=key), self._domains_with(key, counts)

    def _marks(self) -> dict[Hashable, list[Mark]]:
        """Return the marks of anti-affinity terms, keyed by query, and of host ports, keyed by protocol and number."""
        if self._index is None:
            self._index = {}
            for mark in self._counts:
                if mark[0] in {"apart", "port"}:
                    self._index.setdefault(mark[1] if mark[0] == "apart" else mark[2:], []).append(mark)
        return self._index

    def _domains_with(self, key: str, counts: Counts | None) -> Mask:
        """Return the mask of the nodes whose domain of this topology key contains at least one counted pod."""
        codes, number = self._labels.of(key)
        found = np.zeros(number + 1, dtype=np.bool_)
        if counts is not None:
            found[codes[np.flatnonzero(counts)]] = True
            found[-1] = False  # this entry is read for column -1: no such label
        return found[codes]
