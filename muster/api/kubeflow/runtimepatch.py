"""Changes that a TrainJob makes to its runtime's template, grouped by the component or user that requests them."""

from typing import Annotated

from msgspec import Meta, field

from muster.api.base import Wire
from muster.api.kubernetes import meta

Name = Annotated[str, Meta(min_length=1, max_length=253)]
Envs = Annotated[list[meta.Env], Meta(max_length=128)]


class ContainerPatch(Wire):
    """Changes to one container."""

    name: Name
    """Name of a container in the runtime's template."""
    env: Envs = field(default_factory=list)
    """Environment variables to add or replace. For the trainer's and initializers' own containers, use `spec.trainer`
    and `spec.initializer`."""
    volume_mounts: Annotated[list[meta.VolumeMount], Meta(max_length=128)] = field(default_factory=list)
    """Volume mounts to add or replace; at most one mount for each volume."""
    security_context: meta.SecurityContext | None = None
    """Fields that replace the same fields of the container's securityContext."""


class PodSpecPatch(Wire):
    """Changes to a pod's spec. After creation, only constraints on nodes may change, while the job is suspended."""

    service_account_name: Annotated[str, Meta(max_length=253)] | None = None
    """The service account of the pods."""
    volumes: Annotated[list[meta.Volume], Meta(max_length=128)] = field(default_factory=list)
    """Volumes to add or replace."""
    init_containers: Annotated[list[ContainerPatch], Meta(max_length=64)] = field(default_factory=list)
    """Changes to init containers."""
    containers: Annotated[list[ContainerPatch], Meta(max_length=64)] = field(default_factory=list)
    """Changes to containers."""
    image_pull_secrets: Annotated[list[meta.LocalReference], Meta(max_length=64)] = field(default_factory=list)
    """Secrets with which the kubelet pulls images."""
    security_context: meta.PodSecurityContext | None = None
    """Fields that replace the same fields of the pod's securityContext."""
    termination_grace_period_seconds: Annotated[int, Meta(ge=0)] | None = None
    """Seconds that a pod gets to terminate."""
    node_selector: dict[str, str] = field(default_factory=dict)
    """Node labels to add or replace."""
    affinity: meta.Affinity | None = None
    """Fields that replace the same fields of the pod's affinity."""
    tolerations: Annotated[list[meta.Toleration], Meta(max_length=128)] = field(default_factory=list)
    """Tolerations that replace all tolerations of the pod."""
    scheduling_gates: Annotated[list[meta.SchedulingGate], Meta(max_length=16)] = field(default_factory=list)
    """Scheduling gates to add."""


class PodTemplatePatch(Wire):
    """Changes to a pod template."""

    metadata: meta.TemplateMeta | None = None
    """Labels and annotations to add or replace."""
    spec: PodSpecPatch | None = None
    """Changes to the pod's spec."""


class JobSpecPatch(Wire):
    """Changes to a Job's spec."""

    template: PodTemplatePatch | None = None
    """Changes to the Job's pod template."""


class JobTemplatePatch(Wire):
    """Changes to a Job template."""

    metadata: meta.TemplateMeta | None = None
    """Labels and annotations to add or replace."""
    spec: JobSpecPatch | None = None
    """Changes to the Job's spec."""


class ReplicatedJobPatch(Wire):
    """Changes to one replicated job."""

    name: Annotated[str, Meta(min_length=1, max_length=253, pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """Name of a replicated job in the runtime's template."""
    template: JobTemplatePatch | None = None
    """Changes to the Job template of the replicated job."""


class JobSetSpecPatch(Wire):
    """Changes to a JobSet's spec."""

    replicated_jobs: Annotated[list[ReplicatedJobPatch], Meta(max_length=100)] = field(default_factory=list)
    """Changes to replicated jobs; each entry names one replicated job."""


class JobSetTemplatePatch(Wire):
    """Changes to the template of a runtime."""

    metadata: meta.TemplateMeta | None = None
    """Labels and annotations to add or replace."""
    spec: JobSetSpecPatch | None = None
    """Changes to the spec of the JobSet."""


class TrainingRuntimeSpecPatch(Wire):
    """Changes to a runtime's spec."""

    template: JobSetTemplatePatch | None = None
    """Changes to the template."""


class RuntimePatch(Wire):
    """All changes by one manager. Patches are applied in the order of the list."""

    manager: Name
    """The component or user who requests these changes, as a domain-prefixed path such as `kueue.x-k8s.io/manager`."""
    time: meta.Time | None = None
    """Time of the last change. The webhook sets this time, but leaves it unset for `kubectl apply` without
    `--server-side`."""
    training_runtime_spec: TrainingRuntimeSpecPatch | None = None
    """Changes to the runtime's spec."""

    @property
    def replicated_jobs(self) -> list[ReplicatedJobPatch]:
        """The changes to replicated jobs."""
        template = self.training_runtime_spec.template if self.training_runtime_spec else None
        return template.spec.replicated_jobs if template and template.spec else []
