"""Objects that MPI needs in addition to the pods: a Secret with the ssh keys, and a ConfigMap with the hostfile.

The module also defines the init container in which the launcher waits for the other hosts.

All pods of a workload mount the same Secret. The Secret is immutable and is deleted together with the workload, so
running pods and later pods have the same key. The pods of a gang become reachable at different times, and mpirun fails
if a pod does not respond. Therefore an init container of the launcher retries until all pods respond; the init
container has the launcher's image, which contains ssh.
"""

import re
from hashlib import sha256
from pathlib import Path

from muster.api.fields import FieldError, InvalidFieldError
from muster.runtime.info import Info, PodSet
from muster.runtime.plan import Component, InitPlan, KeyKind, Plan, owned
from muster.runtime.plugins.mpi_settings import HOSTFILE, SSH_ARGUMENTS, implementation, mount_path, wait_s
from muster.runtime.settings import MPI_WAIT, annotation
from muster.workloads.adapter import Owner

NAME = "MPI"
SSH_VOLUME = "mpi-ssh-auth"
HOSTFILE_VOLUME = "mpi-hostfile"
HOSTFILE_KEY = "hostfile"
HOSTFILE_ANNOTATION = annotation(HOSTFILE_VOLUME)
PRIVATE_KEY = "ssh-privatekey"
PUBLIC_KEY = "ssh-publickey"
ANNOTATION_BYTES = 4096
"""Maximum size of a hostfile in an annotation of each pod, which suffices for a few hundred hosts."""
_CONFIG_MAP_BYTES = 1 << 20
_DIGITS = 10


def secret_name(workload: str) -> str:
    """Return the default name of a workload's Secret with ssh keys."""
    return f"{workload}-{SSH_VOLUME}"


def ssh_secret(owner: Owner, keys: KeyKind) -> Component:
    """Return a workload's Secret without its ssh keys, which `certs.ssh` generates."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": owned(owner, secret_name(owner.name)),
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
    }
    return Component(manifest, NAME, once=True, keys=keys)


def hostfile_map(plan: Plan) -> Component:
    """Return the ConfigMap with a TrainJob's hostfile, which has a line for each pod that runs processes."""
    kind = implementation(plan.settings)
    lines = []
    for pod_set in plan.pod_sets:
        for host in pod_set.endpoints if pod_set.slots is not None else ():
            own = pod_set.role == "launcher" and kind.short_launcher
            lines.append(kind.line(host.partition(".")[0] if own else host, pod_set.slots or 0))
    return config_map(plan.owner, f"{plan.owner.name}-{HOSTFILE_VOLUME}", "".join(f"{line}\n" for line in lines))


def in_a_map(hosts: str) -> bool:
    """Return True if a hostfile is too long for an annotation of each pod."""
    return len(hosts) > ANNOTATION_BYTES


def shared_name(workload: str, hosts: str) -> str:
    """Return the name of the ConfigMap with this hostfile; the name contains a digest of the hostfile."""
    return f"{workload}-{HOSTFILE_VOLUME}-{sha256(hosts.encode()).hexdigest()[:_DIGITS]}"


def config_map(owner: Owner, name: str, hosts: str, *, once: bool = False) -> Component:
    """Return the ConfigMap with a hostfile."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned(owner, name),
        **({"immutable": True} if once else {}),
        "data": {HOSTFILE_KEY: hosts},
    }
    return Component(manifest, NAME, once=once)


def hostfile_text(info: Info, launcher: PodSet, slots: int) -> str:
    """Return the hostfile for pods of one template, the first of which launches the processes."""
    kind = implementation(info.settings)
    _fits(info, launcher, len(launcher.endpoints))  # checked first, because the length is user-supplied
    hosts = list(launcher.endpoints)
    if not all(hosts):
        message = "mpi requires the names of all pods, but a pod without an owner has only the name of rank 0"
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, reason="Required"))
    if kind.short_launcher and hosts:
        hosts[0] = hosts[0].partition(".")[0]
    result = "".join(f"{kind.line(host, slots)}\n" for host in hosts)
    _fits(info, launcher, len(result))
    return result


def _fits(info: Info, launcher: PodSet, size: int) -> None:
    """Raise InvalidFieldError if a hostfile of at least this number of bytes is too large for a ConfigMap."""
    if size > _CONFIG_MAP_BYTES:
        message = (
            f"needs a hostfile of {size} bytes or more for {len(launcher.endpoints)} pods, but a ConfigMap can have "
            f"only {_CONFIG_MAP_BYTES}; use fewer pods, or shorter names"
        )
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, info.owner.name))


WAIT_NAME = "wait-for-mpi-hosts"
_AT_ONCE = 32

# One attempt must be short and must not prompt for a password; ssh uses the first value that it gets for each option.
_SSH = f"ssh -o BatchMode=yes -o ConnectTimeout=5 -o ConnectionAttempts=1 {SSH_ARGUMENTS}"

_MARKS = {"@SSH@": _SSH, "@AT_ONCE@": str(_AT_ONCE), "@HOSTFILE@": HOSTFILE, "@ANNOTATION@": annotation(MPI_WAIT)}
_FILE = Path(__file__).with_name("wait_for_hosts.sh")
SCRIPT = re.sub("@[A-Z_]+@", lambda mark: _MARKS[mark[0]], _FILE.read_text(encoding="utf-8"))
"""Script for any POSIX shell that waits for the hosts. In the script, Kubernetes replaces `$(NAME)` only if it knows
the variable."""


def waiter(info: Info, launcher: PodSet, plugin: str) -> InitPlan | None:
    """Return the init container in which the launcher waits; None without other hosts, or if the wait is disabled."""
    timeout_s = wait_s(info.settings)
    others = sum(pod_set.count for pod_set in info.trainers if pod_set is not launcher)
    if launcher.role == "trainer":
        others += launcher.count - 1
    if not (timeout_s and others and launcher.target):
        return None
    return InitPlan(
        name=WAIT_NAME,
        like=launcher.target.name,
        command=("sh", "-c", SCRIPT),
        env={"MUSTER_WAIT_S": str(timeout_s), "MUSTER_LAUNCHER": launcher.endpoints[0].partition(".")[0]},
        paths=(mount_path(info.settings), HOSTFILE.rpartition("/")[0]),
        plugin=plugin,
        reason=f"mpirun needs ssh to all pods of {info.workload}",
    )
