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
"""Label and annotation of a Job: namespace and name of its JobTemplate, with a dot between them."""
MADE_FOR = "volcano.sh/createdByJobFlow"
"""Label and annotation of a Job: namespace and name of its JobFlow, with a dot between them."""


class HttpHeader(Wire):
    """A header of a request."""

    name: str = ""
    """Name of the header."""
    value: str = ""
    """Value of the header."""


class HttpGet(Wire):
    """A request to the pods of a task; Muster's controller connects to no pods, so admission refuses it."""

    task_name: TaskName = ""
    """A task of the Jobs that are waited for."""
    path: str = ""
    """Path of the URL."""
    port: Port = 0
    """Port of the pods."""
    http_header: HttpHeader | None = None
    """A header to send."""


class TcpSocket(Wire):
    """A connection to the pods of a task; Muster's controller connects to no pods, so admission refuses it."""

    task_name: TaskName = ""
    """A task of the Jobs that are waited for."""
    port: Port = 0
    """Port of the pods."""


class TaskStatus(Wire):
    """A phase that a task must have reached, with as many pods as it needs."""

    task_name: TaskName = ""
    """A task of the Jobs that are waited for."""
    phase: Annotated[str, Meta(max_length=63)] = ""
    """A phase of pods: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""


class Probe(Wire):
    """A condition that is enough for a target, instead of its end."""

    http_get_list: list[HttpGet] = field(default_factory=list)
    """Refused: Muster's controller connects to no pods."""
    tcp_socket_list: list[TcpSocket] = field(default_factory=list)
    """Refused: Muster's controller connects to no pods."""
    task_status_list: list[TaskStatus] = field(default_factory=list)
    """Phases of tasks; a target whose tasks have all reached theirs is not waited for any longer."""


class FlowDependsOn(Wire):
    """Steps that run before this one."""

    targets: list[str] = field(default_factory=list)
    """Steps of the same JobFlow; their Jobs must be completed before this one is made."""
    probe: Probe | None = None
    """A condition of these steps that suffices, instead of their end."""


class TaskPatch(Wire):
    """Changes of the task of this name, or a task more. Fields that are left out stay."""

    name: str = ""
    """The task."""
    replicas: scheduling.NonNegative | None = None
    """Number of pods."""
    min_available: scheduling.NonNegative | None = None
    """Pods of this task that the gang needs."""
    template: batch.PodTemplate = field(default_factory=dict)
    """Changes of the pod template, merged as `kubectl patch` does: containers, volumes and variables by their names."""
    policies: list[batch.LifecyclePolicy] = field(default_factory=list)
    """Instead of the task's policies."""
    topology_policy: batch.NumaPolicy = ""
    """NUMA policy."""
    max_retry: Annotated[int, Meta(ge=-1)] = 0
    """Restarts of this task's containers before TaskFailed."""
    depends_on: batch.DependsOn | None = None
    """Tasks that must be ready before."""
    partition_policy: batch.PartitionPolicy | None = None
    """Cuts the task into equal partitions."""


class JobPatch(Wire):
    """Changes of the spec of a JobTemplate. Fields that are left out stay."""

    scheduler_name: str = ""
    """Profile of Muster's kube-scheduler."""
    min_available: scheduling.NonNegative | None = None
    """Pods that must start together."""
    volumes: list[batch.VolumeSpec] = field(default_factory=list)
    """Volumes more, or instead of those with the same mount path."""
    tasks: list[TaskPatch] = field(default_factory=list)
    """Changes of tasks, by name, and tasks more."""
    policies: list[batch.LifecyclePolicy] = field(default_factory=list)
    """Instead of the Job's policies."""
    plugins: dict[str, list[str]] = field(default_factory=dict)
    """Additional plugins, and additional arguments of existing plugins."""
    running_estimate: Duration | None = None
    """Stored; Muster does nothing with it."""
    queue: str = ""
    """The queue whose share the Job uses."""
    max_retry: scheduling.NonNegative | None = None
    """Restarts before the Job is Failed."""
    ttl_seconds_after_finished: scheduling.NonNegative | None = None
    """Seconds after its end until the Job is deleted."""
    priority_class_name: str = ""
    """PriorityClass of the gang."""
    min_success: Annotated[int, Meta(ge=1)] | None = None
    """The Job is completed as soon as this many pods succeeded."""
    network_topology: scheduling.NetworkTopology | None = None
    """Required nearness of all pods."""


