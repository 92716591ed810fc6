"""Why a pod is where it is: its seat, its gate or pin, and what kube-scheduler says."""

from extender.explain.gang import GangExplainer
from extender.explain.members import deletion, frees, is_lost, silence
from extender.explain.report import PodCause, PodReport
from extender.explain.whatif import WhatIf
from extender.planner.framework.shortage import Shortage, shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.podrecord import PodRecord
from extender.planner.state.podset import PodSetView
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.pod_problems import problem
from muster.api.muster.placement import node_of
from muster.api.names import GATES, SCHEDULERS


def explain_pod(what_if: WhatIf, pod: Pod) -> PodReport:
    """The report of one pod, with that of its gang."""
    record = what_if.state.pods[pod.metadata.uid]
    gang = what_if.state.gang(record.gang) if record.gang else None
    report = GangExplainer(what_if).explain(gang, relief=not record.node) if gang else None
    lacks = _lacks(what_if, record) if not gang and record.waiting and pod.spec.scheduler_name in SCHEDULERS else None
    cause, summary = _decided(what_if, pod, record) or _why(pod, record, gang, lacks)
    scheduled = pod.status.condition("PodScheduled")
    return PodReport(
        pod=pod.metadata.key,
        cause=cause,
        summary=summary,
        scheduler=pod.spec.scheduler_name,
        node=record.node,
        seat=f"{record.seat.pod_set} {record.seat.rank}" if record.seat else "",
        gates=[gate.name for gate in pod.spec.scheduling_gates],
        pin=record.pin,
        epoch=record.epoch,
        scheduler_says=scheduled.message if scheduled and scheduled.status == "False" and not record.gated else "",
        since=pod.status.start_time or pod.metadata.creation_timestamp or "",
        shortage=lacks,
        gang=report,
        relief=[*frees(what_if, [pod])] if report is None and is_lost(what_if, pod) else [],
    )


def _why(pod: Pod, record: PodRecord, gang: GangView | None, lacks: Shortage | None) -> tuple[PodCause, str]:
    if record.other_gates and not record.gated:
        return "other-gates", f"it is held by scheduling gates that are not Muster's: {', '.join(record.other_gates)}"
    if record.gang is None and pod.spec.scheduler_name not in SCHEDULERS:
        return "other-scheduler", f"it belongs to the scheduler {pod.spec.scheduler_name!r}; Muster does not place it"
    if record.gang is None:
        return "no-gang", f"it belongs to no gang and is placed by itself; {_alone(pod, lacks)}"
    if gang is None:
        return "gang-missing", f"its PodGroup {record.gang} does not exist (yet)"
    return _gated(pod, record) if record.gated else _pinned(pod, record, gang)


def _gated(pod: Pod, record: PodRecord) -> tuple[PodCause, str]:
    own = " and ".join(gate.name for gate in pod.spec.scheduling_gates if gate.name in GATES)
    more = f"; then it is still held by {', '.join(record.other_gates)}" if record.other_gates else ""
    return "gated", f"it waits behind the gate {own} until its gang has a placement{more}"


def _decided(what_if: WhatIf, pod: Pod, record: PodRecord) -> tuple[PodCause, str] | None:
    """What is to be said of a pod about which nothing is to be decided any more; None of any other."""
    if record.terminating:
        return "terminating", f"it {deletion(what_if, pod)}"
    if pod.finished:
        ended, why = f"it has ended: {pod.status.phase}" + (f" on {record.node}" if record.node else ""), problem(pod)
        return ("failed", f"{ended}: {why.words}") if why else ("finished", ended)
    return _placed(what_if, pod, record) if record.node else None


def _placed(what_if: WhatIf, pod: Pod, record: PodRecord) -> tuple[PodCause, str]:
    """A pod that has its node: whether it runs there."""
    silent, hindered = silence(what_if, pod), problem(pod)
    if silent:
        return "lost", f"it {silent}"
    if hindered:
        return "hindered", f"it is on {record.node} and does not run: {hindered.words}"
    if record.phase == "Running":
        return "running", f"it runs on {record.node}"
    return "bound", f"it is bound to {record.node}, and its containers are not running yet"


def _pinned(pod: Pod, record: PodRecord, gang: GangView) -> tuple[PodCause, str]:
    """A member without a gate: how its pin agrees with the placement."""
    if record.epoch is None and not record.pin:
        return "not-tried", "it has neither gate nor pin: the planner tells it its node when the gang has a placement"
    stale = _stale(record, gang)
    if stale:
        cause, why = stale
        return cause, f"it is pinned to {record.pin} by placement {record.epoch}, {why}"
    placement = gang.placement
    where = f"{record.pin or 'its node'} by placement {record.epoch}"
    if record.refused:
        scheduled = pod.status.condition("PodScheduled")
        says = scheduled.message if scheduled else ""
        return (
            "refused",
            f"kube-scheduler refused it on {where}: {says or 'without a reason'}; the gang is planned again",
        )
    waits = "kube-scheduler has not answered yet, or it is held until enough members have come"
    deadline = f"; the placement is given up at {placement.spec.deadline}" if placement else ""
    return "not-tried", f"it is pinned to {where}; {waits} ({gang.taken} have their node){deadline}"


def _stale(record: PodRecord, gang: GangView) -> tuple[PodCause, str] | None:
    """How the pin disagrees with the placement as it is now."""
    over = "the planner deletes it (it never ran), and its owner makes it again"
    placement, epoch = gang.placement, record.epoch or 0
    if placement is None or epoch > placement.spec.epoch:
        return "newer-epoch", f"which is not there (yet); if it does not come, {over}"
    if epoch < placement.spec.epoch or not gang.active:
        return "old-epoch", f"but the placement is now {placement.spec.epoch} ({placement.status.phase}); {over}"
    seat = node_of(placement, record.seat.pod_set, record.seat.rank) if record.seat else None
    if record.pin and seat != record.pin:
        return "wrong-pin", f"which gives its seat {seat or 'no node'}; {over}"
    return None


def _alone(pod: Pod, lacks: Shortage | None) -> str:
    scheduled = pod.status.condition("PodScheduled")
    says = f"; kube-scheduler says: {scheduled.message}" if scheduled and scheduled.message else ""
    if lacks is None:
        return f"kube-scheduler decides{says}"
    if lacks.roomy:
        return f"{lacks.roomy} of {lacks.nodes} nodes have room for it{says}"
    causes = ", ".join(f"{cause.nodes} {cause.words}" for cause in lacks.causes)
    return f"of {lacks.nodes} nodes: {causes}; {lacks.nearest}{says}"


def _lacks(what_if: WhatIf, record: PodRecord) -> Shortage:
    """Why the nodes do not take a pod of no gang, counted as for a gang of one."""
    session = what_if.cycle()
    return shortage(session, None, PodSetView("pod", record.cls, 1, 1), 1, 0)
