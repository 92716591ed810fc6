"""Next steps of active placements: gates of pods are removed, and complete or failed placements are closed.

A placement holds capacity as soon as it is written, so it must not stay active for long. Each cycle handles the
following cases for an active placement:

* No member is missing: the placement is Bound.
* kube-scheduler or the node rejected a member, a node is gone, or the deadline has passed: the placement is abandoned.
  The pin of a pod cannot be changed, so pinned pods that are not bound are deleted. The deleted pods have never run,
  and their owner creates new pods. If enough members are bound to nodes, the gang continues with these members;
  otherwise the gang is planned again.
* In all other cases, the gates of the missing members are removed, and each member is pinned to its node.

A gang may stay below its minimum only for a limited time, because it holds resources without making progress. The
action that tracks placements runs first in every cycle, in each configuration.
"""

from collections.abc import Sequence
from typing import NamedTuple

from extender.planner import reasons
from extender.planner.actions.avoidance import note_failures
from extender.planner.actions.makeroom import awaiting_placement, make_room, remade_s
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from extender.planner.timing import MOST_SLOTS, arrival_s, is_over
from muster.api.kubernetes.meta import parse_time, readable_time
from muster.api.muster.gang import Slot
from muster.api.muster.noderuns import nodes_of, runs_of
from muster.api.muster.placement import Placement, PodSetPlacement, holds_back, node_of_slot
from muster.api.muster.reason import Reason, reason_of

BINDING_S = 0.05
"""Additional seconds for which a gang may stay incomplete, for each existing member of its minimum."""
CHECK_INTERVAL_S = 1.0
"""Time after which an unchanged placement is checked again, because its deadline may have passed."""
AVOID_S = 60.0
"""Time for which a gang's placements avoid a node that rejected one of its members."""
RETRIED_S = 10.0
"""Time for which kube-scheduler's refusal of a pod with device claims is ignored; no watch is delayed for longer."""
ORPHAN_AGE_S = 10.0
"""Age after which a pinned pod without a placement is deleted; watches are never delayed for longer."""


class _Check(NamedTuple):
    """Inputs of a check of a placement that led to no decision; the check is not repeated with the same inputs."""

    gang: GangView
    generation: int
    at: float


class _Missing(NamedTuple):
    """A slot of a placement that has no bound pod."""

    slot: Slot
    node: str
    pod_set: PodSetView | None
    """None if the gang no longer has a pod set of this name."""
    pod: PodRecord | None
    """None if the pod does not exist yet."""


class TrackPlacements:
    """The action that tracks active placements and remembers since when gangs have been incomplete."""

    name = "progress"

    def __init__(self) -> None:
        self._half_since: dict[str, float] = {}
        """Maps an incomplete gang's UID to the time of its last eviction, or else to the time since which the gang is
        incomplete, in seconds since the epoch."""
        self._refused_since: dict[str, float] = {}
        """Maps a gang's UID to the epoch seconds since which its pods with device claims are refused."""
        self._checks: dict[str, _Check] = {}
        """Maps a gang's key to its last check, if the check led to no decision."""

    def execute(self, session: Session) -> None:
        """Decide Release, ClosePlacement and Evict for gangs with an active or failed placement."""
        for key in session.snapshot.failed:
            hurt = session.gang(key)
            if hurt is not None:
                session.attempt(hurt, note_failures)
        before, self._checks = self._checks, {}
        for gang in session.snapshot.gangs:
            check = before.get(gang.key)
            same = check is not None and check.gang is gang and check.generation == session.snapshot.generation
            if same and check and check.at <= session.now < check.at + CHECK_INTERVAL_S:
                self._checks[gang.key] = check
                continue
            decided = len(session.decisions)
            session.attempt(gang, self._track)
            nothing = len(session.decisions) == decided and gang.key not in session.failures
            placement = gang.placement
            by_others = placement is not None and (placement.spec.victims or holds_back(placement))
            if nothing and not gang.at_rest and not by_others:
                self._checks[gang.key] = _Check(gang, session.snapshot.generation, session.now)
        gangs = session.snapshot.gangs
        if max(len(self._half_since), len(self._refused_since)) > 2 * len(gangs) + 100:  # some gangs were deleted
            uids = {gang.uid for gang in gangs}
            self._half_since = {uid: since for uid, since in self._half_since.items() if uid in uids}
            self._refused_since = {uid: since for uid, since in self._refused_since.items() if uid in uids}

    def _track(self, session: Session, gang: GangView) -> None:
        if not gang.incomplete:
            self._half_since.pop(gang.uid, None)
        retried = self._retried(session, gang)
        if gang.at_rest:
            return
        drop_strays(session, gang)
        if gang.active:
            _follow(session, gang, retried=retried)
        elif gang.outgrew_minimum and gang.placement:
            session.decide(decisions.ClosePlacement(gang, "Bound", reason_of(gang.placement.status.message)))
        if gang.incomplete and not awaiting_placement(gang):
            self._limit(session, gang)

    def _retried(self, session: Session, gang: GangView) -> bool:
        """Return True if kube-scheduler has only recently refused pods with device claims.

        kube-scheduler may learn of new devices and released claims later than Muster, and then retries the pods.
        """
        if not (gang.active and any(pod.refused and pod.claims for pod in gang.pods)):
            self._refused_since.pop(gang.uid, None)
            return False
        return session.now < self._refused_since.setdefault(gang.uid, session.now) + RETRIED_S

    def _limit(self, session: Session, gang: GangView) -> None:
        """Evict all members of a gang that has stayed below its minimum for too long."""
        since = self._half_since.setdefault(gang.uid, _half_since(gang, session.now))
        if session.now < since + longest_partial_s(gang, session.inputs.timing.recovery_s):
            return
        reason = reasons.placements.too_few_bound(taken=gang.taken, wanted=gang.min_member)
        if gang.active:
            session.decide(decisions.ClosePlacement(gang, "Abandoned", reason, in_vain=not gang.has_pods))
        evict_all(session, gang, reason)
        self._half_since[gang.uid] = session.now  # evict once per period, because an eviction may be refused


