"""The report of a gang: cause and words by the decisions of one cycle, and what would help."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from extender.explain.members import Members, frees, gang_words, members, pod_set_report, progress, where
from extender.explain.notices import notice_words
from extender.explain.reader import ALL, Reader
from extender.explain.relief import Reliever
from extender.explain.report import GangCause, GangReport, PlacementReport, QueueReport
from extender.explain.topology import hyper_node_problems
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.actions.allocate import wants_nodes
from extender.planner.actions.makeroom import awaits_room, victims_there
from extender.planner.actions.progress import longest_partial_s
from extender.planner.actions.repair import told
from extender.planner.actions.spares import Spares
from extender.planner.framework import decisions
from extender.planner.framework.session import Decision, Session
from extender.planner.reasons.room import Shortage
from extender.planner.state.avoided import entries_of
from extender.planner.state.gangs import GangView
from extender.planner.state.spareseats import loans_of, seats_of
from extender.planner.victims.notices import latest_end
from muster.api.grammar import also, listed
from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.muster.placement import AvoidedNode, Placement
from muster.api.muster.reason import NOTHING, Reason, stored
from muster.api.muster.standing import place_words
from muster.api.muster.states import STOPPED, Facts, facts_of, state_of
from muster.api.volcano.scheduling import Queue

AHEAD = 3
SHOWN = 4
"""Nodes that are named."""
RUNNING = frozenset({"running", "running-extras-wait"})
CAUSES: dict[str, GangCause] = {
    reasons.queues.NOT_FOUND: "queue-missing",
    reasons.queues.NOT_OPEN: "queue-closed",
    reasons.queues.NOT_FOR_NAMESPACE: "queue-not-for-namespace",
    reasons.queues.OF_OTHER_POOL: "queue-of-other-pool",
    reasons.queues.STRICT_ORDER: "strict-order",
    reasons.pods.TOO_FEW: "too-few-pods",
    reasons.pods.NOT_CREATED: "pods-not-created",
    reasons.pods.GATED: "other-gates",
}


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Cause and words by the cycle's decisions."""

    cause: GangCause
    summary: str
    reason: str = ""
    shortage: Shortage | None = None
    details: tuple[str, ...] = ()
    message: str = ""
    """Why it waits; the summary begins with other words."""


