"""Problems of pods, as kubelet reports them: reasons why containers wait, or why a pod was refused.

The functions are pure and read a pod's status, for status messages, Events and the command line.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from signal import Signals

from muster.api.grammar import and_more, many
from muster.api.kubernetes.core import ContainerStateTerminated, Pod
from muster.api.kubernetes.meta import ObjectMeta, format_time, parse_time, readable_time
from muster.api.ranges import NaturalKey, natural

STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for waiting that are not problems, because every container has them while it starts."""
DISRUPTED = "DisruptionTarget"
"""The condition of a pod that is evicted or otherwise disrupted, which is set before the pod's deletion."""
_SIGNALS = {128 + each: each.name for each in Signals}
"""Maps an exit code to the name of the signal that terminated the process."""


@dataclass(frozen=True, slots=True)
class PodProblem:
    """Problem of one pod: the kubelet's reason and message; `container` is empty for a problem of the whole pod."""

    reason: str
    message: str = ""
    container: str = ""

    @property
    def brief(self) -> str:
        """The container and the reason of the problem, such as `container main: ErrImagePull`."""
        return f"container {self.container}: {self.reason}" if self.container else self.reason

    @property
    def words(self) -> str:
        """The problem's container and reason, and the kubelet's message, on one line."""
        message = " ".join(self.message.split())
        return f"{self.brief}: {message}" if message else self.brief


def problem(pod: Pod) -> PodProblem | None:
    """Return the problem of a pod; None if the pod is starting, runs, has ended by itself, or is being deleted.

    A reason in the pod's status takes precedence: with it, the kubelet has rejected the pod (`OutOfcpu`,
    `SysctlForbidden`, …) or terminated it (`Evicted`, …). Without such a reason, return the problem of the first
    waiting container, in start order.
    """
    status = pod.status
    if pod.metadata.deletion_timestamp or status.phase == "Succeeded":
        return None
    if status.reason:
        return PodProblem(status.reason, status.message)
    if pod.finished:
        return None
    for container in (*status.init_container_statuses, *status.container_statuses):
        waiting = container.state.waiting
        if waiting and waiting.reason not in STARTING:
            again = f"restarted {many(container.restart_count, 'time')}" if container.restart_count else ""
            return PodProblem(waiting.reason, "; ".join(filter(None, (again, waiting.message))), container.name)
    return None


def failure(pod: Pod) -> PodProblem | None:
    """Return how a failed pod ended; None for other pods.

    The result is the pod's own reason, otherwise its eviction, otherwise the exit code of its first failed container.
    """
    status = pod.status
    if status.phase != "Failed":
        return None
    if status.reason:
        return PodProblem(status.reason, status.message)
    condition = status.condition(DISRUPTED)
    if condition and being_evicted(pod):
        return PodProblem(condition.reason or DISRUPTED, condition.message)
    return exit_problem(pod)


def exit_problem(pod: Pod) -> PodProblem | None:
    """Return the exit code of a pod's first failed container; None if no container has failed."""
    ends = ((each, each.state.terminated) for each in pod.deciding_statuses)
    failed = next(((each, ended) for each, ended in ends if ended and ended.exit_code), None)
    return PodProblem(_exit(failed[1]), container=failed[0].name) if failed else None


def _exit(ended: ContainerStateTerminated) -> str:
    """Return the exit code with its reason, such as `exit code 137 (OOMKilled)` or `exit code 139 (SIGSEGV)`."""
    reason = ended.reason if ended.reason not in {"", "Error"} else _SIGNALS.get(ended.exit_code, "")
    return f"exit code {ended.exit_code}{f' ({reason})' if reason else ''}"


def first_failure(pods: Iterable[Pod]) -> tuple[Pod, str, str] | None:
    """Return the pod that failed first, its failure in a few words, and its failure as a sentence with the node's name.

    Later failures are often consequences of the first one. Returns None if no pod has failed.
    """
    failed = sorted((pod for pod in pods if pod.status.phase == "Failed"), key=failure_order)
    if not failed:
        return None
    first, what = failed[0], failure(failed[0])
    brief, words = (what.brief, f": {what.words}") if what else ("failed", "")
    return first, f"pod {first.metadata.name}: {brief}", and_more(f"{_title(first)} failed{words}", len(failed))


def failure_order(pod: Pod) -> tuple[str, NaturalKey]:
    """Return a sort key: the time when the pod's first container failed, then the pod's name, which contains its rank.

    Pods that never ran sort last.
    """
    return failed_at(pod), natural(pod.metadata.name)


def failed_at(pod: Pod) -> str:
    """Return the time when a pod's first container failed, in seconds; `~` if no container has failed."""
    ends = (each.state.terminated for each in pod.deciding_statuses)
    return min((each.finished_at or "" for each in ends if each and each.exit_code), default="~")


def deletion_began(meta: ObjectMeta) -> str | None:
    """Return the time when a pod's deletion was requested; its deletionTimestamp is later by the grace period."""
    over_s = parse_time(meta.deletion_timestamp)
    return None if over_s is None else format_time(over_s - (meta.deletion_grace_period_seconds or 0))


def being_evicted(pod: Pod) -> bool:
    """Return True if the pod was disrupted, as its condition DisruptionTarget shows, before it ended by itself.

    Times have a resolution of a second. A pod that ended by itself in the second of its disruption counts as disrupted.
    """
    condition = next((one for one in pod.status.conditions if one.type == DISRUPTED and one.status == "True"), None)
    ended = [each.state.terminated.finished_at for each in pod.status.container_statuses if each.state.terminated]
    ends, since = map(readable_time, ended), readable_time(condition.last_transition_time) if condition else None
    return condition is not None and (since is None or max((end or since for end in ends), default=since) >= since)


def refused(pod: Pod) -> bool:
    """Return True if the kubelet rejected the pod before any container started.

    If a replacement of the pod is created on the same node at once, the kubelet will probably reject it too.
    """
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ran = any(status.state.terminated or status.restart_count for status in statuses)
    return pod.status.phase == "Failed" and bool(pod.status.reason) and not ran


def problems(pods: Iterable[Pod]) -> list[tuple[Pod, PodProblem]]:
    """Return the pods that have a problem, each with this problem, in the order in which the pods failed."""
    found = [(pod, problem(pod)) for pod in sorted(pods, key=failure_order)]
    return [(pod, what) for pod, what in found if what]


def sentence(pods: Iterable[Pod]) -> tuple[str, str] | None:
    """Return the first problem's reason, and a sentence that also counts the other problems; None without problems."""
    found = problems(pods)
    if not found:
        return None
    pod, what = found[0]
    return what.reason, and_more(f"{_title(pod)}: {what.words}", len(found))


def _title(pod: Pod) -> str:
    return f"pod {pod.metadata.name}{f' on {pod.spec.node_name}' if pod.spec.node_name else ''}"
