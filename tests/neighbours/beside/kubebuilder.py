"""Controllers of Kubernetes' projects, made alike: one program, a Configuration, webhooks, `config/default`."""

import socket
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import yaml

from beside import manifests, programs
from beside.neighbour import Neighbours
from muster.api.kubernetes.extensions import DEFINITIONS
from musterctl.plane.health import wait_until
from musterctl.plane.machine import LocalError, free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.process import Part

_HOST = "127.0.0.1"
_READY_S = 60.0
_POLL_S = 0.05
_INSTALLED = frozenset(
    {
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Role",
        "ClusterRole",
        "RoleBinding",
        "ClusterRoleBinding",
    }
)
"""What of the manifests a process outside of the cluster needs as it is."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project whose manifests put everything into `<name>-system`, with names that begin with `<name>-`."""

    name: str
    """Also the folder of its recipe."""
    module: str
    package: str
    config: str
    """The API version of its Configuration."""


def start(neighbours: Neighbours, plane: Plane, project: Project, **more: Any) -> Part:
    """Installs what the project publishes and runs its program with the rights of its own account.

    `more` are fields of its Configuration. Returns when it is ready and its webhooks are asked.
    """
    program = programs.built(project.name, project.package)
    objects = rendered(plane, programs.published(project.name, project.module) / "config" / "default")
    _apply(plane, [each for each in objects if each["kind"] in _INSTALLED])
    _wait_served(plane, [each["metadata"]["name"] for each in objects if each["kind"] == DEFINITIONS.kind])
    folder = plane.root / project.name
    bundle = manifests.serving(folder)
    webhook, probe = free_ports(2)
    configuration = {
        "apiVersion": project.config,
        "kind": "Configuration",
        "webhook": {"host": _HOST, "port": webhook, "certDir": str(folder)},
        "health": {"healthProbeBindAddress": f"{_HOST}:{probe}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        **more,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    _write_kubeconfig(plane, project, folder / "kubeconfig")
    arguments = [f"--config={folder / 'config.yaml'}", f"--kubeconfig={folder / 'kubeconfig'}"]
    part = neighbours.start(plane, project.name, program, arguments)
    wait_until(part, lambda: _trouble(probe, webhook), _READY_S)
    _apply(plane, manifests.webhooks(objects, webhook, bundle))
    return part


def rendered(plane: Plane, folder: Path) -> list[dict[str, Any]]:
    """The objects that kustomize makes of a folder."""
    return [each for each in yaml.safe_load_all(_kubectl(plane, "kustomize", str(folder))) if each]


def _wait_served(plane: Plane, names: list[str]) -> None:
    """Returns when the API server serves these kinds. `kubectl wait` fails while there is no status yet."""
    deadline = time.monotonic() + _READY_S
    with closing(plane.client()) as client:
        while waiting := [name for name in names if not client.get(DEFINITIONS, name).established]:
            if time.monotonic() > deadline:
                raise LocalError(f"{', '.join(waiting)}: not served after {_READY_S:.0f} s")
            time.sleep(_POLL_S)


def _apply(plane: Plane, objects: list[dict[str, Any]]) -> None:
    _kubectl(plane, "apply", "--server-side", "--filename=-", stdin=yaml.safe_dump_all(objects))


def _write_kubeconfig(plane: Plane, project: Project, file: Path) -> None:
    """The administrator's kubeconfig, with a token of the project's account instead."""
    space = f"{project.name}-system"
    token = _kubectl(plane, "create", "token", f"{project.name}-controller-manager", f"--namespace={space}")
    content: Mapping[str, Any] = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))
    users = [{**each, "user": {"token": token.strip()}} for each in content["users"]]
    file.write_text(yaml.safe_dump({**content, "users": users}), encoding="utf-8")


def _trouble(probe: int, webhook: int) -> str:
    """Empty once the program says that it is ready, and its webhooks listen: not all programs wait for that."""
    connection = HTTPConnection(_HOST, probe, timeout=2)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        socket.create_connection((_HOST, webhook), timeout=2).close()
    except (OSError, HTTPException) as error:
        return str(error)
    finally:
        connection.close()
    return "" if answer.status == HTTPStatus.OK else f"/readyz answers {answer.status}"


def _kubectl(plane: Plane, *arguments: str, stdin: str = "") -> str:
    result = plane.kubectl(*arguments, stdin=stdin)
    if result.returncode:
        raise LocalError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout
