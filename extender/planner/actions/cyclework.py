"""Limit on a cycle's work for one namespace, so that its gangs of many different shapes do not delay other namespaces.

Work is measured as the number of checked nodes and not by a clock, because a replay must make the same decisions. Half
of the limit is used for the namespace's first gangs in scheduling order. The other half of the limit is used for gangs
that earlier cycles skipped. A skipped gang keeps the reason that its last search has reported.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from extender.planner import reasons
from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView

MOST: Final = 40_000_000
"""Maximum number of node checks for the gangs of one namespace in a cycle: about half a second."""
_SHAPE: Final = 16
"""Checks per node of a search for pods without special conditions, for capacity, scores and sorting."""
_SEARCH: Final = 30_000
"""Node checks of a search besides its checks per node; a thousand searches take half a second."""
_TERM: Final = 8
"""Each affinity or spreading term adds this many checks per node to a search."""


@dataclass(slots=True)
class _NamespaceRound:
    """Progress through the gangs of a namespace that has too many gangs for one cycle."""

    tried: set[str] = field(default_factory=set)
    """UIDs of the namespace's gangs that have been processed in this round."""
    why: dict[str, Unschedulable] = field(default_factory=dict)
    """Maps a gang's UID to the reason of its last search."""


class CycleWork:
    """The current cycle's work, and the progress through namespaces that exceeded the limit in the last cycle."""

    def __init__(self) -> None:
        self._rounds: dict[str, _NamespaceRound] = {}
        self._begin()

    def _begin(self) -> None:
        self._spent: Counter[str] = Counter()
        self._classes: set[PodClass] = set()
        self._tried: list[GangView] = []
        self._failed: list[Unschedulable] = []
        self._late: set[str] = set()

    def put_off(self, session: Session, gang: GangView) -> Unschedulable | None:
        """Return a reason if a gang's search is postponed to a later cycle; else count its work and return None."""
        namespace = gang.group.metadata.namespace
        before, spent = self._rounds.get(namespace), self._spent[namespace]
        work = self._work(session, gang)
        if spent + work > MOST // 2 if before and gang.uid in before.tried else spent >= MOST:
            self._late.add(namespace)
            last = before.why.get(gang.uid) if before else None
            return replace(last, gang=gang) if last else Unschedulable(gang, reasons.pods.LATER, reasons.pods.later)
        self._spent[namespace] = spent + work
        self._classes.update(cls for cls in gang.all_classes if cls is not None)
        self._tried.append(gang)
        return None

    def failed(self, why: Unschedulable) -> Unschedulable:
        """Record and return the reason why a gang waits."""
        self._failed.append(why)
        return why

    def end(self, session: Session) -> None:
        """End the cycle; gangs that it skipped come first in the next cycles, until all have been processed."""
        there = {gang.uid for gang in session.snapshot.gangs} if self._late else set()
        rounds = {}
        for namespace in self._late:
            before = self._rounds.get(namespace, _NamespaceRound())
            tried = {gang.uid for gang in self._tried if gang.group.metadata.namespace == namespace}
            why = before.why | {each.gang.uid: each for each in self._failed if each.gang.uid in tried}
            why = {uid: each for uid, each in why.items() if uid in there}
            goes_on = bool(tried - before.tried)
            rounds[namespace] = _NamespaceRound((before.tried | tried) & there if goes_on else set(), why)
        self._rounds = rounds
        self._begin()

    def _work(self, session: Session, gang: GangView) -> int:
        checks = 0
        for pod_set in gang.pod_sets:
            classes = {pod_set.cls, *(pod.cls for pod in pod_set.waiting.values())} if pod_set.mixed else (pod_set.cls,)
            for cls in classes:
                if cls is not None:
                    checks += self._of_class(session, pod_set, cls)
        return _SEARCH + checks * len(session.snapshot.nodes)

    def _of_class(self, session: Session, pod_set: PodSetView, cls: PodClass) -> int:
        near, checks = cls.neighbours, 0
        if near or near.preferences:
            checks = _TERM * (len(near.apart) + len(near.spreads) + len(near.together_keys) + len(near.preferences))
            checks *= max(1, pod_set.replicas) if session.snapshot.one_by_one(cls) else 1
        return checks + _SHAPE + (0 if cls in self._classes else cls.conditions)  # evaluated once
