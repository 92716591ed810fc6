"""Volcano's plugins `overcommit`, `sla`, `drf` and `resourcequota`, for the admission and the order of gangs."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from cachetools import LRUCache

from extender.planner import reasons
from extender.planner.framework.answers import ADMITTED, EnqueueVote
from extender.planner.framework.operations import Eviction, Operation
from extender.planner.framework.ordering import by_key
from extender.planner.framework.registry import PlainPlugin, duration_s, number, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts, row_along
from extender.planner.state.gangs import GangView
from extender.planner.state.minimums import min_resources
from muster.api.kubernetes.meta import parse_time
from muster.api.kubernetes.quota import ResourceQuota
from muster.api.names import SLA_WAITING_TIME
from muster.resources.quantity import parse
from muster.resources.runtime import parse_duration_s
from muster.resources.vector import MILLI, PODS, Vector

DEFAULT_FACTOR = 1.2
FACTOR = "overcommit-factor"
WAITING_TIME = "sla-waiting-time"
MOST_KNOWN = 16_384
"""Maximum number of PodGroups whose minResources are cached as arrays."""


class UnusedMinResources:
    """The part of a gang's minResources that the gang's pods do not use; cached until the PodGroup changes."""

    def __init__(self) -> None:
        self._axis: dict[str, int] | None = None
        self._known: LRUCache[tuple[str, str], Amounts] = LRUCache(MOST_KNOWN)
        """Maps the UID and version of a PodGroup to its minResources as an array."""

    def unused_by(self, snapshot: Snapshot, gang: GangView) -> Amounts:
        """Return the unused part of a gang's minResources, int64 of shape (resources,), read-only.

        The result is 0 for a gang with placed slots, or with pods that have scheduling gates of other controllers.
        """
        whole = self._whole(snapshot, gang)
        if gang.active or gang.gated_by_others:
            return np.zeros_like(whole)
        if not any(pod_set.taken for pod_set in gang.pod_sets):
            return whole
        rest: Amounts = np.maximum(whole - snapshot.used_by(gang), 0)
        return rest

    def _whole(self, snapshot: Snapshot, gang: GangView) -> Amounts:
        if snapshot.axis is not self._axis:  # the arrays have the snapshot's order of resources
            self._axis = snapshot.axis
            self._known.clear()
        key = gang.uid, gang.group.metadata.resource_version
        if key not in self._known:
            self._known[key] = row_along(snapshot.axis, snapshot.free.shape[0], min_resources(gang))
        return self._known[key]


class Overcommit(PlainPlugin):
    """Admission of gangs as long as all admitted gangs together need at most a multiple of the nodes' unused resources.

    The factor is 1.2 by default and, as in Volcano, if the configured factor is below 1. Only resources that the gang
    needs are compared. The resources of pods on nodes count only once, as used resources. Gangs that may be evicted for
    the new gang are not counted.
    """

    name = "overcommit"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, (FACTOR,))
        factor = number(self.name, arguments, FACTOR, DEFAULT_FACTOR)
        self._factor = factor if factor >= 1 else DEFAULT_FACTOR
        self._needs = UnusedMinResources()
        self._admitted: Amounts | None = None
        """Requests of the gangs that have been admitted; None until the first vote of the cycle."""
        self._victims: dict[tuple[str, int, bool], Amounts] = {}
        """Maps a gang's queue, priority and preemption policy to the resources of its possible victims in this
        cycle."""

    def on_session_open(self, session: Session) -> None:
        """Register the vote on admission, and count the gangs that are admitted during the cycle."""
        self._admitted = None
        self._victims.clear()
        session.hooks.job_enqueueable.add(lambda gang: self._vote(session, gang))
        session.hooks.job_enqueued.add(lambda gang: self._count_admitted(session, gang))

    def _count_admitted(self, session: Session, gang: GangView) -> None:
        self._admitted = self._sum(session) + self._needs.unused_by(session.snapshot, gang)

    def _sum(self, session: Session) -> Amounts:
        if self._admitted is None:
            waiting = [gang for gang in session.snapshot.gangs if gang.group.status.phase == "Inqueue"]
            start = np.zeros(session.snapshot.free.shape[0], dtype=np.int64)
            self._admitted = sum((self._needs.unused_by(session.snapshot, gang) for gang in waiting), start=start)
        return self._admitted

    def _vote(self, session: Session, gang: GangView) -> EnqueueVote | None:
        needed = self._needs.unused_by(session.snapshot, gang)
        total = session.snapshot.allocatable.sum(axis=1)
        used = total - session.snapshot.free.sum(axis=1)
        if (used[needed > 0] > 0).any():
            used = used - self._evictable(session, gang)
        over = np.flatnonzero((needed > 0) & (self._sum(session) + needed > total * self._factor - used))
        if not len(over):
            return None
        resource = next(name for name, row in session.snapshot.axis.items() if row == over[0])
        message = reasons.queues.overcommitted(resource=resource, factor=self._factor)
        return EnqueueVote(admit=False, reason=reasons.queues.OVERCOMMITTED, message=message)

    def _evictable(self, session: Session, gang: GangView) -> Amounts:
        """Return the resources that evictions could free for this gang, int64 of shape (resources,)."""
        key = gang.queue, gang.priority, gang.preempts
        if key not in self._victims:
            queues = session.snapshot.queues
            found = np.zeros(session.snapshot.free.shape[0], dtype=np.int64)
            for victim in session.snapshot.gangs if gang.preempts else ():
                queue = queues.get(victim.queue)
                inside = "preempt" in session.actions and victim.priority < gang.priority
                across = "reclaim" in session.actions and queue is not None and queue.spec.reclaimable is not False
                if victim.preemptable and (inside if victim.queue == gang.queue else across):
                    found += session.snapshot.used_by(victim)
            self._victims[key] = found
        return self._victims[key]


class Sla(PlainPlugin):
    """Order of gangs by the end of their maximum waiting time, earliest first; gangs without a maximum come last.

    The maximum waiting time starts when the PodGroup is created. The PodGroup's annotation or else the plugin's
    argument sets the maximum waiting time; an invalid value is ignored. An overdue gang is admitted without calling
    later plugins.
    """

    name = "sla"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, (WAITING_TIME,))
        given = arguments.get(WAITING_TIME) is not None
        self._waiting_s = duration_s(self.name, arguments, WAITING_TIME, 0.0) if given else None

    def on_session_open(self, session: Session) -> None:
        """Register the order of gangs and the vote on admission."""
        session.hooks.job_order.add(by_key(self._deadline))
        session.hooks.job_enqueueable.add(lambda gang: ADMITTED if session.now >= self._deadline(gang) else None)

    def _deadline(self, gang: GangView) -> float:
        """Return the time by which the gang should start, in epoch seconds; infinite without a maximum waiting time."""
        waiting_s, created = self._waiting(gang), parse_time(gang.created)
        return created + waiting_s if created is not None and waiting_s else float("inf")

    def _waiting(self, gang: GangView) -> float | None:
        annotations = gang.group.metadata.annotations
        for name in (SLA_WAITING_TIME, WAITING_TIME):
            if name in annotations:
                with suppress(ValueError):
                    return parse_duration_s(annotations[name]) or self._waiting_s
        return self._waiting_s


class Drf(PlainPlugin):
    """Order of the gangs of one queue by dominant share: the largest fraction of any resource that a gang uses."""

    name = "drf"

    def on_session_open(self, session: Session) -> None:
        """Register the order of gangs; placements of this cycle count as usage."""
        totals = np.maximum(session.snapshot.allocatable.sum(axis=1), 1)
        given: defaultdict[str, Amounts] = defaultdict(lambda: np.zeros(len(totals), dtype=np.int64))

        def count(entry: Operation | Eviction, sign: int) -> None:
            given[entry.gang.key] += sign * entry.amount

        def share(gang: GangView) -> float:
            used = session.snapshot.used_by(gang) + given[gang.key]
            return float((used / totals).max(initial=0.0))

        session.hooks.follow(count)
        session.hooks.job_order.add(by_key(share))


_COUNT_PODS = "count/pods"
_REQUESTS = "requests."


class QuotaRoom(PlainPlugin):
    """Admission of gangs only if the ResourceQuotas of their namespace permit their minimum.

    Without the plugin, the API server may reject some of a gang's pods, and the other pods would wait for them. The
    minimums of admitted gangs whose pods do not exist yet are counted, too. Quotas with scopes, or with amounts that
    cannot be parsed, are enforced only by the API server.
    """

    name = "resourcequota"

    def on_session_open(self, session: Session) -> None:
        """Register the vote on admission, and count the gangs that are admitted during the cycle."""
        admitted: dict[str, Counter[str]] = defaultdict(Counter)

        def count(gang: GangView) -> None:
            admitted[gang.group.metadata.namespace].update(_wanted(gang))

        for gang in session.snapshot.gangs if session.snapshot.quotas else ():
            if gang.group.status.phase == "Inqueue" and not gang.pods:
                count(gang)
        session.hooks.job_enqueueable.add(lambda gang: _vote(session, gang, admitted[gang.group.metadata.namespace]))
        session.hooks.job_enqueued.add(count)


def _wanted(gang: GangView) -> Vector:
    return {PODS: gang.min_member, **min_resources(gang)}


def _vote(session: Session, gang: GangView, admitted: Counter[str]) -> EnqueueVote | None:
    for quota in session.snapshot.quotas.get(gang.group.metadata.namespace, ()):
        if lacking := _lacking(quota, _wanted(gang), admitted):
            message = reasons.queues.resource_quota(quota=quota.metadata.name, resource=lacking)
            return EnqueueVote(admit=False, reason=reasons.queues.EXCEEDED, message=message)
    return None


def _lacking(quota: ResourceQuota, wanted: Vector, admitted: Counter[str]) -> str:
    """Return the quota's name for the first resource whose quota is too small; empty if the quota suffices."""
    if quota.scoped:
        return ""
    for key, limit in quota.status.hard.items():
        resource = key if key in wanted else PODS if key == _COUNT_PODS else key.removeprefix(_REQUESTS)
        if not wanted.get(resource):
            continue
        with suppress(ValueError):
            milli = resource.removeprefix("limits.") in MILLI
            left = parse(limit, milli=milli) - parse(quota.status.used.get(key, 0), milli=milli)
            if admitted[resource] + wanted[resource] > left:
                return key
    return ""
