"""What users choose for MPI, read and checked."""

from muster.api.fields import FieldError, InvalidFieldError
from muster.api.limits import PROCESSES, whole_number
from muster.runtime.devices import cpus, gpus
from muster.runtime.info import Info, PodSet
from muster.runtime.plugins.mpi_kinds import KINDS, OPEN_MPI, Kind
from muster.runtime.settings import (
    CLUSTER_DOMAIN,
    LAUNCHER_AS_NODE,
    MPI_IMPLEMENTATION,
    NPROC_PER_NODE,
    SSH_KEY,
    SSH_MOUNT_PATH,
    Setting,
    Settings,
)

DEFAULT_MOUNT_PATH = "/root/.ssh"


def choice(settings: Settings) -> Kind:
    """The implementation; InvalidFieldError if there is no such."""
    setting = settings.get(MPI_IMPLEMENTATION)
    if setting is None:
        return OPEN_MPI
    if setting.text not in KINDS:
        raise _invalid(
            setting, f"must be an MPI implementation that Muster knows ({', '.join(KINDS)}): {setting.source}"
        )
    return KINDS[setting.text]


def implementation(info: Info) -> Kind:
    """The implementation of a workload."""
    return choice(info.settings)


def mount_path(info: Info) -> str:
    """Where the keys are mounted."""
    setting = info.setting(SSH_MOUNT_PATH)
    if setting is None:
        return DEFAULT_MOUNT_PATH
    if not setting.text.startswith("/"):
        raise _invalid(setting, f"must be a folder's absolute path: {setting.source}")
    return setting.text


def launcher_computes(info: Info) -> bool:
    """Whether the launcher runs processes too. It always does where all pods are of one shape."""
    if not info.train_job:
        return True
    setting = info.setting(LAUNCHER_AS_NODE)
    if setting is None:
        return False
    if setting.text not in {"true", "false"}:
        raise _invalid(setting, f"must be true or false: {setting.source}")
    return setting.text == "true"


def cluster_domain(info: Info) -> str:
    """The DNS domain of the cluster."""
    setting = info.setting(CLUSTER_DOMAIN)
    return setting.text if setting else "cluster.local"


def slots(info: Info, nodes: PodSet) -> int:
    """Processes on each node: as set, else one for each GPU, else one."""
    setting = info.setting(NPROC_PER_NODE)
    requests = nodes.target.requests if nodes.target else {}
    if setting is None or setting.text == "auto":
        return max(1, gpus(requests))
    if setting.text == "cpu":
        return cpus(requests)
    if setting.text == "gpu" and gpus(requests):
        return gpus(requests)
    if setting.text == "gpu":
        raise _invalid(setting, "the nodes ask for no GPU: add one to their resources, or use cpu")
    slots = whole_number(setting.text, PROCESSES.value)
    if not slots:
        raise _invalid(setting, f"must be auto, cpu, gpu or a number of processes from 1 to {PROCESSES.value}")
    return slots


def key_kind(info: Info) -> str:
    """Which kind of ssh key is made for the hosts of one workload."""
    setting = info.setting(SSH_KEY)
    if setting and setting.text not in {"ed25519", "ecdsa"}:
        raise _invalid(setting, "must be ed25519 (the default) or ecdsa")
    return setting.text if setting else "ed25519"


def checked(info: Info) -> list[FieldError]:
    """Everything that is wrong with the settings."""
    errors = []
    for check in (implementation, mount_path, launcher_computes, key_kind):
        try:
            check(info)
        except InvalidFieldError as error:
            errors.append(error.error)
    for pod_set in info.trainers[:1]:
        try:
            slots(info, pod_set)
        except InvalidFieldError as error:
            errors.append(error.error)
    return errors


def _invalid(setting: Setting, message: str) -> InvalidFieldError:
    return InvalidFieldError(FieldError(setting.path, message, setting.text))
