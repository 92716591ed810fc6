"""Repair of gangs with members on faulty nodes, according to the gang's policy.

Other programs detect faults (`muster.api.muster.node_faults`). The policy applies to a started gang whose members are
on nodes that are suspect, do not respond, or are gone:

* `wait` does nothing: the members stay on their nodes until Kubernetes or a user evicts them.
* `replace` moves the members on faulty nodes elsewhere, as close to the others as the topology requires.
* `restart` restarts all members: members on healthy nodes return to their nodes, and members on faulty nodes get other
  nodes. If the Job restarts as a whole, finished members get new nodes, too, because other pods may use the capacity of
  their old nodes.

If capacity is free, `replace` and `restart` create a placement of the gang whose victims are the gang's own members, as
for a move. The repair's placement holds the new nodes, so the gang need not wait in its queue again. If no capacity is
free, members on suspect nodes keep running, and members on dead nodes are evicted. A gang with the policy `restart` and
dead members is evicted entirely after the grace period for gangs that have lost members.

If all members of a restarting gang are still running, the members first get an eviction notice (`begunrepairs`).

Several faults in quick succession cause a single repair. A node that does not respond is given time to recover. If most
nodes are faulty at once, no gang is repaired, because the cause is probably outside the nodes.
"""

from collections.abc import Sequence
from functools import partial

from extender.planner import reasons
from extender.planner.actions.begunrepairs import Faults, continue_repair, faulty_nodes, worst
from extender.planner.actions.evicting import MOST_VICTIMS
from extender.planner.actions.makeroom import failed_to_evict
from extender.planner.actions.placing import runs_of_operations
from extender.planner.actions.search import moved
from extender.planner.actions.spares import borrowers_of, own_spares, spares_returned, without
from extender.planner.framework import decisions
from extender.planner.framework.decisions import RepairKind
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, undone
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.victims.notices import latest_end, notices_for
from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.muster.node_faults import Fault, is_dead
from muster.api.muster.reason import NOTHING, Reason
from muster.resources.faults import Policy, policy_of, seconds_of
from muster.workloads.table import row_of

SETTLE_S = 2.0
"""Seconds between the last fault of a gang's nodes and the repair. Several faults often occur together."""
SETTLE_MOST_S = 10.0
"""Maximum number of seconds between the first fault of a gang's nodes and the repair."""
MOST_GANGS = 16
"""Maximum number of gangs repaired in one cycle; further gangs follow in later cycles."""
FEW_NODES = 2
"""Number of faulty nodes up to which repairs never stop, as in kube-controller-manager's small zones."""
_BACK = "mpi"
"""The framework whose programs may replace a lost process themselves, with ULFM (User Level Failure Mitigation)."""


