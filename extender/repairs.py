"""Evicts members of gangs for faults of their nodes, as the action `repair` decides.

The Eviction API says in a pod that it was disrupted, so that Jobs need not count it as a failure, and it watches over
disruption budgets. A budget holds for members that still run; those on nodes that do not answer are deleted all the
same, as Kubernetes does. Only where the Node is gone, or out of service, is a pod deleted by force: no kubelet is left
to say that it has ended.
"""

from collections.abc import Callable
from typing import NamedTuple

import structlog
from prometheus_client import Counter

from extender.cluster import Live
from extender.evictions import EVICT_AGAIN_S, EVICTED, evict_anyway
from extender.gangevents import GangEvents
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.writes import Writes
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.node_faults import OUT_OF_SERVICE
from muster.kube.client import Client
from muster.kube.errors import APIError, Conflict, NotFound, TooManyRequests
from muster.process.counters import from_zero

log = structlog.get_logger()
REPAIRS = Counter(
    "muster_repairs_total",
    "Repairs of gangs with members on faulty nodes, by policy and by the worst fault",
    ["policy", "kind"],
)
KINDS = ("suspect", "not-ready", "gone")
REPAIR = "repair"
for _policy in ("replace", "restart"):
    from_zero(REPAIRS, KINDS, _policy)
from_zero(EVICTED, (REPAIR,))
THERE_S = 60.0
"""Time for which a node that exists is not asked for again, though the planner does not know it: it left the pool."""


MOST_ASKED = 16
"""Nodes that are asked for in one cycle, which waits for the answers; the others are asked for in the next ones."""


class _Member(NamedTuple):
    """One eviction of a repair."""

    gang: GangView
    repair: decisions.Repair
    pod: PodRecord
    force: bool


class Repairs:
    """Carries Repair out; `wall_s` returns seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        cluster: Live,
        events: GangEvents,
        *,
        wall_s: Callable[[], float],
        count_notice: Callable[[decisions.Repair], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._events = events
        self._wall_s = wall_s
        self._count_notice = count_notice
        self._asked: dict[str, float] = {}
        """UID of an evicted pod → time until which it is not evicted again."""
        self._there: dict[str, float] = {}
        """Node that the planner does not know, and that exists → time until which it is not asked for again."""
        self.gone: frozenset[str] = frozenset()
        """Nodes that the planner does not know, with members of gangs, and that do not exist."""

    def carry_out(self, session: Session, writes: Writes) -> None:
        """Evict the members of all repairs of a cycle, and tell each gang once."""
        self.ask(session)
        now = self._wall_s()
        self._asked = {uid: until for uid, until in self._asked.items() if until > now}
        due = [repair for repair in session.decided(decisions.Repair) if self._stands(repair)]
        members = [
            _Member(repair.gang, repair, pod, self._is_off(session, pod.node)) for repair in due for pod in repair.pods
        ]
        gone: set[int] = set()

        def evict(member: _Member) -> None:
            if self._evict(member):
                gone.add(id(member.repair))

        writes.all(REPAIR, evict, members)
        for repair in due:
            if id(repair) in gone and not repair.again:
                REPAIRS.labels(repair.policy, repair.kind).inc()
                self._events.repairs(repair.gang, repair.reason)
                self._count_notice(repair)

    def _stands(self, repair: decisions.Repair) -> bool:
        """Return True if the gang's placement is the one that the repair was decided with."""
        if repair.epoch is None:
            return True
        placement = self._cluster.ask(lambda state: state.placement_of(repair.gang.key))
        return placement is not None and placement.spec.epoch == repair.epoch

    def ask(self, session: Session) -> None:
        """Ask for the nodes with members of gangs that the planner does not know, before its next cycle."""
        now = self._wall_s()
        self._there = {node: until for node, until in self._there.items() if until > now}
        gone = self.gone & session.unsure_nodes
        for node in sorted(session.unsure_nodes - gone - self._there.keys())[:MOST_ASKED]:
            try:
                found = self._client.list(NODES, field_selector=f"metadata.name={node}")
            except APIError as error:
                log.warning("a node that is not known cannot be read; it is tried again", node=node, error=str(error))
                return
            if found:
                self._there[node] = now + THERE_S
            else:
                gone |= {node}
        self.gone = gone

    def _is_off(self, session: Session, node: str) -> bool:
        """Return True if no kubelet is left on a node."""
        fault = session.snapshot.faults.get(node)
        out = fault is not None and fault.cause == f"taint {OUT_OF_SERVICE}"
        return out or (node in self.gone and node not in session.snapshot.index)

    def _evict(self, member: _Member) -> bool:
        """Evict one member; False if it does not use its node any more, has just changed, or a budget forbids it."""
        repair, pod = member.repair, member.pod
        latest = self._cluster.ask(lambda state: state.pods.get(pod.uid))
        if latest is None or latest.terminating or not latest.uses_node:
            return False
        if self._asked.get(pod.uid, 0.0) > self._wall_s():
            return False
        self._asked[pod.uid] = self._wall_s() + EVICT_AGAIN_S
        name = f"{pod.namespace}/{pod.name}"
        try:
            self._send(repair, latest, force=member.force)
        except NotFound:
            return False
        except (Conflict, TooManyRequests) as error:
            if isinstance(error, Conflict):  # it has just changed: the next cycle decides again
                del self._asked[pod.uid]
            log.info("not evicted yet", pod=name, uid=pod.uid, why=error.message)
            return False
        except APIError:
            del self._asked[pod.uid]
            raise
        EVICTED.labels(REPAIR).inc()
        who = member.gang.key
        log.info(
            "evicted",
            pod=name,
            uid=pod.uid,
            gang=who,
            reason=str(repair.reason),
            epoch=repair.epoch,
            force=member.force,
        )
        return True

    def _send(self, repair: decisions.Repair, pod: PodRecord, *, force: bool) -> None:
        if force:
            self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid, grace_period_s=0)
        elif repair.kind == "suspect":
            self._client.evict(pod.namespace, pod.name, pod.uid, resource_version=pod.resource_version)
        else:
            evict_anyway(self._client, pod)