class GangExplainer:
    """Explains gangs by one cycle over a dump of the cluster; where that is not whole, by what their objects say."""

    def __init__(self, what_if: WhatIf, stops: Callable[[], bool] = lambda: False, reader: Reader = ALL) -> None:
        self._what_if = what_if
        self._stops = stops
        self._reader = reader
        self._whole = what_if.dump.whole
        self._session, self._waiting = what_if.decided() if self._whole else (what_if.session(), [])

    def explain(self, gang: GangView, *, relief: bool = True) -> GangReport:
        """Return the report of one gang; `relief` runs further cycles."""
        found = members(self._what_if, gang)
        reader, pods = self._reader, self._what_if.pods_of(gang.key) or ([] if self._whole else None)
        facts = facts_of(gang.group, self._what_if.state.placement_of(gang.key), pods)
        if facts.members == "over":
            verdict = _ended(self._what_if, gang, reader)
        elif self._whole:
            verdict = _verdict(self._what_if, self._session, gang, reader)
        else:
            verdict = _told(gang, facts, reader)
        if verdict.cause in RUNNING and (words := notice_words(self._session, gang, reader)):
            verdict = replace(verdict, summary=also(verdict.summary, words))
        verdict = _with_members(verdict, found)
        planned = self._whole and verdict.cause not in {*RUNNING, "finished", "failed"}
        owner = gang.group.metadata.controller
        job = self._what_if.state.jobs.get(owner.uid) if owner else None
        report = GangReport(
            gang=gang.key,
            workload=gang_words(gang) if owner else "",
            state=STOPPED.get(job.status.state.phase if job else "") or state_of(facts),
            phase=gang.group.status.phase,
            job_phase=job.status.state.phase if job else "",
            cause=verdict.cause,
            reason=verdict.reason,
            summary=verdict.summary,
            message=verdict.message or verdict.summary,
            since=_since(gang, verdict.cause),
            min_member=gang.min_member,
            members=gang.taken,
            queue=self._queue(gang),
            pod_sets=[pod_set_report(gang, pod_set) for pod_set in gang.pod_sets],
            placement=self._placement(gang),
            shortage=verdict.shortage,
            avoided=self._avoided(gang),
            nodes=where(gang),
            expected_start=gang.group.status.expected_start or "",
            whole=self._whole,
            details=[
                *verdict.details,
                *found.details,
                *filter(None, [told(self._session, gang)]),
                *(hyper_node_problems(self._session, gang) if planned else []),
                *_left_to_others(gang),
                *self._spares(gang),
            ],
        )
        report.relief.extend(frees(self._what_if, found.lost))
        if relief and self._whole:
            report.relief.extend(Reliever(self._what_if, self._session, gang, self._stops, reader).find(report))
        return report

    def _queue(self, gang: GangView) -> QueueReport:
        queue = self._session.snapshot.queues.get(gang.queue)
        if not self._whole:
            return _told_queue(gang, queue)
        siblings = [other for other in self._waiting if other.queue == gang.queue]
        place = _place(siblings, gang)
        overall = _place(self._waiting, gang)
        ahead = [self._reader.gang(other) for other in self._waiting[max(0, overall - 1 - AHEAD) : max(0, overall - 1)]]
        return QueueReport(
            name=gang.queue,
            state=queue.status.state or "Open" if queue else "",
            place=place,
            place_words=str(place),
            waiting=len(siblings),
            overall_place=overall,
            overall_waiting=len(self._waiting),
            ahead=tuple(ahead),
        )

    def _placement(self, gang: GangView) -> PlacementReport | None:
        placement = gang.placement
        if placement is None:
            return None
        expected = placement.status.expected_at if placement.status.phase == "Reserved" else ""
        deadline = parse_time(expected or placement.spec.deadline)
        told = _message(placement, self._reader)
        return PlacementReport(
            epoch=placement.spec.epoch,
            phase=placement.status.phase,
            deadline=placement.spec.deadline,
            left_s=round(deadline - self._what_if.now, 1) if deadline is not None else 0.0,
            message=str(told),
            why=told.data,
            pod_sets={pod_set.name: pod_set.runs for pod_set in placement.spec.pod_sets},
            expected_at=expected,
        )

    def _spares(self, gang: GangView) -> list[str]:
        """Return what the gang keeps for members that it loses, and what of others it uses."""
        kept, loans = [seats for seats, _ in seats_of(gang)], loans_of(gang)
        wanted = sum(map(len, Spares().ranks(self._session, gang).values())) if self._whole else 0
        found = []
        if kept or wanted:
            lent = sum(self._session.away[gang.uid, each.pod_set, each.node] for each in kept)
            count, nodes = sum(each.count for each in kept), list(dict.fromkeys(each.node for each in kept))
            found.append(reasons.placements.keeps(count, max(wanted, count), lent, nodes))
        if loans:
            found.append(reasons.placements.on_spares(list(dict.fromkeys(loan.node for loan in loans))))
        return found

    def _avoided(self, gang: GangView) -> list[AvoidedNode]:
        """Return the nodes to avoid, of the placement's status and of this cycle."""
        told = entries_of(gang, self._session.snapshot.remembered)
        nodes = sorted(self._session.avoided.get(gang.key, ()))
        return [told.get(node) or AvoidedNode(node=node) for node in nodes]


def _told_queue(gang: GangView, queue: Queue | None) -> QueueReport:
    """Return what PodGroup and Queue say of the place; a Queue that may not be read says nothing."""
    place = gang.group.status.place
    waiting = max(queue.status.waiting, place) if queue and place else 0
    return QueueReport(
        name=gang.queue,
        state=queue.status.state or "Open" if queue else "",
        place=place,
        place_words=place_words(place, waiting),
        waiting=waiting,
        overall_place=0,
        overall_waiting=0,
        ahead=(),
    )


