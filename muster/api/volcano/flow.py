"""JobFlow, which runs Jobs in order, and JobTemplate, from which these Jobs are created (flow.volcano.sh/v1alpha1)."""

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
"""Label and annotation of a Job with the namespace and name of its JobTemplate, separated by a dot."""
MADE_FOR = "volcano.sh/createdByJobFlow"
"""Label and annotation of a Job with the namespace and name of its JobFlow, separated by a dot."""


class HttpHeader(Wire):
    """A header of an HTTP request."""

    name: str = ""
    """Name of the header."""
    value: str = ""
    """Value of the header."""


class HttpGet(Wire):
    """An HTTP request to the pods of a task.

    Admission rejects this kind of probe, because Muster's controller does not connect to pods.
    """

    task_name: TaskName = ""
    """Name of the task whose pods are probed."""
    path: str = ""
    """Path of the URL."""
    port: Port = 0
    """Port on which the pods listen."""
    http_header: HttpHeader | None = None
    """A header to send."""


class TcpSocket(Wire):
    """A TCP connection to the pods of a task.

    Admission rejects this kind of probe, because Muster's controller does not connect to pods.
    """

    task_name: TaskName = ""
    """Name of the task whose pods are probed."""
    port: Port = 0
    """Port on which the pods listen."""


class TaskStatus(Wire):
    """A pod phase that the minimum number of a task's pods must reach; for Failed or Unknown, one pod suffices."""

    task_name: TaskName = ""
    """Name of a task in the Jobs of the targets."""
    phase: Annotated[str, Meta(max_length=63)] = ""
    """The pod phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`."""


class Probe(Wire):
    """A condition under which a dependency counts as met before the target's Job is completed."""

    http_get_list: list[HttpGet] = field(default_factory=list)
    """Admission rejects this field, because Muster's controller does not connect to pods."""
    tcp_socket_list: list[TcpSocket] = field(default_factory=list)
    """Admission rejects this field, because Muster's controller does not connect to pods."""
    task_status_list: list[TaskStatus] = field(default_factory=list)
    """Tasks and the pod phases that they must reach. The dependency on a target is met once all listed tasks of the
    target's Job have reached these phases."""


class FlowDependsOn(Wire):
    """The steps on which this step depends."""

    targets: list[str] = field(default_factory=list)
    """Names of steps of the same JobFlow. The Jobs of these steps must be completed before the dependent step's Job is
    created."""
    probe: Probe | None = None
    """A condition under which the dependency counts as met before the targets' Jobs are completed."""


class TaskPatch(Wire):
    """Changes to the task with this name, or an additional task. Fields that are left out stay unchanged."""

    name: str = ""
    """Name of the task."""
    replicas: scheduling.NonNegative | None = None
    """Number of pods."""
    min_available: scheduling.NonNegative | None = None
    """Number of this task's pods that must start together with the gang."""
    template: batch.PodTemplate = field(default_factory=dict)
    """Changes to the pod template, which are merged like `kubectl patch` does: containers, volumes and variables by
    name."""
    policies: list[batch.LifecyclePolicy] = field(default_factory=list)
    """Policies that replace all policies of the task."""
    topology_policy: batch.NumaPolicy = ""
    """NUMA policy, which is written to an annotation of the pods."""
    max_retry: Annotated[int, Meta(ge=-1)] = 0
    """Number of container restarts in this task after which the event TaskFailed occurs."""
    depends_on: batch.DependsOn | None = None
    """Tasks that must be ready before the pods of this task are created."""
    partition_policy: batch.PartitionPolicy | None = None
    """Division of the task into equal partitions."""


class JobPatch(Wire):
    """Changes to the spec of a JobTemplate. Fields that are left out stay unchanged."""

    scheduler_name: str = ""
    """Scheduler of pods whose template names none; a profile of Muster's kube-scheduler."""
    min_available: scheduling.NonNegative | None = None
    """Number of pods that must start together."""
    volumes: list[batch.VolumeSpec] = field(default_factory=list)
    """Additional volumes; a volume replaces an existing one with the same mount path."""
    tasks: list[TaskPatch] = field(default_factory=list)
    """Changes to tasks by name, and additional tasks."""
    policies: list[batch.LifecyclePolicy] = field(default_factory=list)
    """Policies that replace all policies of the Job."""
    plugins: dict[str, list[str]] = field(default_factory=dict)
    """Additional plugins, and additional arguments of existing plugins."""
    running_estimate: Duration | None = None
    """Field of Volcano's API that Muster stores but ignores."""
    queue: str = ""
    """The queue of the Job, which uses a part of the queue's share."""
    max_retry: scheduling.NonNegative | None = None
    """Number of failed attempts after which the Job fails: 3 allows the first run and two restarts."""
    ttl_seconds_after_finished: scheduling.NonNegative | None = None
    """Seconds after the Job's end until the Job is deleted."""
    priority_class_name: str = ""
    """PriorityClass of the gang."""
    min_success: Annotated[int, Meta(ge=1)] | None = None
    """Number of succeeded pods with which the Job is completed."""
    network_topology: scheduling.NetworkTopology | None = None
    """Required proximity of all pods of the Job in the network topology."""


