"""Events of a Job: functions that turn changes of its pods, its PodGroup and its Commands into requests.

A new object (`old` is None) raises the event of its state. The Job's version, which each pod records, shows whether
this event was already handled. A pod that was deleted unobserved raises no event, but the counters in the Job's status
show that the pod existed (`unseen_evictions`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from muster.api import names
from muster.api.kubernetes.core import ContainerStatus, Pod
from muster.api.kubernetes.meta import parse_time
from muster.api.kubernetes.pod_problems import being_evicted, refused
from muster.api.limits import PODS, whole_number
from muster.api.volcano.batch import Command, Job, TaskState, is_job
from muster.api.volcano.scheduling import PodGroup, is_queue
from muster.volcano.tasks import PodSlot, partition_of, slot, task_max_retry

OUT_OF_SYNC = "OutOfSync"
POD_PENDING = "PodPending"
POD_RUNNING = "PodRunning"
POD_FAILED = "PodFailed"
POD_EVICTED = "PodEvicted"
TASK_COMPLETED = "TaskCompleted"
TASK_FAILED = "TaskFailed"
UNKNOWN = "Unknown"
COMMAND_ISSUED = "CommandIssued"
_REASON_CHARS = 32


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One event of a Job, with the data by which a later pass checks whether the event still applies.

    `since_s` is the time of the event in seconds since the epoch, if a timestamp of the object contains this time;
    timeouts count from it. `refused` is the kubelet's reason for refusing the pod before any container started.
    `reason` is the reason for the end of the pod or of its first failed container.
    """

    event: str = OUT_OF_SYNC
    action: str = ""
    job_uid: str = ""
    job_version: int | None = None
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_codes: tuple[int, ...] = ()
    refused: str = ""
    reason: str = ""
    since_s: float | None = None
    group_uid: str = ""
    command: str = ""
    command_uid: str = ""
    command_order: int = 0


SYNC = JobEvent()
"""The event of a sync, which compares the existing pods with the wanted pods."""


def task_of(pod: Pod) -> str:
    """Return the task of the pod."""
    return pod.metadata.annotations.get(names.TASK_SPEC, "")


def version_of(pod: Pod) -> int:
    """Return the Job's version for which the pod was created."""
    return whole_number(pod.metadata.annotations.get(names.JOB_VERSION)) or 0