class Repair:
    """The action that repairs gangs; it checks gangs after changes, and remembers when faults began."""

    name = "repair"

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        """Maps a faulty node with gang members to the epoch seconds when its fault was first seen."""
        self._checks: dict[str, tuple[GangView, int]] = {}
        """Maps the key of a gang without faults to the gang and the nodes' generation at its last check."""

    def execute(self, session: Session) -> None:
        """Decide Place and Repair for gangs that are due for repair, or Unschedulable if repair is impossible."""
        hurt = self._hurt(session)
        self._since = {node: self._since.get(node, session.now) for _, nodes in hurt for node in nodes}
        stopped, repaired = too_many(session), 0
        for gang, nodes in hurt:
            if repaired >= MOST_GANGS:
                return
            repaired += bool(session.attempt(gang, partial(self._repair, nodes=nodes, stopped=stopped)))

    def _hurt(self, session: Session) -> list[tuple[GangView, Faults]]:
        """Return the started gangs with members on faulty nodes; also continue repairs that earlier cycles started."""
        before, self._checks = self._checks, {}
        generation, hurt = session.snapshot.generation, []
        for gang in session.snapshot.gangs:
            known = before.get(gang.key)
            if known is not None and known[0] is gang and known[1] == generation:
                self._checks[gang.key] = known
            elif gang.active:
                continue_repair(session, gang)
            elif gang.started and (nodes := faulty_nodes(session, gang)):
                hurt.append((gang, nodes))
            elif not gang.started or _knows_all(session, gang):
                self._checks[gang.key] = gang, generation
        return hurt

    def _repair(self, session: Session, gang: GangView, *, nodes: Faults, stopped: Reason) -> bool:
        """Repair one gang if its repair is due; return True if pods are evicted."""
        due = self._due(session, gang, nodes)
        lost = [pod for pod in gang.pods if pod.alive and pod.node in due]
        policy, why = chosen_policy(gang, lost)
        if not due or policy == "wait" or failed_to_evict(gang, session.now):
            return False
        if stopped:
            session.decide(decisions.Unschedulable(gang, reasons.repairs.NODE_FAULT, stopped))
            return False
        if policy == "restart":
            return self._restart(session, gang, due, lost, why)
        return _replace(session, gang, due, lost, why)

    def _restart(self, session: Session, gang: GangView, due: Faults, lost: list[PodRecord], why: str) -> bool:
        """Restart a gang; if no capacity is free, evict it after the grace period for dead members."""
        there = [pod for pod in gang.pods if pod.alive]
        gone = {pod.uid for pod in lost}
        leaving = [*lost, *(pod for pod in there if pod.uid not in gone and _refuses(session, pod))]
        words, dead = _nodes_text(due), any(map(is_dead, due.values()))
        reason = reasons.repairs.restarts(words, len(leaving), len(there), why, dead=dead)
        if _place(session, gang, "restart", there, leaving, worst(due), reason, notified=not dead):
            return True
        grace_s = session.inputs.timing.staleness_grace_s
        first = min(self._due_at(session, gang, node, fault) for node, fault in due.items())
        if not dead or grace_s < 0 or session.now < first + grace_s:
            message = reasons.repairs.stays(words, len(lost))
            session.decide(decisions.Unschedulable(gang, reasons.repairs.NODE_FAULT, message))
            return False
        reason = reasons.repairs.evicts_whole(nodes=words, members=len(lost))
        session.evicted.add(gang.key)
        session.decide(decisions.EvictForFaults(gang, "restart", tuple(there), worst(due), reason))
        return True

    def _due(self, session: Session, gang: GangView, nodes: Faults) -> Faults:
        """Return the faulty nodes to repair together now; empty while more faults or recoveries are expected soon."""
        at = {node: self._due_at(session, gang, node, fault) for node, fault in nodes.items()}
        soon = [moment for moment in at.values() if moment <= session.now + SETTLE_S]
        settled = soon and (session.now >= max(soon) + SETTLE_S or session.now >= min(soon) + SETTLE_MOST_S)
        return {node: nodes[node] for node, moment in at.items() if moment <= session.now} if settled else {}

    def _due_at(self, session: Session, gang: GangView, node: str, fault: Fault | None) -> float:
        """Return the time from which a fault is repaired: now, or after the grace period for unresponsive nodes."""
        seen = self._since[node]
        if fault is None or fault.kind == "suspect":
            return seen
        own = seconds_of(gang.options, names.NODE_FAULT_GRACE)
        grace_s = session.inputs.timing.node_fault_grace_s if own is None else own
        return (seen if fault.since is None else min(fault.since, seen)) + grace_s


def too_many(session: Session) -> Reason:
    """Return a reason if repairs are stopped because too many nodes are faulty; otherwise empty."""
    faulty, known = len(session.snapshot.faults), len(session.snapshot.index)
    if faulty <= FEW_NODES or faulty < session.inputs.timing.fault_stop * known:
        return NOTHING
    return reasons.repairs.stopped(faulty, known)


def chosen_policy(gang: GangView, lost: Sequence[PodRecord]) -> tuple[Policy, str]:
    """Return the repair policy for a gang that loses these members, and the reason for this choice as text."""
    named, owner = policy_of(gang.options), gang.group.metadata.controller
    kind = row_of(owner)
    if kind is not None and kind.one_node_each:
        return "wait", reasons.repairs.ONE_NODE_EACH
    if gang.restarts_whole and named != "wait":
        return "restart", reasons.repairs.JOB_RESTARTS
    if named is not None:
        return named, reasons.repairs.BY_ANNOTATION
    if (owner is None or owner.kind == PODS.kind) and not any(pod.controller_uid for pod in lost):
        return "wait", reasons.repairs.NO_OWNER
    return _default_policy(gang, lost)


def _default_policy(gang: GangView, lost: Sequence[PodRecord]) -> tuple[Policy, str]:
    if gang.indivisible:
        return "restart", reasons.repairs.INDIVISIBLE
    if gang.independent:
        return "replace", reasons.repairs.INDEPENDENT
    if gang.viable_without({pod.uid for pod in lost}):
        return "replace", reasons.repairs.ENOUGH_WITHOUT
    if gang.framework and gang.framework != _BACK:
        return "restart", reasons.repairs.static(framework=gang.framework)
    return "replace", reasons.repairs.CAN_TAKE_BACK


