"""TrainJob and its runtimes: the schema rules that their Structs cannot have.

Rules and defaults are those that Kubeflow Trainer's clients rely on. Muster takes a little more: `auto`, `cpu` and
`gpu` for `numProcPerNode`, and Intel MPI and MPICH as implementations.
"""

from msgspec import Struct

from muster.api.kubeflow import jobset, runtimepatch, trainer, trainingruntime
from muster.api.kubernetes.meta import Condition
from muster.crds.schema import Schema, rules

_LARGEST_ARGUMENT = 1024 * 1024
_ATOMIC: Schema = {"x-kubernetes-list-type": "atomic"}
_ARGUMENTS: Schema = {**_ATOMIC, "items": {"maxLength": _LARGEST_ARGUMENT}}


def _by(key: str) -> Schema:
    """A list with one member of its elements as the key."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


_SAME = ("self == oldSelf", "field is immutable")
_IMMUTABLE = rules(*_SAME)
_FIXED = rules("self == oldSelf", "Value is immutable")  # JobSet's words
_NAME = rules(
    "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "metadata.name must be a DNS label: small letters, digits and '-', with a letter in front",
    "size(self.metadata.name) <= 63",
    "metadata.name must have at most 63 characters",
)
_PROCESSES = rules(
    "type(self) == string ? self in ['auto', 'cpu', 'gpu'] : self >= 1",
    "must be a number of at least 1, or auto, cpu or gpu",
)
_SOURCES = ("torch", "mpi", "jax", "xgboost", "flux")
_MANAGED = (
    f"self in ['{trainer.CONTROLLER}', '{trainer.MULTIKUEUE}']",
    f"must be {trainer.CONTROLLER} or {trainer.MULTIKUEUE}",
)

_TRAIN_JOBS: dict[type[Struct], Schema] = {
    trainer.TrainJob: _NAME,
    trainer.StepInitializer: {
        "properties": {"storageUri": {"pattern": "^([A-Za-z][-A-Za-z0-9+.]*://.+|/.*)?$"}, "env": _by("name")}
    },
    trainer.Trainer: {
        "properties": {"command": _ARGUMENTS, "args": _ARGUMENTS, "env": _by("name"), "numProcPerNode": _PROCESSES}
    },
    trainer.TrainJobSpec: {
        "properties": {
            "runtimeRef": _IMMUTABLE,
            "initializer": _IMMUTABLE,
            "trainer": _IMMUTABLE,
            "runtimePatches": _by("manager"),
            "suspend": {"default": False},
            "activeDeadlineSeconds": {"format": "int64", **_IMMUTABLE},
            "managedBy": {"default": trainer.CONTROLLER, **rules(*_MANAGED, *_SAME)},
        }
    },
    trainer.TrainJobStatus: {"minProperties": 1, "properties": {"conditions": _by("type"), "jobsStatus": _by("name")}},
    trainer.TrainerStatus: {
        "properties": {"metrics": _ATOMIC},
        **rules("has(self.lastUpdatedTime)", "lastUpdatedTime must be there"),
    },
    Condition: {
        "properties": {
            "observedGeneration": {"format": "int64", "minimum": 0},
            "reason": {"minLength": 1, "maxLength": 1024},
            "message": {"maxLength": 32768},
            "type": {"maxLength": 316},
        }
    },
}

_PATCHES: dict[type[Struct], Schema] = {
    runtimepatch.RuntimePatch: {"properties": {"manager": _IMMUTABLE}},
    runtimepatch.JobSetSpecPatch: {"properties": {"replicatedJobs": _by("name")}},
    runtimepatch.PodSpecPatch: {
        "properties": {
            "serviceAccountName": _IMMUTABLE,
            "volumes": {**_by("name"), **_IMMUTABLE},
            "initContainers": {**_by("name"), **_IMMUTABLE},
            "containers": {**_by("name"), **_IMMUTABLE},
            "imagePullSecrets": {**_by("name"), **_IMMUTABLE},
            "securityContext": _IMMUTABLE,
            "terminationGracePeriodSeconds": {"format": "int64", **_IMMUTABLE},
            "tolerations": _ATOMIC,
            "schedulingGates": _by("name"),
        }
    },
    runtimepatch.ContainerPatch: {"properties": {"env": _by("name"), "volumeMounts": _by("name")}},
}

_RUNTIMES: dict[type[Struct], Schema] = {
    trainingruntime.EnvTarget: {
        "properties": {
            "containerNames": {
                "x-kubernetes-list-type": "set",
                **rules("!('node' in self)", "must not hold node: the trainer's container has the variables anyway"),
            }
        }
    },
    trainingruntime.EnvInjection: {"properties": {"targets": _by("jobName")}},
    trainingruntime.TorchPolicy: {"properties": {"numProcPerNode": _PROCESSES}},
    trainingruntime.MPIPolicy: {"properties": {"runLauncherAsNode": {"default": False}}},
    trainingruntime.MLPolicy: {
        # A policy of a later version must reach admission, which refuses it: if the API server dropped it, its
        # TrainJobs would run as plain ones.
        "x-kubernetes-preserve-unknown-fields": True,
        **rules(
            f"[{', '.join(f'has(self.{source})' for source in _SOURCES)}].filter(x, x).size() <= 1",
            f"must have at most one of {', '.join(_SOURCES)}",
        ),
    },
    jobset.JobSetSpec: {
        "properties": {
            "replicatedJobs": _by("name"),
            "network": _FIXED,
            "successPolicy": _FIXED,
            "failurePolicy": _FIXED,
            "startupPolicy": _FIXED,
            "volumeClaimPolicies": {**_ATOMIC, **_FIXED},
        },
        **rules(
            "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder' && "
            "has(self.replicatedJobs) && self.replicatedJobs.exists(x, has(x.dependsOn)))",
            "must have either startupPolicy InOrder or dependsOn, not both",
        ),
    },
    jobset.ReplicatedJob: {"properties": {"dependsOn": {**_by("name"), "maxItems": 5, **_FIXED}}},
    jobset.VolumeClaimPolicy: {"properties": {"templates": _ATOMIC}},
    jobset.SuccessPolicy: {"properties": {"targetReplicatedJobs": _ATOMIC}},
    jobset.FailurePolicyRule: {"properties": {"targetReplicatedJobs": _ATOMIC}},
}

TRAINING_OVERLAYS = _TRAIN_JOBS | _PATCHES | _RUNTIMES
