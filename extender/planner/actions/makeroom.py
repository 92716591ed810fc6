"""Next steps of placements that wait for victims, until the victims' capacity is free.

A placement lists its victims, so that another planner can continue the evictions. Each cycle handles the following
cases:

* The capacity is free: the list of victims is removed from the placement, and the placement's deadline begins.
* Victims must be notified: the eviction notices are written. Notified victims are evicted once they have answered or
  the notice period is over. Victims without a notice are evicted together with the notified victims.
* Victims have not been evicted: they are evicted, unless a disruption budget now forbids their eviction.
* Victims are terminating: the planner waits until their grace period (at most the longest notice period) and one more
  minute are over.
* All victims have terminated but the capacity is not free, or they do not terminate: the placement is abandoned.

The placement of a moved gang waits only for the gang's own members, which are evicted in favour of another gang. If the
other gang no longer needs the capacity, the moved gang's placement is abandoned. The placement of a repair waits until
its deadline for the gang's own members, because the action `repair` evicts these members. While the repaired gang's
members save a checkpoint, the repair's other victims keep running.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from extender.planner import reasons
from extender.planner.actions.placing import gated_until_others
from extender.planner.framework import decisions
from extender.planner.framework.decisions import Victims
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.timing import MAX_PLACEMENT_DELAY_S, is_over
from extender.planner.victims.notices import answered, due, expected_to_go, last_saved, notices_of, unsaved_s
from extender.planner.victims.units import DisruptionBudgets
from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.muster.gang import Slot
from muster.api.muster.node_faults import is_dead
from muster.api.muster.placement import Notice, Placement, Victim, own_victims, victims_reason
from muster.api.muster.reason import Reason
from muster.workloads.table import row_of

PATIENCE_S = 600.0
"""Time after the deadline during which a placement with eviction notices is still carried out, for example after the
planner was interrupted. If the placement were abandoned, its victims would need a second eviction notice."""


def make_room(session: Session, gang: GangView, placement: Placement, missing: dict[Slot, str]) -> Reason | None:
    """Decide the next step of a placement with victims; return the reason if the placement must be abandoned."""
    there = victims_there(session, placement)
    own = [pod for victim, pod in there if victim is gang and not (pod.terminating and _on_dead_node(session, pod))]
    if not own and _has_room(session, gang, missing, [pod for _, pod in there]):
        pod_sets = gated_until_others(gang, placement.spec.pod_sets)
        session.decide(decisions.RoomIsThere(gang, pod_sets, len(missing), remade_s(gang, placement)))
        return None
    staying = tuple((victim, pod) for victim, pod in there if not pod.terminating and victim is not gang)
    last = (parse_time(placement.spec.deadline) or session.now) + (PATIENCE_S if placement.spec.notices else 0.0)
    if staying and session.now > last:
        return reasons.placements.not_evicted(pods=len(staying))
    if staying and not still_saves(session, gang, placement, own):
        return _evict(session, gang, placement, staying)
    remaining = sum(not pod.terminating for pod in own)
    if remaining:
        return _own_stay(session, gang, placement, remaining, late=session.now > last)
    columns = set(session.snapshot.columns_of(missing.values()))
    leaving = [
        pod
        for pod in session.snapshot.leaving.values()
        if session.snapshot.index.get(pod.node) in columns or any(pod is mine for mine in own)
    ]
    going = any(expected_to_go(session, pod) for pod in leaving)
    if going or (session.now <= last and _devices_left(session, columns)):
        return None
    return _victims_stay(session, gang, leaving[0]) if leaving else reasons.placements.ROOM_TAKEN


def _victims_stay(session: Session, gang: GangView, pod: PodRecord) -> Reason:
    """Return why a pod does not terminate; the pod's name is shown only to users who can read its namespace."""
    seen = session.inputs.names_others or pod.namespace == gang.group.metadata.namespace
    return reasons.placements.victims_stay(pod=pod.key if seen else "", node=pod.node)


def _devices_left(session: Session, columns: set[int]) -> bool:
    """Return True if claims on these nodes still hold devices although their last pod has terminated."""
    snapshot = session.snapshot
    return any(snapshot.index.get(snapshot.claim_nodes[key]) in columns for key in snapshot.left_claims)


