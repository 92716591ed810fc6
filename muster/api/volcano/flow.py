"""JobFlow, Jobs that run in order, and JobTemplate, the templates of these Jobs (flow.volcano.sh/v1alpha1)."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Duration, Object, Time
from muster.api.volcano import batch, scheduling

FlowPhase = Literal["", "Succeed", "Terminating", "Failed", "Running", "Pending"]
RetainPolicy = Literal["", "retain", "delete"]
Port = Annotated[int, Meta(ge=0, le=65535)]
TaskName = Annotated[str, Meta(max_length=253)]

MADE_OF = "volcano.sh/createdByJobTemplate"
"""Label and annotation of a Job: namespace and name of its JobTemplate, separated by a dot."""
MADE_FOR = "volcano.sh/createdByJobFlow"
"""Label and annotation of a Job: namespace and name of its JobFlow, separated by a dot."""


class HttpHeader(Wire):
    """A header of a request."""

    name: str = ""
    """Name of the header."""
    value: str = ""
    """Value of the header."""


class HttpGet(Wire):
    """A request to the pods of a task; Muster's controller connects to no pods, so admission refuses it."""

    task_name: TaskName = ""
    """Task of the Jobs to wait for."""
    path: str = ""
    """Path of the URL."""
    port: Port = 0
    """Port of the pods."""
    http_header: HttpHeader | None = None
    """A header to send."""


class TcpSocket(Wire):
    """A connection to the pods of a task; Muster's controller connects to no pods, so admission refuses it."""

    task_name: TaskName = ""
    """Task of the Jobs to wait for."""
    port: Port = 0
    """Port of the pods."""


class TaskStatus(Wire):
    """A phase that a task must have reached with the number of pods that it needs."""

    task_name: TaskName = ""
    """Task of the Jobs to wait for."""
    phase: Annotated[str, Meta(max_length=63)] = ""
    """A phase of pods: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""


class Probe(Wire):
    """A condition that suffices for a target in place of its end."""

    http_get_list: list[HttpGet] = field(default_factory=list)
    """Refused, because Muster's controller connects to no pods."""
    tcp_socket_list: list[TcpSocket] = field(default_factory=list)
    """Refused, because Muster's controller connects to no pods."""
    task_status_list: list[TaskStatus] = field(default_factory=list)
    """Phases of tasks; the wait for a target ends when all its tasks have reached their phases."""


class FlowDependsOn(Wire):
    """Steps that run before this step."""

    targets: list[str] = field(default_factory=list)
    """Steps of the same JobFlow, whose Jobs must be completed before this step's Job is created."""
    probe: Probe | None = None
    """A condition of these steps that suffices in place of their end."""


class TaskPatch(Wire):
    """Changes to the task of this name, or an additional task. Omitted fields stay unchanged."""

    name: str = ""
    """The task."""
    replicas: scheduling.NonNegative | None = None
    """Number of pods."""
    min_available: scheduling.NonNegative | None = None
    """Number of this task's pods that the gang needs."""
    template: batch.PodTemplate = field(default_factory=dict)
    """Changes to the pod template, merged like `kubectl patch`: containers, volumes and variables by their names."""
    policies: list[batch.LifecyclePolicy] = field(default_factory=list)
    """Policies that replace the task's policies."""
    topology_policy: batch.NumaPolicy = ""
    """NUMA policy."""
    max_retry: Annotated[int, Meta(ge=-1)] = 0
    """Number of restarts of this task's containers before TaskFailed."""
    depends_on: batch.DependsOn | None = None
    """Tasks that must be ready before this task."""
    partition_policy: batch.PartitionPolicy | None = None
    """Division of the task into equal partitions."""


class JobPatch(Wire):
    """Changes to the spec of a JobTemplate. Omitted fields stay unchanged."""

    scheduler_name: str = ""
    """Profile of Muster's kube-scheduler."""
    min_available: scheduling.NonNegative | None = None
    """Pods that must start together."""
    volumes: list[batch.VolumeSpec] = field(default_factory=list)
    """Additional volumes, which replace volumes with the same mount path."""
    tasks: list[TaskPatch] = field(default_factory=list)
    """Changes to tasks by name, and additional tasks."""
    policies: list[batch.LifecyclePolicy] = field(default_factory=list)
    """Policies that replace the Job's policies."""
    plugins: dict[str, list[str]] = field(default_factory=dict)
    """Additional plugins, and additional arguments of existing plugins."""
    running_estimate: Duration | None = None
    """Stored without effect."""
    queue: str = ""
    """The queue whose share the Job uses."""
    max_retry: scheduling.NonNegative | None = None
    """Number of restarts before the Job is Failed."""
    ttl_seconds_after_finished: scheduling.NonNegative | None = None
    """Seconds after its end until the Job is deleted."""
    priority_class_name: str = ""
    """PriorityClass of the gang."""
    min_success: Annotated[int, Meta(ge=1)] | None = None
    """The Job is completed as soon as this many pods succeeded."""
    network_topology: scheduling.NetworkTopology | None = None
    """Required proximity of all pods."""


