"""Which pods a kill deletes. Pure: the effects module deletes them.

The target of a restart is kept in the Job's status until the restart is done, so that it is known after a crash.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from controller.job.rules.counts import task_of
from controller.job.rules.events import version_of
from controller.job.rules.machine import Action, Effect
from controller.job.rules.request import Request
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job
from muster.volcano.defaults import max_retry

WHOLE = "job"
UNFINISHED = "unfinished"  # the whole job, but pods that have finished stay: a resumed job goes on where it was


class Target(NamedTuple):
    """What a restart is about: the whole job, or one task, partition or pod of it."""

    kind: str = WHOLE
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else self.kind

    @classmethod
    def parse(cls, text: str) -> "Target":
        """The target that a Job's status names; the inverse of `str`."""
        kind, _, name = text.partition("/")
        return cls(kind, name)


def target_of(action: str, request: Request) -> Target:
    """The target of an action that an event has led to."""
    if action == Action.RESTART_TASK:
        return Target("task", request.task)
    if action == Action.RESTART_PARTITION:
        return Target("partition", f"{request.task}/{request.partition}")
    if action == Action.RESTART_POD:
        return Target("pod", request.pod_uid or request.pod)
    return Target(UNFINISHED) if action == Action.RESUME_JOB else Target()


def targeted(pods: Iterable[Pod], targets: Sequence[Target]) -> list[Pod]:
    """The targets' pods that are not being deleted yet; a partition or task that does not exist has none."""
    wanted = set(targets)
    return [pod for pod in _present(pods) if not wanted.isdisjoint(_parts_of(pod))]


def _parts_of(pod: Pod) -> Iterable[Target]:
    meta = pod.metadata
    return _parts(task_of(pod), meta.labels.get(names.PARTITION_ID, ""), meta.uid, meta.name)


def _parts(task: str, partition: str, *pod: str) -> Iterable[Target]:
    """Every part of a Job that a pod, known by UID and name, belongs to."""
    return Target("task", task), Target("partition", f"{task}/{partition}"), *(Target("pod", name) for name in pod)


def covers(target: Target, request: Request) -> bool:
    """Whether a restart of the target deals with what this request tells."""
    whole = target.kind in {WHOLE, UNFINISHED}
    return whole or target in _parts(request.task, request.partition, request.pod_uid, request.pod)


def pods_to_delete(job: Job, pods: Sequence[Pod], effect: Effect, targets: Sequence[Target] = ()) -> list[Pod]:
    """The pods that `effect` deletes, given the Job as it is after it entered its phase, and what is restarted."""
    if effect is Effect.SYNC:
        return []
    if effect is Effect.KILL_TARGET:
        return targeted(pods, targets)
    if effect is Effect.KILL_ALL:
        return outdated(job, pods, keep_finished=last_retry(job))
    return [pod for pod in _present(pods) if not pod.finished]


def outdated(job: Job, pods: Iterable[Pod], *, keep_finished: bool) -> list[Pod]:
    """Pods of an older version of the Job that are not being deleted yet."""
    return [
        pod for pod in _present(pods) if version_of(pod) < job.status.version and not (keep_finished and pod.finished)
    ]


def last_retry(job: Job) -> bool:
    """Whether no restart is left: then finished pods stay, as they say why."""
    return job.status.retry_count >= max_retry(job.spec)


def half_deleted(pods: Iterable[Pod]) -> list[Pod]:
    """Pods that the API server was about to remove when the caller died.

    It does so in two steps, and gives up after the first one when the connection breaks: then the pod has no grace left
    and stays, until somebody deletes it again. A kubelet may be the one; where there is none, it is on us.
    """
    return [pod for pod in pods if pod.metadata.deletion_grace_period_seconds == 0 and not pod.metadata.finalizers]


def _present(pods: Iterable[Pod]) -> list[Pod]:
    return [pod for pod in pods if not pod.metadata.deletion_timestamp]
