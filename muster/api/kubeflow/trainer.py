"""trainer.kubeflow.org/v1alpha1: TrainJob, and the labels of the runtimes to which TrainJobs refer."""

from typing import Annotated

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubeflow import jobset, runtimepatch
from muster.api.kubernetes.meta import JSON, Condition, IntOrString, LocalReference, Object, Resources, Time
from muster.api.volcano.scheduling import NonNegative

GROUP = "trainer.kubeflow.org"
VERSION = "v1alpha1"
CONTROLLER = f"{GROUP}/trainjob-controller"

# Labels of runtimes.
ANCESTOR = f"{GROUP}/trainjob-ancestor-step"  # on a Job template: the step of the TrainJob
RUNTIME_FRAMEWORK = f"{GROUP}/framework"
SUPPORT = f"{GROUP}/support"
DEPRECATED = "deprecated"
WEBHOOK_VALIDATION = f"{GROUP}/webhook-validation"

# Steps, which are also the names of their containers except for the trainer, whose container is `node`.
TRAINER = "trainer"
NODE = "node"
LAUNCHER = "launcher"
DATASET_INITIALIZER = "dataset-initializer"
MODEL_INITIALIZER = "model-initializer"

Uri = Annotated[str, Meta(max_length=2048)]
Arguments = Annotated[list[str], Meta(max_length=128)]


class RuntimeRef(Wire):
    """Reference to the runtime of a TrainJob."""

    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the runtime. A TrainingRuntime must be in the namespace of the TrainJob."""
    api_group: Annotated[str, Meta(max_length=253)] = GROUP
    """The API group of the runtime."""
    kind: Annotated[str, Meta(max_length=253)] = "ClusterTrainingRuntime"
    """ClusterTrainingRuntime or TrainingRuntime."""


class StepInitializer(Wire):
    """Download of a dataset or model before the training."""

    storage_uri: Uri | None = None
    """URI of the source, such as `hf://…` or `s3://…`."""
    env: runtimepatch.Envs = field(default_factory=list)
    """Environment variables of the initializer's container."""
    secret_ref: LocalReference | None = None
    """A Secret with credentials, whose keys become environment variables."""


class Initializer(Wire):
    """Downloads of the dataset and model before the training starts."""

    dataset: StepInitializer | None = None
    """Download of the dataset."""
    model: StepInitializer | None = None
    """Download of the pre-trained model."""


class Trainer(Wire):
    """The training settings of this TrainJob; for each unset field, the runtime's setting applies."""

    image: Annotated[str, Meta(max_length=500)] | None = None
    """Image of container `node`."""
    command: Arguments = field(default_factory=list)
    """Command of container `node`."""
    args: Arguments = field(default_factory=list)
    """Arguments of container `node`."""
    env: runtimepatch.Envs = field(default_factory=list)
    """Environment variables of container `node`."""
    num_nodes: NonNegative | None = None
    """Number of nodes, each of which is one pod."""
    num_proc_per_node: IntOrString | None = None
    """Number of processes in each pod; for Torch, `auto`, `cpu` or `gpu` is also valid."""
    resources_per_node: Resources | None = None
    """Resources of container `node`, which override the same resources in the runtime."""


class TrainJobSpec(Wire):
    """spec of a TrainJob. After creation only `suspend` and `runtimePatches` may change."""

    runtime_ref: RuntimeRef
    """Reference to the runtime of the TrainJob."""
    initializer: Initializer | None = None
    """Downloads of the dataset and model before the training starts."""
    trainer: Trainer | None = None
    """Training settings that override the runtime's."""
    runtime_patches: Annotated[list[runtimepatch.RuntimePatch], Meta(max_length=16)] = field(default_factory=list)
    """Changes to the runtime's template, with one entry per manager."""
    suspend: bool = False
    """If true, the job's pods are deleted; the pods are created again once the field is false."""
    active_deadline_seconds: Annotated[int, Meta(ge=1)] | None = None
    """Maximum duration of the job in seconds, counted from its start. A job that runs longer than this duration
    fails."""
    managed_by: Annotated[str, Meta(max_length=253)] | None = None
    """Name of the controller that manages the job: Muster's unless this is `kueue.x-k8s.io/multikueue`."""
    pod_template_overrides: list[JSON] = field(default_factory=list)
    """Unused field of Trainer 2.1, about which admission warns; use `runtimePatches` instead."""
    pod_spec_overrides: list[JSON] = field(default_factory=list)
    """Unused field of Trainer 2.0, about which admission warns; use `runtimePatches` instead."""
    labels: dict[str, str] = field(default_factory=dict)
    """Unused field of Trainer up to 2.1, about which admission warns; use `runtimePatches` instead."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Unused field of Trainer up to 2.1, about which admission warns; use `runtimePatches` instead."""


class Metric(Wire):
    """The value of one metric that the training reports."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    """Name of the metric."""
    value: Annotated[str, Meta(min_length=1, max_length=64)]
    """Value of the metric."""


class TrainerStatus(Wire):
    """Progress that the training reports."""

    progress_percentage: Annotated[int, Meta(ge=0, le=100)] | None = None
    """Percentage of the training that is complete."""
    estimated_remaining_seconds: NonNegative | None = None
    """Estimated number of seconds until the training ends."""
    metrics: Annotated[list[Metric], Meta(max_length=256)] = field(default_factory=list)
    """Metrics of the model."""
    last_updated_time: Time | None = None
    """Time of the report."""


class TrainJobStatus(Wire):
    """status of a TrainJob."""

    conditions: Annotated[list[Condition], Meta(max_length=8)] = field(default_factory=list)
    """Conditions of the type Suspended, Complete, Failed, Waiting or Blocked; none while the job starts or runs."""
    jobs_status: Annotated[list[jobset.ReplicatedJobStatus], Meta(max_length=100)] = field(default_factory=list)
    """Status of each replicated job."""
    trainer_status: TrainerStatus | None = None
    """Progress that the training reports."""
    runtime_digest: Annotated[str, Meta(max_length=128)] = ""
    """Digest of the runtime version that this TrainJob uses; the ConfigMap `<name>-runtime-snapshot` contains that
    version."""


class TrainJob(Object, kw_only=True):
    """A training job: a reference to a runtime, and the settings of this run."""

    spec: TrainJobSpec
    """Desired state."""
    status: TrainJobStatus = field(default_factory=TrainJobStatus)
    """Observed state; the controller writes it."""

    @property
    def managed_here(self) -> bool:
        """True if Muster's controller in this cluster manages the job."""
        return self.spec.managed_by in {None, "", CONTROLLER}

    @property
    def blocked(self) -> str:
        """Reason why an object of the TrainJob cannot be created; "" if there is no such problem."""
        held = (each for each in self.status.conditions if (each.type, each.status) == ("Blocked", "True"))
        return next((each.message for each in held), "")


JOB_FAILURES = "jobset failed due to one or more job failures: "
"""Beginning of the message of a TrainJob whose Job has failed. The JobSet controller writes the same text when a JobSet
fails."""
TRAIN_JOBS = Resource(GROUP, VERSION, "trainjobs", "TrainJob", TrainJob)
