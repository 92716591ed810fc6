"""Settings of a workload: the same few names, whether they stand in annotations or in fields of a runtime.

Plugins ask for a setting by its key and need not know the way in; its path goes into errors, its source into
provenance.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.names import DOMAIN

# Keys: as annotations they have Muster's domain in front.
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

KEYS = (
    NPROC_PER_NODE,
    ELASTIC,
    MAX_RESTARTS,
    TORCH_ENV,
    INJECT_INTO,
    MPI_IMPLEMENTATION,
    LAUNCHER_AS_NODE,
    SSH_MOUNT_PATH,
    SSH_KEY,
    SSH_SECRET,
    CLUSTER_DOMAIN,
    MPI_WAIT,
)
_BY_ANNOTATION = {f"{DOMAIN}/{key}": key for key in KEYS}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value as the user wrote it, the path of its field, and what to call that field."""

    text: str
    path: str
    source: str


Settings = Mapping[str, Setting]


def annotation(key: str) -> str:
    """The annotation of a setting."""
    return f"{DOMAIN}/{key}"


def from_annotations(*layers: tuple[str, Mapping[str, str]]) -> dict[str, Setting]:
    """Settings from annotations, given as (their path, the annotations); the first layer that has one wins."""
    result: dict[str, Setting] = {}
    for path, annotations in layers:
        for name in annotations.keys() & _BY_ANNOTATION.keys():
            key = _BY_ANNOTATION[name]
            if key not in result:
                result[key] = Setting(annotations[name], f"{path}[{name}]", f"annotation {name}")
    return result
