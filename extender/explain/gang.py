"""Why a gang is where it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from extender.explain.members import Members, frees, members
from extender.explain.relief import Reliever
from extender.explain.report import GangCause, GangReport, PlacementReport, QueueReport
from extender.explain.seats import gang_words, listed, pod_set_report, progress, where
from extender.explain.topology import hyper_node_problems
from extender.explain.whatif import WhatIf
from extender.planner.actions.allocate import wants_nodes
from extender.planner.actions.makeroom import awaits_room, victims_there
from extender.planner.actions.progress import longest_partial_s
from extender.planner.framework import decisions
from extender.planner.framework.decisions import STRICT_ORDER
from extender.planner.framework.session import Decision, Session
from extender.planner.framework.shortage import Shortage
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import AvoidedNode

AHEAD = 3
RUNNING = frozenset({"running", "running-extras-wait"})
CAUSES: dict[str, GangCause] = {
    "QueueNotFound": "queue-missing",
    "QueueNotOpen": "queue-closed",
    "NotEnoughPods": "too-few-pods",
    "PodsNotCreated": "pods-not-created",
    "SchedulingGated": "other-gates",
    STRICT_ORDER: "strict-order",
}


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What the cycle's decisions say about the gang."""

    cause: GangCause
    summary: str
    reason: str = ""
    shortage: Shortage | None = None
    details: tuple[str, ...] = ()


class GangExplainer:
    """Answers from one cycle over a picture of the cluster."""

    def __init__(self, what_if: WhatIf) -> None:
        self._what_if = what_if
        self._session = what_if.cycle()
        self._waiting = what_if.waiting(self._session)

    def explain(self, gang: GangView, *, relief: bool = True) -> GangReport:
        """The report of one gang. Finding relief runs further cycles, so it can be left out."""
        found = members(self._what_if, gang)
        verdict = _with_members(_verdict(self._what_if, self._session, gang), gang, found)
        owner = gang.group.metadata.controller
        job = self._what_if.state.jobs.get(owner.uid) if owner else None
        report = GangReport(
            gang=gang.key,
            workload=gang_words(gang) if owner else "",
            phase=gang.group.status.phase,
            job_phase=job.status.state.phase if job else "",
            cause=verdict.cause,
            reason=verdict.reason,
            summary=verdict.summary,
            since=_since(gang, verdict.cause),
            min_member=gang.min_member,
            members=gang.taken,
            queue=self._queue(gang),
            pod_sets=[pod_set_report(gang, pod_set) for pod_set in gang.pod_sets],
            placement=self._placement(gang),
            shortage=verdict.shortage,
            avoided=self._avoided(gang),
            nodes=where(gang),
            details=[
                *verdict.details,
                *found.details,
                *self._unclear(gang, verdict.cause),
                *_left_to_others(gang),
            ],
        )
        report.relief.extend(frees(self._what_if, found.lost))
        if relief:
            report.relief.extend(Reliever(self._what_if, self._session, gang).find(report))
        return report

    def _queue(self, gang: GangView) -> QueueReport:
        queue = self._session.snapshot.queues.get(gang.queue)
        siblings = [other for other in self._waiting if other.queue == gang.queue]
        place = _place(siblings, gang)
        overall = _place(self._waiting, gang)
        ahead = [gang_words(other) for other in self._waiting[: max(0, overall - 1)]]
        return QueueReport(
            name=gang.queue,
            state=queue.status.state or "Open" if queue else "",
            place=place,
            waiting=len(siblings),
            overall_place=overall,
            overall_waiting=len(self._waiting),
            ahead=tuple(ahead[-AHEAD:]),
        )

    def _unclear(self, gang: GangView, cause: GangCause) -> list[str]:
        """What is wrong with HyperNodes, for a gang that waits for some of them."""
        return [] if cause in {*RUNNING, "finished"} else hyper_node_problems(self._session, gang)

    def _placement(self, gang: GangView) -> PlacementReport | None:
        placement = gang.placement
        if placement is None:
            return None
        expected = placement.status.expected_at if placement.status.phase == "Reserved" else ""
        deadline = parse_time(expected or placement.spec.deadline)
        return PlacementReport(
            epoch=placement.spec.epoch,
            phase=placement.status.phase,
            deadline=placement.spec.deadline,
            left_s=round(deadline - self._what_if.now, 1) if deadline is not None else 0.0,
            message=placement.status.message,
            pod_sets={pod_set.name: pod_set.runs for pod_set in placement.spec.pod_sets},
            expected_at=expected,
        )

    def _avoided(self, gang: GangView) -> list[AvoidedNode]:
        """Those that placements told of, and those that this cycle met."""
        told = {each.node: each for each in (gang.placement.status.avoided if gang.placement else [])}
        nodes = sorted(self._session.avoided.get(gang.key, ()))
        return [told.get(node) or AvoidedNode(node=node) for node in nodes]


def _left_to_others(gang: GangView) -> list[str]:
    """What of the members' claims to devices is not counted, so that kube-scheduler may refuse what is planned."""
    return [
        f"{pod_set.name}: not counted, kube-scheduler decides: {words}"
        for pod_set in gang.pod_sets
        for words in (pod_set.cls.needs.unseen if pod_set.cls else ())
    ]


def _place(gangs: list[GangView], gang: GangView) -> int:
    return next((place for place, other in enumerate(gangs, 1) if other.key == gang.key), 0)


def _since(gang: GangView, cause: GangCause) -> str:
    kind = "Scheduled" if cause in {*RUNNING, "members-lost", "members-hindered", "finished"} else "Unschedulable"
    told = (each for each in gang.group.status.conditions if each.type == kind and each.status == "True")
    return next((each.last_transition_time or "" for each in told), gang.created)


