"""Workloads without a gang: batch/v1 Jobs (suspended, rejected or not managed), and held workloads of other kinds.

A workload has no PodGroup if it has no pods that Muster places. The reason is then only in the workload's object and
its Events.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from muster.api import names
from muster.api.grammar import listed
from muster.api.kubernetes.core import INDEXED_JOBS, Event, IndexedJob, Namespace, Pod
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference, readable_time
from muster.api.muster.states import ENDED, Facts, Members, State, state_of
from muster.api.unchecked import mapping
from muster.api.volcano.flow import JobFlow
from muster.api.volcano.scheduling import EVICTED, PodGroup
from muster.workloads.kind import GangRules, WorkloadKind, with_templates
from muster.workloads.sample import JSON
from muster.workloads.table import KINDS, gang_rules
from muster.workloads.verbs import is_held, released_by

Refusals = Mapping[str, tuple[float, str]]
"""Maps an owner's UID to the time and reason of the latest failure to create one of its pods."""
_NOTES = frozenset({names.CREATED_BY, names.MOVED_TO, names.HELD_REPLICAS, names.MANAGED})
"""Keys of Muster's labels and annotations that do not request a placement by Muster."""
_FORBIDDEN = " is forbidden: "
"""Text between a pod's name and the reason in the API server's message about the rejected pod."""
HELD_KINDS = tuple(kind for kind in KINDS if kind.labelled and kind.verbs and kind.resource is not INDEXED_JOBS)
"""Kinds of workloads that have neither pods nor a Volcano Job while they are held."""


def is_held_by_user(kind: WorkloadKind, workload: JSON) -> bool:
    """Return True if no other object controls a workload that is suspended or that `muster hold` has scaled to 0."""
    meta, noted = metadata_of(workload), kind.verbs is not None and bool(kind.verbs.count)
    return is_held(kind, workload) and not meta.controller and (not noted or names.HELD_REPLICAS in meta.annotations)


def held_queue(kind: WorkloadKind, workload: JSON, namespace: Namespace | None) -> str:
    """Return the queue in which a held workload will wait after its release; "" if Muster does not place its pods."""
    return _queue([metadata_of(each) for _, each in with_templates(workload, kind.templates)], namespace)


def metadata_of(document: Mapping[str, Any]) -> ObjectMeta:
    """Return the metadata of a workload or template as decoded from JSON, in which fields may be null."""
    given = {key: value for key, value in mapping(document.get("metadata")).items() if value is not None}
    return msgspec.convert(given, ObjectMeta)


def queue_of(job: IndexedJob, namespace: Namespace | None) -> str:
    """Return the queue of a Job's pods; "" if Muster does not place these pods."""
    return _queue([job.metadata, _template(job)], namespace)


def _queue(given: Sequence[ObjectMeta], namespace: Namespace | None) -> str:
    """Return the queue that labels of a workload and its templates select, or else the namespace's queue."""
    labels = {key: value for each in given for key, value in each.labels.items()}
    if labels.get(names.MANAGED) == "false":
        return ""
    return given[0].annotations.get(names.MOVED_TO) or labels.get(names.QUEUE) or (namespace.queue if namespace else "")


def state(job: IndexedJob, *, managed: bool) -> State:
    """Return the state of a Job without a gang; `managed` is True if Muster places its pods."""
    members: Members = "whole" if job.status.get("ready") and not managed else ""
    members = "over" if _is_over(job) else members
    return state_of(Facts(members=members, failed=bool(_failure(job)), waits=True, suspended=job.spec.suspend))


def reason(job: IndexedJob, state: State, refusals: Refusals, *, managed: bool) -> str:
    """Return the reason why a Job has no gang, or why it failed."""
    _, refusal = refusals.get(job.metadata.uid, (0.0, ""))
    if state in ENDED:
        return _failure(job)
    if not managed:
        return not_managed(job)
    if state == "Suspended":
        return released_by(job.metadata.name, job.metadata.namespace)
    if job.metadata.deletion_timestamp:
        return "it is being deleted"
    if refusal or job.spec.parallelism == 0:
        return _refused(refusal) if refusal else "the Job's parallelism is 0"
    return f"{'its gang does' if job.status.get('active') else 'its pods do'} not exist yet"


