"""Follows placements with victims until the room is free.

The placement names its victims, so that another planner can go on with it. In each cycle:

* The room is free: the placement becomes one without victims, and its deadline begins.
* Victims have not been evicted: they are, unless a disruption budget forbids it by now.
* Victims are leaving: wait until their grace period is over, and a minute more.
* All are gone and the room is not free, or they do not go: the placement is given up.

The placement of a gang that is moved only waits for its own members, which are evicted for the other gang.
"""

import numpy as np

from extender.planner import reasons
from extender.planner.actions.search import gated_until_others
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.victims.pieces import Budgets
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.gang import Slot
from muster.api.muster.placement import Placement, Victim

LATE_S = 60.0
"""Time after its grace period during which a pod that is being deleted is still expected to go."""


def make_room(session: Session, gang: GangView, placement: Placement, missing: dict[Slot, str]) -> str:
    """Decide the next step of such a placement; return why it is to be given up, empty if it is not."""
    there = victims_there(session, gang, placement)
    own = [pod for victim, pod in there if victim is gang]
    if not own and _has_room(session, gang, missing, [pod for _, pod in there]):
        pod_sets = gated_until_others(gang, placement.spec.pod_sets)
        session.decide(decisions.RoomIsThere(gang, pod_sets, len(missing)))
        return ""
    staying = tuple((victim, pod) for victim, pod in there if not pod.terminating and victim is not gang)
    overdue = session.now > (parse_time(placement.spec.deadline) or session.now)
    if overdue and (staying or any(not pod.terminating for pod in own)):
        return reasons.placements.not_evicted(pods=len(staying) or len(own))
    if staying:
        return _evict(session, gang, placement, staying)
    columns = {session.snapshot.index[node] for node in missing.values() if node in session.snapshot.index}
    leaving = [
        pod
        for pod in session.snapshot.leaving.values()
        if session.snapshot.index.get(pod.node) in columns or any(pod is mine for mine in own)
    ]
    if any(expected_to_go(pod.gone_by, session.now) for pod in leaving) or any(not pod.terminating for pod in own):
        return ""
    return reasons.placements.VICTIMS_STAY if leaving else reasons.placements.ROOM_TAKEN


def _evict(
    session: Session, gang: GangView, placement: Placement, staying: tuple[tuple[GangView, PodRecord], ...]
) -> str:
    budgets = Budgets(session.snapshot)
    counted = [pod for _, pod in staying if budgets.counted(pod)] if budgets else []
    if not budgets.take(counted):
        return reasons.placements.BUDGET
    uids = frozenset(pod.uid for pod in counted)
    reason = placement.spec.victims_reason
    session.decide(decisions.MakeRoom(gang, placement.spec.epoch, staying, reason, uids))
    return ""


def _has_room(session: Session, gang: GangView, missing: dict[Slot, str], victims: list[PodRecord]) -> bool:
    """Return True if no node of a missing slot is overfull, nor has victims if pods have rules about other pods."""
    index = session.snapshot.index
    nodes = set(missing.values())
    columns = [index[node] for node in nodes if node in index]
    snapshot = session.snapshot
    free = snapshot.free[:, columns]
    if bool((free < 0).any()) or bool(snapshot.devices.at(columns).overfull(free, snapshot.axis).any()):
        return False
    sets = {pod_set.name: pod_set for pod_set in gang.pod_sets}
    classes = {cls for slot in missing if (owner := sets.get(slot.pod_set)) and (cls := owner.class_of(slot.rank))}
    if not any(cls.marks or cls.neighbours or cls.claims for cls in classes):
        return True
    return (
        not victims
        and not np.isin([index.get(pod.node, -1) for pod in session.snapshot.leaving.values()], columns).any()
    )


def awaits_room(gang: GangView) -> bool:
    """Return True if the gang has an active placement with victims."""
    return gang.active and gang.placement is not None and bool(gang.placement.spec.victims)


def victims_there(session: Session, gang: GangView, placement: Placement) -> list[tuple[GangView, PodRecord]]:
    """Return the victims of a placement that still use their node, each with its gang."""
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


def leaving_pods(session: Session) -> dict[str, PodRecord]:
    """Return by UID the pods that are being deleted or whose room a placement waits for."""
    found = dict(session.snapshot.leaving)
    for gang in session.snapshot.gangs:
        if awaits_room(gang) and gang.placement is not None:
            found.update((pod.uid, pod) for _, pod in victims_there(session, gang, gang.placement))
    return found


def budgets_of(session: Session) -> Budgets:
    """Return what disruption budgets allow beyond those pods; their status counts pods that are being deleted."""
    budgets = Budgets(session.snapshot)
    if budgets:
        budgets.count(pod for pod in leaving_pods(session).values() if not pod.terminating)
    return budgets


def expected_to_go(gone_by: str, now: float) -> bool:
    """Return True if a pod that is being deleted is likely to go soon; `gone_by` is empty for a new victim."""
    try:
        return not gone_by or now <= (parse_time(gone_by) or now) + LATE_S
    except (ValueError, OverflowError):
        return False
