"""Job (batch.volcano.sh/v1alpha1) with optional quirks of Volcano, and Command (bus.volcano.sh)."""

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from muster.api import names
from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Duration, Object, ObjectMeta, OwnerReference, Time
from muster.api.volcano.podsettings import recorded, with_settings
from muster.api.volcano.scheduling import NetworkTopology, NonNegative

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
NumaPolicy = Literal["", "none", "best-effort", "restricted", "single-numa-node"]
FINISHED: frozenset[Phase] = frozenset({"Completed", "Failed", "Terminated"})
"""Phases that a Job never leaves."""

PodTemplate = Annotated[dict[str, Any], Meta(extra_json_schema={"x-muster-schema": "PodTemplateSpec"})]
"""A pod template exactly as the user wrote it; the CRD contains the API server's own schema for it."""

ClaimSpec = Annotated[dict[str, Any], Meta(extra_json_schema={"x-muster-schema": "PersistentVolumeClaimSpec"})]


class LifecyclePolicy(Wire):
    """An action for one of these events or this exit code, immediate or after `timeout`."""

    action: str = ""
    """Abort-, Restart-, Terminate-, Complete- or ResumeJob, RestartTask, RestartPod or RestartPartition."""
    event: EventName | None = None
    """The event of this policy."""
    events: list[EventName] = field(default_factory=list)
    """Several events of this policy."""
    exit_code: int | None = None
    """Exit code of a container, in place of events."""
    timeout: Duration | None = None
    """Time that the event must last before the action, e.g. `5m`; at once if unset."""

    @property
    def all_events(self) -> list[str]:
        """`events` and `event` together, in order, each once."""
        return list(dict.fromkeys([*self.events, *([self.event] if self.event else [])]))


class DependsOn(Wire):
    """Tasks that must be ready before the pods of this one are created."""

    name: list[str] = field(default_factory=list)
    """Tasks of the same job."""
    iteration: Literal["any", "all"] | None = None
    """`all` of these tasks must be ready (the default), or `any` of them."""


class PartitionPolicy(Wire):
    """A division of a task into equal partitions that are placed and restarted together."""

    total_partitions: int = 0
    """Number of partitions; multiplied by `partitionSize`, it equals `replicas`."""
    partition_size: int = 0
    """Number of pods in each partition."""
    min_partitions: NonNegative = 0
    """Number of partitions that must start together; 0 means that the task's `minAvailable` decides."""
    network_topology: NetworkTopology | None = None
    """Required proximity of the pods of one partition."""