def _verdict(what_if: WhatIf, session: Session, gang: GangView) -> _Verdict:
    mine = [decision for decision in session.decisions if decision.gang.key == gang.key]
    waits = next((decision for decision in mine if isinstance(decision, decisions.Unschedulable)), None)
    if gang.group.status.phase == "Completed":
        return _Verdict("finished", _ended(gang))
    bound = any(isinstance(decision, decisions.ClosePlacement) and decision.phase == "Bound" for decision in mine)
    if gang.active and not bound:  # bound: the planner is about to write so
        return _starting(what_if, session, gang, mine)
    if gang.incomplete:
        return _half_placed(gang, waits, longest_partial_s(gang, what_if.recovery_s))
    if gang.started:
        return _running(gang, waits)
    return _waits(waits) if waits else _may_start(session, gang, mine)


def _with_members(verdict: _Verdict, gang: GangView, found: Members) -> _Verdict:
    """The verdict about a gang that has its nodes, with what is wrong there; any other one tells it in its details."""
    summary, runs = verdict.summary, verdict.cause in RUNNING
    if runs and not any(pod.phase == "Running" and not pod.terminating for pod in gang.pods):
        summary = summary.replace("it runs: ", "no member runs: ", 1)
    if found.lost and (runs or verdict.cause == "half-placed"):
        nodes = listed(sorted({pod.spec.node_name for pod in found.lost}))
        summary = f"{summary}; {len(found.lost)} of its pods {_are(found.lost)} on nodes that do not answer: {nodes}"
        return replace(verdict, cause="members-lost" if runs else verdict.cause, summary=summary)
    if found.hindered and runs:
        return replace(verdict, cause="members-hindered", summary=f"{summary}; {found.hindered}")
    return replace(verdict, summary=summary)


def _are(pods: Sequence[object]) -> str:
    return "is" if len(pods) == 1 else "are"


def _ended(gang: GangView) -> str:
    status = gang.group.status
    parts = [f"{status.succeeded} succeeded"] if status.succeeded else []
    parts += [f"{status.failed} failed"] if status.failed else []
    return "it has finished" + (f": {', '.join(parts)}" if parts else "")


def _running(gang: GangView, waits: decisions.Unschedulable | None) -> _Verdict:
    running = sum(pod.phase == "Running" and not pod.terminating for pod in gang.pods)
    text = f"it runs: {_have(gang)}, {running} of them run" if gang.taken > 1 else f"it runs: {_have(gang)}"
    if waits is None:
        return _Verdict("running", text)
    return _Verdict("running-extras-wait", f"{text}; {waits.message}", waits.reason, waits.shortage)


def _have(gang: GangView) -> str:
    return "1 member has its node" if gang.taken == 1 else f"{gang.taken} members have their node"


def _half_placed(gang: GangView, waits: decisions.Unschedulable | None, within_s: float) -> _Verdict:
    text = (
        f"only {gang.taken} of the {gang.min_member} pods that start together have a node; if the others get none "
        f"within {within_s:.0f} s, the planner takes the {gang.taken} back and the gang waits as a whole"
    )
    return _Verdict("half-placed", text, waits.reason if waits else "", waits.shortage if waits else None)


def _starting(what_if: WhatIf, session: Session, gang: GangView, mine: list[Decision]) -> _Verdict:
    failed = next(
        (each for each in mine if isinstance(each, decisions.ClosePlacement) and each.phase == "Abandoned"), None
    )
    given_up = next(
        (each for each in mine if isinstance(each, decisions.ClosePlacement) and each.pod_sets is not None), None
    )
    trouble = failed or given_up
    steps = tuple(progress(what_if, gang))
    if trouble:
        what = "the gang is planned again" if failed else "the members that have a node go on"
        return _Verdict(
            "placement-failed", f"its placement cannot be carried out: {trouble.message}; {what}", "", None, steps
        )
    epoch = gang.placement.spec.epoch if gang.placement else 0
    text = f"it starts: placement {epoch} is being carried out, {_have(gang)}"
    if awaits_room(gang) and gang.placement is not None:
        there = len(victims_there(session, gang, gang.placement))
        of = len(gang.placement.spec.victims)
        text = f"its room is kept by placement {epoch}; it waits until {there} of {of} pods have gone from its nodes"
    return _Verdict("starting", text, "", None, steps)


def _waits(waits: decisions.Unschedulable) -> _Verdict:
    cause = CAUSES.get(waits.reason, "no-room")
    if waits.shortage and waits.shortage.kind == "ever":
        cause = "never-fits"
    elif waits.shortage and waits.shortage.closest:
        cause = "no-domain"
    return _Verdict(cause, f"it waits: {waits.message}", waits.reason, waits.shortage)


def _may_start(session: Session, gang: GangView, mine: list[Decision]) -> _Verdict:
    place = next((decision for decision in mine if isinstance(decision, decisions.Place)), None)
    if place:
        text = f"it can start: the planner's next cycle gives it {'; '.join(where(gang, place.pod_sets))}"
        if place.victims:
            text += f", once {len(place.victims)} pods of others have gone: {place.victims_reason}"
        hint = "if this stays so, look whether Muster's extender runs and leads"
        return _Verdict("about-to-start", text, details=(hint,))
    placed = sum(each.new_seats for each in session.decisions if isinstance(each, decisions.Place))
    in_flight = session.snapshot.placed_seats + placed
    if in_flight and wants_nodes(session, gang):
        text = f"it waits until fewer pods are on their way: {in_flight} seats of other gangs are starting now"
        return _Verdict("in-flight-limit", text, "InFlightLimit")
    return _Verdict("not-considered", "no action of the planner's configuration has looked at it")
