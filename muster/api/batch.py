"""batch.volcano.sh/v1alpha1: Job."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.meta import Object
from muster.api.scheduling import NetworkTopology, NonNegative

Phase = Literal[
    "",
    "Pending",
    "Running",
    "Restarting",
    "Completing",
    "Completed",
    "Terminating",
    "Terminated",
    "Aborting",
    "Aborted",
    "Failed",
]
EventName = Literal[
    "*", "PodFailed", "PodEvicted", "PodPending", "PodRunning", "Unknown", "TaskCompleted", "TaskFailed",
    "JobUpdated", "OutOfSync", "CommandIssued",
]  # fmt: skip
FINISHED = frozenset({"Completed", "Failed", "Terminated"})

PodTemplate = Annotated[dict[str, Any], Meta(extra_json_schema={"x-muster-schema": "PodTemplateSpec"})]
"""A pod template exactly as the user wrote it; the CRD carries the API server's own schema for it."""

ClaimSpec = Annotated[dict[str, Any], Meta(extra_json_schema={"x-muster-schema": "PersistentVolumeClaimSpec"})]


class LifecyclePolicy(Wire):
    """When one of these events (or this exit code) is seen, do this action, perhaps after `timeout`."""

    action: str = ""
    event: EventName | None = None
    events: list[EventName] = field(default_factory=list)
    exit_code: int | None = None
    timeout: str | None = None

    @property
    def all_events(self) -> list[str]:
        """`events` and `event` together, in order, once each."""
        return list(dict.fromkeys([*self.events, *([self.event] if self.event else [])]))


class DependsOn(Wire):
    """Tasks that must be ready before the pods of this one are created."""

    name: list[str] = field(default_factory=list)
    iteration: Literal["any", "all"] | None = None


class PartitionPolicy(Wire):
    """A task cut into equal partitions that are placed and restarted together."""

    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: NonNegative = 0
    network_topology: NetworkTopology | None = None


class TaskSpec(Wire):
    """One task: pods of one shape."""

    name: Annotated[str, Meta(max_length=63, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")] = ""
    replicas: NonNegative = 0
    min_available: NonNegative | None = None
    template: PodTemplate = field(default_factory=dict)
    policies: list[LifecyclePolicy] = field(default_factory=list)
    topology_policy: str = ""
    max_retry: NonNegative = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class VolumeSpec(Wire):
    """A volume of every pod: a claim that exists, or one to create."""

    mount_path: Annotated[str, Meta(pattern="^/.*$")] = ""
    volume_claim_name: str = ""
    volume_claim: ClaimSpec | None = None


class JobSpec(Wire):
    """spec of a Job."""

    scheduler_name: str = ""
    min_available: NonNegative = 0
    volumes: list[VolumeSpec] = field(default_factory=list)
    tasks: list[TaskSpec] = field(default_factory=list)
    policies: list[LifecyclePolicy] = field(default_factory=list)
    plugins: dict[str, list[str]] = field(default_factory=dict)
    running_estimate: str | None = None
    queue: str = ""
    max_retry: NonNegative = 0
    ttl_seconds_after_finished: NonNegative | None = None
    priority_class_name: str = ""
    min_success: Annotated[int, Meta(ge=1)] | None = None
    network_topology: NetworkTopology | None = None


class JobState(Wire):
    """Where a Job is, since when and why."""

    phase: Phase = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class TaskState(Wire):
    """Pods of one task, counted by phase."""

    phase: dict[str, int] = field(default_factory=dict)


class JobCondition(Wire):
    """The latest time a Job entered this phase."""

    status: Phase
    last_transition_time: str | None = None


class JobStatus(Wire):
    """status of a Job; counters leave out pods that are being deleted, except `terminating`."""

    state: JobState = field(default_factory=JobState)
    min_available: NonNegative = 0
    task_status_count: dict[str, TaskState] = field(default_factory=dict)
    pending: NonNegative = 0
    running: NonNegative = 0
    succeeded: NonNegative = 0
    failed: NonNegative = 0
    terminating: NonNegative = 0
    unknown: NonNegative = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    controlled_resources: dict[str, str] = field(default_factory=dict)
    conditions: list[JobCondition] = field(default_factory=list)


class Job(Object):
    """A Volcano Job."""

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)


JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", Job)
