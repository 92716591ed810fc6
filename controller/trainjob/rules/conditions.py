"""The conditions of a TrainJob.

There is none while it is on its way: Kubeflow's SDK calls a TrainJob with a condition "Created", never "Running". So
`Suspended=False` (Resumed), by which other clients know that it goes on, stays until the pods run, and then it goes.
`Blocked` is there only while nothing can be made for it, and says why.
"""

from typing import Literal

from controller.trainjob.rules.outcome import Outcome
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.meta import Condition

SUSPENDED = "Suspended"
BLOCKED = "Blocked"
CREATION_FAILED = "TrainJobResourcesCreationFailed"
_MAX_MESSAGE_CHARS = 1024


def conditions(
    train_job: TrainJob, *, now: str, trains: bool = False, obstacle: str = "", end: Outcome | None = None
) -> list[Condition]:
    """What holds now. `trains`: the pods run; `obstacle`: why nothing can be made; `end`: how it has ended."""
    held = {each.type: each for each in train_job.status.conditions}
    suspended = held.pop(SUSPENDED, None)
    blocked = held.pop(BLOCKED, None)
    result = [*held.values()]
    if train_job.spec.suspend:
        result.append(_set(suspended, SUSPENDED, "True", "Suspended", "TrainJob is suspended", now))
    elif suspended and not (trains and suspended.status == "False"):
        result.append(_set(suspended, SUSPENDED, "False", "Resumed", "TrainJob is resumed", now))
    if end:
        result.append(_set(None, end.type, "True", end.reason, end.message, now))
    elif obstacle:
        result.append(_set(blocked, BLOCKED, "True", CREATION_FAILED, obstacle, now))
    return result


def _set(
    before: Condition | None, kind: str, status: Literal["True", "False"], reason: str, message: str, now: str
) -> Condition:
    """The condition; its time is that of the last change of its status."""
    since = before.last_transition_time if before and before.status == status else now
    short = message[:_MAX_MESSAGE_CHARS]
    return Condition(type=kind, status=status, last_transition_time=since, reason=reason, message=short)
