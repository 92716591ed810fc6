"""The report of a gang: cause and message from one cycle's decisions, and changes that would let the gang start."""

from collections.abc import Callable

from extender.explain.members import frees, gang_text, members, pod_set_report, where
from extender.explain.reader import ALL, Viewer
from extender.explain.relief import Reliever
from extender.explain.report import GangCause, GangQueueReport, GangReport, PlacementReport
from extender.explain.topology import hyper_node_problems
from extender.explain.verdict import RUNNING, Verdict, displacer, message_of, verdict_of
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.actions.repair import fault_report
from extender.planner.actions.spares import Spares
from extender.planner.state.avoided import entries_of
from extender.planner.state.gangs import GangView
from extender.planner.state.spareentries import borrowed_spares_of, spare_runs_of
from muster.api.grammar import also
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import AvoidedNode
from muster.api.muster.queuepositions import place_text
from muster.api.muster.states import facts_of, state_of, stopped
from muster.api.volcano.scheduling import Queue
from muster.workloads.owners import workload_of

AHEAD = 3


class GangExplainer:
    """Explainer of gangs.

    Explainer of gangs, which runs a planning cycle over a dump of the cluster. If the dump is incomplete, the explainer
    uses only the gang's own objects.
    """

    def __init__(self, what_if: WhatIf, stops: Callable[[], bool] = lambda: False, reader: Viewer = ALL) -> None:
        self._what_if = what_if
        self._stops = stops
        self._reader = reader
        self._whole = what_if.dump.whole
        self._session, self._waiting = what_if.decided() if self._whole else (what_if.session(), [])

    def explain(self, gang: GangView, *, relief: bool = True) -> GangReport:
        """Return the report of one gang; with `relief`, run further cycles to find changes that let the gang start."""
        found = members(self._what_if, gang)
        reader, pods = self._reader, self._what_if.pods_of(gang.key) or ([] if self._whole else None)
        facts = facts_of(gang.group, self._what_if.state.placement_of(gang.key), pods)
        verdict = verdict_of(self._what_if, self._session, gang, facts, found, reader)
        planned = self._whole and verdict.cause not in {*RUNNING, "finished", "failed"}
        owner = gang.group.metadata.controller
        job = self._what_if.state.jobs.get(owner.uid) if owner else None
        report = GangReport(
            gang=gang.key,
            workload=gang_text(gang) if owner else "",
            state=(stopped(job.status.state.phase, job.metadata) if job else None) or state_of(facts),
            phase=gang.group.status.phase,
            job_phase=job.status.state.phase if job else "",
            cause=verdict.cause,
            reason=verdict.reason,
            summary=also(verdict.summary, job.status.state.refusal if job else ""),
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
                *(self._evicted_for(gang, verdict) if planned or verdict.cause in RUNNING else []),
                *found.details,
                *filter(None, [fault_report(self._session, gang)]),
                *(hyper_node_problems(self._session, gang) if planned else []),
                *_left_to_others(gang),
                *self._spares(gang),
            ],
        )
        report.relief.extend(frees(self._what_if, found.lost))
        if relief and self._whole:
            report.relief.extend(Reliever(self._what_if, self._session, gang, self._stops, reader).suggestions(report))
        return report

    def _queue(self, gang: GangView) -> GangQueueReport:
        queue = self._session.snapshot.queues.get(gang.queue)
        if not self._whole:
            return _queue_report(gang, queue)
        siblings = [other for other in self._waiting if other.queue == gang.queue]
        place = _place(siblings, gang)
        overall = _place(self._waiting, gang)
        ahead = [self._reader.gang(other) for other in self._waiting[max(0, overall - 1 - AHEAD) : max(0, overall - 1)]]
        return GangQueueReport(
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
        message = message_of(placement, self._reader)
        return PlacementReport(
            epoch=placement.spec.epoch,
            phase=placement.status.phase,
            deadline=placement.spec.deadline,
            left_s=round(deadline - self._what_if.now, 1) if deadline is not None else 0.0,
            message=str(message),
            why=message.data,
            pod_sets={pod_set.name: pod_set.runs for pod_set in placement.spec.pod_sets},
            expected_at=expected,
        )

    def _evicted_for(self, gang: GangView, verdict: Verdict) -> list[str]:
        """Return a sentence about the gang in whose favour this gang was evicted; empty if there is no such gang."""
        by = displacer(self._what_if, gang)
        who = self._reader.gang(by) if by and by.key != gang.key else ""
        if not who:
            return []
        started = gang.placement.status.started_at if gang.placement and verdict.cause in RUNNING else ""
        name, namespace = workload_of(gang.group).name, gang.group.metadata.namespace
        evicted = reasons.placements.evicted_for(displacer=who)
        again = reasons.placements.runs_again(evicted=evicted, at=started, name=name, namespace=namespace)
        return [again if started else evicted]

    def _spares(self, gang: GangView) -> list[str]:
        """Return the spare slots that the gang holds, and the spare slots that it borrows from other gangs."""
        kept, loans = [run for run, _ in spare_runs_of(gang)], borrowed_spares_of(gang)
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
        """Return the nodes that the gang avoids, from the placement's status and from this cycle's decisions."""
        entries = entries_of(gang, self._session.snapshot.remembered)
        nodes = sorted(self._session.avoided.get(gang.key, ()))
        return [entries.get(node) or AvoidedNode(node=node) for node in nodes]


def _queue_report(gang: GangView, queue: Queue | None) -> GangQueueReport:
    """Return the gang's queue and position from its PodGroup and, if the user can read it, the Queue."""
    place = gang.group.status.place
    waiting = max(queue.status.waiting, place) if queue and place else 0
    return GangQueueReport(
        name=gang.queue,
        state=queue.status.state or "Open" if queue else "",
        place=place,
        place_words=place_text(place, waiting),
        waiting=waiting,
        overall_place=0,
        overall_waiting=0,
        ahead=(),
    )


def _left_to_others(gang: GangView) -> list[str]:
    """Return the members' device claims that only kube-scheduler checks, so that it may reject planned nodes."""
    return [
        reasons.gangs.not_counted(pod_set=pod_set.name, words=words)
        for pod_set in gang.pod_sets
        for words in (pod_set.cls.needs.unseen if pod_set.cls else ())
    ]


def _place(gangs: list[GangView], gang: GangView) -> int:
    return next((place for place, other in enumerate(gangs, 1) if other.key == gang.key), 0)


def _since(gang: GangView, cause: GangCause) -> str:
    runs = cause in {*RUNNING, "members-lost", "members-hindered", "finished", "failed"}
    condition = gang.group.status.true_condition("Scheduled" if runs else "Unschedulable")
    return (condition.last_transition_time or "") if condition else gang.created
