"""Search for the job, gang or pod that a user names; if the name is unknown, the error message lists existing names.

The report of a pod contains its slot, its gate or pin, and kube-scheduler's message.
"""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from extender.explain.gang import GangExplainer
from extender.explain.members import deletion, frees, is_lost, silence
from extender.explain.reader import ALL, Viewer
from extender.explain.report import GangQueueReport, GangReport, PodCause, PodReport, UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.framework.shortage import shortage
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from gangs.states import failed_text
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.kubernetes.pod_problems import failure, problem
from muster.api.muster.gang import native_gang
from muster.api.muster.native import subject
from muster.api.muster.placement import node_of_slot
from muster.api.muster.pools import is_musters
from muster.api.muster.states import without_gang
from muster.api.names import GATES
from muster.api.volcano.batch import FINISHED, JOBS, Job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.tasks import job_minimum, queue_of, restarts, total_replicas
from muster.workloads.owners import job_workload, owner_names
from muster.workloads.verbs import held_text

NEAR = 5
CUTOFF = 0.5


def explain(
    what_if: WhatIf,
    kind: str,
    name: str,
    namespace: str,
    stops: Callable[[], bool] = lambda: False,
    reader: Viewer = ALL,
) -> GangReport | PodReport:
    """Return the report of a `job`, `gang` or `pod`; once `stops` returns True, test no further remedies.

    Raises UnknownNameError if there is no such object.
    """
    if kind == "pod":
        pod = what_if.dump.pod(namespace, name)
        if pod is None:
            pods = what_if.dump.objects_of(PODS)
            raise _unknown("pod", name, namespace, pods, reader)
        return explain_pod(what_if, pod, stops, reader)
    if kind == "gang":
        return GangExplainer(what_if, stops, reader).explain(gang_named(what_if, name, namespace, reader))
    group = _by_workload(what_if, name, namespace)
    view = what_if.state.gang(group.metadata.key) if group else None
    if view is not None:
        return GangExplainer(what_if, stops, reader).explain(view)
    jobs = what_if.dump.objects_of(JOBS)
    job = next((each for each in jobs if (each.metadata.name, each.metadata.namespace) == (name, namespace)), None)
    if job is None:
        raise _unknown("job with a gang", name, namespace, [*jobs, *_owners(what_if.state.groups.values())], reader)
    pods = [
        pod for pod in what_if.dump.objects_of(PODS) if (of := pod.metadata.controller) and of.uid == job.metadata.uid
    ]
    return _without_group(job, pods)


def gang_named(what_if: WhatIf, name: str, namespace: str, reader: Viewer = ALL) -> GangView:
    """Return the gang with this name, or the gang of the workload with this name. Raises UnknownNameError."""
    groups = what_if.state.groups
    group = groups.get(f"{namespace}/{name}") or groups.get(f"{namespace}/{native_gang(name)}")
    group = group or _by_workload(what_if, name, namespace)
    view = what_if.state.gang(group.metadata.key) if group else None
    if view is None:
        there = [subject(each) for each in groups.values()]
        alone = [each for each in there if not each.metadata.owner_references]
        raise _unknown("gang", name, namespace, [*_owners(there), *alone], reader, near=there)
    return view


def _by_workload(what_if: WhatIf, name: str, namespace: str) -> PodGroup | None:
    """Return the PodGroup of the workload with this name; if the workload has several, return the newest PodGroup."""
    owned = [
        group
        for group in what_if.state.groups.values()
        if group.metadata.namespace == namespace and name in owner_names(group.metadata)
    ]
    return max(owned, key=lambda group: group.metadata.creation_timestamp or "", default=None)


