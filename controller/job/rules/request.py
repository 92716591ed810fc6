"""What happened to a Job, as its worker gets it."""

from dataclasses import dataclass

OUT_OF_SYNC = "OutOfSync"
POD_PENDING = "PodPending"
POD_RUNNING = "PodRunning"
POD_FAILED = "PodFailed"
POD_EVICTED = "PodEvicted"
TASK_COMPLETED = "TaskCompleted"
TASK_FAILED = "TaskFailed"
UNKNOWN = "Unknown"
COMMAND_ISSUED = "CommandIssued"


@dataclass(frozen=True, slots=True)
class Request:
    """One event, with what is needed to tell later whether it is still true.

    `job_version` None means that the event belongs to no version of the Job. `since_s` is when it happened, in seconds
    since the epoch, as far as an object's timestamp says so: timeouts count from there. `refused` is kubelet's
    reason for having refused the pod before any of its containers ran.
    """

    event: str = OUT_OF_SYNC
    action: str = ""
    job_uid: str = ""
    job_version: int | None = None
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_codes: tuple[int, ...] = ()
    refused: str = ""
    since_s: float | None = None
    group_uid: str = ""
    command: str = ""
    command_uid: str = ""
    command_order: int = 0


SYNC = Request()
"""Nothing in particular: compare what is with what should be."""
