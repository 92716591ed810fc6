"""The action that admits a gang, so that its pods may be created, if its queue is open and the cluster is large enough.

Admission only compares the requests with the resources of all nodes. Taints, cordons, labels and ports are not checked,
because they may change at any moment, often because of waiting pods. Once gated pods exist, the action `allocate`
reports obstacles such as taints, cordons, labels and ports.
"""

from bisect import bisect_left
from collections.abc import Hashable

import numpy as np
from msgspec import structs

from extender.planner import reasons
from extender.planner.actions.failures import shape_of
from extender.planner.actions.placing import shares_of
from extender.planner.ask import Ask
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.shortage import near, shortage
from extender.planner.reasons.shortages import Shortage, no_room
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from muster.api.muster.gang import workload_above
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.scheduling import NO_ROOM, Queue


class Enqueue:
    """The action that admits gangs whose PodGroup is Pending or has no phase yet."""

    name = "enqueue"

    def __init__(self) -> None:
        self._hopeless: dict[Hashable, Shortage | None] = {}
        """Maps a gang's shape and number of pods to the resources that even an empty cluster lacks."""
        self._version: int | None = None
        self._updated: frozenset[tuple[str, str]] | None = None
        """Queue and owner's UID of each started gang, computed on first use in a session."""

    def execute(self, session: Session) -> None:
        """Decide Enqueue for gangs that may be admitted, and Unschedulable with the reason for others."""
        if self._version != session.snapshot.version:
            self._hopeless.clear()
            self._version = session.snapshot.version
        self._updated = None
        barred = session.snapshot.barred
        waiting = [gang for gang in session.snapshot.gangs if gang.pending and gang.key not in barred]
        for gang in session.ordered_gangs(waiting):
            session.attempt(gang, self._check)

    def _check(self, session: Session, gang: GangView) -> None:
        why = None if gang.started else self._refused(session, gang)
        if why is not None:
            session.decide(why)
            return
        session.hooks.job_enqueued.call(gang)
        session.admit(gang)

    def _refused(self, session: Session, gang: GangView) -> decisions.Unschedulable | None:
        """Return why a gang is not admitted: a closed or full queue, too small a cluster, or a plugin's refusal."""
        queue = session.snapshot.queues.get(gang.queue)
        if queue is None:
            words = reasons.queues.missing(queue=gang.queue)
            return decisions.Unschedulable(gang, reasons.queues.NOT_FOUND, words)
        if gang.queue == ROOT_QUEUE or not (queue.open or self._stays_admitted(session, gang, queue)):
            closed = reasons.queues.closed(queue=gang.queue, state=queue.status.state)
            words = reasons.queues.ROOT if gang.queue == ROOT_QUEUE else closed
            return decisions.Unschedulable(gang, reasons.queues.NOT_OPEN, words)
        shape_of(session, session.ask(gang))  # a LimitError excludes the gang here, before the actions that evict
        vote = session.hooks.job_enqueueable.call(gang)
        overdue = vote is not None and vote.admit  # admitted by plugin sla: autoscalers must also see its pods
        if not overdue and (lacks := self._lacks(session, gang)):
            return decisions.Unschedulable(gang, NO_ROOM, no_room(lacks), lacks)
        full = session.queue_refusal(session.ask(gang))
        if full and not _takes_others(session, session.ask(gang)):
            return decisions.refused(gang, full)
        return decisions.refused(gang, vote) if vote and not vote.admit else None

    def _stays_admitted(self, session: Session, gang: GangView, queue: Queue) -> bool:
        """Return True for new pods in a queue that is Closing, if earlier pods of the same workload still run there.

        If new pods were not admitted, a Deployment's rolling update would never finish, because old pods end only after
        new pods have started.
        """
        above = workload_above(gang.group.metadata)
        if queue.status.state != "Closing" or above is None:
            return False
        if self._updated is None:
            started = (
                (each.queue, workload_above(each.group.metadata)) for each in session.snapshot.gangs if each.started
            )
            self._updated = frozenset((name, workload.uid) for name, workload in started if workload)
        return (gang.queue, above.uid) in self._updated

    def _lacks(self, session: Session, gang: GangView) -> Shortage | None:
        """Return the shortage of a gang if its minimum does not fit even into the empty cluster."""
        alike: dict[PodClass, list[tuple[PodSetView, int]]] = {}
        if _holds_others(session, session.ask(gang)):
            return None
        members = session.ask(gang).members(session.hooks, gang.certainly_needed())
        for pod_set in gang.pod_sets:
            for cls, need in members[pod_set.name].items():
                if need:
                    alike.setdefault(cls, []).append((pod_set, need))
        for cls, needs in alike.items():
            names = tuple(pod_set.name for pod_set, _ in needs)
            need = sum(count for _, count in needs)
            shape = (names, cls.key, need)
            if shape not in self._hopeless:
                self._hopeless[shape] = _hopeless(session, needs[0][0], cls, need, names[1:])
            if lacks := self._hopeless[shape]:
                return lacks
        return self._never_in_a_domain(session, gang)

    def _never_in_a_domain(self, session: Session, gang: GangView) -> Shortage | None:
        """Return the shortage of a gang that requires one domain and would not fit even into an empty domain."""
        ask = session.ask(gang)
        if ask.request is None or not ask.request.required:
            return None
        shape = shape_of(session, ask)
        if shape not in self._hopeless:
            slots = ask.chosen(session.hooks)
            found = session.hooks.closest_domain.call(gang, slots, ever=True)
            self._hopeless[shape] = near(session, gang, slots, found.report, ever=True) if found else None
        return self._hopeless[shape]


def _holds_others(session: Session, ask: Ask) -> bool:
    """Return True if the minimum may consist of any members, and the empty cluster can hold enough members."""
    if not ask.any_members:
        return False
    fits = 0
    for pod_set in ask.gang.pod_sets:
        known = pod_set.classes_of(ask.open[pod_set.name]).items()
        here = sum(
            int(np.minimum(session.room(cls, session.snapshot.allocatable, ports=False), count).sum().clip(0, count))
            for cls, count in known
        )
        if here < ask.missing[pod_set.name]:
            return False
        fits += here
    return fits >= ask.least


def _takes_others(session: Session, ask: Ask) -> bool:
    """Return True if the minimum may consist of any members, and the queue has quota for enough members."""
    if not ask.any_members:
        return False
    taken: dict[str, dict[PodClass, int]] = {each.name: {} for each in ask.gang.pod_sets}
    left = ask.least

    def refused(count: int) -> bool:
        more = {**taken, name: {**taken[name], cls: count}}
        return session.queue_refusal(ask, session.amounts(ask, more)) is not None

    share = shares_of(session)  # smallest first: a large member that fits alone may leave too little for the others
    known = [(set_.name, *each) for set_ in ask.gang.pod_sets for each in set_.classes_of(ask.open[set_.name]).items()]
    for name, cls, count in sorted(known, key=lambda each: share(each[1])):
        most = min(count, left)
        taken[name][cls] = bisect_left(range(1, most + 1), 1, key=refused)
        left -= taken[name][cls]
    return left <= 0


def _hopeless(
    session: Session, pod_set: PodSetView, cls: PodClass, need: int, alike: tuple[str, ...]
) -> Shortage | None:
    room = session.room(cls, session.snapshot.allocatable, ports=False)
    most = int(np.minimum(room, need).sum())
    if most >= need:
        return None
    return structs.replace(shortage(session, None, pod_set, need, most, kind="ever", cls=cls), alike=alike)
