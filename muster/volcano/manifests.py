"""Functions that change a pod's manifest in place, and the volumes of a Volcano Job with their claims.

The functions do not change the user's own variables, ports, mounts and volumes. Every pod of a Job mounts the Job's
volumes, each from an existing claim or from a claim that is created for the Job. Controller and planner must use the
same names of claims. If the Job does not name a claim, the name is derived from the Job's UID and the mount path, so it
need not be stored.
"""

import hashlib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from muster.api.unchecked import mapping
from muster.api.volcano.batch import Job, VolumeSpec

Manifest = dict[str, Any]
"""An object as plain JSON."""

MAX_VARIABLE_BYTES = 131_072
"""Maximum length of `NAME=value` in Linux, including the terminating zero byte. A program cannot be started with a
longer environment variable."""


def containers(manifest: Manifest, *, init: bool = True) -> list[Manifest]:
    """Return the pod's containers, with its init containers unless `init` is False."""
    spec = manifest["spec"]
    return [*((spec.get("initContainers") or []) if init else []), *(spec.get("containers") or [])]


def variables(values: Mapping[str, str]) -> list[Manifest]:
    """Return environment variables with these values, as JSON for a container."""
    return [{"name": name, "value": value} for name, value in values.items()]


_AMOUNTS = ("requests", "limits")
_BASIC = ("cpu", "memory", "ephemeral-storage")


def safe_as(like: Mapping[str, Any]) -> Manifest:
    """Return the securityContext, CPU and memory of a container, for use in an init container of the same pod.

    With these values, the pod needs no more resources than before, keeps its quality of service, and is not rejected by
    a ResourceQuota or Pod Security. The result contains no devices.
    """
    result: Manifest = {"securityContext": deepcopy(like["securityContext"])} if like.get("securityContext") else {}
    for kind in _AMOUNTS:
        amounts = (like.get("resources") or {}).get(kind) or {}
        if basic := {name: amount for name, amount in amounts.items() if name in _BASIC}:
            result.setdefault("resources", {})[kind] = basic
    return result


def add_env(container: Manifest, wanted: Sequence[Manifest]) -> None:
    """Add environment variables that the container does not have yet."""
    env = container["env"] = list(container.get("env") or [])
    present = {variable.get("name") for variable in env}
    env.extend(variable for variable in wanted if variable["name"] not in present)


def fits_env(name: str, value: str) -> bool:
    """Return True if a program can be started with this variable."""
    return len(name) + len(value.encode()) + len("=\0") <= MAX_VARIABLE_BYTES


def add_port(container: Manifest, name: str, port: int) -> None:
    """Open a port that the container does not open yet."""
    ports = container["ports"] = list(container.get("ports") or [])
    if all(other.get("containerPort") != port for other in ports):
        ports.append({"name": name, "containerPort": port, "protocol": "TCP"})


def open_port(manifest: Manifest, name: str, port: int, *, init: bool = False) -> None:
    """Open a port in every container and, with `init`, in the init containers too.

    On the node's own network, only one container can open a port. In this case the first container opens the port,
    unless another container already opens it.
    """
    opening = containers(manifest, init=init)
    if manifest["spec"].get("hostNetwork"):
        first, *others = containers(manifest, init=False)
        taken = any(each.get("containerPort") == port for other in others for each in other.get("ports") or [])
        opening = [] if taken else [first]
    for container in opening:
        add_port(container, name, port)


def add_volume(manifest: Manifest, volume: Manifest, *, path: str, sub_path: str = "", init: bool = True) -> None:
    """Add a volume, and mount it in every container that has no mount at that path.

    If the template has a volume of this name, it belongs to the user, and nothing is changed.
    """
    spec = manifest["spec"]
    volumes = spec.get("volumes") or []
    if any(other.get("name") == volume["name"] for other in volumes):
        return
    spec["volumes"] = [*volumes, volume]
    mount = {"name": volume["name"], "mountPath": path, **({"subPath": sub_path} if sub_path else {})}
    for container in containers(manifest, init=init):
        mounts = list(container.get("volumeMounts") or [])
        if all(str(other.get("mountPath", "")).rstrip("/") != path.rstrip("/") for other in mounts):
            container["volumeMounts"] = [*mounts, mount]


_FOR_ROOT, _FOR_GROUP, _FOR_EVERYBODY = 0o600, 0o640, 0o644
_HOME_OF_ROOT = "/root"


def folder(path: str) -> str:
    """Return a normalized absolute path, without repeated slashes, dots and a trailing slash."""
    return "/" + normpath(path).lstrip("/")


def of_root(spec: Mapping[str, Any], path: str) -> bool:
    """Return True if root reads the ssh keys in this pod.

    If `runAsUser` is not set, root is assumed to read keys that are below root's home directory.
    """
    pod = mapping(spec.get("securityContext"))
    own = [mapping(mapping(each).get("securityContext")) for each in spec.get("containers") or []]
    users = {each.get("runAsUser", pod.get("runAsUser")) for each in own}
    return 0 in users or (None in users and PurePosixPath(folder(path)).is_relative_to(_HOME_OF_ROOT))


def key_mode(spec: Mapping[str, Any], path: str) -> int:
    """Return the mode of private ssh keys in the volume of a Secret; the files belong to root and the group `fsGroup`.

    ssh rejects a private key that belongs to ssh's own user and that other users may read. All containers of the pod
    belong to `fsGroup`.
    """
    if of_root(spec, path):
        return _FOR_ROOT
    return _FOR_EVERYBODY if mapping(spec.get("securityContext")).get("fsGroup") is None else _FOR_GROUP


_DIGEST_CHARS = 12
_MAX_PREFIX_CHARS = 50


def claim_name(job: Job, volume: VolumeSpec) -> str:
    """Return the name of the PersistentVolumeClaim for a volume of the Job."""
    return volume.volume_claim_name or f"{job.metadata.name}-pvc-{_digest(job.metadata.uid + volume.mount_path)}"


def claim_names(job: Job) -> list[str]:
    """Return the names of the claims for the Job's volumes, without duplicates."""
    return list(dict.fromkeys(claim_name(job, volume) for volume in job.spec.volumes))


def claims(job: Job) -> list[Manifest]:
    """Return the claims to create for the Job, which are deleted together with it."""
    return [
        {"metadata": {"name": claim_name(job, volume)}, "spec": volume.volume_claim}
        for volume in job.spec.volumes
        if volume.volume_claim is not None and not volume.volume_claim_name
    ]


def mount(job: Job, manifest: Manifest) -> None:
    """Add the Job's volumes to a pod in place (each claim once), and mount them in the pod's containers.

    A container with its own mount at the same path keeps that mount.
    """
    for claim, path in {claim_name(job, volume): volume.mount_path for volume in reversed(job.spec.volumes)}.items():
        name = f"{job.metadata.name[:_MAX_PREFIX_CHARS]}-{_digest(claim)}"
        source: Manifest = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        add_volume(manifest, source, path=path, init=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
