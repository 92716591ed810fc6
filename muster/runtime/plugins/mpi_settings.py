"""Settings of MPI with their checks, and the implementations of MPI.

Each implementation has its own form of the hostfile, and its own environment variables for hostfile and ssh. Open MPI 5
ignores every variable of Open MPI 4 and then runs only on the launcher, without a message. The variables of both
versions can be set together. Open MPI 4 must keep full host names. It then mistakes its own host for a remote one
unless the launcher's line has the short name. MPICH stops at `slots=` in a hostfile, and reads
HYDRA_LAUNCHER_EXTRA_ARGS (not HYDRA_LAUNCH_EXTRA_ARGS). With MPICH and Intel MPI the nodes connect back to the
launcher's short host name, so they need its subdomain among their DNS search domains.
"""

from collections.abc import Callable
from dataclasses import dataclass

from muster.api.limits import PROCESSES, whole_number
from muster.runtime.info import Info, PodSet
from muster.runtime.plan import KeyKind
from muster.runtime.settings import (
    CLUSTER_DOMAIN,
    LAUNCHER_AS_NODE,
    MPI_IMPLEMENTATION,
    MPI_WAIT,
    NPROC_PER_NODE,
    SSH_KEY,
    SSH_MOUNT_PATH,
    Settings,
)
from muster.volcano.manifests import folder

HOSTFILE = "/etc/mpi/hostfile"
SSH_ARGUMENTS = "-o ConnectionAttempts=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
"""Arguments of ssh. Nodes may take some time to respond, their host keys are always new, and the directory of the ssh
key is read-only."""
DEFAULT_MOUNT_PATH = "/root/.ssh"
DEFAULT_WAIT_S = 600
MAX_WAIT_S = 86_400


@dataclass(frozen=True, slots=True)
class Implementation:
    """One implementation of MPI.

    `line` returns a line of the hostfile for a host and its slots; `environment` returns the environment variables.
    With `short_launcher`, the launcher's own line contains its host name without the domain. With `calls_back`, nodes
    connect back to the launcher by its short host name.
    """

    name: str
    line: Callable[[str, int], str]
    environment: Callable[[int], dict[str, str]]
    reserved: tuple[str, ...]
    short_launcher: bool = False
    calls_back: bool = False


OPEN_MPI = Implementation(
    "OpenMPI",
    lambda host, slots: f"{host} slots={slots}",
    lambda slots: {
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(slots),
        "OMPI_MCA_plm_rsh_args": SSH_ARGUMENTS,
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "PRTE_MCA_prte_set_default_slots": str(slots),
        "PRTE_MCA_plm_ssh_args": SSH_ARGUMENTS,
    },
    (
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
    ),
    short_launcher=True,
)
INTEL_MPI = Implementation(
    "Intel",
    lambda host, slots: f"{host}:{slots}",
    lambda slots: {
        "I_MPI_HYDRA_HOST_FILE": HOSTFILE,
        "I_MPI_PERHOST": str(slots),
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH_ARGUMENTS,
    },
    ("I_MPI_HYDRA_HOST_FILE", "I_MPI_PERHOST"),
    calls_back=True,
)
MPICH = Implementation(
    "MPICH",
    lambda host, slots: f"{host}:{slots}",
    lambda _slots: {  # only the hostfile has the slots
        "HYDRA_HOST_FILE": HOSTFILE,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXTRA_ARGS": SSH_ARGUMENTS,
    },
    ("HYDRA_HOST_FILE",),
    calls_back=True,
)
IMPLEMENTATIONS = {each.name: each for each in (OPEN_MPI, INTEL_MPI, MPICH)}


def implementation(settings: Settings) -> Implementation:
    """Return the MPI implementation in the settings; raises InvalidFieldError for an unknown name."""
    setting = settings.get(MPI_IMPLEMENTATION)
    if setting is None:
        return OPEN_MPI
    if setting.text not in IMPLEMENTATIONS:
        known = ", ".join(IMPLEMENTATIONS)
        raise setting.invalid(f"must be an MPI implementation that Muster supports ({known}): {setting.source}")
    return IMPLEMENTATIONS[setting.text]


def mount_path(settings: Settings) -> str:
    """Return the directory in which the ssh keys are mounted."""
    setting = settings.get(SSH_MOUNT_PATH)
    if setting is None:
        return DEFAULT_MOUNT_PATH
    if not setting.text.startswith("/"):
        raise setting.invalid(f"must be the absolute path of a directory: {setting.source}")
    return folder(setting.text)


def key_kind(settings: Settings) -> KeyKind:
    """Return the kind of ssh keys to generate for a workload."""
    setting = settings.get(SSH_KEY)
    if setting is None or setting.text == "ed25519":
        return "ed25519"
    if setting.text != "ecdsa":
        raise setting.invalid("must be ed25519 (the default) or ecdsa")
    return "ecdsa"


def cluster_domain(settings: Settings) -> str:
    """Return the DNS domain of the cluster."""
    setting = settings.get(CLUSTER_DOMAIN)
    return setting.text if setting else "cluster.local"


def wait_s(settings: Settings) -> int:
    """Return the maximum time that the launcher waits for its hosts, in seconds; 0 disables the wait."""
    setting = settings.get(MPI_WAIT)
    if setting is None:
        return DEFAULT_WAIT_S
    seconds = whole_number(setting.text, MAX_WAIT_S)
    if seconds is None:
        raise setting.invalid(f"must be a number of seconds from 0 (do not wait) to {MAX_WAIT_S}")
    return seconds


def launcher_computes(info: Info) -> bool:
    """Return True if the launcher also runs processes, as it always does if all pods have one template."""
    setting = info.setting(LAUNCHER_AS_NODE)
    return setting.is_true if info.train_job and setting else not info.train_job


def slots(info: Info, nodes: PodSet) -> int:
    """Return the number of processes on each node: by the setting, otherwise one for each GPU, otherwise one."""
    setting = info.setting(NPROC_PER_NODE)
    if setting is None or setting.text == "auto":
        return max(1, nodes.accelerators.number)
    if setting.text == "cpu":
        return nodes.cpus
    if setting.text == "gpu":
        if not nodes.accelerators.number:
            raise setting.invalid("the nodes request no GPU: add one to their resources, or use cpu")
        return nodes.accelerators.number
    number = whole_number(setting.text, PROCESSES.value)
    if not number:
        raise setting.invalid(f"must be auto, cpu, gpu or a number of processes from 1 to {PROCESSES.value}")
    return number
