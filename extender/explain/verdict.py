"""Cause and message of a gang, from the decisions of one cycle or from the gang's objects."""

from dataclasses import dataclass, replace

from extender.explain.members import MemberProblems, progress, where
from extender.explain.reader import Viewer
from extender.explain.report import GangCause
from extender.explain.whatif import WhatIf, written_reason
from extender.planner import reasons
from extender.planner.actions.allocate import wants_nodes
from extender.planner.actions.makeroom import awaiting_placement, victims_there
from extender.planner.actions.progress import longest_partial_s
from extender.planner.framework import decisions
from extender.planner.framework.decisions import Decision
from extender.planner.framework.session import Session
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.gangs import GangView
from extender.planner.victims.notices import last_saved, latest_end, notices_of, pending_notice_text
from gangs.states import failed_text
from muster.api.grammar import also, listed
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import Placement, victims_reason
from muster.api.muster.reason import NOTHING, Reason, stored
from muster.api.muster.states import TOO_MANY_FAILED, Facts, facts_of, state_of

SHOWN = 4
"""Maximum number of nodes that a message names."""
RUNNING = frozenset({"running", "running-extras-wait"})
CAUSES: dict[str, GangCause] = {
    reasons.queues.NOT_FOUND: "queue-missing",
    reasons.queues.NOT_OPEN: "queue-closed",
    reasons.queues.NOT_FOR_NAMESPACE: "queue-not-for-namespace",
    reasons.queues.OF_OTHER_POOL: "queue-of-other-pool",
    reasons.queues.STRICT_ORDER: "strict-order",
    reasons.pods.TOO_FEW: "too-few-pods",
    reasons.pods.NOT_CREATED: "pods-not-created",
    reasons.pods.NOT_BOUND: "pods-not-bound",
    reasons.pods.GATED: "other-gates",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Cause and message for a gang's report, from a cycle's decisions."""

    cause: GangCause
    summary: str
    reason: str = ""
    shortage: Shortage | None = None
    details: tuple[str, ...] = ()
    message: str = ""
    """Message about why the gang waits; the report's summary may add text before this message."""


def verdict_of(
    what_if: WhatIf, session: Session, gang: GangView, facts: Facts, found: MemberProblems, reader: Viewer
) -> Verdict:
    """Return cause and message of a waiting or running gang; `found` has the problems of the gang's members."""
    if facts.members == "over":
        verdict = _ended(what_if, gang, reader)
    elif what_if.dump.whole:
        verdict = _by_cycle(what_if, session, gang, reader)
    else:
        verdict = _written(gang, facts, reader)
    if verdict.cause in RUNNING and (words := notice_text(session, gang, reader)):
        verdict = replace(verdict, summary=also(verdict.summary, words))
    return _with_members(verdict, found)


def _by_cycle(what_if: WhatIf, session: Session, gang: GangView, reader: Viewer) -> Verdict:
    mine = [reader.decision(decision) for decision in session.decisions if decision.gang.key == gang.key]
    waits = next((decision for decision in mine if isinstance(decision, decisions.Unschedulable)), None)
    bound = any(isinstance(decision, decisions.ClosePlacement) and decision.phase == "Bound" for decision in mine)
    if gang.active and not bound:  # if all members are bound, the planner is about to write this phase
        return _starting(what_if, session, gang, mine, reader)
    if gang.incomplete:
        within_s = longest_partial_s(gang, what_if.timing.recovery_s)
        text = reasons.gangs.half_placed(taken=gang.taken, wanted=gang.min_member, within_s=within_s)
        return Verdict("half-placed", text, waits.reason if waits else "", waits.shortage if waits else None)
    if gang.started:
        return _running(gang, waits)
    if waits and waits.reason == reasons.placements.EVICTED:
        waits = replace(waits, why=_for_whom(what_if, gang, waits.why, reader))
    return _waits(waits) if waits else _may_start(session, gang, mine)


def _ended(what_if: WhatIf, gang: GangView, reader: Viewer) -> Verdict:
    status = gang.group.status
    why = NOTHING if status.ending.startswith(TOO_MANY_FAILED) else reader.reason(gang.group.evicted)
    evicted = reasons.placements.eviction(_for_whom(what_if, gang, why, reader))
    if facts_of(gang.group).failed:
        ending = failed_text(what_if.pods_of(gang.key), status.ending)
        return Verdict("failed", reasons.gangs.failed(status.failed, evicted, ending))
    return Verdict("finished", reasons.gangs.finished(status.succeeded, status.failed))


def _for_whom(what_if: WhatIf, gang: GangView, reason: Reason, reader: Viewer) -> Reason:
    """Return an eviction's reason; if the gang that got the capacity is in the dump, the reason names it."""
    by = displacer(what_if, gang)
    return reasons.placements.named(reason, reader.gang(by)) if by else reason


def displacer(what_if: WhatIf, gang: GangView) -> GangView | None:
    """Return the gang in whose favour `gang` was or will be evicted; None if the dump has no such gang."""
    for key, placement in what_if.state.placements.items():
        by, victims = what_if.state.gang(key), map(placement.gang_key, placement.spec.victims)
        if by is not None and (gang.key in placement.status.made_room or gang.key in victims):
            return by
    return None


def _written(gang: GangView, facts: Facts, reader: Viewer) -> Verdict:
    """Return the verdict from the reason that the planner has written into the PodGroup."""
    waits = written_reason(gang)
    waits = waits and replace(waits, why=reader.reason(waits.why))
    if facts.members:
        return _running(gang, waits)
    if waits is not None:
        return _waits(waits)
    if state_of(facts) == "Starting":
        return Verdict("starting", reasons.gangs.STARTS)
    return Verdict("not-considered", reasons.gangs.NOT_REPORTED)


def _with_members(verdict: Verdict, found: MemberProblems) -> Verdict:
    """Return the verdict extended by the gang's lost or failing members, if the gang has nodes.

    The lost or failing members of a gang without nodes are listed only in the details of the report.
    """
    summary, runs = verdict.summary, verdict.cause in RUNNING
    if found.lost and (runs or verdict.cause == "half-placed"):
        nodes = listed(sorted({pod.spec.node_name for pod in found.lost}), SHOWN)
        summary = also(summary, reasons.gangs.lost(len(found.lost), nodes))
        return replace(verdict, cause="members-lost" if runs else verdict.cause, summary=summary)
    if found.hindered and runs:
        return replace(verdict, cause="members-hindered", summary=also(summary, found.hindered))
    return verdict


def _running(gang: GangView, waits: decisions.Unschedulable | None) -> Verdict:
    running = sum(pod.phase == "Running" and not pod.terminating for pod in gang.pods)
    text = reasons.gangs.runs(gang.taken, running) if gang.pods else reasons.gangs.RUNS
    if waits is None:
        return Verdict("running", text)
    return Verdict("running-extras-wait", also(text, waits.message), waits.reason, waits.shortage)


def _starting(what_if: WhatIf, session: Session, gang: GangView, mine: list[Decision], reader: Viewer) -> Verdict:
    ends = [each for each in mine if isinstance(each, decisions.ClosePlacement)]
    failed = next((each for each in ends if each.phase == "Abandoned"), None)
    trouble = failed or next((each for each in ends if each.pod_sets is not None), None)
    steps = tuple(progress(what_if, gang))
    if trouble:
        words = reasons.gangs.not_carried_out(trouble.message, again=failed is not None)
        return Verdict("placement-failed", words, "", None, steps)
    epoch = gang.placement.spec.epoch if gang.placement else 0
    text = reasons.gangs.starts(epoch=epoch, members=reasons.gangs.members(gang.taken))
    text = also(text, str(message_of(gang.placement, reader)) if gang.placement else "")
    if placement := awaiting_placement(gang):
        there, victims = len(victims_there(session, placement)), len(placement.spec.victims)
        until = latest_end(placement.spec.notices)
        ends_at = format_time(until) if until > what_if.now else ""
        gangs = map(what_if.state.gang, dict.fromkeys(map(placement.gang_key, placement.spec.victims)))
        whose = [reader.gang(each) for each in gangs if each is not None]
        text = reasons.gangs.awaits_room(epoch, there, victims, ends_at, whose)
    return Verdict("starting", text, "", None, steps)


def _waits(waits: decisions.Unschedulable) -> Verdict:
    cause = CAUSES.get(waits.reason, "no-room")
    if reasons.queues.never_fits(waits.why) or (waits.shortage and waits.shortage.kind == "ever"):
        cause = "never-fits"
    elif waits.shortage and waits.shortage.closest:
        cause = "no-domain"
    return Verdict(cause, reasons.gangs.waits(message=waits.message), waits.reason, waits.shortage, (), waits.message)


def _may_start(session: Session, gang: GangView, mine: list[Decision]) -> Verdict:
    place = next((decision for decision in mine if isinstance(decision, decisions.Place)), None)
    if place:
        text = reasons.gangs.can_start(where(gang, place.pod_sets), len(place.victims), place.victims_reason)
        lent = list(dict.fromkeys(loan.node for loan in place.borrows or ()))
        reasons_why = (reasons.placements.on_spares(lent),) if lent else ()
        return Verdict("about-to-start", text, details=(*reasons_why, reasons.gangs.IS_EXTENDER_WELL))
    placed = sum(each.new_slots for each in session.decisions if isinstance(each, decisions.Place))
    slots = session.snapshot.placed_slots + placed
    if slots and wants_nodes(session, gang):
        return Verdict("in-flight-limit", reasons.gangs.slot_limit(slots=slots), reasons.pods.SLOT_LIMIT)
    return Verdict("not-considered", reasons.gangs.NOT_PLANNED)


def message_of(placement: Placement, reader: Viewer) -> Reason:
    """Return a placement's reason with the names visible to the user; empty for a bound placement."""
    if placement.status.phase == "Bound" and reader.called is not None:
        return NOTHING
    return reader.reason(stored(placement.status.why, placement.status.message))


def notice_text(session: Session, gang: GangView, reader: Viewer) -> str:
    """Return the eviction notice of a gang as text; empty if the gang has no notice.

    If the snapshot lacks the gang that gets the nodes, the eviction's time is read from annotations of the evicted
    gang's pods.
    """
    for asker in session.snapshot.gangs:
        placement = awaiting_placement(asker)
        notice = notices_of(placement).get(gang.key) if placement else None
        if placement and notice:
            why = reader.reason(decisions.asked_by(asker, victims_reason(placement), gang))
            return also(reasons.placements.to_be_evicted(notice.evict_at, why), _saved(gang, session.now))
    until = pending_notice_text(pod for pod in gang.pods if pod.alive)
    return also(reasons.placements.to_be_evicted(until), _saved(gang, session.now)) if until else ""


def _saved(gang: GangView, now: float) -> str:
    saved = last_saved(gang, now)
    return str(reasons.placements.saved(saved.text, format_time(saved.at))) if saved else reasons.placements.NOT_SAVED