def _message(placement: Placement, reader: Reader) -> Reason:
    """Return the reason of a placement as its reader may read it; that of a bound one says nothing more."""
    if placement.status.phase == "Bound" and reader.called is not None:
        return NOTHING
    return reader.reason(stored(placement.status.why, placement.status.message))


def _left_to_others(gang: GangView) -> list[str]:
    """Return the claims of members to devices that are not counted: kube-scheduler may refuse the planned nodes."""
    return [
        reasons.gangs.not_counted(pod_set=pod_set.name, words=words)
        for pod_set in gang.pod_sets
        for words in (pod_set.cls.needs.unseen if pod_set.cls else ())
    ]


def _place(gangs: list[GangView], gang: GangView) -> int:
    return next((place for place, other in enumerate(gangs, 1) if other.key == gang.key), 0)


def _since(gang: GangView, cause: GangCause) -> str:
    kind = (
        "Scheduled"
        if cause in {*RUNNING, "members-lost", "members-hindered", "finished", "failed"}
        else "Unschedulable"
    )
    told = (each for each in gang.group.status.conditions if each.type == kind and each.status == "True")
    return next((each.last_transition_time or "" for each in told), gang.created)


def _verdict(what_if: WhatIf, session: Session, gang: GangView, reader: Reader) -> _Verdict:
    mine = [reader.decision(decision) for decision in session.decisions if decision.gang.key == gang.key]
    waits = next((decision for decision in mine if isinstance(decision, decisions.Unschedulable)), None)
    bound = any(isinstance(decision, decisions.ClosePlacement) and decision.phase == "Bound" for decision in mine)
    if gang.active and not bound:  # bound: the planner is about to write so
        return _starting(what_if, session, gang, mine, reader)
    if gang.incomplete:
        within_s = longest_partial_s(gang, what_if.timing.recovery_s)
        text = reasons.gangs.half_placed(taken=gang.taken, wanted=gang.min_member, within_s=within_s)
        return _Verdict("half-placed", text, waits.reason if waits else "", waits.shortage if waits else None)
    if gang.started:
        return _running(gang, waits)
    if waits and waits.reason == reasons.placements.EVICTED:
        waits = replace(waits, why=_for_whom(what_if, gang, waits.why, reader))
    return _waits(waits) if waits else _may_start(session, gang, mine)


def _ended(what_if: WhatIf, gang: GangView, reader: Reader) -> _Verdict:
    evicted = reasons.placements.eviction(_for_whom(what_if, gang, reader.reason(gang.group.evicted), reader))
    status = gang.group.status
    if facts_of(gang.group).failed:
        return _Verdict("failed", reasons.gangs.failed(status.failed, evicted, status.ending))
    return _Verdict("finished", reasons.gangs.finished(status.succeeded, status.failed))


def _for_whom(what_if: WhatIf, gang: GangView, reason: Reason, reader: Reader) -> Reason:
    """Return the reason of an eviction with the name of the gang that it was for, if that is in the dump."""
    for key, placement in what_if.state.placements.items():
        home, by = placement.metadata.namespace, what_if.state.gang(key)
        victims = (f"{victim.namespace or home}/{victim.gang}" for victim in placement.spec.victims)
        if by is not None and (gang.key in placement.status.made_room or gang.key in victims):
            return reasons.placements.named(reason, reader.gang(by))
    return reason


def _told(gang: GangView, facts: Facts, reader: Reader) -> _Verdict:
    """Return the verdict by what the planner has written into the PodGroup, in its words."""
    told = (each for each in gang.group.status.conditions if (each.type, each.status) == ("Unschedulable", "True"))
    whys = ((each.reason, reader.reason(stored(each.why, each.message))) for each in told)
    waits = next((decisions.Unschedulable(gang, reason, why) for reason, why in whys), None)
    if facts.members:
        return _running(gang, waits)
    if waits is not None:
        return _waits(waits)
    if state_of(facts) == "Starting":
        return _Verdict("starting", reasons.gangs.STARTS)
    return _Verdict("not-considered", reasons.gangs.NOT_TOLD)