class FlowPatch(Wire):
    """Changes to the JobTemplate for this step only."""

    job_spec: JobPatch | None = None
    """Changes to the JobTemplate's spec."""


class Flow(Wire):
    """One step: a Job, created from the JobTemplate with the step's name."""

    name: Annotated[str, Meta(min_length=1)] = ""
    """The JobTemplate, in the namespace of the JobFlow. The Job's name is `<JobFlow>-<name>`."""
    depends_on: FlowDependsOn | None = None
    """Steps that run before this step."""
    patch: FlowPatch | None = None
    """Changes to the JobTemplate."""


class JobFlowSpec(Wire):
    """spec of a JobFlow."""

    flows: list[Flow] = field(default_factory=list)
    """The steps."""
    job_retain_policy: RetainPolicy = ""
    """`delete`: the Jobs are deleted when all of them are completed; `retain` or unset: they are kept."""


class FlowHistory(Wire):
    """A phase that a Job had."""

    start_timestamp: Time | None = None
    """Time when the phase was first seen."""
    end_timestamp: Time | None = None
    """Time when the next phase was seen."""
    state: batch.Phase = ""
    """The phase."""


class FlowJobStatus(Wire):
    """A Job of the JobFlow; the entry stays after the Job is gone."""

    name: str = ""
    """Name of the Job."""
    state: batch.Phase = ""
    """Its phase."""
    start_timestamp: Time | None = None
    """Time of the Job's creation."""
    end_timestamp: Time | None = None
    """Time of the Job's end."""
    restart_count: scheduling.NonNegative = 0
    """Its restarts."""
    running_histories: list[FlowHistory] = field(default_factory=list)
    """Latest phases of the Job."""


class FlowCondition(Wire):
    """An existing Job of the JobFlow."""

    phase: batch.Phase = ""
    """Its phase."""
    create_time: Time | None = None
    """Time of the Job's creation."""
    running_duration: str | None = None
    """Time from the Job's creation to its end."""
    task_status_count: dict[str, batch.TaskState] = field(default_factory=dict)
    """Numbers of each task's pods by phase."""


class FlowState(Wire):
    """Phase of a JobFlow."""

    phase: FlowPhase = ""
    """Succeed: all Jobs are completed. Failed: a Job is failed or terminated, and no further Job is created."""
    message: str = ""
    """Reason why a due Job cannot be created; empty without one."""


class JobFlowStatus(Wire):
    """status of a JobFlow. The lists name its Jobs by phase: existing Jobs, and deleted ones by their last phase."""

    pending_jobs: list[str] = field(default_factory=list)
    """Jobs that wait."""
    running_jobs: list[str] = field(default_factory=list)
    """Jobs that run."""
    failed_jobs: list[str] = field(default_factory=list)
    """Jobs that are failed."""
    completed_jobs: list[str] = field(default_factory=list)
    """Jobs that are completed, or about to be."""
    terminated_jobs: list[str] = field(default_factory=list)
    """Jobs that are terminated, or about to be."""
    un_know_jobs: list[str] = field(default_factory=list)
    """Jobs in other phases: restarting, aborting or aborted."""
    job_status_list: list[FlowJobStatus] = field(default_factory=list)
    """Each created Job, with its latest phases."""
    conditions: dict[str, FlowCondition] = field(default_factory=dict)
    """Each Job that exists, with the counts of its pods."""
    state: FlowState = field(default_factory=FlowState)
    """Phase of the JobFlow."""


class JobFlow(Object):
    """A sequence of dependent Jobs."""

    spec: JobFlowSpec = field(default_factory=JobFlowSpec)
    """Desired state."""
    status: JobFlowStatus = field(default_factory=JobFlowStatus)
    """Observed state; the controller writes it."""


JOB_FLOWS = Resource("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow", JobFlow)


class JobTemplateStatus(Wire):
    """status of a JobTemplate."""

    job_depends_on_list: list[str] = field(default_factory=list)
    """Existing Jobs that were created from the JobTemplate; of very many, the first ones by name."""


class JobTemplate(Object):
    """A template from which JobFlows create Jobs."""

    spec: batch.JobSpec = field(default_factory=batch.JobSpec)
    """spec of the Jobs."""
    status: JobTemplateStatus = field(default_factory=JobTemplateStatus)
    """Observed state; the controller writes it."""


JOB_TEMPLATES = Resource("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate", JobTemplate)


def job_name(flow: JobFlow, step: str) -> str:
    """Return the name of the Job of a step."""
    return f"{flow.metadata.name}-{step}"