def _without_group(job: Job, pods: Sequence[Pod]) -> GangReport:
    state, owner = job.status.state, job_workload(job)
    called = without_gang(state.phase, job.metadata)
    ended = state.phase in FINISHED or state.phase in {"Aborted", "Aborting", "Terminating", "Completing"}
    failed = called == "Failed" or state.failure
    why = ": ".join(word for word in (state.reason, state.message) if word)
    held = held_text(owner.name, job.metadata.namespace) if called == "Suspended" else ""
    comes = not (ended or state.refusal or state.reason == "BackOff")  # else the message names time or reason
    return GangReport(
        gang="",
        workload=f"{owner.kind} {job.metadata.namespace}/{owner.name}",
        state=called,
        phase="",
        job_phase=state.phase,
        cause="failed" if failed else "finished" if state.phase in FINISHED else "no-pod-group",
        reason=state.reason,
        summary=reasons.gangs.failed(0, "", failed_text(pods, state.failure or state.message or state.reason))
        if failed
        else held or reasons.gangs.without_group(state.phase, why, comes=comes),
        since=state.last_transition_time or job.metadata.creation_timestamp or "",
        min_member=job_minimum(job.spec),
        members=0,
        queue=GangQueueReport(queue_of(job.spec), "", 0, 0, 0, 0, ()),
        pod_sets=[],
        details=_failures(job) if failed else [],
    )


def _failures(job: Job) -> list[str]:
    """Return sentences about a Job's failed pods, and about the Job's restarts."""
    failed, (restarted, most) = job.status.failed, restarts(job.status.retry_count, job.spec.max_retry)
    pods = [reasons.gangs.failed_pods(failed, total_replicas(job.spec))] if failed else []
    return [*pods, reasons.gangs.restarts(restarted, most)] if restarted else pods


def _owners(groups: Iterable[Object]) -> list[Object]:
    """Return the workloads that own the gangs, because users do not know the generated names of PodGroups."""
    return [
        Object(metadata=ObjectMeta(name=name, namespace=group.metadata.namespace))
        for group in groups
        for name in owner_names(group.metadata)
    ]


def _unknown(
    what: str, name: str, namespace: str, known: Iterable[Object], reader: Viewer, near: Iterable[Object] = ()
) -> UnknownNameError:
    """Return an error that lists objects with similar names, from `known` or else from `near`."""
    known, also = list(known), list(near)
    here = sorted({item.metadata.name for item in known if item.metadata.namespace == namespace})
    there = sorted({item.metadata.name for item in also if item.metadata.namespace == namespace})
    elsewhere = sorted({item.metadata.namespace for item in [*known, *also] if item.metadata.name == name})
    elsewhere = [each for each in elsewhere if reader.sees(each)]
    text = f"there is no {what} {name!r} in namespace {namespace!r}"
    if elsewhere:
        return UnknownNameError(f"{text}; there is one in namespace {', '.join(elsewhere)} (-n)")
    alike = (
        get_close_matches(name, here, n=NEAR, cutoff=CUTOFF)
        or get_close_matches(name, there, n=NEAR, cutoff=CUTOFF)
        or [each for each in here if each.startswith(name)][:NEAR]
    )
    if alike:
        return UnknownNameError(f"{text}; near names: {', '.join(alike)}")
    if here:
        return UnknownNameError(f"{text}; there are: {', '.join(here[:NEAR])}{' …' if len(here) > NEAR else ''}")
    return UnknownNameError(f"{text}; there is none at all in that namespace")


def explain_pod(
    what_if: WhatIf, pod: Pod, stops: Callable[[], bool] = lambda: False, reader: Viewer = ALL
) -> PodReport:
    """Return the report of one pod, with the report of its gang."""
    record = what_if.state.pods[pod.metadata.uid]
    gang = what_if.state.gang(record.gang) if record.gang else None
    report = GangExplainer(what_if, stops, reader).explain(gang, relief=not record.node) if gang else None
    lacks = None
    alone = not gang and record.waiting and is_musters(pod.spec.scheduler_name)
    if alone and what_if.dump.whole:  # handled like a gang with one member
        lacks = reader.shortage(shortage(what_if.decided()[0], None, PodSetView("pod", record.cls, 1, 1), 1, 0))
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
    if record.gang is None and not is_musters(pod.spec.scheduler_name):
        return "other-scheduler", words.other_scheduler(name=pod.spec.scheduler_name)
    if record.gang is None:
        return "no-gang", words.no_gang(why=_alone(pod, lacks))
    if gang is None:
        return "gang-missing", _missing(pod, record.gang)
    if record.gated:
        own = [gate.name for gate in pod.spec.scheduling_gates if gate.name in GATES]
        return "gated", words.gated(own, record.other_gates)
    return _pinned(pod, record, gang)


