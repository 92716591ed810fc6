"""Whose fault a restart is: of the infrastructure, of the user's program, or unknown. Pure.

The lists are those of docs/preemption.md: what kubelet, kube-scheduler or a node's end did to a pod is the
infrastructure's; an exit code that a program chooses is the user's; a signal may be either, as a broken GPU and a
broken pointer end alike.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from controller.job.rules.events import POD_EVICTED, POD_FAILED, POD_PENDING, UNKNOWN, Request
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import readable_time
from muster.api.kubernetes.pod_problems import DISRUPTED
from muster.api.limits import CHECKPOINT_CHARS, whole_number

Fault = Literal["infrastructure", "user", "unknown"]
INFRASTRUCTURE_EVENTS = frozenset({POD_EVICTED, POD_PENDING, UNKNOWN})
"""A pod was evicted or lost its node, did not start in time, or the gang lost members."""
INFRASTRUCTURE_REASONS = frozenset({"Evicted", "NodeLost", "NodeShutdown", "Preempting", "Shutdown", "Terminated"})
"""Reasons of a pod that kubelet or the node controller ended; refusals of kubelet count too."""
USER_REASONS = frozenset({"ContainerCannotRun", "DeadlineExceeded", "Error", "OOMKilled", "StartError"})
"""Reasons of a pod or of its container; `Error` is that of every exit code but 0, which then decides."""
LAST_OF_USERS = 127
"""Exit codes from 1 on that a program or its shell chooses; those above are signals (128 and the signal)."""
FOLLOWS_S = 600.0
"""Time after the disruption of one pod in which others fail because of it: a collective operation times out so late."""


def fault_of(
    request: Request, pods: Sequence[Pod], now_s: float, infrastructure_codes: frozenset[int] = frozenset()
) -> Fault:
    """Return the fault behind an event; `pods` are all of the Job as they are now.

    If one of them was disrupted a short time ago, the others mostly fail because of it: they lose their connections. A
    pod that was disrupted long ago, and is left as it ended, excuses nobody.
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
    """Return True if something other than its program ended a pod, or is about to."""
    told = any(each.type == DISRUPTED and each.status == "True" for each in pod.status.conditions)
    return told or (pod.status.phase == "Failed" and pod.status.reason in INFRASTRUCTURE_REASONS)


def _lately(pods: Iterable[Pod], now_s: float) -> bool:
    """Return True if one of the pods was disrupted a short time ago."""
    told = (each for pod in pods for each in pod.status.conditions if each.type == DISRUPTED and each.status == "True")
    since = (readable_time(each.last_transition_time) for each in told)
    return any(at is not None and at > now_s - FOLLOWS_S for at in since)


def infrastructure_codes(annotations: dict[str, str]) -> frozenset[int]:
    """Return the exit codes that a Job calls infrastructure: `muster.dev/infrastructure-exit-codes: "75,85"`."""
    text = annotations.get(names.INFRASTRUCTURE_EXIT_CODES, "")[: CHECKPOINT_CHARS.value]
    codes = (whole_number(each.strip(), 255) for each in text.split(","))
    return frozenset(code for code in codes if code)