def evict_all(session: Session, gang: GangView, reason: Reason) -> None:
    """Decide Evict for all members of a gang that are on nodes and have not finished."""
    for pod in gang.pods:
        if pod.alive:
            session.decide(decisions.Evict(gang, pod, reason, started=True))


def longest_partial_s(gang: GangView, recovery_s: float) -> float:
    """Return the seconds for which a gang may stay incomplete; the number grows with the gang's members."""
    return recovery_s + BINDING_S * min(gang.min_member, len(gang.pods))


def _half_since(gang: GangView, now: float) -> float:
    """Return the time of a partly bound gang's first binding, in seconds since the epoch."""
    bound = min((pod.bound_at for pod in gang.pods if pod.alive and pod.bound_at is not None), default=now)
    return min(max(bound, readable_time(gang.created) or bound), now)


def _follow(session: Session, gang: GangView, *, retried: bool) -> None:
    """Close an active placement, or remove the gates of the gang's pods that may start.

    With `retried`, kube-scheduler's refusals of pods with device claims are ignored.
    """
    placement = gang.placement
    if placement is None:
        return
    missing = [
        _Missing(slot, node, pod_set, pod_set.waiting.get(slot.rank) if pod_set else None)
        for slot, node, pod_set in gang.placed_slots()
    ]
    if placement.spec.victims:
        why = _failure(session, gang, placement, missing, retried=retried) or make_room(
            session, gang, placement, {each.slot: each.node for each in missing}
        )
        if why:
            give_up(session, gang, placement, why, evicted_in_vain=True)
        return
    if not missing:
        session.decide(decisions.ClosePlacement(gang, "Bound", reasons.placements.bound(members=gang.taken)))
        return
    why = _failure(session, gang, placement, missing, retried=retried)
    if why:
        give_up(session, gang, placement, why)
        return
    gated = next((each.pod for each in missing if each.pod and each.pod.other_gates), None)
    if gated is not None:
        why = reasons.placements.gated(pod=gated.name, gate=gated.other_gates[0])
        give_up(session, gang, placement, why, in_vain=True)
        return
    if _is_late(session, gang, placement):
        late = _not_bound(session, missing) if gang.has_pods else reasons.placements.not_arrived(pods=len(missing))
        give_up(session, gang, placement, late, in_vain=True)
        return
    held = _held(session, gang, placement, missing)
    for slot, node, _, pod in missing:
        if pod and slot.pod_set not in held and pod.epoch != placement.spec.epoch and (pod.gated or not pod.pin):
            session.decide(decisions.Release(gang, pod, node, placement.spec.epoch))


def _not_bound(session: Session, missing: Sequence[_Missing]) -> Reason:
    """Return the first known reason why existing pods of a placement are not bound to nodes."""
    pods = [each.pod for each in missing if each.pod is not None]
    known = next(((pod, why) for pod in pods if (why := _hindrance(session, pod))), None)
    pod, why = known or (pods[0] if pods else None, "")
    if pod is None:
        return reasons.placements.not_arrived(pods=len(missing))
    return reasons.placements.not_bound(len(missing), pod.name, why)


