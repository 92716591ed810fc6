"""Creation of members above the minimum of a Job; they are created in steps if the Job's queue has a capability.

A ResourceQuota also counts pods that wait for a node. Therefore, the number of waiting pods above the minimum is
limited: one at first, then as many as already have nodes. A running gang that waits for anything other than its queue
gets all its pods, because autoscalers only see existing pods.
"""

from collections.abc import Container, Sequence

from controller.job.rules.events import present
from muster.api.kubernetes.core import Pod
from muster.api.muster.gang import Slot
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import OVER_CAPABILITY, PodGroup
from muster.volcano.tasks import PodSlot, job_minimum, minimum, slots, total_minimum


def next_members(
    job: Job, pods: Sequence[Pod], missing: Sequence[PodSlot], group: PodGroup, placed: Container[Slot]
) -> list[PodSlot]:
    """Return the missing slots whose pods are created now; `placed` are the slots with a planned node."""
    waits = group.status.true_condition("Unschedulable")
    if group.status.phase == "Running" and waits and waits.reason != OVER_CAPABILITY:
        return list(missing)
    needed = _needed(job)
    further = [pod for pod in present(pods) if pod.metadata.name not in needed]
    waiting = sum(not pod.spec.node_name and not pod.finished for pod in further)
    left = max(1, len(further) - waiting) - waiting
    result = []
    for slot in missing:
        if slot.name not in needed and Slot(slot.task.name, slot.index) not in placed:
            left -= 1
            if left < 0:
                continue
        result.append(slot)
    return result


def _needed(job: Job) -> frozenset[str]:
    """Return the names of the pods that may count towards the Job's minimum.

    All pods may count if the minimums of several tasks together exceed the Job's minimum, or if partitions of the Job
    start as a whole.
    """
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
