"""trainer.kubeflow.org/v1alpha1: TrainingRuntime and ClusterTrainingRuntime, to which TrainJobs refer."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubeflow import jobset, trainer
from muster.api.kubernetes.meta import IntOrString, Object, TemplateMeta
from muster.api.volcano.scheduling import NonNegative


class EnvTarget(Wire):
    """Containers besides the trainer's that get the same variables."""

    job_name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Name of the replicated job."""
    container_names: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=63)]], Meta(min_length=1, max_length=8)
    ]
    """Names of its containers or init containers."""


class EnvInjection(Wire):
    """Additional containers that get the trainer's variables."""

    targets: Annotated[list[EnvTarget], Meta(max_length=16)] = field(default_factory=list)
    """The containers."""


class ElasticPolicy(Wire):
    """Torch with a varying number of nodes: members may join and leave."""

    min_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Minimum number of nodes for the training."""
    max_nodes: Annotated[int, Meta(ge=1)] | None = None
    """Maximum number of nodes that the training can use."""
    max_restarts: NonNegative | None = None
    """Number of restarts of the workers before the training has failed."""


class TorchPolicy(Wire):
    """The training runs under torchrun."""

    num_proc_per_node: IntOrString | None = None
    """Processes in each pod if the TrainJob does not set it: a number, `auto`, `cpu` or `gpu`."""
    elastic_policy: ElasticPolicy | None = None
    """Bounds of a varying number of nodes."""
    env_injection: EnvInjection | None = None
    """Containers besides the trainer's that get the same variables."""


class MPIPolicy(Wire):
    """A launcher starts the processes on the nodes with mpirun."""

    num_proc_per_node: Annotated[int, Meta(ge=1)] = 1
    """Slots of each node; with 1, the GPUs of a node are counted."""
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH", ""] = "OpenMPI"
    """MPI implementation, which decides the syntax of the hostfile and the variables."""
    ssh_auth_mount_path: str = "/root/.ssh"
    """Mount path of the ssh keys."""
    run_launcher_as_node: bool = False
    """Let the launcher compute as well."""


class JAXPolicy(Wire):
    """The training runs under JAX's distributed runtime."""


class XGBoostPolicy(Wire):
    """The training runs under XGBoost's tracker."""


class FluxPolicy(Wire):
    """The training runs under Flux; Muster stores this policy, but refuses to run it."""

    num_proc_per_node: Annotated[int, Meta(ge=1)] = 1
    """Processes on each node."""


class MLPolicy(Wire):
    """Number of nodes, and the framework with its settings."""

    num_nodes: int | None = None
    """Number of nodes if the TrainJob does not set it; 1 by default."""
    torch: TorchPolicy | None = None
    """The training runs under torchrun."""
    mpi: MPIPolicy | None = None
    """A launcher starts the processes with mpirun."""
    jax: JAXPolicy | None = None
    """The training runs under JAX."""
    xgboost: XGBoostPolicy | None = None
    """The training runs under XGBoost."""
    flux: FluxPolicy | None = None
    """Not supported by Muster."""


class CoschedulingPolicy(Wire):
    """A PodGroup of the coscheduling plugin."""

    schedule_timeout_seconds: int = 60
    """Seconds that the gang may take to be placed."""


class VolcanoTopology(Wire):
    """Required proximity of the pods in the network."""

    mode: Literal["hard", "soft"] = "hard"
    """hard: wait until the requirement can be met; soft: as close as possible."""
    highest_tier_allowed: NonNegative = 1
    """Highest network level that the pods may span; 1 is the lowest."""


class VolcanoPolicy(Wire):
    """A PodGroup of Volcano's API, which is also Muster's."""

    network_topology: VolcanoTopology | None = None
    """Required proximity of the pods in the network."""


class PodGroupPolicy(Wire):
    """The pods start together or not at all."""

    coscheduling: CoschedulingPolicy | None = None
    """PodGroup of the coscheduling plugin."""
    volcano: VolcanoPolicy | None = None
    """PodGroup of Volcano's API."""


class JobSetTemplate(Wire):
    """The JobSet that a TrainJob becomes."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    """Labels and annotations of the JobSet."""
    spec: jobset.JobSetSpec = field(default_factory=jobset.JobSetSpec)
    """Spec of the JobSet."""


class TrainingRuntimeSpec(Wire):
    """spec of both kinds of runtimes."""

    ml_policy: MLPolicy | None = None
    """Number of nodes, and the framework with its settings."""
    pod_group_policy: PodGroupPolicy | None = None
    """Let the pods start together or not at all."""
    template: JobSetTemplate = field(default_factory=JobSetTemplate)
    """Settings of the runtime's TrainJobs."""


class TrainingRuntime(Object):
    """A runtime for the TrainJobs of its namespace."""

    spec: TrainingRuntimeSpec = field(default_factory=TrainingRuntimeSpec)
    """Settings of the runtime's TrainJobs."""


class ClusterTrainingRuntime(Object):
    """A runtime for all TrainJobs."""

    spec: TrainingRuntimeSpec = field(default_factory=TrainingRuntimeSpec)
    """Settings of the runtime's TrainJobs."""


TRAINING_RUNTIMES = Resource(trainer.GROUP, trainer.VERSION, "trainingruntimes", "TrainingRuntime", TrainingRuntime)
CLUSTER_TRAINING_RUNTIMES = Resource(
    trainer.GROUP,
    trainer.VERSION,
    "clustertrainingruntimes",
    "ClusterTrainingRuntime",
    ClusterTrainingRuntime,
    namespaced=False,
)