def present(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that are not being deleted."""
    return [pod for pod in pods if not pod.metadata.deletion_timestamp]


def pod_changed(old: Pod | None, new: Pod | None) -> JobEvent:
    """Return the request for the pod's Job after this change; `new` is None if the pod was deleted."""
    pod = new or old
    assert pod is not None, "a change has an old pod, a new pod, or both"  # noqa: S101 - documents the contract of handlers
    event = _deleted(pod) if new is None else _changed(old, new)
    created_s = parse_time(pod.metadata.creation_timestamp)
    if event == OUT_OF_SYNC or names.OUT_OF_SYNC in pod.metadata.annotations:
        return SYNC
    return JobEvent(
        event=event,
        job_uid=pod.metadata.controller.uid if pod.metadata.controller else "",
        job_version=version_of(pod),
        task=task_of(pod),
        pod=pod.metadata.name,
        pod_uid=pod.metadata.uid,
        partition=pod.metadata.labels.get(names.PARTITION_ID, ""),
        exit_codes=exit_codes(pod) if event == POD_FAILED else (),
        refused=pod.status.reason if event == POD_FAILED and refused(pod) else "",
        reason=_reason(pod) if event == POD_FAILED else "",
        # A timestamp has no fractions, and a timeout must not end early.
        since_s=created_s + 1.0 if created_s is not None and event == POD_PENDING else None,
    )


def _deleted(pod: Pod) -> str:
    """Return PodEvicted if the work of the deleted pod is lost: the pod had a node and had not succeeded."""
    if not pod.spec.node_name or (pod.status.phase == "Succeeded" and not being_evicted(pod)):
        return OUT_OF_SYNC
    return POD_EVICTED


def _changed(old: Pod | None, new: Pod) -> str:
    if new.metadata.deletion_timestamp:
        # A pod that fails because it is being deleted is evicted, not failed: its deletion raises that event.
        return OUT_OF_SYNC
    if restarted(old, new) and (old or new.status.phase == "Running"):
        return TASK_FAILED
    if old and old.status.phase == new.status.phase:
        return OUT_OF_SYNC
    return {"Failed": POD_FAILED, "Succeeded": TASK_COMPLETED, "Running": POD_RUNNING, "Pending": POD_PENDING}.get(
        new.status.phase or "Pending", OUT_OF_SYNC
    )


def unseen_evictions(job: Job, pods: Iterable[Pod]) -> list[JobEvent]:
    """Return the evictions of pods that no watch has reported.

    Pods of a task were evicted if the task has fewer pods, and fewer started pods, than the Job's status counts.
    """
    if job.status.state.phase not in {"Pending", "Running"}:
        return []
    there = {pod.metadata.name: pod for pod in pods}
    left = Counter(map(task_of, there.values()))
    begun = Counter(task_of(pod) for pod in there.values() if pod.status.phase not in {"", "Pending"})
    result = []
    for task in job.spec.tasks:
        counted = job.status.task_status_count.get(task.name, TaskState()).phase
        lost = min(sum(counted.values()) - left[task.name], counted.get("Running", 0) - begun[task.name])
        wanted = (slot(job, task, index) for index in range(min(task.replicas, PODS.value)))
        missing = (one for one in wanted if one.name not in there)
        result += [_eviction(job, one) for one in islice(missing, max(0, lost))]
    return result


def _eviction(job: Job, lost: PodSlot) -> JobEvent:
    return JobEvent(
        event=POD_EVICTED,
        job_uid=job.metadata.uid,
        job_version=job.status.version,
        task=lost.task.name,
        pod=lost.name,
        partition=partition_of(lost.task, lost.index),
    )


def task_outcome(job: Job, task_name: str, pods: Iterable[Pod]) -> str | None:
    """Return TaskCompleted if all pods of a task succeeded, TaskFailed after too many container restarts, else None."""
    task = next((task for task in job.spec.tasks if task.name == task_name), None)
    if task is None:
        return None
    own = [pod for pod in present(pods) if task_of(pod) == task_name]
    if task.replicas and sum(pod.status.phase == "Succeeded" for pod in own) >= task.replicas:
        return TASK_COMPLETED
    if 0 < task_max_retry(task) <= _restarts(own):
        return TASK_FAILED
    return None


def restarted(old: Pod | None, new: Pod | None) -> bool:
    """Return True if a container of the pod has restarted between two states of the pod."""
    return new is not None and _restarts([new]) > (_restarts([old]) if old else 0)


def _restarts(pods: Iterable[Pod]) -> int:
    """Return the number of container restarts, including init containers, in the pods that have not finished."""
    unfinished = (pod for pod in pods if pod.status.phase in {"Running", "Pending"})
    return sum(status.restart_count for pod in unfinished for status in _statuses(pod))


def _reason(pod: Pod) -> str:
    """Return the kubelet's reason for the end of a pod, or of its first failed container.

    Return "" if the kubelet reports only an exit code.
    """
    ended = (status.state.terminated for status in pod.deciding_statuses)
    reasons = (state.reason for state in ended if state and state.exit_code and state.reason != "Error")
    return (pod.status.reason or next(reasons, ""))[:_REASON_CHARS]


def exit_codes(pod: Pod) -> tuple[int, ...]:
    """Return the non-zero exit codes of all containers except sidecars, in order."""
    ended = (status.state.terminated for status in pod.deciding_statuses)
    return tuple(state.exit_code for state in ended if state and state.exit_code)


def _statuses(pod: Pod) -> Sequence[ContainerStatus]:
    return [*pod.status.init_container_statuses, *pod.status.container_statuses]


def group_changed(old: PodGroup | None, new: PodGroup | None) -> JobEvent | None:
    """Return the request for a PodGroup's Job after this change; None if the change does not concern the Job."""
    if old and new and old.status == new.status:
        return None
    if new and new.status.phase == "Unknown" and not (old and old.status.phase == "Unknown"):
        return JobEvent(event=UNKNOWN, group_uid=new.metadata.uid)
    return SYNC


def command_issued(command: Command) -> tuple[str, JobEvent] | None:
    """Return the key of the Job to which a Command applies, and the request; None if the target is a queue.

    If no controller handles this kind of target, the name in the key is empty.
    """
    target, meta = command.target, command.metadata
    if is_queue(target):
        return None
    request = JobEvent(
        event=COMMAND_ISSUED,
        action=command.action,
        job_uid=target.uid if target else "",
        command=meta.name,
        command_uid=meta.uid,
        command_order=int(meta.resource_version or 0),  # the version at its creation: a Command is never changed
    )
    return f"{meta.namespace}/{target.name if target and is_job(target) else ''}", request


def job_changed(old: Job | None, new: Job | None) -> bool:
    """Return True if this change of a Job requires a pass, because the Job's spec, phase or version has changed."""
    if old is None or new is None:
        return True
    moved = old.status.state.phase != new.status.state.phase or old.status.version != new.status.version
    return moved or old.metadata.generation != new.metadata.generation


def pod_matters(old: Pod | None, new: Pod | None) -> bool:
    """Return True if this change of a pod may affect the Job's next pass; a new annotation, for example, does not."""
    if old is None or new is None:
        return True
    return old.status != new.status or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