class FlowPatch(Wire):
    """Changes of the JobTemplate, for this step only."""

    job_spec: JobPatch | None = None
    """Changes of its spec."""


class Flow(Wire):
    """One step: a Job, created from the JobTemplate with the step's name."""

    name: Annotated[str, Meta(min_length=1)] = ""
    """The JobTemplate, in the namespace of the JobFlow. The Job is `<JobFlow>-<name>`."""
    depends_on: FlowDependsOn | None = None
    """Steps that run before it."""
    patch: FlowPatch | None = None
    """Changes of the JobTemplate."""


class JobFlowSpec(Wire):
    """spec of a JobFlow."""

    flows: list[Flow] = field(default_factory=list)
    """The steps."""
    job_retain_policy: RetainPolicy = ""
    """`delete` has the Jobs deleted when all of them are completed; `retain`, or nothing, keeps them."""


class FlowHistory(Wire):
    """A phase that a Job had."""

    start_timestamp: Time | None = None
    """Time when it was seen first."""
    end_timestamp: Time | None = None
    """Time when another one was seen."""
    state: batch.Phase = ""
    """The phase."""


class FlowJobStatus(Wire):
    """A Job of the JobFlow, kept when the Job is gone."""

    name: str = ""
    """Name of the Job."""
    state: batch.Phase = ""
    """Its phase."""
    start_timestamp: Time | None = None
    """Time of its creation."""
    end_timestamp: Time | None = None
    """Time of its end."""
    restart_count: scheduling.NonNegative = 0
    """Its restarts."""
    running_histories: list[FlowHistory] = field(default_factory=list)
    """Its latest phases."""


class FlowCondition(Wire):
    """A Job of the JobFlow that exists."""

    phase: batch.Phase = ""
    """Its phase."""
    create_time: Time | None = None
    """Time of its creation."""
    running_duration: str | None = None
    """Time from its creation to its end."""
    task_status_count: dict[str, batch.TaskState] = field(default_factory=dict)
    """Pods of each task, counted by phase."""


class FlowState(Wire):
    """Phase of a JobFlow."""

    phase: FlowPhase = ""
    """Succeed: all Jobs are completed. Failed: one of them is failed or terminated, and no other one is made."""
    message: str = ""
    """Reason why a Job that is due cannot be created; empty if there is none."""


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
    """Each Job that was made, with its latest phases."""
    conditions: dict[str, FlowCondition] = field(default_factory=dict)
    """Each Job that exists, with the counts of its pods."""
    state: FlowState = field(default_factory=FlowState)
    """Phase of the JobFlow."""


class JobFlow(Object):
    """Jobs that follow each other."""

    spec: JobFlowSpec = field(default_factory=JobFlowSpec)
    """Desired state."""
    status: JobFlowStatus = field(default_factory=JobFlowStatus)
    """Observed state; the controller writes it."""


JOB_FLOWS = Resource("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow", JobFlow)


class JobTemplateStatus(Wire):
    """status of a JobTemplate."""

    job_depends_on_list: list[str] = field(default_factory=list)
    """Existing Jobs that were created from it; of very many, the first by name."""


class JobTemplate(Object):
    """The spec of Jobs that JobFlows make."""

    spec: batch.JobSpec = field(default_factory=batch.JobSpec)
    """spec of the Jobs."""
    status: JobTemplateStatus = field(default_factory=JobTemplateStatus)
    """Observed state; the controller writes it."""


JOB_TEMPLATES = Resource("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate", JobTemplate)


def job_name(flow: JobFlow, step: str) -> str:
    """Return the name of the Job of a step."""
    return f"{flow.metadata.name}-{step}"
