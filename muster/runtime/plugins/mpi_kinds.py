"""The MPI implementations: how each writes its hostfile, and the variables by which it finds hosts and ssh.

Facts worth knowing: Open MPI 5 ignores every variable of Open MPI 4 and runs on the launcher alone, without a word;
both families can be set together. Open MPI 4 needs full host names kept, and then takes its own host for a remote one
unless the line of the launcher has the short name. MPICH stops at `slots=` in a hostfile, and reads
HYDRA_LAUNCHER_EXTRA_ARGS (not HYDRA_LAUNCH_EXTRA_ARGS). With MPICH and Intel MPI the nodes connect back to the
launcher's short host name, so they need its subdomain among their DNS search domains.
"""

from collections.abc import Callable
from dataclasses import dataclass

HOSTFILE = "/etc/mpi/hostfile"
SSH_ARGUMENTS = "-o ConnectionAttempts=10 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
"""Nodes may take a while to answer; their host keys are new each time, and the key's folder is for reading only."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One implementation. `line` writes a line of the hostfile from host and slots, `environment` the variables.

    `short_launcher`: the launcher's own line has its host name without domain. `calls_back`: nodes connect to the
    launcher by its short host name.
    """

    name: str
    line: Callable[[str, int], str]
    environment: Callable[[int], dict[str, str]]
    reserved: tuple[str, ...]
    short_launcher: bool = False
    calls_back: bool = False


def _open_mpi(slots: int) -> dict[str, str]:
    return {
        "OMPI_MCA_orte_default_hostfile": HOSTFILE,
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": str(slots),
        "OMPI_MCA_plm_rsh_args": SSH_ARGUMENTS,
        "PRTE_MCA_prte_default_hostfile": HOSTFILE,
        "PRTE_MCA_prte_set_default_slots": str(slots),
        "PRTE_MCA_plm_ssh_args": SSH_ARGUMENTS,
    }


def _intel_mpi(slots: int) -> dict[str, str]:
    return {
        "I_MPI_HYDRA_HOST_FILE": HOSTFILE,
        "I_MPI_PERHOST": str(slots),
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH_ARGUMENTS,
    }


def _mpich(slots: int) -> dict[str, str]:
    del slots  # only the hostfile says it
    return {
        "HYDRA_HOST_FILE": HOSTFILE,
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXTRA_ARGS": SSH_ARGUMENTS,
    }


OPEN_MPI = Kind(
    "OpenMPI",
    lambda host, slots: f"{host} slots={slots}",
    _open_mpi,
    (
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
        "OMPI_MCA_plm_rsh_args",
    ),
    short_launcher=True,
)
INTEL_MPI = Kind(
    "Intel",
    lambda host, slots: f"{host}:{slots}",
    _intel_mpi,
    ("I_MPI_HYDRA_HOST_FILE", "I_MPI_PERHOST"),
    calls_back=True,
)
MPICH = Kind("MPICH", lambda host, slots: f"{host}:{slots}", _mpich, ("HYDRA_HOST_FILE",), calls_back=True)

KINDS = {kind.name: kind for kind in (OPEN_MPI, INTEL_MPI, MPICH)}
