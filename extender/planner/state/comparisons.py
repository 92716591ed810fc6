"""Comparisons of new queries (label selectors over pods) with the existing pods and templates, in small steps.

A new pod is compared with all queries at once. A new query concerns all pods of its namespaces, possibly all pods of
the cluster. New queries are therefore compared in *rounds*, each for the queries of one namespace. The rounds of
different namespaces alternate, so that a namespace with many queries delays only itself. After a round, the state is
the same as if all pods had arrived after the round's queries. Pods whose device claims changed are also updated in
rounds, because one claim may have any number of users.

Work is measured as the number of checked conditions and marks, not as time; a million checks take about a second.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import ClassTable, PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podtable import PodTable
from extender.planner.state.queries import Anchor, Labels, Mark, Query, anchors_of
from extender.planner.state.templates import Templates

BATCH = 500
"""Number of checks after which the next round continues."""
POD = 5
"""Cost, in checks, of finding the queries with which a pod must be compared."""
CHANGE = 50
MARK = 5
"""Cost, in checks, of adding a mark to a pod (`MARK`), and of changing the pod's class (`CHANGE`)."""
Reclass = Callable[[PodClass, Labels], tuple[PodClass, int]]
"""Type of a function that returns the current class of pods with the given class and labels, and its cost in checks."""


@dataclass(slots=True, eq=False)
class _ComparisonRound:
    steps: Iterator[int]
    queries: tuple[Query, ...] = ()