class TaskSpec(Wire):
    """One task: pods of one shape."""

    name: Annotated[str, Meta(max_length=63, pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of the task, a part of the pods' names; `default<position>` if left out."""
    replicas: NonNegative = 0
    """Number of pods."""
    min_available: NonNegative | None = None
    """Number of this task's pods that the gang needs; all of them if left out."""
    template: PodTemplate = field(default_factory=dict)
    """The pod template."""
    policies: list[LifecyclePolicy] = field(default_factory=list)
    """Actions on events of this task's pods, before the job's policies."""
    topology_policy: NumaPolicy = ""
    """NUMA policy, passed to the pods as an annotation."""
    max_retry: Annotated[int, Meta(ge=-1)] = 0
    """Restarts of this task's containers before TaskFailed; 3 if left out or 0, -1 for no limit."""
    depends_on: DependsOn | None = None
    """Tasks that must be ready before the pods of this one are created."""
    partition_policy: PartitionPolicy | None = None
    """Division of the task into equal partitions."""


class VolumeSpec(Wire):
    """A volume of every pod: an existing claim, or a claim to create."""

    mount_path: Annotated[str, Meta(min_length=1, pattern="^[^:]+$")] = ""
    """Mount path in all containers, without `:`."""
    volume_claim_name: str = ""
    """An existing claim; a name is generated if only `volumeClaim` is set."""
    volume_claim: ClaimSpec | None = None
    """A claim to create, which is deleted with the job."""


class JobSpec(Wire):
    """spec of a Job."""

    scheduler_name: str = ""
    """Profile of Muster's kube-scheduler for pods whose template names none; `volcano` if left out."""
    min_available: NonNegative = 0
    """Number of pods that must start together; the sum over the tasks if left out or 0."""
    volumes: list[VolumeSpec] = field(default_factory=list)
    """Claims that every pod mounts."""
    tasks: list[TaskSpec] = field(default_factory=list)
    """The pod sets of the job."""
    policies: list[LifecyclePolicy] = field(default_factory=list)
    """Actions for events, for tasks without their own policy for the event."""
    plugins: dict[str, list[str]] = field(default_factory=dict)
    """Plugin name and its arguments, e.g. `svc: []`; they add environment, Services, keys."""
    running_estimate: Duration | None = None
    """Stored without effect."""
    queue: str = ""
    """The queue whose share the job uses; it must exist and be open."""
    max_retry: NonNegative = 0
    """Number of restarts before the job is Failed."""
    ttl_seconds_after_finished: NonNegative | None = None
    """Seconds after its end until the job is deleted; it is kept if unset."""
    priority_class_name: str = ""
    """PriorityClass of the gang, and of pods whose template names none."""
    min_success: Annotated[int, Meta(ge=1)] | None = None
    """The job is completed as soon as this many pods succeeded."""
    network_topology: NetworkTopology | None = None
    """Required proximity of all pods."""

    def __post_init__(self) -> None:
        """Name tasks without a name by their position in the list, as Volcano does.

        These names are not stored, because the whole list is compared with the manifest when it is applied again.
        """
        for index, task in enumerate(self.tasks):
            task.name = task.name or f"default{index}"


REFUSED = frozenset({"FailedCreate", "OverLimit", "PluginError", "PodGroupError", "PVCError"})
"""Reasons in the status of a Job for which an object cannot be created."""


class JobState(Wire):
    """Phase of a Job, with time and reason."""

    phase: Phase = ""
    """Phase in the life of the job."""
    reason: str = ""
    """Reason, in one word."""
    message: str = ""
    """Reason, in a sentence."""
    last_transition_time: Time | None = None
    """Time when the phase was entered."""

    @property
    def refusal(self) -> str:
        """Reason why pods or other objects of a Job that has not started cannot be created; "" without one."""
        return self.message if self.phase == "Pending" and self.reason in REFUSED else ""


class TaskState(Wire):
    """Numbers of one task's pods by phase."""

    phase: dict[str, int] = field(default_factory=dict)
    """Number of pods in each phase."""


class JobCondition(Wire):
    """The last time at which a Job entered this phase."""

    status: Phase
    """The phase."""
    last_transition_time: Time | None = None
    """Time when the Job entered the phase."""


class JobStatus(Wire):
    """status of a Job; its counters exclude pods that are being deleted, except `terminating`."""

    state: JobState = field(default_factory=JobState)
    """Phase of the job, with time and reason."""
    min_available: NonNegative = 0
    """`minAvailable` of the spec that was last applied."""
    task_status_count: dict[str, TaskState] = field(default_factory=dict)
    """Numbers of each task's pods by phase."""
    pending: NonNegative = 0
    """Pods that do not run yet."""
    running: NonNegative = 0
    """Pods that run."""
    succeeded: NonNegative = 0
    """Pods that succeeded."""
    failed: NonNegative = 0
    """Pods that failed."""
    terminating: NonNegative = 0
    """Pods that are being deleted."""
    unknown: NonNegative = 0
    """Pods whose state is unknown."""
    version: int = 0
    """Number that grows when the pods are killed; events of older pods are ignored."""
    retry_count: int = 0
    """Number of restarts so far."""
    running_duration: str | None = None
    """Time from creation to the end."""
    controlled_resources: dict[str, str] = field(default_factory=dict)
    """Objects that plugins and volumes created for the job."""
    conditions: list[JobCondition] = field(default_factory=list)
    """Time when each phase was last entered."""


class Job(Object):
    """A Volcano Job."""

    spec: JobSpec = field(default_factory=JobSpec)
    """Desired state."""
    status: JobStatus = field(default_factory=JobStatus)
    """Observed state; the controller writes it."""

    def __post_init__(self) -> None:
        """Complete the templates with the settings that admission has recorded for their pods."""
        for settings in recorded(self.metadata.annotations):
            for task in self.spec.tasks:
                if task.name in settings.tasks:
                    task.template = with_settings(task.template, settings)


JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", Job)


def is_job(reference: OwnerReference | None) -> bool:
    """Return True for a reference to a Volcano Job of any version."""
    return bool(reference and reference.kind == JOBS.kind and reference.api_version.startswith(f"{JOBS.group}/"))


class Command(Object):
    """A request to a controller to act on the target. The kind has no spec."""

    action: str = ""
    """The action, e.g. AbortJob, ResumeJob, OpenQueue, CloseQueue."""
    target: OwnerReference | None = None
    """The Job or Queue to act on."""
    reason: str = ""
    """Reason, in one word."""
    message: str = ""
    """Reason, in a sentence."""


COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command", Command)


def command_to(resource: Resource[Any], name: str, uid: str, action: str) -> dict[str, Any]:
    """Return a Command to an object; a Command to a namespaced object is deleted with the object."""
    target = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid}
    owners = {"ownerReferences": [target]} if resource.namespaced else {}
    return {"metadata": {"generateName": f"{name}-{action.lower()}-", **owners}, "action": action, "target": target}


RESUME_COUNTS = "resume-counts"
"""Quirk: ResumeJob uses up one of maxRetry."""
TTL_SPARES_ABORTED = "ttl-spares-aborted"
"""Quirk: ttlSecondsAfterFinished does not delete an Aborted Job."""

QUIRKS = (RESUME_COUNTS, TTL_SPARES_ABORTED)


def compat(meta: ObjectMeta) -> frozenset[str]:
    """Return the quirks that the object requests, including unknown ones."""
    return frozenset(filter(None, (word.strip() for word in meta.annotations.get(names.COMPAT, "").split(","))))
