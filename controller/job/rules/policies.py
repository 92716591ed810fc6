"""The path from an event to its effect on a Job: policy, action, table cell, and pods to delete.

The functions of this module run in the order in which they are defined. An example: task `worker` of a Running Job has
the policy `{event: PodFailed, action: RestartTask}`, and one of its pods fails.

| step | function | result in the example |
|---|---|---|
| change of an object → event | `events.pod_changed` | PodFailed, with task, pod, version and exit codes |
| event → policy → action | `match` | the first match, the task's policies before the Job's: RestartTask |
| (phase, action) → cell | `step` | effect "kill target", enter Restarting, use up one of maxRetry |
| action → target | `target_of` | `task/worker`, noted in the status together with the phase |
| effect → pods | `pods_to_delete` | the pods of task `worker`; pods of other tasks keep running |
| pods → next phase | `phases.next_phase` | Pending once enough old pods are gone; Failed if no restart was left |

In phase Pending, the missing pods are created again (`sync.decide`). `controller.job.actions` writes the phase and the
restart target into the Job's status before any pod is deleted. `controller.job.reconcile` does the work of this phase.
If the controller stops before the work is done, the next leader continues from the Job's status.

A restart of the whole Job raises `status.version`: pods of an older version are outdated, and their events are ignored.

Intended differences from Volcano: AbortJob, TerminateJob and CompleteJob are honoured while Restarting;
ResumeJob does not use up a retry; an unknown action is a sync in every phase.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from controller.job.rules import events, notes
from controller.job.rules.budget import no_restart_left
from controller.job.rules.events import JobEvent
from controller.job.rules.phases import SYNCED
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import FINISHED, Job, JobStatus, LifecyclePolicy, Phase
from muster.resources.runtime import parse_duration_s

INTERNAL = frozenset({events.OUT_OF_SYNC, events.COMMAND_ISSUED, events.POD_RUNNING})
"""Internal events, which no policy can match."""
ANY = "*"


class PolicyAction(StrEnum):
    """The actions that policies and Commands can name."""

    SYNC_JOB = "SyncJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    ABORT_JOB = "AbortJob"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


TARGETED = frozenset({PolicyAction.RESTART_TASK, PolicyAction.RESTART_POD, PolicyAction.RESTART_PARTITION})
"""Actions that restart a task, a partition or a pod of a Job."""


class Match(NamedTuple):
    """The action for an event, and the delay before the action, in seconds."""

    action: str
    delay_s: float = 0.0


SYNC = Match(PolicyAction.SYNC_JOB)


def match(job: Job, request: JobEvent) -> Match:
    """Return the action that a request names, or else the action that the Job's policies name for its event.

    An event of an older version of the Job, or of another Job with the same name, only leads to a sync.
    """
    if request.action:
        return Match(request.action)
    if request.event in INTERNAL:
        return SYNC
    if request.job_uid and request.job_uid != job.metadata.uid:
        return SYNC
    if request.job_version is not None and request.job_version < job.status.version:
        return SYNC
    own = next((task.policies for task in job.spec.tasks if request.task and task.name == request.task), [])
    for policy in (*own, *job.spec.policies):
        if _fits(policy, request):
            return Match(policy.action, parse_duration_s(policy.timeout) if policy.timeout else 0.0)
    return SYNC


def _fits(policy: LifecyclePolicy, request: JobEvent) -> bool:
    """Return True if the policy matches this event. PodPending only matches a policy with a timeout."""
    wanted = policy.all_events
    named = request.event in wanted or (ANY in wanted and request.event != "")
    if named and (request.event != events.POD_PENDING or policy.timeout):
        return True
    return bool(policy.exit_code) and policy.exit_code in request.exit_codes


class PodEffect(StrEnum):
    """The effect of an action on pods: the kind of pods to create or delete."""

    SYNC = "sync"  # create missing pods, delete surplus ones
    KILL_ALL = "kill all"  # delete every pod
    KILL_SOFT = "kill"  # delete every pod that has not finished
    KILL_TARGET = "kill target"  # delete the pods of one task, pod or partition


class PolicyCell(NamedTuple):
    """A cell of the table of phases and actions: the effect of an action on a Job in a phase."""

    effect: PodEffect
    enter: Phase | None = None  # None: the phase stays
    retry: bool = False  # uses up one of maxRetry


_STOP: dict[str, PolicyCell] = {
    PolicyAction.ABORT_JOB: PolicyCell(PodEffect.KILL_SOFT, "Aborting"),
    PolicyAction.TERMINATE_JOB: PolicyCell(PodEffect.KILL_SOFT, "Terminating"),
    PolicyAction.COMPLETE_JOB: PolicyCell(PodEffect.KILL_SOFT, "Completing"),
}
_LIVE: dict[str, PolicyCell] = {
    **dict.fromkeys(PolicyAction, PolicyCell(PodEffect.SYNC)),
    **_STOP,
    **dict.fromkeys(TARGETED, PolicyCell(PodEffect.KILL_TARGET, "Restarting", retry=True)),
    PolicyAction.RESTART_JOB: PolicyCell(PodEffect.KILL_ALL, "Restarting", retry=True),
}
_RESTARTING: dict[str, PolicyCell] = {
    **dict.fromkeys(PolicyAction, PolicyCell(PodEffect.SYNC)),
    **_STOP,
    **dict.fromkeys(TARGETED, PolicyCell(PodEffect.KILL_TARGET)),
    PolicyAction.RESTART_JOB: PolicyCell(PodEffect.KILL_ALL),
}
_DRAIN: dict[str, PolicyCell] = dict.fromkeys(PolicyAction, PolicyCell(PodEffect.KILL_SOFT))
_ABORT: dict[str, PolicyCell] = {**_DRAIN, PolicyAction.RESUME_JOB: PolicyCell(PodEffect.KILL_SOFT, "Restarting")}

TABLE: dict[Phase, dict[str, PolicyCell]] = {
    "": _LIVE,
    "Pending": _LIVE,
    "Running": _LIVE,
    "Restarting": _RESTARTING,
    "Completing": _DRAIN,
    "Terminating": _DRAIN,
    "Aborting": _ABORT,
    "Aborted": _ABORT,
    **dict.fromkeys(FINISHED, _DRAIN),
}
"""The table of phases and actions: maps each phase to its cells, by action."""


def step(phase: Phase, action: str) -> PolicyCell:
    """Return the table cell for `action` in `phase`; an unknown action counts as a sync."""
    row = TABLE[phase]
    return row.get(action, row[PolicyAction.SYNC_JOB])


WHOLE = "job"
UNFINISHED = "unfinished"
"""Restart target of a Job that is resumed: all pods except finished pods, which are not run again."""


class RestartTarget(NamedTuple):
    """The part of a Job to restart: the whole Job, or one task, partition or pod."""

    kind: str = WHOLE
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else self.kind

    @property
    def whole(self) -> bool:
        """True if all parts of the Job except finished pods are restarted."""
        return self.kind in {WHOLE, UNFINISHED}

    def covers(self, request: JobEvent) -> bool:
        """Return True if a restart of this target also restarts the pod or task of the event."""
        return self.whole or self in _parts(request.task, request.partition, request.pod_uid, request.pod)


def target_of(action: str, request: JobEvent) -> RestartTarget:
    """Return the part of the Job that an action restarts; `request` is the event that caused the action."""
    if action == PolicyAction.RESTART_TASK:
        return RestartTarget("task", request.task)
    if action == PolicyAction.RESTART_PARTITION:
        return RestartTarget("partition", f"{request.task}/{request.partition}")
    if action == PolicyAction.RESTART_POD:
        return RestartTarget("pod", request.pod_uid or request.pod)
    return RestartTarget(UNFINISHED) if action == PolicyAction.RESUME_JOB else RestartTarget()


def restarting(status: JobStatus, target: RestartTarget) -> JobStatus:
    """Return the status with a restart target recorded.

    If the target is the whole Job, it replaces all recorded targets; otherwise it is added to the recorded targets.
    """
    noted = notes.words(status, notes.RESTART)
    if target.kind == WHOLE or (target.kind == UNFINISHED and WHOLE not in noted):
        noted = [str(target)]
    elif not {WHOLE, UNFINISHED, str(target)} & set(noted):
        noted = [*noted, str(target)]
    return notes.noted(status, notes.RESTART, ",".join(noted))


def restart_targets(status: JobStatus) -> list[RestartTarget]:
    """Return the restart targets that the status records; empty if no restart is in progress."""
    split = (word.partition("/") for word in notes.words(status, notes.RESTART))
    return [RestartTarget(kind, name) for kind, _, name in split]


def pods_to_delete(job: Job, pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods to delete, given the Job's phase and restart targets; pods that are being deleted are omitted.

    A restart of the whole Job keeps finished pods if no restart is left, because they show why the Job fails.
    """
    phase, targets = job.status.state.phase, restart_targets(job.status)
    if phase in SYNCED:
        return []
    if phase != "Restarting":
        return [pod for pod in events.present(pods) if not pod.finished]
    if not is_whole(targets):
        return [pod for pod in events.present(pods) if not set(targets).isdisjoint(_parts_of(pod))]
    spared = no_restart_left(job) or {target.kind for target in targets} == {UNFINISHED}
    outdated = (pod for pod in events.present(pods) if events.version_of(pod) < job.status.version)
    return [pod for pod in outdated if not (spared and pod.finished)]


def is_whole(targets: Sequence[RestartTarget]) -> bool:
    """Return True if the targets include the whole Job; without a recorded target, a restart affects the whole Job."""
    return not targets or any(target.whole for target in targets)


def _parts_of(pod: Pod) -> Iterable[RestartTarget]:
    meta = pod.metadata
    return _parts(events.task_of(pod), meta.labels.get(names.PARTITION_ID, ""), meta.uid, meta.name)


def _parts(task: str, partition: str, *pod: str) -> Iterable[RestartTarget]:
    """Return each restart target that includes a pod: the pod's task, its partition and the pod itself.

    `pod` consists of the pod's UID and name.
    """
    return (
        RestartTarget("task", task),
        RestartTarget("partition", f"{task}/{partition}"),
        *(RestartTarget("pod", name) for name in pod),
    )