@dataclass(eq=False)
class Comparisons:
    """The comparisons in progress, in rounds.

    The function `keep` is called for a pod whose class has changed, and `job_changed` for a Job whose templates'
    classes have changed. The function `equipped` returns a pod with the class that results from its current device
    claims. The function `released` is called with the keys of gangs that may have waited for a finished round.
    """

    classes: ClassTable
    pods: PodTable
    templates: Templates
    keep: Callable[[PodRecord], None]
    job_changed: Callable[[str], None]
    equipped: Callable[[PodRecord], PodRecord]
    released: Callable[[set[str]], None]

    def __post_init__(self) -> None:
        self._next: dict[str, list[Query]] = {}
        """Maps the namespace of the pods with new queries to the queries of its next round, while a round is
        running."""
        self._open: set[Mark] = set()
        """Marks of the queries of all rounds that have not finished."""
        self._rounds: OrderedDict[tuple[str, str], _ComparisonRound] = OrderedDict()
        """The rounds in the order in which they will continue."""
        self._unequipped: dict[str, dict[str, None]] = {}
        """Maps a namespace to the UIDs of pods whose claims have changed."""
        self._held: set[str] = set()
        self._working = False

    @property
    def pending(self) -> bool:
        """True if some comparisons are pending."""
        return bool(self._rounds or self.classes.queries.fresh)

    @property
    def open_marks(self) -> frozenset[Mark]:
        """The marks of queries that have not been compared with all pods yet."""
        return frozenset(self._open)

    def hold(self, gang: GangView) -> bool:
        """Return True if the gang's queries have not been compared with all pods yet, or its pods' claims are outdated.

        The function `released` is called when the gang possibly no longer has to wait.
        """
        self._take_fresh()
        unequipped = self._unequipped.get(gang.group.metadata.namespace, {})
        if not (self._open or unequipped):
            return False
        classes = {pod_set.cls for pod_set in gang.pod_sets} | {pod.cls for pod in gang.pods if pod.waiting}
        held = any(query.mark in self._open for cls in classes if cls for query in cls.neighbours.queries)
        held = held or any(pod.uid in unequipped for pod in gang.pods)
        if held:
            self._held.add(gang.key)
        return held

    def relabelled(self, namespace: str) -> None:
        """Compare the pods of a namespace whose labels have changed with all queries."""
        self._begin(("labels", namespace), _ComparisonRound(self._steps(namespace, self._matched_again(namespace))))

    def equip(self, uids: Iterable[str]) -> None:
        """Update the classes of these pods, whose device claims have changed."""
        for uid in uids:
            namespace = self.pods.records[uid].namespace
            self._unequipped.setdefault(namespace, {})[uid] = None
            if ("claims", namespace) not in self._rounds:
                self._begin(("claims", namespace), _ComparisonRound(self._equip_steps(namespace)))

    def work(self, most: int | None = None) -> None:
        """Continue the comparisons for about `most` checks; with None, until all comparisons are done."""
        if self._working:  # a change that is made here calls `work` again
            return
        self._working = True
        try:
            spent = 0
            while (most is None or spent < most) and self.pending:
                self._take_fresh()
                spent += self._batch()
        finally:
            self._working = False

    def _take_fresh(self) -> None:
        fresh = self.classes.queries.fresh
        if not fresh:
            return
        by_owner: dict[str, list[Query]] = {}
        for query in fresh:
            self._open.add(query.mark)
            by_owner.setdefault(query.account[0], []).append(query)
        fresh.clear()
        for owner, queries in by_owner.items():
            if ("queries", owner) in self._rounds:
                self._next.setdefault(owner, []).extend(queries)
            else:
                self._ask(owner, queries)

    def _ask(self, owner: str, queries: list[Query]) -> None:
        self._begin(("queries", owner), _ComparisonRound(self._steps_of(queries), tuple(queries)))

    def _begin(self, key: tuple[str, str], begun: _ComparisonRound) -> None:
        self._rounds.pop(key, None)
        self._rounds[key] = begun

    def _batch(self) -> int:
        """Continue the next round; return the number of checks."""
        key = next(iter(self._rounds))
        current, spent = self._rounds[key], 0
        for looks in current.steps:
            spent += looks
            if spent >= BATCH:
                if self._rounds.get(key) is current:
                    self._rounds.move_to_end(key)
                return spent
        if self._rounds.get(key) is current:
            del self._rounds[key]
        self._end(key[1], current.queries)
        return spent + 1

    def _end(self, owner: str, queries: tuple[Query, ...]) -> None:
        self._open.difference_update(query.mark for query in queries)
        if queries and (later := self._next.pop(owner, None)):
            self._ask(owner, later)
        if self._held:
            held, self._held = self._held, set()
            self.released(held)

    def _steps_of(self, queries: list[Query]) -> Iterator[int]:
        """Compare these queries with the pods and templates of all namespaces that they may match."""
        wide = [query for query in queries if query.places is None]
        narrow: dict[str, list[Query]] = {}
        for query in queries:
            for place in query.places or ():
                narrow.setdefault(place, []).append(query)
        everywhere = self.pods.in_namespace.keys() | self.templates.in_namespace.keys()
        for namespace in everywhere if wide else narrow:
            labels = self.classes.queries.namespaces.get(namespace, {})
            asked = [*narrow.get(namespace, ()), *wide]
            yield sum(query.work for query in asked)
            meant = [query for query in asked if query.reaches(namespace, labels)]
            if meant:
                yield from self._steps(namespace, self._adding(namespace, meant))

    def _steps(self, namespace: str, reclass: Reclass) -> Iterator[int]:
        """Update the classes of the pods and templates of a namespace, one pod or template per step."""
        for uid in list(self.pods.in_namespace.get(namespace, ())):
            record = self.pods.records.get(uid)
            if record is None:
                continue
            cls, looks = reclass(record.cls, record.labels)
            if cls is not record.cls:
                self.keep(replace(record, cls=cls))
                looks += CHANGE + MARK * len(cls.matched)
            yield looks
        for uid in list(self.templates.in_namespace.get(namespace, ())):
            changed, spent = False, 1
            for template in self.templates.known(uid):
                cls, looks = reclass(template.cls, template.labels)
                changed |= cls is not template.cls
                template.cls = cls
                spent += looks
            if changed:
                self.job_changed(uid)
                spent += CHANGE
            yield spent

    def _equip_steps(self, namespace: str) -> Iterator[int]:
        due = self._unequipped[namespace]
        while due:
            uid = next(iter(due))
            del due[uid]
            record = self.pods.records.get(uid)
            if record is None:
                continue
            equipped = self.equipped(record)
            if equipped is not record:
                self.keep(equipped)
            yield POD + (0 if equipped is record else CHANGE + MARK * len(equipped.cls.matched))
        del self._unequipped[namespace]

    def _adding(self, namespace: str, queries: list[Query]) -> Reclass:
        """Return a function that adds the marks of these queries to the classes of the pods that match the queries."""
        namespace_labels = self.classes.queries.namespaces.get(namespace, {})
        by_anchor: dict[Anchor, list[Query]] = {}
        for query in queries:
            by_anchor.setdefault(query.anchor, []).append(query)

        def reclass(cls: PodClass, labels: Labels) -> tuple[PodClass, int]:
            few = len(by_anchor) <= len(labels)
            meant = [query for each in (by_anchor if few else anchors_of(labels)) for query in by_anchor.get(each, ())]
            work = POD + sum(query.work for query in meant)
            found = [query.mark for query in meant if query.matches(namespace, labels, namespace_labels)]
            return (self.classes.also_matched(cls, found) if found else cls), work + len(found)

        return reclass

    def _matched_again(self, namespace: str) -> Reclass:
        """Return a function that compares pods of a namespace with all queries again."""

        def reclass(cls: PodClass, labels: Labels) -> tuple[PodClass, int]:
            return self.classes.matched_again(cls, namespace, labels), self.classes.queries.near(namespace)

        return reclass
