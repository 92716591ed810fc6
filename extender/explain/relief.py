"""Search for changes that would let a waiting gang start.

Each change is tested in a cycle of the planner before it is suggested. A change may be, for example, the end of gangs
or pods that hold the missing capacity.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import islice, takewhile
from math import ceil

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from extender.explain.changes import KUBERNETES_TAINTS, copies, recovered, uncordoned
from extender.explain.holders import Holder, holders
from extender.explain.reader import Viewer
from extender.explain.report import GangReport, Relief
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.queuepositions import waiting
from extender.planner.reasons.cause import CORDONED, NODE_SELECTOR, TAINT, taint_text
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from muster.api.kubernetes.core import Node
from muster.api.muster.pools import pool_of
from muster.api.muster.reason import Reason
from muster.api.volcano.scheduling import NO_ROOM

MAX_SINGLES = 3
MAX_ATTEMPTS = 12
MAX_TOGETHER = 24
Trial = Callable[[], AbstractContextManager[None]]


class Reliever:
    """Search for changes that let one gang start; `session` is the cycle in which the gang waited.

    Once `stops` returns True, no further changes are tested or suggested, and a note in the report says so. Each test
    costs a cycle over the whole cluster.
    """

    def __init__(
        self, what_if: WhatIf, session: Session, gang: GangView, stops: Callable[[], bool], reader: Viewer
    ) -> None:
        self._what_if = what_if
        self._stops = stops
        self._reader = reader
        self._stopped = False
        self._session = session
        self._gang = gang

    def suggestions(self, report: GangReport) -> Iterator[Relief]:
        """Yield suggestions, the least drastic first."""
        yield from self._find(report)
        if self._stopped:
            yield Relief("nothing", reasons.relief.NOT_TRIED, tried=False)

    def _find(self, report: GangReport) -> Iterator[Relief]:
        match report.cause:
            case "queue-closed" | "queue-missing":
                known = self._session.snapshot.queues.items()
                hidden = {"root", *self._reader.hidden}
                others = sorted(name for name, queue in known if queue.open and name not in hidden)
                text = reasons.relief.queue(report.queue.name, others, missing=report.cause == "queue-missing")
                yield Relief("queue", text, (report.queue.name,), tried=False)
            case "queue-not-for-namespace":
                namespace, state = self._gang.group.metadata.namespace, self._what_if.state
                known = self._session.snapshot.queues.items()
                fit = [name for name, queue in known if queue.open and not state.access.barrier(name, namespace)]
                text = reasons.relief.other_queue(namespace, sorted({*fit} - {"root", *self._reader.hidden}))
                yield Relief("queue", text, (report.queue.name,), tried=False)
            case "too-few-pods":
                existing = sum(len(slots) for slots in self._gang.open_slots.values())
                missing = self._gang.min_member - self._gang.taken - existing
                yield Relief("pods", reasons.relief.created(missing), tried=False)
            case "strict-order":
                ahead = reasons.relief.first(report.queue.ahead[::-1])
                yield Relief("wait", ahead, report.queue.ahead, tried=False)
            case "in-flight-limit":
                yield Relief("wait", reasons.relief.NOTHING, tried=False)
            case "no-domain":
                yield from self._domain(report.shortage)
            case "no-room" | "never-fits" | "half-placed":
                yield from self._room_or_nothing(report)

    def _room_or_nothing(self, report: GangReport) -> Iterator[Relief]:
        """Yield ways to free capacity; if there is no way, yield the reason, or the gangs that start earlier."""
        found, lacks = list(self._room(report.shortage)), report.shortage
        yield from found
        if found:
            return
        if lacks and lacks.kind == "ever":
            yield Relief("nothing", reasons.relief.nothing(lacks), tried=False)
        elif lacks and lacks.unsuitable:
            yield Relief("nothing", reasons.relief.unsuitable(lacks.lost), tried=False)
        elif report.queue.ahead and report.reason == NO_ROOM:
            yield from self._after_others(report.queue.ahead, lacks)

    def _after_others(self, ahead: tuple[str, ...], lacks: Shortage | None) -> Iterator[Relief]:
        """Yield suggestions for a gang that must wait for the gangs ahead: to wait, or also to end workloads."""
        text, cls = reasons.relief.before(ahead[::-1]), self._class_of(lacks)
        keys = [gang.key for gang in takewhile(lambda each: each.key != self._gang.key, waiting(self._session))]
        found = list[Relief]()
        if lacks and lacks.miss and cls:
            with self._what_if.tried_without(keys, []):
                found = [*self._ends(cls, lacks.miss.pods)]
        yield from (replace(each, sentence=f"{each.sentence}, and {text}") for each in found)
        if not found:
            yield Relief("wait", text, ahead, tried=False)

    def _class_of(self, lacks: Shortage | None) -> PodClass | None:
        return next((each.cls for each in self._gang.pod_sets if lacks and each.name == lacks.pod_set), None)

    def _domain(self, lacks: Shortage | None) -> Iterator[Relief]:
        """Suggest ending workloads in the best domain, or requesting a wider level with room for the gang now."""
        slots = {name: ranks for name, ranks in self._gang.open_slots.items() if ranks}
        closest = self._session.hooks.closest_domain.call(self._gang, slots)
        cls = self._class_of(lacks)
        if closest is None or closest.report.why or cls is None:
            return
        yield from self._ends(cls, max(1, closest.report.wanted - closest.report.held), closest.inside)
        level = closest.report.level
        yield Relief("wider", reasons.relief.wider(level=level), (level,), tried=False)

    def _room(self, lacks: Shortage | None) -> Iterator[Relief]:
        """Yield ways to free capacity for the pod set that lacks capacity."""
        cls = self._class_of(lacks)
        if lacks is None or lacks.miss is None or cls is None:
            return
        yield from self._uncordon(cls, lacks)
        yield from self._tolerate(cls, lacks)
        yield from self._heal(cls, lacks)
        if lacks.kind != "ever":
            yield from self._ends(cls, lacks.miss.pods)
        yield from self._add_nodes(cls, lacks.miss.pods)

    def _uncordon(self, cls: PodClass, lacks: Shortage) -> Iterator[Relief]:
        if not any(cause.why == CORDONED for cause in lacks.causes):
            return
        nodes = [uncordoned(node) for node in self._behind(cls, CORDONED)]
        for names in self._fewest(nodes):
            yield Relief("uncordon", reasons.relief.uncordoned(names), tuple(names))

    def _tolerate(self, cls: PodClass, lacks: Shortage) -> Iterator[Relief]:
        for cause in lacks.causes:
            if not cause.roomy or cause.why.code != TAINT:
                continue
            nodes = self._behind(cls, cause.why)
            bare = [replace(node, spec=replace(node.spec, taints=[])) for node in nodes]
            taint = taint_text(**cause.why.params)
            if taint.startswith(KUBERNETES_TAINTS):
                yield from self._recover(nodes, f"taint {taint}")
            elif self._fits(lambda bare=bare: self._what_if.tried_nodes(bare)):  # type: ignore[misc]  # mypy: default of a lambda
                yield Relief("tolerate", reasons.relief.tolerated(taint=taint, count=len(nodes)), (taint,))

    def _heal(self, cls: PodClass, lacks: Shortage) -> Iterator[Relief]:
        """Suggest repairing a faulty node, because it gets no pods, not even pods that tolerate its taints."""
        for cause in lacks.causes:
            if fault := reasons.cause.fault_in(cause.why):
                yield from self._recover(self._behind(cls, cause.why), fault)

    def _recover(self, nodes: list[Node], what: str) -> Iterator[Relief]:
        """Suggest removing a fault or a taint set by Kubernetes; a toleration might place pods on a dead node."""
        for names in self._fewest([recovered(node, self._what_if.dump.rules) for node in nodes]):
            yield Relief("recovers", reasons.relief.recovered(names, what), tuple(names))

    def _behind(self, cls: PodClass, cause: Reason) -> list[Node]:
        """Return the nodes that `cause` excludes despite free capacity, nodes with the most free capacity first."""
        snapshot = self._session.snapshot
        code = self._session.causes.code(cause)
        order = snapshot.order
        room = self._session.room(cls)
        columns = order[(self._session.codes(cls, self._gang)[order] == code) & (room[order] > 0)]
        columns = columns[np.argsort(-room[columns], kind="stable")]
        return [node for column in columns if (node := snapshot.nodes[int(column)]) is not None]

    def _fewest(self, nodes: list[Node]) -> Iterator[list[str]]:
        """Yield the names of as few first nodes as needed for the gang to start; nothing if all do not suffice."""
        if not nodes or not self._fits(lambda: self._what_if.tried_nodes(nodes)):
            return
        low, high = 1, len(nodes)
        while low < high:
            middle = (low + high) // 2
            if self._fits(lambda middle=middle: self._what_if.tried_nodes(nodes[:middle])):  # type: ignore[misc]  # as above
                high = middle
            else:
                low = middle + 1
        yield [node.metadata.name for node in nodes[:high]]

    def _ends(self, cls: PodClass, missing: int, inside: NDArray[np.bool_] | None = None) -> Iterator[Relief]:
        found = holders(self._what_if, self._session, cls, self._gang, self._reader, inside)
        alone = sorted((each for each in found if each.room >= missing), key=lambda each: (each.size, each.name))
        fitting = ([holder] for holder in alone[:MAX_ATTEMPTS] if self._fits_without([holder]))
        sets = [*islice(fitting, MAX_SINGLES)]
        if not sets:
            largest = sorted(found, key=lambda each: (-each.room, each.size, each.name))
            sets = [*filter(None, [self._together(largest[:MAX_TOGETHER], missing)])]
        for chosen in sets:
            names = tuple(holder.shown for holder in chosen)
            yield Relief("ends", reasons.relief.ends([holder.words for holder in chosen]), names)

    def _together(self, found: list[Holder], missing: int) -> list[Holder]:
        """Return a small set of holders, the largest first; the gang can start when these holders end."""
        chosen: list[Holder] = []
        for holder in found:
            chosen.append(holder)
            if sum(each.room for each in chosen) >= missing and self._fits_without(chosen):
                break
        else:
            return []
        for holder in list(chosen):
            rest = [each for each in chosen if each is not holder]
            if self._fits_without(rest):
                chosen = rest
        return chosen

    def _add_nodes(self, cls: PodClass, missing: int) -> Iterator[Relief]:
        """Suggest adding copies of the node that, when empty, has room for the most pods of class `cls`."""
        snapshot = self._session.snapshot
        known = [node.metadata.labels for node in snapshot.nodes if node]
        labels = {
            key: value for key, value in cls.node_selector.items() if all(each.get(key) != value for each in known)
        }
        suitable = self._session.causes.code(NODE_SELECTOR) if labels else 0
        fits = self._session.codes(cls) == suitable
        fit = np.where(fits, self._session.room(cls, snapshot.allocatable), 0)[snapshot.order]
        if not fit.any():
            return
        like = snapshot.nodes[int(snapshot.order[int(fit.argmax())])]
        number = ceil(missing / int(fit.max()))
        if like is None:
            return
        like = replace(like, metadata=replace(like.metadata, labels={**like.metadata.labels, **labels}))
        rules = self._what_if.dump.rules_in(pool_of(like.metadata))
        if self._fits(lambda: self._what_if.tried_nodes(copies(like, number, rules))):
            name = like.metadata.name
            yield Relief("add-nodes", reasons.relief.added(number, name, labels), (name,))

    def _fits_without(self, chosen: list[Holder]) -> bool:
        gangs = [holder.name for holder in chosen if holder.gang]
        pods = [pod for holder in chosen if not holder.gang for pod in holder.pods]
        return self._fits(lambda: self._what_if.tried_without(gangs, pods))

    def _fits(self, trial: Trial) -> bool:
        """Return True if the planner would place the gang without victims after the change `trial`."""
        self._stopped = self._stopped or self._stops()
        if self._stopped:
            return False
        with trial():
            session = self._what_if.cycle()
        places = (each for each in session.decided(decisions.Place) if each.gang.key == self._gang.key)
        return any(not place.victims for place in places)
