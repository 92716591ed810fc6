"""Objects of MPI beside the pods: a Secret with the ssh keys, and the hostfile.

Pods of one workload mount one Secret. It is made once, it is immutable, and it is deleted with the workload: no running
pod has another key than pods that come later.
"""

from hashlib import sha256

from muster.api.fields import FieldError, InvalidFieldError
from muster.runtime.component import Component, KeyKind, owned
from muster.runtime.info import Info, PodSet
from muster.runtime.plan import Plan
from muster.runtime.plugins.mpi_settings import implementation
from muster.runtime.settings import annotation
from muster.workloads.adapter import Owner

NAME = "MPI"
SSH_VOLUME = "mpi-ssh-auth"
HOSTFILE_VOLUME = "mpi-hostfile"
HOSTFILE_KEY = "hostfile"
HOSTFILE_ANNOTATION = annotation(HOSTFILE_VOLUME)
PRIVATE_KEY = "ssh-privatekey"
PUBLIC_KEY = "ssh-publickey"
ANNOTATION_BYTES = 4096
"""A hostfile up to this size is an annotation of each pod: some hundred hosts."""
_CONFIG_MAP_BYTES = 1 << 20
_DIGITS = 10


def secret_name(workload: str) -> str:
    """The name of a workload's Secret, unless its user names one."""
    return f"{workload}-{SSH_VOLUME}"


def ssh_secret(owner: Owner, keys: KeyKind) -> Component:
    """The Secret of a workload; `certs.ssh` makes the keys."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": owned(owner, secret_name(owner.name)),
        "type": "kubernetes.io/ssh-auth",
        "immutable": True,
    }
    return Component(manifest, NAME, once=True, keys=keys)


def hostfile_map(plan: Plan) -> Component:
    """The ConfigMap with the hostfile of a TrainJob: a line for each pod that runs processes, pod set by pod set."""
    kind = implementation(plan.settings)
    lines = []
    for pod_set in plan.pod_sets:
        for host in pod_set.endpoints if pod_set.slots is not None else ():
            own = pod_set.role == "launcher" and kind.short_launcher
            lines.append(kind.line(host.partition(".")[0] if own else host, pod_set.slots or 0))
    return _config_map(plan.owner, f"{plan.owner.name}-{HOSTFILE_VOLUME}", "".join(f"{line}\n" for line in lines))


def in_a_map(hosts: str) -> bool:
    """True if a hostfile is too long for an annotation of each pod."""
    return len(hosts) > ANNOTATION_BYTES


def shared_name(workload: str, hosts: str) -> str:
    """The ConfigMap of pods with this hostfile; a workload with other hosts, or several lists, has further ones."""
    return f"{workload}-{HOSTFILE_VOLUME}-{sha256(hosts.encode()).hexdigest()[:_DIGITS]}"


def shared_map(owner: Owner, hosts: str) -> Component:
    """The ConfigMap that pods of one shape mount."""
    return _config_map(owner, shared_name(owner.name, hosts), hosts, once=True)


def _config_map(owner: Owner, name: str, hosts: str, *, once: bool = False) -> Component:
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned(owner, name),
        **({"immutable": True} if once else {}),
        "data": {HOSTFILE_KEY: hosts},
    }
    return Component(manifest, NAME, once=once)


def hostfile_text(info: Info, launcher: PodSet, slots: int) -> str:
    """The hostfile of pods that all look alike: the first of them launches."""
    kind = implementation(info.settings)
    _fits(info, launcher, len(launcher.endpoints))  # before the list is made: its length is user-supplied
    hosts = list(launcher.endpoints)
    if not all(hosts):
        message = "mpi needs the names of all pods, and a pod without an owner knows only that of rank 0"
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, reason="Required"))
    if kind.short_launcher and hosts:
        hosts[0] = hosts[0].partition(".")[0]
    result = "".join(f"{kind.line(host, slots)}\n" for host in hosts)
    _fits(info, launcher, len(result))
    return result


def _fits(info: Info, launcher: PodSet, size: int) -> None:
    """InvalidFieldError if a hostfile of so many bytes, or more, is too large for a ConfigMap."""
    if size > _CONFIG_MAP_BYTES:
        message = (
            f"makes a hostfile of {size} bytes or more for {len(launcher.endpoints)} pods, and a ConfigMap holds "
            f"{_CONFIG_MAP_BYTES}; use fewer pods, or shorter names"
        )
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, info.owner.name))