def remade_s(gang: GangView, placement: Placement) -> float:
    """Return the seconds for which a gang's owner may wait before it re-creates evicted members.

    The Job controller waits longer before it re-creates a pod with each pod that its Job has lost. The result is 0 for
    gangs without evicted members, and for owners that are no Jobs, because these owners re-create pods at once.
    """
    kind = row_of(gang.group.metadata.controller)
    return kind.remade_s if kind and own_victims(placement) else 0.0


def _own_stay(session: Session, gang: GangView, placement: Placement, members: int, *, late: bool) -> Reason | None:
    """Return why a placement whose own members were not evicted is abandoned; None if it continues to wait."""
    if is_repair(placement):
        return reasons.placements.not_evicted(pods=members) if late else None
    return None if _asked_to_move(session, gang) else reasons.placements.STAYS


def still_saves(session: Session, gang: GangView, placement: Placement, own: Sequence[PodRecord]) -> bool:
    """Return True while the members of an announced repair have time to save a checkpoint.

    The time ends once the members have answered or the notice period is over. The time also ends when one member loses
    its node, because the other members cannot make progress without that member.
    """
    if not placement.spec.notices or not is_repair(placement) or any(_on_dead_node(session, pod) for pod in own):
        return False
    members = tuple((gang, pod) for pod in own if not pod.terminating)
    return bool(members) and not due(notices_of(placement), members, session.now)


def _on_dead_node(session: Session, pod: PodRecord) -> bool:
    """Return True if no kubelet will terminate the pod, so that its successor on another node need not wait."""
    fault = session.snapshot.faults.get(pod.node)
    return pod.node in session.inputs.gone or (fault is not None and is_dead(fault))


def _evict(session: Session, gang: GangView, placement: Placement, staying: Victims) -> Reason | None:
    """Notify victims, and evict the victims that are due; return a reason if the victims cannot be evicted.

    Disruption budgets are checked for all victims each time, so no pod gets a notice or is evicted without effect.
    """
    budgets = DisruptionBudgets(session.snapshot)
    counted = [pod for _, pod in staying if budgets.counted(pod)] if budgets else []
    if not budgets.count_evictions(counted):
        return reasons.placements.BUDGET
    reason, notices = victims_reason(placement), notices_of(placement)
    going = due(notices, staying, session.now)
    now = {pod.uid for _, pod in going}
    if going:
        uids = frozenset(pod.uid for pod in counted if pod.uid in now)
        room = room_for(session, gang, placement.spec.epoch, going, reason, budgeted=uids, notices=notices)
        session.decide(room)
        _notify_owners(session, room)
    pods = Counter(victim.key for victim, _ in staying)
    for victim, pod in staying:
        notice = notices.get(victim.key)
        evict_at = pod.answer.evict_at if pod.answer else ""
        if notice is not None and notice.evict_at != evict_at and pod.uid not in now:
            words, count = decisions.asked_by(gang, reason, victim), pods[victim.key]
            session.decide(decisions.SendNotice(victim, pod, notice.evict_at, gang.queue, words, count))
    return None


def room_for(
    session: Session,
    gang: GangView,
    epoch: int,
    victims: Victims,
    reason: Reason,
    *,
    budgeted: frozenset[str],
    action: str = "continued",
    notices: Mapping[str, Notice] = MappingProxyType({}),
) -> decisions.MakeRoom:
    """Return the decision to evict the victims, with the checkpoints and answers that their gangs have reported."""
    now, gangs = session.now, {victim.key: victim for victim, _ in victims}
    saved = {key: last_saved(victim, now) for key, victim in gangs.items()}
    return decisions.MakeRoom(
        gang,
        epoch,
        victims,
        reason,
        budgeted,
        action,
        saved={key: reasons.placements.saved(each.text, format_time(each.at)) for key, each in saved.items() if each},
        outcomes={
            key: "answered" if answered(victim, notices[key], now) else "silent"
            for key, victim in gangs.items()
            if key in notices
        },
        unsaved_s={key: unsaved_s(victim, now) if victim.started_s else 0.0 for key, victim in gangs.items()},
    )


def evict_at_once(
    session: Session,
    gang: GangView,
    epoch: int,
    victims: Victims,
    reason: Reason,
    wholes: Sequence[GangView],
    action: str,
) -> None:
    """Decide the eviction of victims without notice; a gang that is evicted as a whole then waits for its new pods."""
    budgets, pods = DisruptionBudgets(session.snapshot), Counter(victim.key for victim, _ in victims)
    budgeted = frozenset(pod.uid for _, pod in victims if budgets.counted(pod)) if budgets else frozenset()
    room = room_for(session, gang, epoch, victims, reason, budgeted=budgeted, action=action)
    session.decide(room)
    for victim in wholes:
        session.decide(evicted_whole(session, room, victim, pods[victim.key]))


