"""jobset.x-k8s.io/v1alpha2: JobSet, with the fields that runtimes embed and that Muster creates for TrainJobs."""

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
    """An earlier replicated job, and the state that it must reach before the dependent replicated job is created."""

    name: str
    """Name of an earlier replicated job."""
    status: Literal["Ready", "Complete"]
    """The state that the earlier replicated job must reach: Ready or Complete."""


class ReplicatedJob(Wire):
    """Jobs of one template: one pod set of the workload."""

    name: str
    """Name of the replicated job, which is a part of the names of its Jobs and pods."""
    template: JobTemplate
    """The template of its Jobs; `parallelism` is the number of pods."""
    group_name: str = "default"
    """The group of replicated jobs to which this replicated job belongs; `default` if left out."""
    replicas: int = 1
    """Number of Jobs of the replicated job; 1 if left out."""
    depends_on: list[JobDependency] = field(default_factory=list)
    """Replicated jobs that must be ready or complete before this replicated job is created."""


class Network(Wire):
    """Settings for the DNS names of the pods."""

    enable_dns_hostnames: bool | None = field(default=None, name="enableDNSHostnames")
    """If true, pods get host names, by which they can find each other; true if left out."""
    subdomain: str = ""
    """Name of the pods' headless Service; the workload's name if left out."""
    publish_not_ready_addresses: bool | None = None
    """If true, the pods' DNS names can be resolved before the pods are ready; true if left out."""


class SuccessPolicy(Wire):
    """Condition under which the workload is complete."""

    operator: Literal["All", "Any"]
    """With `All`, every target Job must succeed. With `Any`, the success of one target Job suffices."""
    target_replicated_jobs: list[str] = field(default_factory=list)
    """The target replicated jobs, whose success completes the workload; all replicated jobs if left out."""


class FailurePolicyRule(Wire):
    """A rule for failed Jobs of the set that match its conditions."""

    name: str
    """The name of the rule."""
    action: FailurePolicyAction
    """The action to take when the rule matches."""
    on_job_failure_reasons: list[str] = field(default_factory=list)
    """Reasons of Job failures to which the rule applies; all reasons if left out."""
    on_job_failure_message_patterns: list[str] = field(default_factory=list)
    """Regular expressions for failure messages of Jobs, one of which must match; the rule applies to all messages if
    left out."""
    target_replicated_jobs: list[str] = field(default_factory=list)
    """Replicated jobs to which the rule applies; all if left out."""


class FailurePolicy(Wire):
    """The number of restarts after failures, and rules for certain failures."""

    max_restarts: int = 0
    """Maximum number of restarts of the whole set. One more failure fails the set."""
    restart_strategy: JobSetRestartStrategy = "Recreate"
    """Way in which Jobs are replaced when the set restarts."""
    rules: list[FailurePolicyRule] = field(default_factory=list)
    """Rules for failed Jobs; the first matching rule applies. If no rule matches, the set is restarted."""


class StartupPolicy(Wire):
    """Order in which replicated jobs start; `dependsOn` of a replicated job is the newer way to define this order."""

    startup_policy_order: Literal["AnyOrder", "InOrder"]
    """With `InOrder`, each replicated job starts when all Jobs of the previous one are ready."""


class Coordinator(Wire):
    """The pod that coordinates the other pods of the set.

    The coordinator's address is written to an annotation of all pods.
    """

    replicated_job: str
    """Name of the replicated job that contains the coordinator."""
    job_index: int = 0
    """Index of the coordinator's Job."""
    pod_index: int = 0
    """Completion index of the coordinator's pod."""


class ClaimTemplate(Wire):
    """Template of a PersistentVolumeClaim that is created for the set, with the name `<claim>-<set>`."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels of the claim, and the name by which containers mount the claim."""
    spec: batch.ClaimSpec | None = None
    """Spec of the PersistentVolumeClaim."""


class RetentionPolicy(Wire):
    """Retention of the PersistentVolumeClaims after the set is deleted."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"
    """With `Delete`, the default, the claims are deleted together with the set. With `Retain`, the claims are kept."""


class VolumeClaimPolicy(Wire):
    """PersistentVolumeClaims that the pods of the set share."""

    templates: Annotated[list[ClaimTemplate], Meta(max_length=50)] = field(default_factory=list)
    """Templates of the PersistentVolumeClaims."""
    retention_policy: RetentionPolicy | None = None
    """Retention of the PersistentVolumeClaims after the set is deleted."""


class JobSetSpec(Wire):
    """spec of a JobSet."""

    replicated_jobs: list[ReplicatedJob] = field(default_factory=list)
    """The replicated jobs of the set; each one is a pod set of the workload."""
    network: Network | None = None
    """Settings for the DNS names of the pods."""
    success_policy: SuccessPolicy | None = None
    """Condition under which the workload is complete."""
    failure_policy: FailurePolicy | None = None
    """The number of restarts after failures, and rules for certain failures."""
    startup_policy: StartupPolicy | None = None
    """Order in which replicated jobs start."""
    suspend: bool | None = None
    """If true, the set's pods are deleted; the pods are created again once the field is false."""
    coordinator: Coordinator | None = None
    """The pod that coordinates the other pods of the set. The coordinator's address is written to an annotation of all
    pods."""
    managed_by: str | None = None
    """Name of the controller that manages the set."""
    ttl_seconds_after_finished: scheduling.NonNegative | None = None
    """Seconds after the end of the set until it is deleted; the set is kept if unset."""
    volume_claim_policies: Annotated[list[VolumeClaimPolicy], Meta(max_length=50)] = field(default_factory=list)
    """PersistentVolumeClaims that the pods of the set share."""


class ReplicatedJobStatus(Wire):
    """Numbers of Jobs of one replicated job, by state.

    Counts of zero are written too, because the schema requires all fields.
    """

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the replicated job."""
    ready: scheduling.NonNegative
    """Number of Jobs whose pods are all ready or have succeeded."""
    succeeded: scheduling.NonNegative
    """Number of Jobs that have succeeded."""
    failed: scheduling.NonNegative
    """Number of Jobs that have failed."""
    active: scheduling.NonNegative
    """Number of Jobs that have pending or running pods."""
    suspended: scheduling.NonNegative
    """Number of Jobs that are suspended."""


class JobSetStatus(Wire):
    """status of a JobSet."""

    conditions: list[Condition] = field(default_factory=list)
    """Conditions of the set: Completed, Failed, Suspended and others."""
    replicated_jobs_status: list[ReplicatedJobStatus] = field(default_factory=list)
    """Status of each replicated job."""
    restarts: int = 0
    """Number of restarts of the whole set so far."""


class JobSet(Object):
    """A set of Jobs that run together. Muster does not install the CRD of JobSet."""

    spec: JobSetSpec = field(default_factory=JobSetSpec)
    """Desired state."""
    status: JobSetStatus = field(default_factory=JobSetStatus)
    """Observed state."""


JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", JobSet)
