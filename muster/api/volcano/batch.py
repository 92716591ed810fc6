"""Job (batch.volcano.sh/v1alpha1), with optional compatibility quirks of Volcano, and Command (bus.volcano.sh)."""

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
"""Final phases of a Job, which it never leaves."""

PodTemplate = Annotated[dict[str, Any], Meta(extra_json_schema={"x-muster-schema": "PodTemplateSpec"})]
"""A pod template exactly as the user wrote it; the CRD contains the API server's own schema for pod templates."""

ClaimSpec = Annotated[dict[str, Any], Meta(extra_json_schema={"x-muster-schema": "PersistentVolumeClaimSpec"})]


class LifecyclePolicy(Wire):
    """An action that the controller takes after one of these events or this exit code, at once or after `timeout`."""

    action: str = ""
    """The action to take: AbortJob, RestartJob, TerminateJob, CompleteJob, ResumeJob, RestartTask, RestartPod or
    RestartPartition."""
    event: EventName | None = None
    """The event that triggers the action."""
    events: list[EventName] = field(default_factory=list)
    """Several events, each of which triggers the action."""
    exit_code: int | None = None
    """Exit code of a container that triggers the action; only allowed without `event` and `events`."""
    timeout: Duration | None = None
    """Time, such as `5m`, for which the event's state must last before the action is taken; the action is immediate if
    unset."""

    @property
    def all_events(self) -> list[str]:
        """The events of `events` and `event` in order, without duplicates."""
        return list(dict.fromkeys([*self.events, *([self.event] if self.event else [])]))


class DependsOn(Wire):
    """Tasks that must be ready before the pods of the dependent task are created."""

    name: list[str] = field(default_factory=list)
    """Names of other tasks of the same job."""
    iteration: Literal["any", "all"] | None = None
    """`all` (the default) means that all of these tasks must be ready, and `any` that one ready task suffices."""


class PartitionPolicy(Wire):
    """A division of a task into equal partitions. The pods of a partition are placed and restarted together."""

    total_partitions: int = 0
    """Number of partitions. Number of partitions; multiplied by their size, it must equal `replicas`."""
    partition_size: int = 0
    """Number of pods in each partition."""
    min_partitions: NonNegative = 0
    """Number of partitions that must start together; 0 means that the task's `minAvailable` decides."""
    network_topology: NetworkTopology | None = None
    """Required proximity of the pods of one partition in the network topology."""


