"""Pods that have to go for somebody already: named by placements that wait for their room, or chosen in this cycle."""

from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.podrecord import PodRecord
from extender.planner.victims.budgets import Budgets
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import Placement, Victim

LATE_S = 60.0
"""How long after its grace period a pod that is being deleted is still expected to go."""


def awaits_room(gang: GangView) -> bool:
    """Whether pods have to go before the gang's placement can be carried out."""
    return gang.active and gang.placement is not None and bool(gang.placement.spec.victims)


def victims_there(session: Session, gang: GangView, placement: Placement) -> list[tuple[GangView, PodRecord]]:
    """The victims of a placement that still use their node, each with its gang."""
    namespace = gang.group.metadata.namespace
    wanted: dict[str, list[Victim]] = {}
    for victim in placement.spec.victims:
        wanted.setdefault(f"{victim.namespace or namespace}/{victim.gang}", []).append(victim)
    found = []
    for key, victims in wanted.items():
        view = session.gang(key)
        pods = {pod.uid: pod for pod in view.pods} if view else {}
        for victim in victims:
            pod = pods.get(victim.uid)
            if view and pod and pod.uses_node:
                found.append((view, pod))
    return found


def claimed_pods(session: Session) -> dict[str, PodRecord]:
    """All such pods of all gangs, by UID, with those that are being deleted anyway."""
    found = dict(session.snapshot.leaving)
    for gang in session.snapshot.gangs:
        if awaits_room(gang) and gang.placement is not None:
            found.update((pod.uid, pod) for _, pod in victims_there(session, gang, gang.placement))
    return found


def budgets_of(session: Session) -> Budgets:
    """What disruption budgets allow beyond those pods; the API server has counted pods that are being deleted."""
    budgets = Budgets(session.snapshot)
    if budgets:
        budgets.count(pod for pod in claimed_pods(session).values() if not pod.terminating)
    return budgets


def expected_to_go(gone_by: str, now: float) -> bool:
    """Whether a pod that is being deleted is likely to go soon; `gone_by` is empty for one that was just chosen."""
    try:
        return not gone_by or now <= (parse_time(gone_by) or now) + LATE_S
    except (ValueError, OverflowError):
        return False
