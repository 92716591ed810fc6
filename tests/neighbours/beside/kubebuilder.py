"""Controllers of Kubernetes' projects, made alike: one program, a Configuration, webhooks, `config/default`."""

import ssl
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from beside import manifests, programs
from beside.neighbour import Neighbours
from muster.api.kubernetes.extensions import DEFINITIONS
from musterctl.plane.health import wait_until
from musterctl.plane.machine import LocalError, free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess

_HOST = "127.0.0.1"
_READY_S = 60.0
_POLL_S = 0.05
_ANSWER_S = 5.0
_INSTALLED = frozenset({
    "Namespace", "CustomResourceDefinition", "ServiceAccount", "Role", "ClusterRole", "RoleBinding",
    "ClusterRoleBinding",
})  # fmt: skip
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


def start(neighbours: Neighbours, plane: Plane, project: Project, **more: Any) -> PlaneProcess:
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
    hooks = manifests.webhooks(objects, webhook, bundle)
    trusted = ssl.create_default_context(cadata=bundle.decode())
    wait_until(part, lambda: _trouble(probe) or _unserved(hooks, trusted), _READY_S)
    _apply(plane, hooks)
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


def _trouble(probe: int) -> str:
    """Empty once the program says that it is ready."""
    with closing(HTTPConnection(_HOST, probe, timeout=_ANSWER_S)) as connection:
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
        except (OSError, HTTPException) as error:
            return str(error)
    return "" if answer.status == HTTPStatus.OK else f"/readyz answers {answer.status}"


def _unserved(configurations: list[dict[str, Any]], trusted: ssl.SSLContext) -> str:
    """Empty once each webhook has its handler: programs listen before, are ready before, and answer 404 until then."""
    for url in (hook["clientConfig"]["url"] for each in configurations for hook in each["webhooks"]):
        to = urlsplit(url)
        with closing(HTTPSConnection(to.hostname or "", to.port, timeout=_ANSWER_S, context=trusted)) as connection:
            try:
                connection.request("POST", to.path, b"{}", {"Content-Type": "application/json"})
                if connection.getresponse().status == HTTPStatus.NOT_FOUND:
                    return f"{to.path} is not served"
            except (OSError, HTTPException) as error:
                return f"{to.path}: {error}"
    return ""


def _kubectl(plane: Plane, *arguments: str, stdin: str = "") -> str:
    result = plane.kubectl(*arguments, stdin=stdin)
    if result.returncode:
        raise LocalError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout
