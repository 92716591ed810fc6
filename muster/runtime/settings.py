"""Settings of a workload, which can be given as annotations, or as fields of a TrainJob or its runtime.

Plugins read a setting by its key. Errors contain the path of the setting, and plans contain its source.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api import names
from muster.api.fields import FieldError, InvalidFieldError
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, ElasticPolicy, TrainingRuntime
from muster.api.limits import whole_number

# Keys; in annotations, Muster's domain precedes them.
NPROC_PER_NODE = "nproc-per-node"
ELASTIC = "elastic"
MAX_RESTARTS = "max-restarts"
TORCH_ENV = "torch-env"
INJECT_INTO = "inject-into"
MPI_IMPLEMENTATION = "mpi-implementation"
LAUNCHER_AS_NODE = "mpi-launcher-as-node"
SSH_MOUNT_PATH = "ssh-auth-mount-path"
SSH_KEY = "ssh-key"
SSH_SECRET = "ssh-auth-secret"  # noqa: S105 - the name of a setting, not a secret
CLUSTER_DOMAIN = "cluster-domain"
MPI_WAIT = "mpi-wait"
NETWORK_POLICY = "network-policy"

KEYS = (
    NPROC_PER_NODE, ELASTIC, MAX_RESTARTS, TORCH_ENV, INJECT_INTO, MPI_IMPLEMENTATION, LAUNCHER_AS_NODE,
    SSH_MOUNT_PATH, SSH_KEY, SSH_SECRET, CLUSTER_DOMAIN, MPI_WAIT, NETWORK_POLICY,
)  # fmt: skip
_RUNTIME_PATH = "spec.runtimeRef"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's value as the user wrote it, with the path of the field, and the field's name as used in sentences."""

    text: str
    path: str
    source: str

    @property
    def is_true(self) -> bool:
        """Return the boolean value of the setting; raises InvalidFieldError for a text other than true and false."""
        if self.text not in {"true", "false"}:
            raise self.invalid(f"must be true or false: {self.source}")
        return self.text == "true"

    def invalid(self, message: str) -> InvalidFieldError:
        """Return the error for an invalid value of this setting, with a message about the valid values."""
        return InvalidFieldError(FieldError(self.path, message, self.text))


Settings = Mapping[str, Setting]


def annotation(key: str) -> str:
    """Return the key of the annotation for a setting."""
    return f"{names.DOMAIN}/{key}"


def from_annotations(*layers: tuple[str, Mapping[str, str]]) -> dict[str, Setting]:
    """Return the settings in layers of (path, annotations). The first layer that has a setting takes precedence."""
    result: dict[str, Setting] = {}
    for path, annotations in layers:
        for key in KEYS:
            name = annotation(key)
            if name in annotations:
                result.setdefault(key, Setting(annotations[name], f"{path}[{name}]", f"annotation {name}"))
    return result


def of_train_job(train_job: TrainJob, runtime: TrainingRuntime | ClusterTrainingRuntime) -> dict[str, Setting]:
    """Return the settings of a TrainJob: its own fields, then annotations, then its runtime's fields.

    Errors in fields of the runtime are reported at the path of the TrainJob's reference to the runtime.
    """
    trainer = train_job.spec.trainer
    own: dict[str, Setting] = {}
    if trainer and trainer.num_proc_per_node is not None:
        path = "spec.trainer.numProcPerNode"
        own[NPROC_PER_NODE] = Setting(str(trainer.num_proc_per_node), path, path)
    annotations = from_annotations(
        ("metadata.annotations", train_job.metadata.annotations), (_RUNTIME_PATH, runtime.metadata.annotations)
    )
    return {**_of_runtime(train_job, runtime), **annotations, **own}


def nodes_of(train_job: TrainJob, settings: Settings) -> int | None:
    """Return the number of nodes that a TrainJob requests; None if the TrainJob does not request a number.

    The annotation `muster.dev/num-nodes` can change the number of nodes of a running elastic TrainJob, within the
    bounds of its policy. `spec.trainer` is immutable, as in Kubeflow Trainer.
    """
    nodes = train_job.spec.trainer.num_nodes if train_job.spec.trainer else None
    wanted = whole_number(train_job.metadata.annotations.get(names.NUM_NODES))
    elastic = settings.get(ELASTIC)
    if wanted is None or elastic is None:
        return nodes
    least, _, most = elastic.text.partition(":")
    return max(whole_number(least.strip()) or 1, min(wanted, whole_number(most.strip()) or wanted))


def _of_runtime(train_job: TrainJob, runtime: TrainingRuntime | ClusterTrainingRuntime) -> dict[str, Setting]:
    policy = runtime.spec.ml_policy
    values: dict[str, tuple[str, str]] = {}
    if policy and policy.torch:
        if policy.torch.num_proc_per_node is not None:
            values[NPROC_PER_NODE] = (str(policy.torch.num_proc_per_node), "torch.numProcPerNode")
        if policy.torch.elastic_policy:
            values |= _elastic(policy.torch.elastic_policy, train_job, policy.num_nodes)
    if policy and policy.mpi:
        mpi = policy.mpi
        if mpi.num_proc_per_node != 1:  # 1 is also the default, with which GPUs are counted
            values[NPROC_PER_NODE] = (str(mpi.num_proc_per_node), "mpi.numProcPerNode")
        values[MPI_IMPLEMENTATION] = (mpi.mpi_implementation, "mpi.mpiImplementation")
        values[SSH_MOUNT_PATH] = (mpi.ssh_auth_mount_path, "mpi.sshAuthMountPath")
        values[LAUNCHER_AS_NODE] = (str(mpi.run_launcher_as_node).lower(), "mpi.runLauncherAsNode")
    name = f"{runtime.kind or 'runtime'} {runtime.metadata.name}"
    return {key: Setting(text, _RUNTIME_PATH, f"{field} of {name}") for key, (text, field) in values.items()}


def _elastic(policy: ElasticPolicy, train_job: TrainJob, default: int | None) -> dict[str, tuple[str, str]]:
    """Return the bounds of an elastic training; the number of nodes replaces a missing bound."""
    trainer = train_job.spec.trainer
    nodes = trainer.num_nodes if trainer and trainer.num_nodes is not None else default or 1
    least = nodes if policy.min_nodes is None else policy.min_nodes
    most = nodes if policy.max_nodes is None else policy.max_nodes
    values = {ELASTIC: (f"{least}:{most}", "torch.elasticPolicy")}
    if policy.max_restarts is not None:
        values[MAX_RESTARTS] = (str(policy.max_restarts), "torch.elasticPolicy.maxRestarts")
    return values
