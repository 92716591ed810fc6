"""Plugins for JAX, XGBoost and TensorFlow, which need only a count, a rank and an address, and for plain training."""

import json
from functools import partial

from muster.api.fields import FieldError, Findings, InvalidFieldError
from muster.api.grammar import many
from muster.runtime.info import Info, Late, PodSet, Variables
from muster.runtime.plugins.shared import give, leader, rank, reserved, size, yielding
from muster.workloads.adapter import FieldPath

PORT = 29500
TF_PORT = 2222


class PlainML:
    """Plugin for training without a framework: pods get a subdomain, and so DNS names; a TrainJob gets a node count."""

    name = "PlainML"
    framework = "plain"

    def enforce_ml_policy(self, info: Info) -> None:
        """Do nothing, because plain pods get no environment variables."""


class JAX:
    """Plugin that sets the environment variables for `jax.distributed.initialize()`."""

    name = "JAX"
    framework = "jax"
    RESERVED = ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS")

    def validate(self, info: Info) -> Findings:
        """Reject reserved variables; a TrainJob may override them, as in Kubeflow Trainer."""
        if info.framework != self.framework or info.train_job:
            return Findings()
        return reserved(info, self.RESERVED)

    def enforce_ml_policy(self, info: Info) -> None:
        """Set the variables for one process in each pod; the process with rank 0 is the coordinator."""
        for pod_set in info.trainers:
            pod_set.slots = 1
            variables: Variables = {
                "JAX_NUM_PROCESSES": size(info),
                "JAX_PROCESS_ID": rank(info, pod_set),
                "JAX_COORDINATOR_ADDRESS": leader(info, PORT),
            }
            give(info, pod_set, self.name, yielding(info, variables), PORT)


class XGBoost:
    """Plugin that sets the environment variables by which XGBoost's workers find the tracker, which runs on rank 0."""

    name = "XGBoost"
    framework = "xgboost"
    RESERVED = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")

    def validate(self, info: Info) -> Findings:
        """Reject reserved variables.

        For a TrainJob, each reserved variable gets an error with the message that Kubeflow's clients expect.
        """
        if info.framework != self.framework:
            return Findings()
        if not info.train_job:
            return reserved(info, self.RESERVED)
        errors = []
        for index, variable in enumerate(info.user_env.variables):
            if variable.name in self.RESERVED:
                message = f"{variable.name} is reserved for the XGBoost runtime"
                errors.append(FieldError(f"{info.user_env.path}[{index}]", message, variable.name, "Forbidden"))
        return Findings(errors)

    def enforce_ml_policy(self, info: Info) -> None:
        """Set the variables for one worker per GPU or, without GPUs, per pod."""
        for pod_set in info.trainers:
            gpus = pod_set.accelerators.number
            pod_set.slots = gpus or 1
            pods, source = size(info)
            why = f"{source}, {many(gpus, 'GPU')} of each pod" if gpus else f"{source}, one in each pod"
            variables: Variables = {
                "DMLC_TRACKER_URI": leader(info),
                "DMLC_TRACKER_PORT": (str(PORT), "default"),
                "DMLC_TASK_ID": rank(info, pod_set),
                "DMLC_NUM_WORKER": (str(int(pods) * pod_set.slots), why),
            }
            give(info, pod_set, self.name, yielding(info, variables), PORT)


class TensorFlowRuntime:
    """Plugin that sets TF_CONFIG for MultiWorkerMirroredStrategy: all pods are workers, and worker 0 is the chief.

    If a pod's index is known only inside the pod, TF_CONFIG contains `$(TF_TASK_INDEX)`, which Kubernetes expands.
    """

    name = "TensorFlow"
    framework = "tensorflow"
    RESERVED = ("TF_CONFIG", "TF_TASK_INDEX")

    def validate(self, info: Info) -> Findings:
        """Reject reserved variables."""
        return reserved(info, self.RESERVED) if info.framework == self.framework else Findings()

    def enforce_ml_policy(self, info: Info) -> None:
        """Set variables for one worker in each pod."""
        for pod_set in info.trainers:
            pod_set.slots = 1
            variables: Variables = {
                "TF_TASK_INDEX": rank(info, pod_set),
                "TF_CONFIG": (Late(partial(_tf_config, info, pod_set)), f"all pods of {info.workload}"),
            }
            give(info, pod_set, self.name, yielding(info, variables), TF_PORT)


def _tf_config(info: Info, pod_set: PodSet) -> str:
    hosts = [host for each in info.trainers for host in each.endpoints]
    if not all(hosts):
        message = "tensorflow requires the names of all pods, but a pod without an owner has only the name of rank 0"
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, reason="Required"))
    cluster = json.dumps({"worker": [f"{host}:{TF_PORT}" for host in hosts]}, separators=(",", ":"))
    index = "$(TF_TASK_INDEX)" if isinstance(pod_set.rank, FieldPath) else pod_set.rank
    return f'{{"cluster":{cluster},"task":{{"type":"worker","index":{index}}}}}'
