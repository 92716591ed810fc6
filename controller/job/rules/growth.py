"""Members above the minimum of a Job whose queue has a capability; they are created in steps.

A ResourceQuota counts pods that wait, too, so no more are created than the queue may soon hold: one at first, then as
many as have got nodes already. A running gang that waits for something else than its queue gets all its pods, because
autoscalers see only pods that exist.
"""

from collections.abc import Callable, Sequence

from controller.job.rules.events import present
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import OVER_CAPABILITY, PodGroup
from muster.volcano.tasks import PodSlot, job_minimum, minimum, slots, total_minimum


def next_members(
    job: Job, pods: Sequence[Pod], missing: Sequence[PodSlot], group: PodGroup, placed: Callable[[PodSlot], bool]
) -> list[PodSlot]:
    """Return those of the missing slots whose pods are created now; `placed` is true for slots with a node."""
    waits = group.status.true_condition("Unschedulable")
    if group.status.phase == "Running" and waits and waits.reason != OVER_CAPABILITY:
        return list(missing)
    needed = _needed(job)
    further = [pod for pod in present(pods) if pod.metadata.name not in needed]
    waiting = sum(not pod.spec.node_name and not pod.finished for pod in further)
    left = max(1, len(further) - waiting) - waiting
    result = []
    for slot in missing:
        if slot.name not in needed and not placed(slot):
            left -= 1
            if left < 0:
                continue
        result.append(slot)
    return result


def _needed(job: Job) -> frozenset[str]:
    """Return the names of the pods of the minimum; of all pods if any of them may be in it, or start with others."""
    every, least = slots(job), job_minimum(job.spec)
    if any(task.partition_policy for task in job.spec.tasks):
        return frozenset(slot.name for slot in every)
    if least >= total_minimum(job.spec):
        first = [slot for slot in every if slot.index < minimum(slot.task)]
        others = [slot for slot in every if slot.index >= minimum(slot.task)]
        every = [*first, *others[: least - len(first)]]
    elif len(job.spec.tasks) == 1:
        every = every[:least]
    return frozenset(slot.name for slot in every)