def _knows_all(session: Session, gang: GangView) -> bool:
    """Return True if the planner knows every node on which members of a gang run."""
    return all(pod.node in session.snapshot.index for pod in gang.pods if pod.alive)


def fault_report(session: Session, gang: GangView) -> str:
    """Return a message to the owner about members on faulty nodes; empty if no node is faulty."""
    faults = faulty_nodes(session, gang) if gang.started else {}
    lost = [pod for pod in gang.pods if pod.alive and pod.node in faults]
    return reasons.repairs.policy(_nodes_text(faults), len(lost), *chosen_policy(gang, lost)) if lost else ""


def _nodes_text(faults: Faults) -> str:
    return reasons.repairs.nodes_with({node: _fault_text(fault) for node, fault in faults.items()})


def _fault_text(fault: Fault | None) -> str:
    return str(reasons.cause.faulty(fault)) if fault else reasons.repairs.GONE


def _replace(session: Session, gang: GangView, due: Faults, lost: list[PodRecord], why: str) -> bool:
    """Replace the members on faulty nodes; if no capacity is free, evict only members that are no longer running."""
    words, dead = _nodes_text(due), [pod for pod in lost if is_dead(due[pod.node])]
    reason = reasons.repairs.replaces(words, len(lost), why, dead=bool(dead))
    if _place(session, gang, "replace", lost, lost, worst(due), reason):
        return True
    if len(dead) < len(lost):
        message = reasons.repairs.stays(words, len(lost) - len(dead))
        session.decide(decisions.Unschedulable(gang, reasons.repairs.NODE_FAULT, message))
    if dead:
        session.decide(decisions.EvictForFaults(gang, "replace", tuple(dead), worst(due), reason))
    return bool(dead)


def _place(
    session: Session, gang: GangView, policy: Policy, going: Sequence[PodRecord], leaving: Sequence[PodRecord],
    kind: RepairKind, reason: Reason, *, notified: bool = False,
) -> bool:  # fmt: skip
    """Evict the pods in `going`, and plan new nodes for the pods in `leaving`; return False if no capacity is free.

    Evicted pods that are not in `leaving` return to their own nodes. Evicted pods may use the gang's spare slots, and
    gangs that borrow these slots are evicted. With `notified`, the evicted pods first get an eviction notice, if the
    gang requests notices.
    """
    statement, coming = Statement(session), [*leaving, *gang.does_again]
    if len(going) > MOST_VICTIMS or any(pod.slot is None for pod in (*going, *coming)):
        return False
    room, borrowers = own_spares(session, gang), list[tuple[GangView, PodRecord]]()
    with undone(statement), spares_returned(session, gang), room.free():
        statement.evict(gang, leaving)
        fits = moved(session, statement, gang, coming)
        for other in [] if fits else borrowers_of(session, gang):
            pods = [pod for pod in other.pods if pod.uses_node]
            statement.evict(other, pods)
            borrowers += [(other, pod) for pod in pods]
            if fits := moved(session, statement, gang, coming):
                break
        if not fits:
            statement.discard()
            return False
    operations = statement.commit_victims()
    spares = without(gang, {session.snapshot.name(operation.column) for operation in operations}, room)
    session.snapshot.leaving.update((pod.uid, pod) for pod in [*going, *(pod for _, pod in borrowers)])
    if gang.independent:  # each pod is replaced alone, by a pod with another name
        session.decide(decisions.EvictForFaults(gang, policy, tuple(going), kind, reason))
        return True
    runs, epoch = runs_of_operations(session, gang, operations, gated=True), gang.next_epoch()
    own = tuple((gang, pod) for pod in going)
    notices = notices_for(session, gang, own) if notified else ()
    until = latest_end(notices)
    session.decide(
        decisions.Place(
            gang, runs, epoch, len(going), (*own, *borrowers), reason, spares=spares, notices=notices, waits_until=until
        )
    )
    if not notices:  # a later cycle evicts notified members
        session.decide(decisions.EvictForFaults(gang, policy, tuple(going), kind, reason, epoch))
    session.evicted.add(gang.key)
    return True


def _refuses(session: Session, pod: PodRecord) -> bool:
    """Return True if the node of a pod accepts no new pods, for example because it is cordoned."""
    column = session.snapshot.index.get(pod.node)
    return column is None or bool(session.node_codes(pod.cls)[column])