def _with_members(verdict: _Verdict, found: Members) -> _Verdict:
    """Return the verdict with lost or hindered members, if the gang has its nodes; others have them in details."""
    summary, runs = verdict.summary, verdict.cause in RUNNING
    if found.lost and (runs or verdict.cause == "half-placed"):
        nodes = listed(sorted({pod.spec.node_name for pod in found.lost}), SHOWN)
        summary = also(summary, reasons.gangs.lost(len(found.lost), nodes))
        return replace(verdict, cause="members-lost" if runs else verdict.cause, summary=summary)
    if found.hindered and runs:
        return replace(verdict, cause="members-hindered", summary=also(summary, found.hindered))
    return verdict


def _running(gang: GangView, waits: decisions.Unschedulable | None) -> _Verdict:
    running = sum(pod.phase == "Running" and not pod.terminating for pod in gang.pods)
    text = reasons.gangs.runs(gang.taken, running) if gang.pods else reasons.gangs.RUNS
    if waits is None:
        return _Verdict("running", text)
    return _Verdict("running-extras-wait", also(text, waits.message), waits.reason, waits.shortage)


def _starting(what_if: WhatIf, session: Session, gang: GangView, mine: list[Decision], reader: Reader) -> _Verdict:
    ends = [each for each in mine if isinstance(each, decisions.ClosePlacement)]
    failed = next((each for each in ends if each.phase == "Abandoned"), None)
    trouble = failed or next((each for each in ends if each.pod_sets is not None), None)
    steps = tuple(progress(what_if, gang))
    if trouble:
        words = reasons.gangs.not_carried_out(trouble.message, again=failed is not None)
        return _Verdict("placement-failed", words, "", None, steps)
    epoch = gang.placement.spec.epoch if gang.placement else 0
    text = reasons.gangs.starts(epoch=epoch, members=reasons.gangs.members(gang.taken))
    text = also(text, str(_message(gang.placement, reader)) if gang.placement else "")
    if awaits_room(gang) and gang.placement is not None:
        there, victims = len(victims_there(session, gang, gang.placement)), len(gang.placement.spec.victims)
        until = latest_end(gang.placement.spec.notices)
        told = format_time(until) if until > what_if.now else ""
        text = reasons.gangs.awaits_room(epoch, there, victims, told)
    return _Verdict("starting", text, "", None, steps)


def _waits(waits: decisions.Unschedulable) -> _Verdict:
    cause = CAUSES.get(waits.reason, "no-room")
    if waits.shortage and waits.shortage.kind == "ever":
        cause = "never-fits"
    elif waits.shortage and waits.shortage.closest:
        cause = "no-domain"
    return _Verdict(cause, reasons.gangs.waits(message=waits.message), waits.reason, waits.shortage, (), waits.message)


def _may_start(session: Session, gang: GangView, mine: list[Decision]) -> _Verdict:
    place = next((decision for decision in mine if isinstance(decision, decisions.Place)), None)
    if place:
        text = reasons.gangs.can_start(where(gang, place.pod_sets), len(place.victims), place.victims_reason)
        lent = list(dict.fromkeys(loan.node for loan in place.borrows or ()))
        told = (reasons.placements.on_spares(lent),) if lent else ()
        return _Verdict("about-to-start", text, details=(*told, reasons.gangs.IS_EXTENDER_WELL))
    placed = sum(each.new_slots for each in session.decisions if isinstance(each, decisions.Place))
    slots = session.snapshot.placed_slots + placed
    if slots and wants_nodes(session, gang):
        return _Verdict("in-flight-limit", reasons.gangs.slot_limit(slots=slots), reasons.pods.SLOT_LIMIT)
    return _Verdict("not-considered", reasons.gangs.NOT_LOOKED_AT)
