"""Writer of evictions because of node faults, as decided by the action `repair`.

The Eviction API marks a pod as disrupted, so that Jobs need not count the pod as failed, and enforces disruption
budgets. Disruption budgets are respected for members that are still running. Members on unresponsive nodes are deleted
regardless of disruption budgets, as in Kubernetes. A pod is force-deleted only if its Node is deleted or out of
service, so that no kubelet can confirm the end of the pod.
"""

from typing import NamedTuple

import structlog
from prometheus_client import Counter

from extender.evictions import EVICTED, Evictor
from extender.notices import NoticeWriter
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.writes import WriteContext
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.node_faults import OUT_OF_SERVICE
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
"""Time in seconds after which an existing node that the planner does not know is read again. The planner does not know
nodes of other pools.
"""


MOST_ASKED = 16
"""Maximum number of nodes that are read in one cycle, because the cycle waits for the results; later cycles read the
other nodes.
"""


class _Member(NamedTuple):
    """The eviction of one member as part of a repair."""

    gang: GangView
    repair: decisions.EvictForFaults
    pod: PodRecord
    force: bool


class Repairs(Evictor):
    """Writer of the evictions that repairs need (the decision `EvictForFaults`)."""

    def __init__(self, context: WriteContext, notices: NoticeWriter) -> None:
        super().__init__(context, notices)
        self._there: dict[str, float] = {}
        """Maps an existing node that is unknown to the planner to the time before which the node is not read again."""
        self.gone: frozenset[str] = frozenset()
        """Names of deleted nodes on which gangs still have members."""

    def carry_out(self, session: Session) -> None:
        """Evict the members that a cycle's repairs name, and record one Event for each gang."""
        self.ask(session)
        self._forget()
        due = [repair for repair in session.decided(decisions.EvictForFaults) if self._stands(repair)]
        members = [
            _Member(repair.gang, repair, pod, self._is_off(session, pod.node)) for repair in due for pod in repair.pods
        ]
        gone: set[int] = set()

        def evict(member: _Member) -> None:
            if self._evict(member):
                gone.add(id(member.repair))

        self._writes.all(REPAIR, evict, members)
        for repair in due:
            if id(repair) in gone and not repair.again:
                REPAIRS.labels(repair.policy, repair.kind).inc()
                self._events.repairs(repair.gang, repair.reason)
                self._notices.repaired(repair)

    def _stands(self, repair: decisions.EvictForFaults) -> bool:
        """Return True if the repair has no epoch, or if the gang's placement still has the repair's epoch."""
        if repair.epoch is None:
            return True
        placement = self._cluster.ask(lambda state: state.placement_of(repair.gang.key))
        return placement is not None and placement.spec.epoch == repair.epoch

    def ask(self, session: Session) -> None:
        """Read those nodes of gang members that the planner does not know, before the planner's next cycle."""
        now = self._monotonic_s()
        self._there = {node: until for node, until in self._there.items() if until > now}
        gone = self.gone & session.unsure_nodes
        for node in sorted(session.unsure_nodes - gone - self._there.keys())[:MOST_ASKED]:
            try:
                found = self._client.list(NODES, field_selector=f"metadata.name={node}")
            except APIError as error:
                log.warning("an unknown node cannot be read; the extender retries", node=node, error=str(error))
                return
            if found:
                self._there[node] = now + THERE_S
            else:
                gone |= {node}
        self.gone = gone

    def _is_off(self, session: Session, node: str) -> bool:
        """Return True if no kubelet runs on the node any more, because the node is deleted or out of service."""
        fault = session.snapshot.faults.get(node)
        out = fault is not None and fault.cause == f"taint {OUT_OF_SERVICE}"
        return out or (node in self.gone and node not in session.snapshot.index)

    def _evict(self, member: _Member) -> bool:
        """Evict one member; return False if it has left its node or just changed, or if a budget forbids it."""
        repair, pod = member.repair, member.pod
        latest = self._victim(pod)
        if latest is None:
            return False
        try:
            self._send(repair, latest, force=member.force)
        except NotFound:
            self._note(pod)
            return False
        except (Conflict, TooManyRequests) as error:
            if not isinstance(error, Conflict):  # the member has just changed, so the next cycle decides again
                self._note(pod)
            log.info("not evicted yet", pod=pod.key, uid=pod.uid, why=error.message)
            return False
        self._note(pod)
        EVICTED.labels(REPAIR).inc()
        who, why, forced = member.gang.key, str(repair.reason), member.force
        log.info("evicted", pod=pod.key, uid=pod.uid, gang=who, reason=why, epoch=repair.epoch, force=forced)
        return True

    def _send(self, repair: decisions.EvictForFaults, pod: PodRecord, *, force: bool) -> None:
        if force:
            self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid, grace_period_s=0)
            self._uncount(pod)
        elif repair.kind == "suspect":
            self._evict_unchanged(pod)
        else:
            self._evict_anyway(pod)
