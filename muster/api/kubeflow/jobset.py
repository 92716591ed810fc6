"""jobset.x-k8s.io/v1alpha2: JobSet, as far as runtimes embed it and TrainJobs become one."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.embedded import JobTemplate
from muster.api.kubernetes.meta import Condition, Object, TemplateMeta
from muster.api.volcano.batch import ClaimSpec
from muster.api.volcano.scheduling import NonNegative

JobSetRestartStrategy = Literal["Recreate", "BlockingRecreate", "InPlaceRestart"]
FailurePolicyAction = Literal[
    "FailJobSet",
    "RestartJobSet",
    "RestartJobSetAndIgnoreMaxRestarts",
    "RestartJob",
    "RestartJobAndIgnoreMaxRestarts",
]


class JobDependency(Wire):
    """A replicated job that must be so far before this one is created."""

    name: str
    """An earlier replicated job."""
    status: Literal["Ready", "Complete"]
    """How far it must be."""


class ReplicatedJob(Wire):
    """Jobs of one template: one pod set of the workload."""

    name: str
    """Part of the names of its Jobs and pods."""
    template: JobTemplate
    """The template of its Jobs; `parallelism` is the number of pods."""
    group_name: str = "default"
    """The group of replicated jobs that it belongs to."""
    replicas: int = 1
    """Number of Jobs."""
    depends_on: list[JobDependency] = field(default_factory=list)
    """Replicated jobs that must be so far before this one is created."""


class Network(Wire):
    """How the pods find each other."""

    enable_dns_hostnames: bool | None = field(default=None, name="enableDNSHostnames")
    """Whether pods have host names; true if left out."""
    subdomain: str = ""
    """The headless Service of the pods; named as the workload if left out."""
    publish_not_ready_addresses: bool | None = None
    """Whether pods are found before they are ready; true if left out."""


class SuccessPolicy(Wire):
    """When the workload is complete."""

    operator: Literal["All", "Any"]
    """Whether all of the named jobs must succeed or any."""
    target_replicated_jobs: list[str] = field(default_factory=list)
    """The replicated jobs that count; all if left out."""


class FailurePolicyRule(Wire):
    """What to do when a Job of the set fails in a certain way."""

    name: str
    """The name of the rule."""
    action: FailurePolicyAction
    """What to do."""
    on_job_failure_reasons: list[str] = field(default_factory=list)
    """Reasons of the Job's failure that this rule is for; all if left out."""
    on_job_failure_message_patterns: list[str] = field(default_factory=list)
    """Regular expressions for the Job's message; all if left out."""
    target_replicated_jobs: list[str] = field(default_factory=list)
    """The replicated jobs that the rule is for; all if left out."""


class FailurePolicy(Wire):
    """When the workload is started again, and when it has failed."""

    max_restarts: int = 0
    """How often the whole set may start again."""
    restart_strategy: JobSetRestartStrategy = "Recreate"
    """How it starts again."""
    rules: list[FailurePolicyRule] = field(default_factory=list)
    """The first rule that matches decides; the set is restarted if none does."""


class StartupPolicy(Wire):
    """In what order replicated jobs start; `dependsOn` is the newer way to say it."""

    startup_policy_order: Literal["AnyOrder", "InOrder"]
    """InOrder: each one when all Jobs of the one before are ready."""


class Coordinator(Wire):
    """The pod that the others are told about."""

    replicated_job: str
    """Its replicated job."""
    job_index: int = 0
    """Its Job."""
    pod_index: int = 0
    """Its completion index."""


class ClaimTemplate(Wire):
    """A claim to create for the set, named `<claim>-<set>`."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Its name, which containers mount, and its labels."""
    spec: ClaimSpec | None = None
    """What is claimed."""


class RetentionPolicy(Wire):
    """What becomes of claims."""

    when_deleted: Literal["Delete", "Retain"] = "Delete"
    """Whether claims go away with the set."""


class VolumeClaimPolicy(Wire):
    """Claims that the pods of the set share."""

    templates: Annotated[list[ClaimTemplate], Meta(max_length=50)] = field(default_factory=list)
    """The claims."""
    retention_policy: RetentionPolicy | None = None
    """What becomes of them."""


class JobSetSpec(Wire):
    """spec of a JobSet."""

    replicated_jobs: list[ReplicatedJob] = field(default_factory=list)
    """The pod sets."""
    network: Network | None = None
    """How the pods find each other."""
    success_policy: SuccessPolicy | None = None
    """When the workload is complete."""
    failure_policy: FailurePolicy | None = None
    """When the workload is started again, and when it has failed."""
    startup_policy: StartupPolicy | None = None
    """In what order replicated jobs start."""
    suspend: bool | None = None
    """Whether the pods are taken away for the time being."""
    coordinator: Coordinator | None = None
    """The pod that the others are told about."""
    managed_by: str | None = None
    """The controller that is responsible."""
    ttl_seconds_after_finished: NonNegative | None = None
    """The set is deleted this many seconds after it finished; kept if unset."""
    volume_claim_policies: Annotated[list[VolumeClaimPolicy], Meta(max_length=50)] = field(default_factory=list)
    """Claims that the pods share."""


class ReplicatedJobStatus(Wire):
    """Jobs of one replicated job, counted by state. All counts are written, zeros too: clients insist on them."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """The replicated job."""
    ready: NonNegative
    """Jobs all of whose pods are ready or have succeeded."""
    succeeded: NonNegative
    """Jobs that succeeded."""
    failed: NonNegative
    """Jobs that failed."""
    active: NonNegative
    """Jobs with pods that are pending or running."""
    suspended: NonNegative
    """Jobs that are suspended."""


class JobSetStatus(Wire):
    """status of a JobSet."""

    conditions: list[Condition] = field(default_factory=list)
    """Completed, Failed, Suspended and others."""
    replicated_jobs_status: list[ReplicatedJobStatus] = field(default_factory=list)
    """Each replicated job."""
    restarts: int = 0
    """How often the whole set was started again."""


class JobSet(Object):
    """A set of Jobs; its CRD is not Muster's."""

    spec: JobSetSpec = field(default_factory=JobSetSpec)
    """What to run."""
    status: JobSetStatus = field(default_factory=JobSetStatus)
    """What became of it."""


JOB_SETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", JobSet)
