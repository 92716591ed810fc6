"""What the work of a phase has come to, as the Job's status tells it. Pure: `reconcile` does the work and writes."""

from collections.abc import Sequence
from typing import NamedTuple

from controller.job.rules import status as statuses
from controller.job.rules.backoff import back_off
from controller.job.rules.counts import count, without
from controller.job.rules.machine import MAX_RETRY, STOPPED_PHASES, Transition, next_phase
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.pod_problems import sentence
from muster.api.volcano.batch import Job, JobStatus, Phase

SYNCED: frozenset[Phase] = frozenset({"", "Pending", "Running"})
"""Phases whose work is to have the pods that the Job wants; the work of all others is to delete pods."""


class Failure(NamedTuple):
    """One thing that a pass could not do: reason and message; a `transient` one is worth another try."""

    reason: str
    message: str
    transient: bool = True


RECOVERABLE = frozenset({"FailedCreate", "FailedDelete", "OverLimit", "PluginError", "PodGroupError", "PVCError"})
"""Reasons that give way to another one when the failure is over."""
_RUNNING = frozenset({"", "MinAvailableReached", "Recovered"})
"""Reasons of a Job that runs as it should; any other is what kubelet said, or why pods were not made."""


class Work(NamedTuple):
    """What was done for a phase: the Job's `pods` after it, and a `status` with what was made for the Job.

    `waiting` is why a Job that is Pending waits (reason, message). `surplus` are pods that are too much; they may still
    be there.
    """

    status: JobStatus
    pods: Sequence[Pod]
    failures: Sequence[Failure]
    waiting: tuple[str, str] | None = None
    surplus: Sequence[Pod] = ()


class Outcome(NamedTuple):
    """The status to write. `unschedulable` says why a gang cannot be placed, where that is all there is to say."""

    status: JobStatus
    unschedulable: str | None


def concluded(job: Job, work: Work, now_s: float) -> Outcome:
    """Counts the pods and finds the phase that follows from them; else explains why the Job stays where it is.

    A phase whose work is to delete pods stays as long as that fails. The others follow from the pods that the Job
    wants: those that are too much may still be there, and decide nothing.
    """
    counts, phase, status = count(work.pods), job.status.state.phase, work.status
    held = bool(work.failures) and phase not in SYNCED
    wanted = count(without(work.pods, work.surplus)) if work.surplus else counts
    transition = None if held else next_phase(job.spec, phase, wanted, job.status.retry_count)
    if transition:
        message = _with_refusals(transition, work)
        status = statuses.moved(status, transition.phase, transition.reason, message, now_s)
        status = statuses.finished_with_duration(job, status)
    elif phase in STOPPED_PHASES:
        pass  # the reason for which it ended stays; events tell the rest
    elif work.failures:
        status = statuses.explained(status, *_summary(work.failures))
    elif work.waiting:
        status = statuses.explained(status, *work.waiting)
    elif phase == "Running" and (hindered := sentence(work.pods)):
        status = statuses.explained(status, *hindered)
    elif status.state.reason in RECOVERABLE or (phase == "Running" and status.state.reason not in _RUNNING):
        status = statuses.explained(status, "Recovered", f"{status.state.reason} is over")
    waits = work.waiting if not transition and not work.failures else None
    unschedulable = waits[1] if waits and waits[0] == statuses.UNSCHEDULABLE else None
    return Outcome(statuses.counted(status, counts, job.spec.min_available), unschedulable)


def _with_refusals(transition: Transition, work: Work) -> str:
    """The message of a transition; of a Job that has failed it tells what kubelet says of pods that have ended."""
    if transition.phase != "Failed":
        return transition.message
    ended, last = sentence(pod for pod in work.pods if pod.finished), back_off(work.status)
    why = ended[1] if ended else last.refusal if last and transition.reason == MAX_RETRY else ""
    return f"{transition.message}; {why}" if why else transition.message


def _summary(failures: Sequence[Failure]) -> tuple[str, str]:
    """Reason and message for what failed: the first, and how many more there are."""
    reason, message, _ = failures[0]
    return reason, f"{message} (and {len(failures) - 1} more)" if len(failures) > 1 else message
