"""Reasons not to request nodes: full queues, existing nodes that an autoscaler would use, and failed attempts.

cluster-autoscaler first packs pending pods into the free capacity, one by one and by kube-scheduler's own rules,
without gangs, topology or avoided nodes. cluster-autoscaler adds no node for pods that fit one by one, so no nodes are
requested for a gang whose pods fit one by one.

Autoscalers do not report whether they can help a pod. New nodes that hold only a part of a gang cost money while the
gang's pods request more nodes, and other gangs of the queue wait. Therefore a gang pauses after each request without
success, as after a failed ProvisioningRequest; each pause is longer than the previous pause. Pauses are remembered only
in memory, so they end with a restart of the planner.
"""

from collections.abc import Container, Hashable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from extender.planner import reasons
from extender.planner.framework.session import Session
from extender.planner.scaleup.requests import pause_s
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from muster.api.muster.reason import NOTHING, Reason, reason_of
from muster.resources.vector import Vector, add, scale


def refusal(session: Session, gang: GangView, wanted: Mapping[str, int]) -> Reason:
    """Return why the gang's queue or an ancestor does not allow these additional pods; empty if it allows them.

    Capabilities are checked here again, because plugins do not count resources that no node has.
    """
    ask, limited = session.ask(gang), session.snapshot.limited
    members = ask.members(session.hooks, wanted)
    refused = session.hooks.is_job_over_queue_capacity.call(gang, session.amounts(ask, members))
    if refused is not None:
        return reason_of(refused.message)
    for bounds in limited.limits.above(gang.queue):
        if bounds.unreadable:  # admission was bypassed: the gangs request no nodes
            return reasons.queues.unreadable_capability(queue=bounds.queue, error=bounds.unreadable)
    asked: Vector = {}
    for classes in members.values():
        for cls, count in classes.items():
            asked = add(asked, scale(cls.requests, count))
    full = limited.over_capability(gang.queue, limited.minimums.growth(gang.key, asked))
    if full is None:
        return NOTHING
    return reasons.queues.no_nodes_for(full.queue, full.resource, limit=full.limit, used=full.used, asked=full.asked)


class ExistingNodes:
    """The free capacity of existing nodes, computed once per cycle for gangs of the same shape."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[Hashable, bool] = {}

    def hold(self, gang: GangView, wanted: Mapping[str, int]) -> bool:
        """Return True if the wanted number of pods of each pod set of this gang would fit one by one."""
        if any(pod_set.cls is None and wanted[pod_set.name] for pod_set in gang.pod_sets):
            return False
        members = self._session.ask(gang).members(self._session.hooks, wanted)
        shape = tuple((cls.key, count) for classes in members.values() for cls, count in classes.items())
        if shape not in self._known:
            self._known[shape] = self._hold(members)
        return self._known[shape]

    def _hold(self, members: Mapping[str, Mapping[PodClass, int]]) -> bool:
        """Return True if the members fit into the free capacity and do not depend on other pods."""
        session, free = self._session, self._session.snapshot.free.copy()
        for cls, count in (pair for classes in members.values() for pair in classes.items()):
            if not count:
                continue
            if session.snapshot.one_by_one(cls):
                return False
            codes = session.node_codes(cls)
            neighbours = session.hooks.neighbour_predicate.call(cls)
            room = np.where(codes == 0, np.minimum(session.room(cls, free), count), 0)
            if neighbours is not None:
                room = np.where(neighbours == 0, room, 0)
            if room.sum() < count:
                return False
            before = np.cumsum(room) - room
            taken = np.clip(count - before, 0, room)
            free -= session.snapshot.row_of(cls)[:, None] * taken[None, :]
        return True


@dataclass(slots=True)
class GangAttempts:
    """The attempts of one gang to get nodes."""

    since: float | None = None
    """Start of the current attempt; None if the gang does not request nodes at present."""
    failures: int = 0
    """Number of attempts that ended before the gang could start."""
    rests_until: float = 0.0
    """Time before which the gang does not request nodes again."""


_NONE = GangAttempts()


class ScaleUpAttempts:
    """Attempts of gangs to get nodes, keyed by the gangs' UIDs; times are in seconds since the epoch."""

    def __init__(self) -> None:
        self._tried: dict[str, GangAttempts] = {}

    def forget_all_but(self, waiting: Container[str]) -> None:
        """Forget the attempts of all gangs except waiting gangs."""
        self._tried = {uid: tried for uid, tried in self._tried.items() if uid in waiting}

    def __contains__(self, uid: str) -> bool:
        return uid in self._tried

    def of(self, uid: str) -> GangAttempts:
        """Return the previous attempts of a gang to get nodes."""
        return self._tried.get(uid, _NONE)

    def give_up(self, uid: str, now: float) -> None:
        """End a gang's attempt to get nodes; the gang pauses from now on."""
        tried = self.of(uid)
        if tried.since is not None:
            tried.since, tried.failures = None, tried.failures + 1
            tried.rests_until = now + pause_s(tried.failures)

    def ask(self, asking: Iterable[str], now: float) -> None:
        """Record the gangs that request nodes from now on; the attempts of all other gangs stop."""
        uids = set(asking)
        for uid, tried in self._tried.items():
            if uid not in uids:
                tried.since = None
        for uid in uids:
            tried = self._tried.setdefault(uid, GangAttempts())
            tried.since = now if tried.since is None else tried.since
