"""Counting the pods of a Job."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.api import names
from muster.api.kubernetes.core import Pod

PHASES = ("Pending", "Running", "Succeeded", "Failed")


@dataclass(slots=True)
class Counts:
    """Pods by phase; a pod that is being deleted counts as `terminating` only."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)


def without(pods: Iterable[Pod], others: Iterable[Pod]) -> list[Pod]:
    """These pods but for the others."""
    uids = {pod.metadata.uid for pod in others}
    return [pod for pod in pods if pod.metadata.uid not in uids]


def count(pods: Iterable[Pod]) -> Counts:
    """Counts these pods, in total and per task."""
    result = Counts()
    for pod in pods:
        if pod.metadata.deletion_timestamp:
            result.terminating += 1
            continue
        phase = pod.status.phase or "Pending"
        name = phase.lower() if phase in PHASES else "unknown"
        setattr(result, name, getattr(result, name) + 1)
        task = result.tasks.setdefault(task_of(pod), {})
        task[phase] = task.get(phase, 0) + 1
    return result


def task_of(pod: Pod) -> str:
    """The task that the pod was made from."""
    return pod.metadata.annotations.get(names.TASK_SPEC, "")