def _missing(pod: Pod, gang: str) -> str:
    """Return the message for a pod whose gang does not exist; the message names the kind of the missing PodGroup."""
    group = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group else None
    if group and gang == f"{pod.metadata.namespace}/{native_gang(group)}":
        return reasons.members.no_native_group(group=group)
    owner = pod.metadata.controller
    return reasons.members.no_group(
        gang=f"of {owner.kind} {owner.name}" if owner and owner.uid and gang.endswith(owner.uid) else gang
    )


def _decided(what_if: WhatIf, pod: Pod, record: PodRecord) -> tuple[PodCause, str] | None:
    """Return cause and message for a pod that is bound to a node, has finished or is being deleted; otherwise None."""
    if record.terminating:
        return "terminating", reasons.members.pod_state(pod="the pod", what=deletion(what_if, pod))
    if pod.finished:
        why = problem(pod) or failure(pod)
        ended = reasons.members.ended(pod.status.phase, record.node, why.words if why else "")
        return "failed" if why else "finished", ended
    return _placed_pod(what_if, pod, record) if record.node else None


def _placed_pod(what_if: WhatIf, pod: Pod, record: PodRecord) -> tuple[PodCause, str]:
    """Return the cause and message for a pod that is bound to a node."""
    if silent := silence(what_if, pod):
        return "lost", reasons.members.pod_state(pod="the pod", what=silent)
    if hindered := problem(pod):
        return "hindered", reasons.members.hindered(node=record.node, why=hindered.words)
    if record.phase == "Running":
        return "running", reasons.members.runs(node=record.node)
    return "bound", reasons.members.bound(node=record.node)


def _pinned(pod: Pod, record: PodRecord, gang: GangView) -> tuple[PodCause, str]:
    """Return the cause and message for a member without a gate; its pin may or may not match the placement."""
    if record.epoch is None and not record.pin:
        return "not-tried", reasons.members.UNPINNED
    if stale := _stale(record, gang):
        return stale
    placement, scheduled = gang.placement, pod.status.condition("PodScheduled")
    node, deadline = record.pin or "its node", placement.spec.deadline if placement else ""
    if record.refused:
        message = (scheduled.message if scheduled else "") or "without a reason"
        return "refused", reasons.members.refused(node=node, epoch=record.epoch, says=message)
    return "not-tried", reasons.members.pinned(node, record.epoch, gang.taken, deadline)


def _stale(record: PodRecord, gang: GangView) -> tuple[PodCause, str] | None:
    """Return the cause and message for a member whose pin does not match the current placement."""
    placement, pin, epoch = gang.placement, record.pin, record.epoch or 0
    if placement is None or epoch > placement.spec.epoch:
        return "newer-epoch", reasons.members.pin_too_new(pin=pin, epoch=record.epoch)
    if epoch < placement.spec.epoch or not gang.active:
        now, phase = placement.spec.epoch, placement.status.phase
        return "old-epoch", reasons.members.pin_too_old(pin=pin, epoch=record.epoch, now=now, phase=phase)
    node = node_of_slot(placement, record.slot)
    if pin and node != pin:
        return "wrong-pin", reasons.members.pin_wrong(pin=pin, epoch=record.epoch, node=node or "no node")
    return None


def _alone(pod: Pod, lacks: Shortage | None) -> str:
    scheduled = pod.status.condition("PodScheduled")
    message = scheduled.message if scheduled else ""
    if lacks is None:
        return reasons.members.alone(0, 0, "", "", message)
    return reasons.members.alone(lacks.roomy, lacks.nodes, lacks.lost, lacks.nearest, message)
