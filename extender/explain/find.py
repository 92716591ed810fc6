"""Objects by the names that users give; errors name those that exist instead."""

from collections.abc import Iterable
from difflib import get_close_matches

from extender.explain.gang import GangExplainer
from extender.explain.pod import explain_pod
from extender.explain.report import GangReport, PodReport, QueueReport, UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner import reasons
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.volcano.batch import FINISHED, JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.volcano.tasks import queue_of

NEAR = 5
CUTOFF = 0.5


def explain(what_if: WhatIf, kind: str, name: str, namespace: str) -> GangReport | PodReport:
    """Return the report of a `job`, `gang` or `pod`. Raises UnknownNameError."""
    if kind == "pod":
        pod = what_if.dump.pod(namespace, name)
        if pod is None:
            pods = what_if.dump.of(PODS)
            raise _unknown("pod", name, namespace, pods)
        return explain_pod(what_if, pod)
    if kind == "gang":
        return GangExplainer(what_if).explain(gang_named(what_if, name, namespace))
    group = _by_workload(what_if, name, namespace)
    view = what_if.state.gang(group.metadata.key) if group else None
    if view is not None:
        return GangExplainer(what_if).explain(view)
    jobs = what_if.dump.of(JOBS)
    job = next((each for each in jobs if (each.metadata.name, each.metadata.namespace) == (name, namespace)), None)
    if job is None:
        raise _unknown("job with a gang", name, namespace, [*jobs, *_workloads(what_if)])
    return _without_group(job)


def gang_named(what_if: WhatIf, name: str, namespace: str) -> GangView:
    """Return the gang of this name, or of the workload of this name. Raises UnknownNameError."""
    group = what_if.state.groups.get(f"{namespace}/{name}") or _by_workload(what_if, name, namespace)
    view = what_if.state.gang(group.metadata.key) if group else None
    if view is None:
        groups = what_if.dump.of(POD_GROUPS)
        raise _unknown("gang (PodGroup)", name, namespace, groups)
    return view


def _by_workload(what_if: WhatIf, name: str, namespace: str) -> PodGroup | None:
    """Return the PodGroup of a workload of this name; the youngest if there are several."""
    owned = [
        group
        for group in what_if.dump.of(POD_GROUPS)
        if group.metadata.namespace == namespace
        and any(owner.name == name for owner in group.metadata.owner_references)
    ]
    return max(owned, key=lambda group: group.metadata.creation_timestamp or "", default=None)


def _workloads(what_if: WhatIf) -> list[Object]:
    """Return the owners that PodGroups name."""
    return [
        Object(metadata=ObjectMeta(name=owner.name, namespace=group.metadata.namespace))
        for group in what_if.dump.of(POD_GROUPS)
        for owner in group.metadata.owner_references
    ]


def _without_group(job: Job) -> GangReport:
    """Return the report of a Volcano Job without a PodGroup."""
    state = job.status.state
    ended = state.phase in FINISHED or state.phase in {"Aborted", "Aborting", "Terminating", "Completing"}
    why = ": ".join(word for word in (state.reason, state.message) if word)
    comes = not ended and state.reason != "BackOff"  # else the message says when
    return GangReport(
        gang="",
        workload=f"Job {job.metadata.key}",
        phase="",
        job_phase=state.phase,
        cause="finished" if state.phase in FINISHED else "no-pod-group",
        reason=state.reason,
        summary=reasons.gangs.without_group(state.phase, why, comes=comes),
        since=state.last_transition_time or job.metadata.creation_timestamp or "",
        min_member=job.spec.min_available,
        members=0,
        queue=QueueReport(queue_of(job.spec), "", 0, 0, 0, 0, ()),
        pod_sets=[],
    )


def _unknown(what: str, name: str, namespace: str, known: Iterable[Object]) -> UnknownNameError:
    known = list(known)
    here = sorted({item.metadata.name for item in known if item.metadata.namespace == namespace})
    elsewhere = sorted({item.metadata.namespace for item in known if item.metadata.name == name})
    text = f"there is no {what} {name!r} in namespace {namespace!r}"
    if elsewhere:
        return UnknownNameError(f"{text}; there is one in namespace {', '.join(elsewhere)} (-n)")
    near = (
        get_close_matches(name, here, n=NEAR, cutoff=CUTOFF) or [each for each in here if each.startswith(name)][:NEAR]
    )
    if near:
        return UnknownNameError(f"{text}; near names: {', '.join(near)}")
    if here:
        return UnknownNameError(f"{text}; there are: {', '.join(here[:NEAR])}{' …' if len(here) > NEAR else ''}")
    return UnknownNameError(f"{text}; there is none at all in that namespace")
