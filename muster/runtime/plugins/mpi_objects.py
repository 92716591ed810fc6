"""What MPI needs beside the pods: a Secret with the keys of ssh, and the list of hosts.

Pods of one workload mount one Secret. It is made once, it is immutable, and it goes away with the workload: never has a
pod that runs another key than those that come later.
"""

from muster.api.fields import FieldError, InvalidFieldError
from muster.runtime.component import Component, KeyKind, owned
from muster.runtime.info import Info, PodSet
from muster.runtime.plan import Plan
from muster.runtime.plugins.mpi_settings import choice, implementation
from muster.runtime.settings import annotation
from muster.workloads.adapter import Owner

NAME = "MPI"
SSH_VOLUME = "mpi-ssh-auth"
HOSTFILE_VOLUME = "mpi-hostfile"
HOSTFILE_KEY = "hostfile"
HOSTFILE_ANNOTATION = annotation(HOSTFILE_VOLUME)
PRIVATE_KEY = "ssh-privatekey"
PUBLIC_KEY = "ssh-publickey"
_ANNOTATION_BYTES = 200_000  # of the 262,144 that all annotations of an object may have together


def secret_name(workload: str) -> str:
    """The name of a workload's Secret, where its user names none."""
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
    """The hostfile of a TrainJob, as a ConfigMap."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": owned(plan.owner, f"{plan.owner.name}-{HOSTFILE_VOLUME}"),
        "data": {HOSTFILE_KEY: hostfile(plan)},
    }
    return Component(manifest, NAME)


def hostfile(plan: Plan) -> str:
    """A line for each pod that runs processes, in the order of the pod sets."""
    kind = choice(plan.settings)
    lines = []
    for pod_set in plan.pod_sets:
        if pod_set.slots is None:
            continue
        for host in pod_set.endpoints:
            own = pod_set.role == "launcher" and kind.short_launcher
            lines.append(kind.line(host.partition(".")[0] if own else host, pod_set.slots))
    return "".join(f"{line}\n" for line in lines)


def hostfile_text(info: Info, launcher: PodSet, slots: int) -> str:
    """The hostfile of pods that all look alike: the first of them launches."""
    kind = implementation(info)
    hosts = list(launcher.endpoints)
    if not all(hosts):
        message = "mpi needs the names of all pods, and a pod without an owner knows only that of rank 0"
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, reason="Required"))
    if kind.short_launcher and hosts:
        hosts[0] = hosts[0].partition(".")[0]
    result = "".join(f"{kind.line(host, slots)}\n" for host in hosts)
    if len(result) > _ANNOTATION_BYTES:
        message = (
            f"makes a hostfile of {len(result)} bytes for {len(hosts)} pods; use a TrainJob for more than thousands"
        )
        raise InvalidFieldError(FieldError("metadata.ownerReferences", message, info.owner.name))
    return result