def wants_pods(job: IndexedJob) -> bool:
    """Return True for a Job without pods that has not ended and is not suspended."""
    return not (_is_over(job) or job.spec.suspend or job.status.get("active"))


def not_managed(job: IndexedJob) -> str:
    """Return why Muster does not place the pods of a Job, although the Job has a label or annotation of Muster."""
    what = f"it has no label {names.QUEUE}, so Muster does not place its pods"
    wrong = f" (there is only an annotation {names.QUEUE}, and annotations have no effect on this)"
    return what + (wrong if names.QUEUE in {**job.metadata.annotations, **_template(job).annotations} else "")


def refusals(events: Iterable[Event]) -> Refusals:
    """Return a mapping from an owner's UID to its latest failure to create pods: the time, and the error."""
    result: dict[str, tuple[float, str]] = {}
    for each in sorted(events, key=lambda event: event.last_timestamp or ""):
        at = readable_time(each.last_timestamp or each.metadata.creation_timestamp) or 0.0
        message = " ".join(each.message.split())
        why = message.partition(_FORBIDDEN)[2] or message.removeprefix("Error creating: ")
        result[each.involved_object.get("uid", "")] = at, why
    return result


def refusal_of(group: PodGroup, pods: Sequence[Pod], refusals: Refusals) -> str:
    """Return the error that prevents the creation of the gang's missing pods.

    Returns "" if no pod is missing, or if a pod was created after the error.
    """
    above = group.metadata.controller
    at, why = refusals.get(above.uid, (0.0, "")) if above else (0.0, "")
    living = [pod for pod in pods if not (pod.finished or pod.metadata.deletion_timestamp)]
    times = [pod.metadata.creation_timestamp for pod in pods]
    times += [each.last_transition_time for each in group.status.conditions if each.reason == EVICTED]
    later = max((readable_time(each) or 0.0 for each in times), default=0.0)
    return _refused(why) if why and len(living) < group.spec.min_member and at >= later else ""


def is_blocked(job_flow: JobFlow) -> bool:
    """Return True for a JobFlow whose next Job cannot be created."""
    state = job_flow.status.state
    return bool(state.message) and state.phase not in {"Succeed", "Failed", "Terminating"}


def flow_text(job_flow: JobFlow) -> str:
    """Return the phase of a JobFlow, the reason why its next Job cannot be created, and its Jobs."""
    state, jobs = job_flow.status.state, [each.name for each in job_flow.status.job_status_list]
    blocked = f": {state.message}" if is_blocked(job_flow) else ""
    there = (
        f"; `muster explain JOB -n {job_flow.metadata.namespace}` has more about its Jobs: {listed(jobs)}"
        if jobs
        else ""
    )
    return f"JobFlow {job_flow.metadata.name} is {state.phase or 'Pending'}{blocked}{there}"


def owners(pods: Iterable[Pod]) -> set[str]:
    """Return the UIDs of the objects that control the given pods."""
    return {above.uid for pod in pods if (above := pod.metadata.controller)}


def means_muster(job: IndexedJob) -> bool:
    """Return True if a label or annotation of the Job or its pods requests a feature of Muster, and none opts out."""
    template = _template(job)
    if "false" in {each.labels.get(names.MANAGED) for each in (job.metadata, template)}:
        return False
    keys = {*job.metadata.labels, *job.metadata.annotations, *template.labels, *template.annotations}
    return any(key.startswith(f"{names.DOMAIN}/") for key in keys - _NOTES)


def _template(job: IndexedJob) -> ObjectMeta:
    return metadata_of(job.spec.template)


def pods_of(job: IndexedJob) -> int:
    """Return the number of a Job's pods that run at the same time."""
    at_once = _rules(job).at_once
    return at_once(job) if at_once else 1


def _rules(job: IndexedJob) -> GangRules:
    return gang_rules(OwnerReference.to(INDEXED_JOBS, job.metadata)) or GangRules()


def _is_over(job: IndexedJob) -> bool:
    is_over = _rules(job).is_over
    return is_over is not None and is_over(job)


def _failure(job: IndexedJob) -> str:
    failure = _rules(job).failure
    return failure(job) if failure else ""


def _refused(why: str) -> str:
    return f"its pods cannot be created: {why}"
