"""Settings of a TrainJob: its own fields and annotations first, then those of its runtime."""

from collections.abc import Mapping

from muster.api import names
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, ElasticPolicy, TrainingRuntime
from muster.api.limits import whole_number
from muster.runtime.settings import (
    ELASTIC,
    LAUNCHER_AS_NODE,
    MAX_RESTARTS,
    MPI_IMPLEMENTATION,
    NPROC_PER_NODE,
    SSH_MOUNT_PATH,
    Setting,
    from_annotations,
)

_RUNTIME_PATH = "spec.runtimeRef"


def settings_of(train_job: TrainJob, runtime: TrainingRuntime | ClusterTrainingRuntime) -> dict[str, Setting]:
    """All settings; the first place that has one wins. What a runtime says wrong is an error of the reference to it."""
    trainer = train_job.spec.trainer
    own: dict[str, Setting] = {}
    if trainer and trainer.num_proc_per_node is not None:
        path = "spec.trainer.numProcPerNode"
        own[NPROC_PER_NODE] = Setting(str(trainer.num_proc_per_node), path, path)
    annotations = from_annotations(
        ("metadata.annotations", train_job.metadata.annotations), (_RUNTIME_PATH, runtime.metadata.annotations)
    )
    return {**_runtime(train_job, runtime), **annotations, **own}


def nodes_of(train_job: TrainJob, settings: Mapping[str, Setting]) -> int | None:
    """How many nodes a TrainJob wants; None if it does not say.

    An elastic one may change that while it runs, within the bounds of its policy, by annotation
    `muster.dev/num-nodes`: `spec.trainer` is fixed, as in Kubeflow Trainer.
    """
    nodes = train_job.spec.trainer.num_nodes if train_job.spec.trainer else None
    wanted = whole_number(train_job.metadata.annotations.get(names.NUM_NODES))
    elastic = settings.get(ELASTIC)
    if wanted is None or elastic is None:
        return nodes
    least, _, most = elastic.text.partition(":")
    return max(whole_number(least.strip()) or 1, min(wanted, whole_number(most.strip()) or wanted))


def _runtime(train_job: TrainJob, runtime: TrainingRuntime | ClusterTrainingRuntime) -> dict[str, Setting]:
    policy = runtime.spec.ml_policy
    values: dict[str, tuple[str, str]] = {}
    if policy and policy.torch:
        if policy.torch.num_proc_per_node is not None:
            values[NPROC_PER_NODE] = (str(policy.torch.num_proc_per_node), "torch.numProcPerNode")
        if policy.torch.elastic_policy:
            values |= _elastic(policy.torch.elastic_policy, train_job, policy.num_nodes)
    if policy and policy.mpi:
        mpi = policy.mpi
        if mpi.num_proc_per_node != 1:  # 1 is also what stands there when nobody chose it: then GPUs are counted
            values[NPROC_PER_NODE] = (str(mpi.num_proc_per_node), "mpi.numProcPerNode")
        values[MPI_IMPLEMENTATION] = (mpi.mpi_implementation, "mpi.mpiImplementation")
        values[SSH_MOUNT_PATH] = (mpi.ssh_auth_mount_path, "mpi.sshAuthMountPath")
        values[LAUNCHER_AS_NODE] = (str(mpi.run_launcher_as_node).lower(), "mpi.runLauncherAsNode")
    name = f"{runtime.kind or 'runtime'} {runtime.metadata.name}"
    return {key: Setting(text, _RUNTIME_PATH, f"{field} of {name}") for key, (text, field) in values.items()}


def _elastic(policy: ElasticPolicy, train_job: TrainJob, default: int | None) -> dict[str, tuple[str, str]]:
    """A missing bound is the number of nodes."""
    trainer = train_job.spec.trainer
    nodes = trainer.num_nodes if trainer and trainer.num_nodes is not None else default or 1
    least = nodes if policy.min_nodes is None else policy.min_nodes
    most = nodes if policy.max_nodes is None else policy.max_nodes
    values = {ELASTIC: (f"{least}:{most}", "torch.elasticPolicy")}
    if policy.max_restarts is not None:
        values[MAX_RESTARTS] = (str(policy.max_restarts), "torch.elasticPolicy.maxRestarts")
    return values
