"""Additions to the manifest of a pod, in place. The user's own variables, ports, mounts and volumes stay."""

from collections.abc import Mapping, Sequence
from typing import Any

Manifest = dict[str, Any]
"""An object as plain JSON."""

MAX_VARIABLE_BYTES = 131_072
"""Longest `NAME=value` of Linux, with the byte that ends it: a program with a longer one cannot be started."""


def containers(manifest: Manifest, *, init: bool = True) -> list[Manifest]:
    """The pod's containers, with its init containers unless `init` is False."""
    spec = manifest["spec"]
    return [*((spec.get("initContainers") or []) if init else []), *(spec.get("containers") or [])]


def variables(values: Mapping[str, str]) -> list[Manifest]:
    """Variables with these values, as JSON for a container."""
    return [{"name": name, "value": value} for name, value in values.items()]


def add_env(container: Manifest, wanted: Sequence[Manifest]) -> None:
    """Adds variables that the container does not have yet."""
    env = container["env"] = list(container.get("env") or [])
    present = {variable["name"] for variable in env}
    env.extend(variable for variable in wanted if variable["name"] not in present)


def fits_env(name: str, value: str) -> bool:
    """True if a program can be started with this variable."""
    return len(name) + len(value.encode()) + len("=\0") <= MAX_VARIABLE_BYTES


def add_port(container: Manifest, name: str, port: int) -> None:
    """Opens a port that the container does not open yet."""
    ports = container["ports"] = list(container.get("ports") or [])
    if all(other.get("containerPort") != port for other in ports):
        ports.append({"name": name, "containerPort": port, "protocol": "TCP"})


def open_port(manifest: Manifest, name: str, port: int, *, init: bool = False) -> None:
    """Opens a port in every container, with `init` in the init containers too.

    On the node's own network only one container can have a port: there the first one opens it, unless another has it.
    """
    opening = containers(manifest, init=init)
    if manifest["spec"].get("hostNetwork"):
        first, *others = containers(manifest, init=False)
        taken = any(each.get("containerPort") == port for other in others for each in other.get("ports") or [])
        opening = [] if taken else [first]
    for container in opening:
        add_port(container, name, port)


def add_volume(manifest: Manifest, volume: Manifest, *, path: str, sub_path: str = "", init: bool = True) -> None:
    """Adds a volume, and mounts it in every container that has no mount at that path.

    If the template has a volume of that name, it is the user's, and nothing is changed.
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
