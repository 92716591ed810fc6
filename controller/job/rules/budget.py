"""Causes of restarts, and restart budgets, which limit the restarts of a gang within a sliding time window. Pure.

A fault is attributed to the infrastructure, to the user program, or to an unknown cause (docs/preemption.md):

* infrastructure: caused by the kubelet, kube-scheduler, or the loss of a node; a restart uses up no budget;
* user program: an exit code that the program chooses;
* unknown: a signal, because a broken GPU and an invalid pointer in the program cause the same signal.

Counted restarts are recorded in the Job's status with their times, so that another process can continue counting. A
restart beyond the budget ends the Job: it enters Restarting like every restart, and then fails.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import structs

from controller.job.rules import notes
from controller.job.rules.events import POD_EVICTED, POD_FAILED, POD_PENDING, UNKNOWN, JobEvent
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import readable_time
from muster.api.kubernetes.pod_problems import DISRUPTED
from muster.api.limits import CHECKPOINT_CHARS, whole_number
from muster.api.volcano.batch import Job, JobStatus
from muster.resources.runtime import RestartBudget, restart_budget
from muster.volcano.tasks import max_retry

Fault = Literal["infrastructure", "user", "unknown"]
INFRASTRUCTURE_EVENTS = frozenset({POD_EVICTED, POD_PENDING, UNKNOWN})
"""Events that the infrastructure causes: a pod was evicted, lost its node or did not start in time, or the gang lost
members."""
INFRASTRUCTURE_REASONS = frozenset({"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"})
"""Reasons in the status of a pod that the kubelet or the node controller has terminated or rejected."""
USER_REASONS = frozenset({"ContainerCannotRun", "DeadlineExceeded", "Error", "OOMKilled", "StartError"})
"""Reasons in the status of a pod or container that show a fault of the user program. For `Error`, the exit code is
decisive."""
LAST_OF_USERS = 127
"""Highest exit code that a program or its shell chooses; higher codes are signals (128 plus the signal)."""
FOLLOWS_S = 600.0
"""Time after a pod's disruption during which other failures are attributed to it.

Collective operations of frameworks time out after about this time."""
_MESSAGE_CHARS = 64


class Restarts(msgspec.Struct, omit_defaults=True):
    """The record of counted restarts that the Job's status contains."""

    past: list[tuple[float, str]] = []
    """Counted restarts, each with its time (seconds since the epoch) and cause; at most as many as the budget
    allows."""
    spent: str = ""
    """Reason why the Job fails; empty while the Job continues."""


def budget_of(job: Job) -> RestartBudget | None:
    """Return the restart budget of a Job; None if the Job has no valid budget."""
    return restart_budget(job.metadata.annotations)


def charged(job: Job, status: JobStatus, request: JobEvent, fault: Fault, now_s: float) -> JobStatus:
    """Return the status of a Job that is about to restart; it counts the restart, or records that the budget is spent.

    A restart caused by the infrastructure uses up neither the budget nor maxRetry. A restart by a user's Command does
    not use up the budget, and lets a Job with a spent budget continue.
    """
    budget = budget_of(job)
    if budget is None:
        return structs.replace(status, retry_count=status.retry_count + 1)
    known = restarts_of(status)
    if request.command:
        return _noted(structs.replace(status, retry_count=status.retry_count + 1), Restarts(known.past))
    if fault == "infrastructure":
        return status
    past = [(at, why) for at, why in known.past if at > now_s - budget.within_s]
    why = _cause(request)
    if len(past) >= budget.restarts:
        return _noted(status, Restarts(past, _message(budget, [*past, (now_s, why)])))
    counted = Restarts([*past, (round(now_s, 3), why)])
    return _noted(structs.replace(status, retry_count=status.retry_count + 1), counted)


def restarts_of(status: JobStatus) -> Restarts:
    """Return the restarts that the status records; no restarts if the record is unreadable (because it was edited)."""
    try:
        return msgspec.json.decode(notes.note(status, notes.RESTARTS) or "{}", type=Restarts)
    except msgspec.DecodeError:
        return Restarts()


def spent(status: JobStatus) -> str:
    """Return the message about a spent restart budget of a Job; "" if the budget is not spent, or the Job has none."""
    return restarts_of(status).spent if notes.note(status, notes.RESTARTS) else ""


def no_restart_left(job: Job) -> bool:
    """Return True if the Job must fail after the current restart, because no further restart is allowed."""
    return job.status.retry_count >= max_retry(job.spec) or bool(spent(job.status))


def _noted(status: JobStatus, restarts: Restarts) -> JobStatus:
    known = restarts.past or restarts.spent
    return notes.noted(status, notes.RESTARTS, msgspec.json.encode(restarts).decode() if known else "")


def _cause(request: JobEvent) -> str:
    codes = ", ".join(map(str, request.exit_codes))
    words = f"exit code {codes}" if codes else request.event
    return (f"{words} ({request.reason})" if request.reason else words)[:_MESSAGE_CHARS]


def _message(budget: RestartBudget, past: list[tuple[float, str]]) -> str:
    causes = Counter(why for _, why in past)
    counted = ", ".join(f"{why} ({times} times)" if times > 1 else why for why, times in causes.items())
    return f"the restart budget ({budget}) is spent, and the Job failed once more: {counted}"


def fault_of(
    request: JobEvent, pods: Sequence[Pod], now_s: float, infrastructure_codes: frozenset[int] = frozenset()
) -> Fault:
    """Return the kind of fault that caused an event; `pods` are all current pods of the Job.

    If one pod was disrupted recently, other pods usually fail because they lose their connections to this pod. A
    disruption long ago does not explain a failure.
    """
    if request.refused or request.event in INFRASTRUCTURE_EVENTS:
        return "infrastructure"
    if any(pod.metadata.uid == request.pod_uid and disrupted(pod) for pod in pods) or _lately(pods, now_s):
        return "infrastructure"
    if request.event != POD_FAILED or not request.exit_codes:
        return "unknown"
    if infrastructure_codes.intersection(request.exit_codes):
        return "infrastructure"
    if request.reason in USER_REASONS - {"Error"} or any(code <= LAST_OF_USERS for code in request.exit_codes):
        return "user"
    return "unknown"


def disrupted(pod: Pod) -> bool:
    """Return True if the pod is disrupted: something other than its own program has ended it or is about to end it."""
    found = any(each.type == DISRUPTED and each.status == "True" for each in pod.status.conditions)
    return found or (pod.status.phase == "Failed" and pod.status.reason in INFRASTRUCTURE_REASONS)


def _lately(pods: Iterable[Pod], now_s: float) -> bool:
    """Return True if one of the pods was disrupted less than `FOLLOWS_S` before this time."""
    conditions = (
        each for pod in pods for each in pod.status.conditions if each.type == DISRUPTED and each.status == "True"
    )
    since = (readable_time(each.last_transition_time) for each in conditions)
    return any(at is not None and at > now_s - FOLLOWS_S for at in since)


def infrastructure_codes(annotations: dict[str, str]) -> frozenset[int]:
    """Return the exit codes, such as "75,85", that a Job attributes to the infrastructure."""
    text = annotations.get(names.INFRASTRUCTURE_EXIT_CODES, "")[: CHECKPOINT_CHARS.value]
    codes = (whole_number(each.strip(), 255) for each in text.split(","))
    return frozenset(code for code in codes if code)
