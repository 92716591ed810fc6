"""Continuation of repairs that earlier cycles have started: the gang's members are notified or evicted.

If the nodes of a restarting gang are only suspect, all its members are still running and may get an eviction notice
(`planner.victims.notices`). The members are notified after the placement has been written. Members are evicted once
they have saved a checkpoint, when their notice period is over, or when a member loses its node. If the nodes become
healthy before the eviction, the members stay.
"""

from collections.abc import Mapping, Sequence

from extender.planner import reasons
from extender.planner.actions.makeroom import is_repair, still_saves
from extender.planner.actions.progress import give_up
from extender.planner.framework import decisions
from extender.planner.framework.decisions import RepairKind
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.victims.notices import answered
from muster.api.muster.node_faults import Fault
from muster.api.muster.placement import Placement, own_victims, victims_reason

Faults = Mapping[str, Fault | None]
"""Faulty nodes of a gang by name; the value is None for a node that no longer exists."""


def continue_repair(session: Session, gang: GangView) -> None:
    """Continue a repair that an earlier cycle or another planner has started: notify or evict the remaining members."""
    placement = gang.placement
    if placement is None or not is_repair(placement):
        return
    uids = {victim.uid for victim in placement.spec.victims}
    pods = tuple(pod for pod in gang.pods if pod.uid in uids and pod.alive)
    if not pods:
        return
    faults, reason, epoch = faulty_nodes(session, gang), victims_reason(placement), placement.spec.epoch
    if not placement.spec.notices:
        session.decide(decisions.EvictForFaults(gang, "replace", pods, worst(faults), reason, epoch, again=True))
        return
    if any(close.gang is gang for close in session.decided(decisions.ClosePlacement)):
        return
    gone = {victim.uid for victim in own_victims(placement)} - {pod.uid for pod in gang.pods}
    begun = bool(gone) or any(pod.terminating for pod in pods)
    known = all(
        pod.node in session.snapshot.index for pod in pods
    )  # the node may be gone, which the API server reports a moment later
    if not begun and not faults and known:
        give_up(session, gang, placement, reasons.repairs.HEALTHY)
    elif not begun and still_saves(session, gang, placement, pods):
        _notify(session, gang, placement, pods)
    else:
        outcome = "answered" if answered(gang, placement.spec.notices[0], session.now) else "silent"
        session.decide(
            decisions.EvictForFaults(gang, "restart", pods, worst(faults), reason, epoch, again=begun, outcome=outcome)
        )


def _notify(session: Session, gang: GangView, placement: Placement, pods: Sequence[PodRecord]) -> None:
    """Write an eviction notice with the deadline to the members without a notice."""
    until, reason = placement.spec.notices[0].evict_at, victims_reason(placement)
    for pod in pods:
        if (pod.answer.evict_at if pod.answer else "") != until:
            session.decide(decisions.SendNotice(gang, pod, until, gang.queue, reason, len(pods)))


def faulty_nodes(session: Session, gang: GangView) -> Faults:
    """Return the faulty nodes on which members of a gang are alive.

    A node that has only left the node pool still exists. The planner therefore reads an unknown node from the API
    server, and treats the node as gone only if the API server does not have it.
    """
    faults, index, gone = session.snapshot.faults, session.snapshot.index, session.inputs.gone
    nodes = {pod.node for pod in gang.pods if pod.alive}
    session.unsure_nodes |= {node for node in nodes if node not in index}
    return {node: faults.get(node) for node in sorted(nodes) if node in faults or (node in gone and node not in index)}


def worst(faults: Faults) -> RepairKind:
    """Return the most severe of the given kinds of faults."""
    if None in faults.values():
        return "gone"
    return "not-ready" if any(fault and fault.kind == "not-ready" for fault in faults.values()) else "suspect"
