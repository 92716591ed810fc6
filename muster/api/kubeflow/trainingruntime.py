"""trainer.kubeflow.org/v1alpha1: TrainingRuntime and ClusterTrainingRuntime, to which TrainJobs refer."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubeflow import jobset, trainer
from muster.api.kubernetes.meta import IntOrString, Object, TemplateMeta
from muster.api.volcano.scheduling import NonNegative


class EnvTarget(Wire):
    """Containers of a replicated job that get the same environment variables as the trainer's container."""

    job_name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the replicated job."""
    container_names: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=63)]], Meta(min_length=1, max_length=8)
    ]
    """Names of containers or init containers of this replicated job."""


class EnvInjection(Wire):
    """Additional containers that get the environment variables of the trainer's container."""

    targets: Annotated[list[EnvTarget], Meta(max_length=16)] = field(default_factory=list)
    """The additional containers, grouped by replicated job."""


class ElasticPolicy(Wire):
    """Elastic Torch training: the number of nodes may change while the training runs."""

    min_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Minimum number of nodes that the training needs."""
    max_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Maximum number of nodes that the training can use."""
    max_restarts: NonNegative | None = None
    """Number of times that the workers are restarted before the training fails."""


class TorchPolicy(Wire):
    """Settings for training with torchrun."""

    num_proc_per_node: IntOrString | None = None
    """Number of processes in each pod if the TrainJob does not set it: a number, `auto`, `cpu` or `gpu`."""
    elastic_policy: ElasticPolicy | None = None
    """If set, the training is elastic; the policy limits the training's number of nodes."""
    env_injection: EnvInjection | None = None
    """Additional containers that get the environment variables of the trainer's container."""


class MPIPolicy(Wire):
    """Settings for training with MPI: a launcher starts the processes on the nodes with mpirun."""

    num_proc_per_node: Annotated[int, Meta(ge=1)] = 1
    """Number of MPI slots on each node. The value 1 means one slot for each GPU of the node."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH", ""] = "OpenMPI"
    """MPI implementation, which determines the syntax of the hostfile and the names of the environment variables."""
    ssh_auth_mount_path: str = "/root/.ssh"
    """Path at which the ssh keys are mounted."""
    run_launcher_as_node: bool = False
    """If true, the launcher also runs training processes."""


class JAXPolicy(Wire):
    """Training with JAX's distributed runtime; this framework has no settings."""


class XGBoostPolicy(Wire):
    """Training with XGBoost's tracker; this framework has no settings."""


class FluxPolicy(Wire):
    """Settings for training with Flux. Muster stores this policy, but rejects TrainJobs that use it."""

    num_proc_per_node: Annotated[int, Meta(ge=1)] = 1
    """Number of processes on each node."""


class MLPolicy(Wire):
    """Number of nodes of the training, and the settings of its framework."""

    num_nodes: int | None = None
    """Number of nodes if the TrainJob does not set it; 1 by default."""
    torch: TorchPolicy | None = None
    """Run the training with torchrun."""
    mpi: MPIPolicy | None = None
    """Run the training with MPI: a launcher starts the processes with mpirun."""
    jax: JAXPolicy | None = None
    """Run the training with JAX's distributed runtime."""
    xgboost: XGBoostPolicy | None = None
    """Run the training with XGBoost's tracker."""
    flux: FluxPolicy | None = None
    """Run the training with Flux, which Muster does not support."""


class CoschedulingPolicy(Wire):
    """A request for a PodGroup of the coscheduling plugin."""

    schedule_timeout_seconds: int = 60
    """Maximum time for scheduling the whole gang, in seconds."""


class VolcanoTopology(Wire):
    """Requirement that the pods run close to each other in the network topology."""

    mode: Literal["hard", "soft"] = "hard"
    """With `hard`, the pods wait until the requirement can be met. With `soft`, the pods are placed as close together
    as possible."""
    highest_tier_allowed: NonNegative = 1
    """Highest network level that the pods may span; 1 is the lowest."""


class VolcanoPolicy(Wire):
    """A request for a PodGroup of Volcano's API, which Muster also uses."""

    network_topology: VolcanoTopology | None = None
    """Requirement that the pods run close to each other in the network topology."""


class PodGroupPolicy(Wire):
    """Makes the pods a gang, which starts together or not at all."""

    coscheduling: CoschedulingPolicy | None = None
    """Use a PodGroup of the coscheduling plugin."""
    volcano: VolcanoPolicy | None = None
    """Use a PodGroup of Volcano's API."""


class JobSetTemplate(Wire):
    """The template of the JobSet that a TrainJob describes."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of the JobSet."""
    spec: jobset.JobSetSpec = field(default_factory=jobset.JobSetSpec)
    """Spec of the JobSet."""


class TrainingRuntimeSpec(Wire):
    """spec of TrainingRuntimes and ClusterTrainingRuntimes."""

    ml_policy: MLPolicy | None = None
    """Number of nodes of the training, and the settings of its framework."""
    pod_group_policy: PodGroupPolicy | None = None
    """Makes the pods a gang, which starts together or not at all."""
    template: JobSetTemplate = field(default_factory=JobSetTemplate)
    """Template of the JobSet that a TrainJob with this runtime describes."""


class TrainingRuntime(Object):
    """A runtime for the TrainJobs of its namespace."""

    spec: TrainingRuntimeSpec = field(default_factory=TrainingRuntimeSpec)
    """Settings for the TrainJobs that refer to this runtime."""


class ClusterTrainingRuntime(Object):
    """A runtime for the TrainJobs of all namespaces."""

    spec: TrainingRuntimeSpec = field(default_factory=TrainingRuntimeSpec)
    """Settings for the TrainJobs that refer to this runtime."""


TRAINING_RUNTIMES = Resource(trainer.GROUP, trainer.VERSION, "trainingruntimes", "TrainingRuntime", TrainingRuntime)
CLUSTER_TRAINING_RUNTIMES = Resource(
    trainer.GROUP,
    trainer.VERSION,
    "clustertrainingruntimes",
    "ClusterTrainingRuntime",
    ClusterTrainingRuntime,
    namespaced=False,
)
