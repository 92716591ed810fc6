"""What a change of a pod, a PodGroup or a Command means to its Job.

The functions also answer for an object that is seen for the first time (`old` None), as after a start of the
controller: what a pod *is* then raises the event that its *becoming* so would have raised, and versions tell whether
that was dealt with. A pod that is gone says nothing any more; that it was there, the Job's last counters tell
(`unseen_evictions`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from controller.job.rules import request as event
from controller.job.rules.counts import task_of
from controller.job.rules.request import Request
from muster.api import names
from muster.api.kubernetes.container_status import ContainerStatus
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import parse_time
from muster.api.kubernetes.pod_problems import refused, told_to_go
from muster.api.limits import PODS, whole_number
from muster.api.volcano.batch import Job, TaskState, is_job
from muster.api.volcano.bus import Command
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.defaults import task_max_retry
from muster.volcano.slots import PodSlot, slot
from muster.volcano.tasks import partition_of


def pod_changed(old: Pod | None, new: Pod | None) -> Request:
    """The request of a pod's Job for this change; `new` None means that the pod is gone."""
    pod = new or old
    assert pod is not None, "a change has an old or a new side"  # noqa: S101 - says what handlers promise
    what = _deleted(pod) if new is None else _changed(old, new)
    if what == event.OUT_OF_SYNC or names.OUT_OF_SYNC in pod.metadata.annotations:
        return event.SYNC
    return Request(
        event=what,
        job_uid=pod.metadata.controller.uid if pod.metadata.controller else "",
        job_version=version_of(pod),
        task=task_of(pod),
        pod=pod.metadata.name,
        pod_uid=pod.metadata.uid,
        partition=pod.metadata.labels.get(names.PARTITION_ID, ""),
        exit_codes=exit_codes(pod) if what == event.POD_FAILED else (),
        refused=pod.status.reason if what == event.POD_FAILED and refused(pod) else "",
        since_s=_created_s(pod) if what == event.POD_PENDING else None,
    )


def _created_s(pod: Pod) -> float | None:
    """When the pod was created, at the latest: the timestamp has no fractions, and no timeout shall end early."""
    created_s = parse_time(pod.metadata.creation_timestamp)
    return None if created_s is None else created_s + 1.0


def _deleted(pod: Pod) -> str:
    """Only a pod that had a node and did not succeed was evicted; another one lost nothing by going.

    One that succeeded after it was told to go was evicted too: its success is gone with it, so it will be made anew.
    """
    if not pod.spec.node_name or (pod.status.phase == "Succeeded" and not told_to_go(pod)):
        return event.OUT_OF_SYNC
    return event.POD_EVICTED


def _changed(old: Pod | None, new: Pod) -> str:
    if new.metadata.deletion_timestamp:
        # A pod that fails because somebody deletes it is evicted, not failed: its deletion says so.
        return event.OUT_OF_SYNC
    if restarted(old, new) and (old or new.status.phase == "Running"):
        return event.TASK_FAILED
    if old and old.status.phase == new.status.phase:
        return event.OUT_OF_SYNC
    return {
        "Failed": event.POD_FAILED,
        "Succeeded": event.TASK_COMPLETED,
        "Running": event.POD_RUNNING,
        "Pending": event.POD_PENDING,
    }.get(new.status.phase or "Pending", event.OUT_OF_SYNC)


def unseen_evictions(job: Job, pods: Iterable[Pod]) -> list[Request]:
    """Evictions that nobody saw: a task has fewer pods, and fewer that have begun, than when they were counted last."""
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
        result += [_unseen(job, one) for one in islice(missing, max(0, lost))]
    return result


def _unseen(job: Job, lost: PodSlot) -> Request:
    return Request(
        event=event.POD_EVICTED,
        job_uid=job.metadata.uid,
        job_version=job.status.version,
        task=lost.task.name,
        pod=lost.name,
        partition=partition_of(lost.task, lost.index),
    )


def task_outcome(job: Job, task_name: str, pods: Iterable[Pod]) -> str | None:
    """TaskCompleted if all pods of the task succeeded, TaskFailed if they restarted too often, else None."""
    task = next((task for task in job.spec.tasks if task.name == task_name), None)
    if task is None:
        return None
    own = [pod for pod in pods if task_of(pod) == task_name and not pod.metadata.deletion_timestamp]
    if task.replicas and sum(pod.status.phase == "Succeeded" for pod in own) >= task.replicas:
        return event.TASK_COMPLETED
    if 0 < task_max_retry(task) <= restarts(own):
        return event.TASK_FAILED
    return None


def restarts(pods: Iterable[Pod]) -> int:
    """Container restarts, init containers included, of the pods that have not finished."""
    return sum(
        status.restart_count for pod in pods if pod.status.phase in {"Running", "Pending"} for status in _statuses(pod)
    )


def restarted(old: Pod | None, new: Pod | None) -> bool:
    """Whether a container of the pod has restarted between the two."""
    return new is not None and restarts([new]) > (restarts([old]) if old else 0)


def exit_codes(pod: Pod) -> tuple[int, ...]:
    """Exit codes other than 0 of all containers, in order."""
    ended = (status.state.terminated for status in _statuses(pod))
    return tuple(state.exit_code for state in ended if state and state.exit_code)


def _statuses(pod: Pod) -> Sequence[ContainerStatus]:
    return [*pod.status.init_container_statuses, *pod.status.container_statuses]


def version_of(pod: Pod) -> int:
    """The Job's version that the pod was made for."""
    return whole_number(pod.metadata.annotations.get(names.JOB_VERSION)) or 0


def group_changed(old: PodGroup | None, new: PodGroup | None) -> Request | None:
    """The request of a PodGroup's Job for this change, or None if it is none of its business."""
    if old and new and old.status == new.status:
        return None
    entered = new and new.status.phase == "Unknown" and not (old and old.status.phase == "Unknown")
    if new and entered:
        return Request(event=event.UNKNOWN, group_uid=new.metadata.uid)
    return event.SYNC


def command_issued(command: Command) -> tuple[str, Request] | None:
    """The key of the Job that a Command is for and the request to it; None if it is not for a Job."""
    target, meta = command.target, command.metadata
    if target is None or not is_job(target):
        return None
    request = Request(
        event=event.COMMAND_ISSUED,
        action=command.action,
        job_uid=target.uid,
        command=meta.name,
        command_uid=meta.uid,
        command_order=int(meta.resource_version or 0),  # nobody changes a Command
    )
    return f"{meta.namespace}/{target.name}", request


def job_changed(old: Job | None, new: Job | None) -> bool:
    """Whether the Job itself asks for a look at it: its spec or its phase is new."""
    if old is None or new is None:
        return True
    moved = old.status.state.phase != new.status.state.phase or old.status.version != new.status.version
    return moved or old.metadata.generation != new.metadata.generation


def pod_matters(old: Pod | None, new: Pod | None) -> bool:
    """Whether a change of a pod is one that its Job's next pass could act on; a new annotation is none."""
    if old is None or new is None:
        return True
    return old.status != new.status or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