def _notify_owners(session: Session, room: decisions.MakeRoom) -> None:
    """Report that gangs evicted as a whole wait for their owners, because eviction notices do not mention the wait."""
    pods = Counter(victim.key for victim, _ in room.victims)
    going = {pod.uid for _, pod in room.victims}
    for victim in {victim.key: victim for victim, _ in room.victims}.values():
        left = any(pod.alive and pod.uid not in going for pod in victim.pods)
        if not left and not victim.active:
            session.decide(evicted_whole(session, room, victim, pods[victim.key]))


def evicted_whole(session: Session, room: decisions.MakeRoom, victim: GangView, pods: int) -> decisions.Unschedulable:
    """Return the reason for which a gang waits after the eviction of all its remaining pods."""
    owner, row = victim.group.metadata.controller, row_of(victim.group.metadata.controller)
    failed = any(pod.phase == "Failed" for pod in victim.pods)  # only failed pods cause a back-off, not evicted ones
    until = [format_time(session.now + row.remade_s)] if row and row.remade_s and failed else []
    words = reasons.placements.awaits_owner(pods, room.reason_for(victim), owner.kind if owner else "", *until)
    return decisions.Unschedulable(victim, reasons.placements.EVICTED, words)


def is_repair(placement: Placement) -> bool:
    """Return True if the placement's victims are members of its own gang on failed nodes, which `repair` evicts."""
    return victims_reason(placement).code in reasons.repairs.REPAIRS


def _asked_to_move(session: Session, gang: GangView) -> bool:
    """Return True if the placement of another gang still waits for pods of this gang."""
    waiting = filter(None, (awaiting_placement(other) for other in session.snapshot.gangs if other is not gang))
    return any(placement.gang_key(victim) == gang.key for placement in waiting for victim in placement.spec.victims)


def _has_room(session: Session, gang: GangView, missing: dict[Slot, str], victims: list[PodRecord]) -> bool:
    """Return True if the gang's missing slots fit on their planned nodes.

    If the pods have rules about other pods, host ports or claims, no victim or terminating pod may use the planned
    nodes, either.
    """
    snapshot, nodes = session.snapshot, set(missing.values())
    columns = snapshot.columns_of(nodes)
    free = snapshot.free[:, columns]
    if bool((free < 0).any()) or bool(snapshot.devices.at(columns).overfull(free, snapshot.axis).any()):
        return False
    sets = {pod_set.name: pod_set for pod_set in gang.pod_sets}
    classes = {cls for slot in missing if (owner := sets.get(slot.pod_set)) and (cls := owner.class_of(slot.rank))}
    if not any(cls.marks or cls.neighbours or cls.claims for cls in classes):
        return True
    return not victims and nodes.isdisjoint(pod.node for pod in snapshot.leaving.values())


def awaiting_placement(gang: GangView) -> Placement | None:
    """Return the gang's active placement if it has victims, otherwise None."""
    return gang.placement if gang.active and gang.placement and gang.placement.spec.victims else None


def victims_there(session: Session, placement: Placement) -> list[tuple[GangView, PodRecord]]:
    """Return the victims of a placement that still occupy a node, each together with its gang."""
    wanted: dict[str, list[Victim]] = {}
    for victim in placement.spec.victims:
        wanted.setdefault(placement.gang_key(victim), []).append(victim)
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
    """Return the pods that are being deleted or that a placement waits for, by UID."""
    return session.snapshot.leaving | session.snapshot.awaited


def disruption_budgets(session: Session) -> DisruptionBudgets:
    """Return the evictions that disruption budgets still allow; their statuses already count terminating pods."""
    budgets = DisruptionBudgets(session.snapshot)
    if budgets:
        budgets.count(pod for pod in leaving_pods(session).values() if not pod.terminating)
    return budgets


def failed_to_evict(gang: GangView, now: float) -> bool:
    """Return True for a gang that must not evict pods at present, because a recent eviction for it failed."""
    before = gang.placement.status.no_evictions_before if gang.placement else ""
    return not is_over(parse_time(before) or 0.0, now, MAX_PLACEMENT_DELAY_S)
