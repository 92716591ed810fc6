"""jobset.x-k8s.io/v1alpha2: JobSet, as far as runtimes embed it and TrainJobs become JobSets."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Condition, JobTemplate, Object, TemplateMeta
from muster.api.volcano import batch, scheduling

JobSetRestartStrategy = Literal["Recreate", "BlockingRecreate", "InPlaceRestart"]
FailurePolicyAction = Literal[
    "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts", "RestartJob", "RestartJobAndIgnoreMaxRestarts"
]


class JobDependency(Wire):
    """A replicated job, and the state that it must reach before this one is created."""

    name: str
    """An earlier replicated job."""
    status: Literal["Ready", "Complete"]
    """The state that it must reach."""


class ReplicatedJob(Wire):
    """Jobs of one template: one pod set of the workload."""

    name: str
    """Name of the replicated job, which is a part of the names of its Jobs and pods."""
    template: JobTemplate
    """The template of its Jobs; `parallelism` is the number of pods."""
    group_name: str = "default"
    """The group of replicated jobs that it belongs to; `default` if left out."""
    replicas: int = 1
    """Number of Jobs; 1 if left out."""
    depends_on: list[JobDependency] = field(default_factory=list)
    """Replicated jobs that must be ready or complete before this one is created."""


class Network(Wire):
    """DNS names of the pods."""

    enable_dns_hostnames: bool | None = field(default=None, name="enableDNSHostnames")
    """Give pods host names; true if left out."""
    subdomain: str = ""
    """Name of the pods' headless Service; the workload's name if left out."""
    publish_not_ready_addresses: bool | None = None
    """Resolve names of pods before they are ready; true if left out."""


class SuccessPolicy(Wire):
    """Condition on which the workload is complete."""

    operator: Literal["All", "Any"]
    """All: every target job must succeed; Any: one success suffices."""
    target_replicated_jobs: list[str] = field(default_factory=list)
    """The replicated jobs that count; all if left out."""


class FailurePolicyRule(Wire):
    """Action for Jobs of the set that fail in a certain way."""

    name: str
    """The name of the rule."""
    action: FailurePolicyAction
    """The action."""
    on_job_failure_reasons: list[str] = field(default_factory=list)
    """Reasons of the Job's failure to which the rule applies; all if left out."""
    on_job_failure_message_patterns: list[str] = field(default_factory=list)
    """Regular expressions for the Job's message; all if left out."""
    target_replicated_jobs: list[str] = field(default_factory=list)
    """Replicated jobs to which the rule applies; all if left out."""


class FailurePolicy(Wire):
    """Restarts of the set after a failure, and their limit."""

    max_restarts: int = 0
    """Number of restarts of the whole set before it has failed."""
    restart_strategy: JobSetRestartStrategy = "Recreate"
    """Way in which the set starts again."""
    rules: list[FailurePolicyRule] = field(default_factory=list)
    """The first matching rule decides; without a matching rule, the set is restarted."""


class StartupPolicy(Wire):
    """Order in which replicated jobs start; `dependsOn` is its newer form."""

    startup_policy_order: Literal["AnyOrder", "InOrder"]
    """InOrder: each replicated job starts when all Jobs of the previous one are ready."""


class Coordinator(Wire):
    """The coordinator, whose address all pods get as an annotation."""

    replicated_job: str
    """Replicated job of the coordinator."""
    job_index: int = 0
    """Index of the coordinator's Job."""
    pod_index: int = 0
    """Completion index of the coordinator's pod."""


class ClaimTemplate(Wire):
    """A claim to create for the set, named `<claim>-<set>`."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Name of the claim, which containers mount, and its labels."""
    spec: batch.ClaimSpec | None = None
    """Spec of the claim."""


class RetentionPolicy(Wire):
    """Retention of claims."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"
    """Delete, or left out: claims are deleted with the set; Retain: claims stay."""


class VolumeClaimPolicy(Wire):
    """Claims that the pods of the set share."""

    templates: Annotated[list[ClaimTemplate], Meta(max_length=50)] = field(default_factory=list)
    """The claims."""
    retention_policy: RetentionPolicy | None = None
    """Retention of the claims."""


class JobSetSpec(Wire):
    """spec of a JobSet."""

    replicated_jobs: list[ReplicatedJob] = field(default_factory=list)
    """The pod sets."""
    network: Network | None = None
    """DNS names of the pods."""
    success_policy: SuccessPolicy | None = None
    """Condition on which the workload is complete."""
    failure_policy: FailurePolicy | None = None
    """Restarts of the set after a failure, and their limit."""
    startup_policy: StartupPolicy | None = None
    """Order in which replicated jobs start."""
    suspend: bool | None = None
    """Delete the pods, and create them again when this is false."""
    coordinator: Coordinator | None = None
    """The coordinator, whose address all pods get as an annotation."""
    managed_by: str | None = None
    """Controller of the set."""
    ttl_seconds_after_finished: scheduling.NonNegative | None = None
    """The set is deleted this many seconds after it finished; kept if unset."""
    volume_claim_policies: Annotated[list[VolumeClaimPolicy], Meta(max_length=50)] = field(default_factory=list)
    """Claims that the pods share."""


class ReplicatedJobStatus(Wire):
    """Jobs of one replicated job, counted by state. Zeros are written too, because the schema requires them."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the replicated job."""
    ready: scheduling.NonNegative
    """Number of Jobs all of whose pods are ready or have succeeded."""
    succeeded: scheduling.NonNegative
    """Number of Jobs that have succeeded."""
    failed: scheduling.NonNegative
    """Number of Jobs that have failed."""
    active: scheduling.NonNegative
    """Number of Jobs with pods that are pending or running."""
    suspended: scheduling.NonNegative
    """Number of Jobs that are suspended."""


class JobSetStatus(Wire):
    """status of a JobSet."""

    conditions: list[Condition] = field(default_factory=list)
    """Completed, Failed, Suspended and others."""
    replicated_jobs_status: list[ReplicatedJobStatus] = field(default_factory=list)
    """Status of each replicated job."""
    restarts: int = 0
    """Number of restarts of the whole set so far."""


class JobSet(Object):
    """A set of Jobs; Muster does not install its CRD."""

    spec: JobSetSpec = field(default_factory=JobSetSpec)
    """Desired state."""
    status: JobSetStatus = field(default_factory=JobSetStatus)
    """Observed state."""


JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", JobSet)
