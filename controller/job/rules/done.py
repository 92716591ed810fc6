"""The members of a Job that have succeeded and whose pods are gone; they count as if their pods still existed.

While the pod of a slot exists, its phase determines the state of the slot. The status update that begins a restart
removes the records of all slots that lose their pods in the restart. The success of a member is recorded a few seconds
later; if the pod is deleted before that, the member is created again.
"""

from collections.abc import Iterable

from controller.job.rules import notes
from controller.job.rules.events import present, task_of
from muster.api import names
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import Pod, PodStatus
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.pod_problems import being_evicted
from muster.api.limits import whole_number
from muster.api.muster.gang import Slot
from muster.api.volcano.batch import FINISHED, Job, JobStatus
from muster.volcano.done import SUCCEEDED, done_slots, note_of
from muster.volcano.tasks import partition_of, pod_name


class GonePod(Pod):
    """Placeholder for the deleted pod of a member that has succeeded."""


def existing(pods: Iterable[Pod]) -> list[Pod]:
    """Return the existing pods, without the placeholders for deleted pods."""
    return [pod for pod in pods if not isinstance(pod, GonePod)]


def with_done(job: Job, pods: Iterable[Pod]) -> list[Pod]:
    """Return the existing pods, and a placeholder for each succeeded member in the Job's status whose pod is gone."""
    found = existing(pods)
    there = {pod.metadata.name for pod in found}
    return found + [_gone(job, slot) for name, slot in _done(job).items() if name not in there]


def remembered(job: Job, status: JobStatus, pods: Iterable[Pod]) -> JobStatus:
    """Return the status with a record of the succeeded members; once the Job ends, only of members whose pods are gone.

    While a restart deletes pods, the record does not change. The record of a suspended TrainJob's Job is removed,
    because a TrainJob is resumed with all of its pods.
    """
    phase, owner = job.status.state.phase, job.metadata.controller
    if phase in FINISHED | {"Restarting"}:
        return status
    if phase in {"Aborting", "Aborted"} and owner and owner.kind == TRAIN_JOBS.kind:
        return notes.noted(status, SUCCEEDED, "")
    there = {pod.metadata.name: pod for pod in present(existing(pods))}
    done = [slot for name, slot in _done(job).items() if name not in there]
    if status.state.phase not in FINISHED:
        done += [slot for pod in there.values() if (slot := _succeeded(job, pod))]
    return notes.noted(status, SUCCEEDED, note_of(done, status.version))


def forgotten(job: Job, status: JobStatus, deleted: Iterable[Pod]) -> JobStatus:
    """Return the Job's status without the success of these deleted pods, so that the pods are created again."""
    again = {pod.metadata.name for pod in deleted}
    done = [slot for name, slot in _done(job).items() if name not in again]
    return notes.noted(status, SUCCEEDED, note_of(done, status.version))


def _done(job: Job) -> dict[str, Slot]:
    return {pod_name(job.metadata.name, *slot): slot for slot in sorted(done_slots(job))}


def _succeeded(job: Job, pod: Pod) -> Slot | None:
    """Return the slot of a pod that has succeeded.

    Return None for any other pod, and for a pod that a restart deletes.
    """
    meta = pod.metadata
    if pod.status.phase != "Succeeded" or names.OUT_OF_SYNC in meta.annotations or being_evicted(pod):
        return None
    slot = Slot(task_of(pod), whole_number(meta.annotations.get(names.TASK_INDEX)) or 0)
    return slot if pod_name(job.metadata.name, *slot) == meta.name else None


def _gone(job: Job, slot: Slot) -> GonePod:
    name, task = pod_name(job.metadata.name, *slot), next(each for each in job.spec.tasks if each.name == slot.pod_set)
    labels = {names.PARTITION_ID: partition_of(task, slot.rank)}
    annotations = {names.TASK_SPEC: task.name, names.JOB_VERSION: str(job.status.version)}
    meta = ObjectMeta(name=name, namespace=job.metadata.namespace, uid=name, labels=labels, annotations=annotations)
    return GonePod(metadata=meta, status=PodStatus(phase="Succeeded"))
