"""What keeps a pod from running, as kubelet says: why its containers wait, or why the pod was refused.

Pure functions over a pod's status, for everybody who tells users how their pods are.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta, format_time, parse_time, readable_time

STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for which every container waits for a while: nothing is wrong."""
DISRUPTED = "DisruptionTarget"
"""The condition of a pod that has to go, by eviction or otherwise; the API server sets it before it deletes the pod."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one pod: kubelet's reason and message; `container` is empty if it is about the whole pod."""

    reason: str
    message: str = ""
    container: str = ""

    @property
    def brief(self) -> str:
        """What and why in few words: `container main: ErrImagePull`."""
        return f"container {self.container}: {self.reason}" if self.container else self.reason

    @property
    def words(self) -> str:
        """The same with kubelet's message, on one line."""
        message = " ".join(self.message.split())
        return f"{self.brief}: {message}" if message else self.brief


def problem(pod: Pod) -> Problem | None:
    """What kubelet says against this pod; None if it runs, starts, ended by itself, or is being deleted.

    The pod's own reason comes first: kubelet refused it (`OutOfcpu`, `SysctlForbidden`, …) or ended it (`Evicted`, …).
    Else it is the first container that waits, in the order in which they start.
    """
    status = pod.status
    if pod.metadata.deletion_timestamp or status.phase == "Succeeded":
        return None
    if status.reason:
        return Problem(status.reason, status.message)
    if pod.finished:
        return None
    for container in (*status.init_container_statuses, *status.container_statuses):
        waiting = container.state.waiting
        if waiting and waiting.reason not in STARTING:
            return Problem(waiting.reason, waiting.message, container.name)
    return None


def deletion_began(meta: ObjectMeta) -> str | None:
    """When the deletion of a pod was asked for; its deletionTimestamp is when its time to end by itself is over."""
    over_s = parse_time(meta.deletion_timestamp)
    return None if over_s is None else format_time(over_s - (meta.deletion_grace_period_seconds or 0))


def told_to_go(pod: Pod) -> bool:
    """Whether the pod had to go (its DisruptionTarget says so) before it had ended by itself.

    Times have whole seconds; of one that ended in the same second it is taken as true.
    """
    told = next((one for one in pod.status.conditions if one.type == DISRUPTED and one.status == "True"), None)
    ended = [each.state.terminated.finished_at for each in pod.status.container_statuses if each.state.terminated]
    ends, since = [readable_time(at) for at in ended], readable_time(told.last_transition_time) if told else None
    return told is not None and (since is None or max((end or since for end in ends), default=since) >= since)


def refused(pod: Pod) -> bool:
    """Whether kubelet refused the pod before any container ran: another pod would hardly fare better at once."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    ran = any(status.state.terminated or status.restart_count for status in statuses)
    return pod.status.phase == "Failed" and bool(pod.status.reason) and not ran


def problems(pods: Iterable[Pod]) -> list[tuple[Pod, Problem]]:
    """The pods that something is wrong with, in order of their names, and what."""
    found = [(pod, problem(pod)) for pod in sorted(pods, key=lambda pod: pod.metadata.name)]
    return [(pod, what) for pod, what in found if what]


def sentence(pods: Iterable[Pod]) -> tuple[str, str] | None:
    """Reason and sentence about the first pod in trouble, and how many there are more; None if there is none."""
    found = problems(pods)
    if not found:
        return None
    pod, what = found[0]
    where = f" on {pod.spec.node_name}" if pod.spec.node_name else ""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return what.reason, f"pod {pod.metadata.name}{where}: {what.words}{more}"
