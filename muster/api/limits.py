"""No number rules us: the limit of every amount that a user can write, in one table.

Where admission sees the amount it refuses what is over the limit; where admission was bypassed, what is over it is
ignored or set aside alone, and `beyond` says how. `make generate` makes docs/limits.md of the table.
"""

from typing import Final, NamedTuple

from muster.api import names
from muster.api.fields import FieldError


class Limit(NamedTuple):
    """The most of one amount."""

    name: str
    value: int
    unit: str
    bounds: str
    """What is counted, and in which fields it is written."""
    checked: str
    """Where it is checked."""
    beyond: str
    """What becomes of an object that is over the limit and was not refused."""
    why: str
    """Why this number."""

    def exceeded(self, path: str, value: int) -> list[FieldError]:
        """The error of a field that holds more than the limit; nothing if it does not."""
        if value <= self.value:
            return []
        return [FieldError(path, f"must be at most {self.value} ({self.unit}; limit {self.name!r})", value)]

    def exceeded_by(self, path: str, count: int) -> list[FieldError]:
        """The error of a list or map that has more entries than the limit; nothing if it has not."""
        if count <= self.value:
            return []
        return [FieldError(path, f"must have at most {self.value} {self.unit} (limit {self.name!r})", count)]


_ALONE = "the gang is set aside alone; its PodGroup says why"

PODS: Final = Limit(
    "pods per gang",
    20_000,
    "pods",
    "a Job's `replicas` over all tasks, a PodGroup's `minMember` and `minTaskMember`, a TrainJob's `numNodes`, "
    "completions, replicas and group sizes of workloads with a framework (JobSets: Jobs times parallelism), "
    f"the annotations `{names.SIZE}` and `{names.MIN_MEMBER}`, and the seats of a Placement",
    "webhook, controller, planner",
    f"the controller makes no pods and says so in an Event; {_ALONE}; annotations are ignored",
    "a Placement of so many members stays far under the 1.5 MB that etcd takes, and no cluster that Kubernetes "
    "supports runs more than a few such gangs",
)
RANK: Final = Limit(
    "rank",
    PODS.value - 1,
    "highest rank",
    f"the annotations `{names.MEMBER_INDEX}`, `{names.RANK}` and `{names.TASK_INDEX}`, completion and pod indexes",
    "webhook, planner",
    "the index is ignored: the planner gives the pod the first free rank",
    "ranks count from 0 and there are no more of them than pods",
)
EPOCH: Final = Limit(
    "epoch",
    2**31 - 1,
    "placements",
    f"a Placement's `epoch` and the annotation `{names.EPOCH}`",
    "the CRD's schema, planner",
    "the annotation is ignored, as if the pod had never been pinned",
    "the field has 32 bits, as Kubernetes' counters have: one placement each second for 68 years",
)
DIGITS: Final = Limit(
    "digits",
    18,
    "digits",
    "every whole number in a label or annotation",
    "webhook, controller, planner",
    "the number is ignored, as one that is not written",
    "the longest that always fits into 64 bits; Python takes time in the square of the digits",
)
TASKS: Final = Limit(
    "tasks per Job",
    128,
    "tasks",
    "a Job's `tasks`",
    "webhook, controller, planner",
    f"the controller makes no pods and says so in an Event; {_ALONE}",
    "each task is tried by itself in every cycle; tasks are kinds of pods, not pods",
)
RESOURCES: Final = Limit(
    "resource names per pod",
    64,
    "resource names",
    "names in requests and limits of one pod, over all its containers",
    "webhook, planner",
    _ALONE,
    "nodes offer about ten; each name costs a look at every node",
)
POLICIES: Final = Limit(
    "policies",
    128,
    "policies",
    "`policies` of a Job, and of each of its tasks",
    "webhook",
    "they are followed; each event walks through them",
    "there are fewer events, and nobody tells more exit codes apart",
)
VOLUMES: Final = Limit(
    "volumes per Job",
    128,
    "volumes",
    "a Job's `volumes`",
    "webhook",
    "the API server refuses pods that are too large",
    "every pod of the Job mounts all of them",
)
PROCESSES: Final = Limit(
    "processes per node",
    4_096,
    "processes",
    f"a TrainJob's `numProcPerNode`, the annotation `{names.NPROC_PER_NODE}` and an MPI launcher's slots per worker",
    "webhook",
    "it is handed on as it is written; Muster makes nothing of its size",
    "more than any machine has hardware threads",
)
RETRIES: Final = Limit(
    "retries",
    1_000_000,
    "restarts",
    "`maxRetry` of a Job and of its tasks",
    "webhook",
    "it is only compared with a count of what has happened",
    "one restart a minute for two years",
)
SECONDS: Final = Limit(
    "seconds",
    315_360_000,
    "seconds",
    "`ttlSecondsAfterFinished` of a Job, `timeout` of its policies, a pod's `activeDeadlineSeconds` and the annotation "
    f"`{names.EXPECTED_RUNTIME}`",
    "webhook, planner",
    "a timer that never fires within the life of the process; the pod is expected to run for ever",
    "ten years; sums with a date stay within the calendar",
)
LIMITS: Final = (
    PODS,
    RANK,
    EPOCH,
    DIGITS,
    TASKS,
    RESOURCES,
    POLICIES,
    VOLUMES,
    PROCESSES,
    RETRIES,
    SECONDS,
)
"""The table."""


class LimitError(ValueError):
    """Something cannot be evaluated since an amount in it is over its limit; the message is for its owner."""


def whole_number(text: str | None, most: int | None = None) -> int | None:
    """The number that a label or annotation holds: decimal digits, not too many of them, and at most `most`.

    None for anything else. Python refuses to read numbers of very many digits with an exception of its own.
    """
    if not text or len(text) > DIGITS.value or not (text.isascii() and text.isdecimal()):
        return None
    number = int(text)
    return None if most is not None and number > most else number