class FlowPatch(Wire):
    """Changes to the JobTemplate for this step only."""

    job_spec: JobPatch | None = None
    """Changes to the JobTemplate's spec."""


class Flow(Wire):
    """One step of a JobFlow: a Job that is created from the JobTemplate with the step's name."""

    name: Annotated[str, Meta(min_length=1)] = ""
    """Name of the JobTemplate, which is in the namespace of the JobFlow. The Job is named `<JobFlow>-<name>`."""
    depends_on: FlowDependsOn | None = None
    """The steps on which this step depends."""
    patch: FlowPatch | None = None
    """Changes to the JobTemplate for this step only."""


class JobFlowSpec(Wire):
    """spec of a JobFlow."""

    flows: list[Flow] = field(default_factory=list)
    """The steps of the JobFlow."""
    job_retain_policy: RetainPolicy = ""
    """With `delete`, the Jobs are deleted when all of them are completed. With `retain`, the default, the Jobs are
    kept."""


class FlowHistory(Wire):
    """A phase that a Job has had, with the start time and end time of this phase."""

    start_timestamp: Time | None = None
    """Time when the controller first saw the phase."""
    end_timestamp: Time | None = None
    """Time when the controller first saw the next phase."""
    state: batch.Phase = ""
    """The phase of the Job."""


class FlowJobStatus(Wire):
    """History of one Job of the JobFlow. The entry is kept after the Job has been deleted."""

    name: str = ""
    """Name of the Job."""
    state: batch.Phase = ""
    """Latest phase of the Job."""
    start_timestamp: Time | None = None
    """Time of the Job's creation."""
    end_timestamp: Time | None = None
    """Time of the Job's end."""
    restart_count: scheduling.NonNegative = 0
    """Number of restarts of the Job."""
    running_histories: list[FlowHistory] = field(default_factory=list)
    """Latest phases of the Job."""


class FlowCondition(Wire):
    """State of an existing Job of the JobFlow."""

    phase: batch.Phase = ""
    """Phase of the Job."""
    create_time: Time | None = None
    """Time of the Job's creation."""
    running_duration: str | None = None
    """Time from the Job's creation to its end."""
    task_status_count: dict[str, batch.TaskState] = field(default_factory=dict)
    """Maps a task to the numbers of its pods in each phase."""


class FlowState(Wire):
    """Phase of a JobFlow."""

    phase: FlowPhase = ""
    """`Succeed` means that all Jobs are completed. `Failed` means that a Job has failed or was terminated; then no
    further Jobs are created."""
    message: str = ""
    """Reason why a due Job cannot be created; empty if there is no such problem."""


class JobFlowStatus(Wire):
    """status of a JobFlow.

    The lists contain the flow's Jobs by phase; a deleted Job stays listed under its last phase.
    """

    pending_jobs: list[str] = field(default_factory=list)
    """Names of the Jobs that are pending."""
    running_jobs: list[str] = field(default_factory=list)
    """Names of the Jobs that are running."""
    failed_jobs: list[str] = field(default_factory=list)
    """Names of the Jobs that have failed."""
    completed_jobs: list[str] = field(default_factory=list)
    """Names of the Jobs that are completed, or are completing."""
    terminated_jobs: list[str] = field(default_factory=list)
    """Names of the Jobs that are terminated, or are terminating."""
    un_know_jobs: list[str] = field(default_factory=list)
    """Names of the Jobs in other phases: restarting, aborting or aborted."""
    job_status_list: list[FlowJobStatus] = field(default_factory=list)
    """History of each Job that was created, with its latest phases."""
    conditions: dict[str, FlowCondition] = field(default_factory=dict)
    """State of each existing Job, with the numbers of its pods in each phase."""
    state: FlowState = field(default_factory=FlowState)
    """Phase of the JobFlow."""


class JobFlow(Object):
    """A workflow of Jobs that depend on each other."""

    spec: JobFlowSpec = field(default_factory=JobFlowSpec)
    """Desired state."""
    status: JobFlowStatus = field(default_factory=JobFlowStatus)
    """Observed state; the controller writes it."""


JOB_FLOWS = Resource("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow", JobFlow)


class JobTemplateStatus(Wire):
    """status of a JobTemplate."""

    job_depends_on_list: list[str] = field(default_factory=list)
    """Names of existing Jobs that were created from the JobTemplate. Of very many Jobs, only the first ones are
    listed."""


class JobTemplate(Object):
    """A template from which JobFlows create Jobs."""

    spec: batch.JobSpec = field(default_factory=batch.JobSpec)
    """spec of the Jobs that are created from the template."""
    status: JobTemplateStatus = field(default_factory=JobTemplateStatus)
    """Observed state; the controller writes it."""


JOB_TEMPLATES = Resource("flow.volcano.sh", "v1alpha1", "jobtemplates", "JobTemplate", JobTemplate)


def job_name(flow: JobFlow, step: str) -> str:
    """Return the name of the Job that belongs to a step."""
    return f"{flow.metadata.name}-{step}"
