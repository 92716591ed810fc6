"""Why a pod is where it is: its slot, its gate or pin, and what kube-scheduler says."""

from extender.explain.gang import GangExplainer
from extender.explain.members import deletion, frees, is_lost, silence
from extender.explain.report import PodCause, PodReport
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.framework.demand import shortage
from extender.planner.reasons.room import Shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
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
        slot=f"{record.slot.pod_set} {record.slot.rank}" if record.slot else "",
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
    words = reasons.members
    if record.other_gates and not record.gated:
        return "other-gates", words.other_gates(gates=", ".join(record.other_gates))
    if record.gang is None and pod.spec.scheduler_name not in SCHEDULERS:
        return "other-scheduler", words.other_scheduler(name=pod.spec.scheduler_name)
    if record.gang is None:
        return "no-gang", words.no_gang(why=_alone(pod, lacks))
    if gang is None:
        return "gang-missing", words.no_group(gang=record.gang)
    if record.gated:
        own = [gate.name for gate in pod.spec.scheduling_gates if gate.name in GATES]
        return "gated", words.gated(own, record.other_gates)
    return _pinned(pod, record, gang)


def _decided(what_if: WhatIf, pod: Pod, record: PodRecord) -> tuple[PodCause, str] | None:
    """What is to be said of a pod about which nothing is to be decided any more; None of any other."""
    if record.terminating:
        return "terminating", reasons.members.told(pod="it", what=deletion(what_if, pod))
    if pod.finished:
        why = problem(pod)
        ended = reasons.members.ended(pod.status.phase, record.node, why.words if why else "")
        return "failed" if why else "finished", ended
    return _placed(what_if, pod, record) if record.node else None


def _placed(what_if: WhatIf, pod: Pod, record: PodRecord) -> tuple[PodCause, str]:
    """A pod that has its node: whether it runs there."""
    if silent := silence(what_if, pod):
        return "lost", reasons.members.told(pod="it", what=silent)
    if hindered := problem(pod):
        return "hindered", reasons.members.hindered(node=record.node, why=hindered.words)
    if record.phase == "Running":
        return "running", reasons.members.runs(node=record.node)
    return "bound", reasons.members.bound(node=record.node)


def _pinned(pod: Pod, record: PodRecord, gang: GangView) -> tuple[PodCause, str]:
    """A member without a gate: how its pin agrees with the placement."""
    if record.epoch is None and not record.pin:
        return "not-tried", reasons.members.UNPINNED
    if stale := _stale(record, gang):
        return stale
    placement, scheduled = gang.placement, pod.status.condition("PodScheduled")
    node, deadline = record.pin or "its node", placement.spec.deadline if placement else ""
    if record.refused:
        says = (scheduled.message if scheduled else "") or "without a reason"
        return "refused", reasons.members.refused(node=node, epoch=record.epoch, says=says)
    return "not-tried", reasons.members.pinned(node, record.epoch, gang.taken, deadline)


def _stale(record: PodRecord, gang: GangView) -> tuple[PodCause, str] | None:
    """How the pin disagrees with the placement as it is now."""
    placement, pin, epoch = gang.placement, record.pin, record.epoch or 0
    if placement is None or epoch > placement.spec.epoch:
        return "newer-epoch", reasons.members.pin_too_new(pin=pin, epoch=record.epoch)
    if epoch < placement.spec.epoch or not gang.active:
        now, phase = placement.spec.epoch, placement.status.phase
        return "old-epoch", reasons.members.pin_too_old(pin=pin, epoch=record.epoch, now=now, phase=phase)
    node = node_of(placement, record.slot.pod_set, record.slot.rank) if record.slot else None
    if pin and node != pin:
        return "wrong-pin", reasons.members.pin_wrong(pin=pin, epoch=record.epoch, node=node or "no node")
    return None


def _alone(pod: Pod, lacks: Shortage | None) -> str:
    scheduled = pod.status.condition("PodScheduled")
    says = scheduled.message if scheduled else ""
    if lacks is None:
        return reasons.members.alone(0, 0, "", "", says)
    return reasons.members.alone(lacks.roomy, lacks.nodes, lacks.lost, lacks.nearest, says)


def _lacks(what_if: WhatIf, record: PodRecord) -> Shortage:
    """Why the nodes do not take a pod of no gang, counted as for a gang of one."""
    session = what_if.cycle()
    return shortage(session, None, PodSetView("pod", record.cls, 1, 1), 1, 0)