class TaskSpec(Wire):
    """One task: pods that are created from one template."""

    name: Annotated[str, Meta(max_length=63, pattern="^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name of the task, which is part of the pods' names; `default<position>` if left out."""
    replicas: NonNegative = 0
    """Number of pods."""
    min_available: NonNegative | None = None
    """Number of this task's pods that must start together with the gang; all pods if left out."""
    template: PodTemplate = field(default_factory=dict)
    """The pod template."""
    policies: list[LifecyclePolicy] = field(default_factory=list)
    """Actions on events of this task's pods; they take precedence over the job's policies."""
    topology_policy: NumaPolicy = ""
    """NUMA policy, which is written to an annotation of the pods."""
    max_retry: Annotated[int, Meta(ge=-1)] = 0
    """Number of container restarts in this task after which the event TaskFailed occurs; 3 if left out or 0, -1 for no
    limit."""
    depends_on: DependsOn | None = None
    """Tasks that must be ready before the pods of this task are created."""
    partition_policy: PartitionPolicy | None = None
    """Division of the task into equal partitions."""


class VolumeSpec(Wire):
    """A volume that every pod of the job mounts: an existing claim, or a claim that is created for the job."""

    mount_path: Annotated[str, Meta(min_length=1, pattern="^[^:]+$")] = ""
    """Mount path in all containers, without `:`."""
    volume_claim_name: str = ""
    """Name of an existing claim. If only `volumeClaim` is set, a name for the claim is generated."""
    volume_claim: ClaimSpec | None = None
    """Spec of a claim that is created for the job, and deleted together with it."""


class JobSpec(Wire):
    """spec of a Job."""

    scheduler_name: str = ""
    """Scheduler of pods whose template names none; `volcano` if left out. The scheduler must be a profile of Muster's
    kube-scheduler."""
    min_available: NonNegative = 0
    """Number of pods that must start together; the sum over the tasks if left out or 0."""
    volumes: list[VolumeSpec] = field(default_factory=list)
    """Volumes that every pod mounts."""
    tasks: list[TaskSpec] = field(default_factory=list)
    """The pod sets of the job."""
    policies: list[LifecyclePolicy] = field(default_factory=list)
    """Actions on events of all tasks, except for events for which a task has its own policy."""
    plugins: dict[str, list[str]] = field(default_factory=dict)
    """The job's plugins, each with its arguments, for example `svc: []`. Plugins add environment variables, Services,
    ssh keys and more."""
    running_estimate: Duration | None = None
    """Field of Volcano's API that Muster stores but ignores."""
    queue: str = ""
    """The queue of the job, which uses a part of the queue's share. This queue must exist and be open."""
    max_retry: NonNegative = 0
    """Number of failed attempts after which the job fails: 3 allows the first run and two restarts."""
    ttl_seconds_after_finished: NonNegative | None = None
    """Seconds after the job's end until the job is deleted; the job is kept if unset."""
    priority_class_name: str = ""
    """PriorityClass of the gang, and of pods whose template names none."""
    min_success: Annotated[int, Meta(ge=1)] | None = None
    """Number of pods that must succeed for the job to complete."""
    network_topology: NetworkTopology | None = None
    """Required proximity of all pods of the job in the network topology."""

    def __post_init__(self) -> None:
        """Name tasks without a name by their position in the list, as Volcano does.

        Generated names are not stored, because a manifest that is applied again is compared with the stored list of
        tasks as a whole.
        """
        for index, task in enumerate(self.tasks):
            task.name = task.name or f"default{index}"


REFUSED = frozenset({"FailedCreate", "OverLimit", "PluginError", "PodGroupError", "PVCError"})
"""Reasons in the status of a Job, each of which means that an object of the Job cannot be created."""


PODS_STOPPED = "all pods have finished or are gone"
"""Message of a Job that has stopped; the first failed pod follows if the Job was terminated after a failure."""


class JobState(Wire):
    """Phase of a Job, with time and reason."""

    phase: Phase = ""
    """Current phase of the job."""
    reason: str = ""
    """Reason for the phase, in one word."""
    message: str = ""
    """Reason for the phase, in a sentence."""
    last_transition_time: Time | None = None
    """Time when the phase was entered."""

    @property
    def refusal(self) -> str:
        """Reason why pods or other objects of an unstarted Job cannot be created; "" if there is no such problem."""
        return self.message if self.phase == "Pending" and self.reason in REFUSED else ""

    @property
    def failure(self) -> str:
        """A sentence about the first failed pod of a terminated Job; "" if no pod had failed."""
        return self.message.partition(f"{PODS_STOPPED}; ")[2] if self.phase == "Terminated" else ""


class TaskState(Wire):
    """The number of a task's pods in each pod phase."""

    phase: dict[str, int] = field(default_factory=dict)
    """Maps a pod phase to the number of pods in this phase."""


class JobCondition(Wire):
    """A phase of a Job, and the last time when the Job entered it."""

    status: Phase
    """The phase."""
    last_transition_time: Time | None = None
    """Time when the Job entered the phase."""


class JobStatus(Wire):
    """status of a Job. Except for `terminating`, the counters exclude pods that are being deleted."""

    state: JobState = field(default_factory=JobState)
    """Phase of the job, with time and reason."""
    min_available: NonNegative = 0
    """Value of `minAvailable` in the spec that the controller has applied last."""
    task_status_count: dict[str, TaskState] = field(default_factory=dict)
    """Maps a task to the numbers of its pods in each phase."""
    pending: NonNegative = 0
    """Number of pods that are not running yet."""
    running: NonNegative = 0
    """Number of pods that are running."""
    succeeded: NonNegative = 0
    """Number of pods that have succeeded."""
    failed: NonNegative = 0
    """Number of pods that have failed."""
    terminating: NonNegative = 0
    """Number of pods that are being deleted."""
    unknown: NonNegative = 0
    """Number of pods whose state is unknown."""
    version: int = 0
    """Version of the job's pods, which is increased whenever they are killed. Events of pods with an older version are
    ignored."""
    retry_count: int = 0
    """Number of restarts so far."""
    running_duration: str | None = None
    """Time from the creation of the job until its end."""
    controlled_resources: dict[str, str] = field(default_factory=dict)
    """Objects that have been created for the job by plugins or for volumes."""
    conditions: list[JobCondition] = field(default_factory=list)
    """For each phase, the time when the job last entered it."""


class Job(Object):
    """A Volcano Job."""

    spec: JobSpec = field(default_factory=JobSpec)
    """Desired state."""
    status: JobStatus = field(default_factory=JobStatus)
    """Observed state; the controller writes it."""

    def __post_init__(self) -> None:
        """Add the settings that admission has recorded in an annotation to the Job's pod templates."""
        settings = {task: each for each in recorded(self.metadata.annotations) for task in each.tasks}
        for task in self.spec.tasks:
            if task.name in settings:
                task.template = with_settings(task.template, settings[task.name])


JOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job", Job)


def is_job(reference: OwnerReference | None) -> bool:
    """Return True for a reference to a Volcano Job of any version."""
    return bool(reference and reference.kind == JOBS.kind and reference.api_version.startswith(f"{JOBS.group}/"))


class Command(Object):
    """A request to the controller to act on a Job or Queue. The kind has no spec."""

    action: str = ""
    """The requested action, such as AbortJob, ResumeJob, OpenQueue or CloseQueue."""
    target: OwnerReference | None = None
    """The Job or Queue to act on."""
    reason: str = ""
    """Reason for the command, in one word."""
    message: str = ""
    """Reason for the command, in a sentence."""


COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command", Command)


def command_to(resource: Resource[Any], name: str, uid: str, action: str) -> dict[str, Any]:
    """Return a Command for an object. A Command for a namespaced object is deleted together with the object."""
    target = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid}
    owners = {"ownerReferences": [target]} if resource.namespaced else {}
    return {"metadata": {"generateName": f"{name}-{action.lower()}-", **owners}, "action": action, "target": target}


RESUME_COUNTS = "resume-counts"
"""Quirk: ResumeJob counts as one of the retries that maxRetry allows."""
TTL_SPARES_ABORTED = "ttl-spares-aborted"
"""Quirk: ttlSecondsAfterFinished does not delete an Aborted Job."""

QUIRKS = (RESUME_COUNTS, TTL_SPARES_ABORTED)


def compat(meta: ObjectMeta) -> frozenset[str]:
    """Return the compatibility quirks that the object's annotation requests, including unknown ones."""
    return frozenset(filter(None, (word.strip() for word in meta.annotations.get(names.COMPAT, "").split(","))))