def _hindrance(session: Session, pod: PodRecord) -> str:
    """Return what prevents a pod from being bound: an API server error, or an unbound PersistentVolumeClaim."""
    claims = session.snapshot.volumes.claims
    unbound = [use.key for use in pod.cls.claims if (claim := claims.get(use.key)) is not None and not claim.bound]
    return pod.trouble or (str(reasons.cause.claim_unbound(claim=unbound[0])) if unbound else "")


def _held(session: Session, gang: GangView, placement: Placement, missing: list[_Missing]) -> set[str]:
    """Return the pod sets that stay gated until all other members are bound to nodes or wait at the barrier."""
    held = {pod_set.name for pod_set in placement.spec.pod_sets if pod_set.held}
    arrived = session.inputs.arrived.get(gang.uid, frozenset())
    some_to_come = any(each.slot.pod_set not in held and each.slot not in arrived for each in missing)
    return held if some_to_come else set()


def _failure(
    session: Session, gang: GangView, placement: Placement, missing: list[_Missing], *, retried: bool
) -> Reason | None:
    good: tuple[str, PodClass | None] | None = None  # pods with neighbouring ranks mostly have the same class
    for slot, node, pod_set, pod in missing:
        refused = pod and pod.refused and pod.pin and pod.epoch == placement.spec.epoch
        if pod and refused and not (pod.shares_claims or (retried and pod.claims)):
            if not pod.cls.neighbours:  # pods that such rules need may be missing
                session.avoided.setdefault(gang.key, set()).add(node)
            return reasons.placements.refused(pod=pod.name, node=node)
        cls = pod_set.class_of(slot.rank) if pod_set else None
        if (node, cls) == good:
            continue
        column = session.snapshot.index.get(node)
        if column is None:
            return reasons.placements.node_gone(node=node)
        code = session.node_codes(cls)[column] if cls else 0  # kube-scheduler checks the rules about other pods
        if code:
            return reasons.placements.node_refuses(node=node, cause=session.causes.of[code])
        good = node, cls
    return None


def give_up(
    session: Session,
    gang: GangView,
    placement: Placement,
    why: Reason,
    *,
    in_vain: bool = False,
    evicted_in_vain: bool = False,
) -> None:
    """Keep bound members if they can run without the missing members, else abandon the placement; delete pinned pods.

    With `in_vain`, pods of the gang were not created, so the next placement is delayed. With `evicted_in_vain`, victims
    did not terminate, so the next evictions are delayed.
    """
    if gang.started:
        runs = {each.name: each.runs for each in placement.spec.pod_sets}
        kept = [
            PodSetPlacement(name=pod_set.name, runs=runs_of(nodes_of(runs.get(pod_set.name, []), pod_set.taken)))
            for pod_set in gang.pod_sets
            if pod_set.taken
        ]
        close = decisions.ClosePlacement(gang, "Bound", why, kept, evicted_in_vain=evicted_in_vain)
    else:
        close = decisions.ClosePlacement(gang, "Abandoned", why, in_vain=in_vain, evicted_in_vain=evicted_in_vain)
    session.decide(close)
    for pod in gang.pods:
        if pod.pinned:
            session.decide(decisions.Evict(gang, pod, why, started=False))


def _is_late(session: Session, gang: GangView, placement: Placement) -> bool:
    """Return True if members have not been bound within the time that the placement allows."""
    deadline = parse_time(placement.spec.deadline)
    most = arrival_s(MOST_SLOTS) + remade_s(gang, placement)
    return deadline is not None and deadline != session.now and is_over(deadline, session.now, most)


def drop_strays(session: Session, gang: GangView) -> None:
    """Delete pods that are pinned by an inactive placement, because they can never be bound."""
    placement = gang.placement
    for pod in gang.pods:
        if not pod.pinned or pod.epoch is None:
            continue
        if placement is None:
            born = parse_time(pod.created)
            stray = born is not None and session.now - born > ORPHAN_AGE_S
        elif pod.epoch > placement.spec.epoch:
            stray = False  # a watch has not reported the pod's placement yet
        else:
            node = node_of_slot(placement, pod.slot)
            stray = not gang.active or pod.epoch < placement.spec.epoch or node != pod.pin
        if stray:
            session.decide(decisions.Evict(gang, pod, reasons.placements.STRAY, started=False))
