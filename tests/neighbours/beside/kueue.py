"""Kueue as a process beside a plane: its own manifests, rights, webhooks and certificates, its own configuration.

Everything that `kubectl kustomize config/default` of its module names is applied, but for what runs pods: its
Deployment is a process here, and its webhooks' Service leads to that process. What a kubelet would do, the files of a
mounted Secret, is done here.
"""

import base64
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from beside import manifests, programs
from beside.neighbour import Neighbours
from muster.api.base import Resource
from muster.kube.client import Client
from musterctl.plane import rights
from musterctl.plane.health import trouble_at, wait_until
from musterctl.plane.machine import LOOPBACK, free_ports, write_private
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess

JSON = dict[str, Any]
MODULE: Final = "sigs.k8s.io/kueue"
NAMESPACE: Final = "kueue-system"
ACCOUNT: Final = "kueue-controller-manager"
_CONFIG: Final = "controller_manager_config.yaml"
_CERTIFICATE: Final = "kueue-webhook-server-cert"
_SERVICE: Final = "kueue-webhook-service"
_NOT_HERE: Final = frozenset({"Deployment", "Service", "APIService"})
"""Kinds that need pods: the manager, what leads to it, and its API of waiting workloads behind the aggregator."""
_JOBSET_KINDS: Final = "config/components/crd/bases"
_TIMEOUT_S: Final = 120.0
SECRETS: Resource[JSON] = Resource("", "v1", "secrets", "Secret", JSON)


@dataclass(frozen=True, slots=True)
class Kueue:
    """One Kueue and the plane beside which it runs."""

    plane: Plane
    part: PlaneProcess
    health_url: str

    def wait_ready(self) -> None:
        """Returns when its webhooks answer."""
        wait_until(self.part, lambda: trouble_at(f"{self.health_url}/readyz", self.plane.root), _TIMEOUT_S)


def start(
    plane: Plane,
    neighbours: Neighbours,
    wait_for: Callable[..., Any],
    *,
    name: str = "kueue",
    settings: Mapping[str, Any] | None = None,
) -> Kueue:
    """Installs Kueue on a plane that runs and starts it; `settings` are more of its configuration, and win.

    The kind JobSet comes first, without its controller: where TrainJobs are known and JobSets are not, Kueue ends
    itself after two minutes.
    """
    program = programs.built("kueue", f"{MODULE}/cmd/kueue", minutes=10)
    webhook, health, metrics = free_ports(3)
    folder = plane.root / name
    objects = _rendered(plane)
    config = _config(objects, folder, webhook, health, metrics) | dict(settings or {})
    _apply(plane, list(manifests.read(programs.published("kueue", "sigs.k8s.io/jobset") / _JOBSET_KINDS)))
    _apply(plane, [_fitted(each, webhook) for each in objects if each["kind"] not in _NOT_HERE])
    _apply(plane, [_service()])
    folder.mkdir(exist_ok=True)
    (folder / _CONFIG).write_text(yaml.safe_dump(config), encoding="utf-8")
    arguments = [f"--config={folder / _CONFIG}", f"--kubeconfig={_kubeconfig(plane, folder)}", "--zap-log-level=2"]
    part = neighbours.start(plane, name, program, arguments)
    _mount(plane.client(), folder, wait_for)
    one = Kueue(plane, part, f"http://{LOOPBACK}:{health}")
    one.wait_ready()
    return one


def _rendered(plane: Plane) -> list[JSON]:
    """All objects of Kueue's default installation."""
    source = programs.published("kueue", MODULE) / "config" / "default"
    result = subprocess.run([plane.kubectl_program(), "kustomize", source], capture_output=True, text=True, check=True)
    return list(yaml.safe_load_all(result.stdout))


def _config(objects: list[JSON], folder: Path, webhook: int, health: int, metrics: int) -> JSON:
    """Kueue's own configuration, with addresses that do not meet those of other processes of this machine."""
    found = next(each for each in objects if each["kind"] == "ConfigMap" and _CONFIG in each["data"])
    config: JSON = yaml.safe_load(found["data"][_CONFIG])
    config["health"]["healthProbeBindAddress"] = f"{LOOPBACK}:{health}"
    config["metrics"]["bindAddress"] = f"{LOOPBACK}:{metrics}"
    config["webhook"] = {"host": LOOPBACK, "port": webhook, "certDir": str(folder / "certs")}
    config["leaderElection"] = {"leaderElect": False}  # there is one, and a slow machine must not depose it
    config["featureGates"] = {"VisibilityOnDemand": False}  # it writes below the root of the file system
    return config


def _fitted(each: JSON, port: int) -> JSON:
    """The object, and where it names the Service of the webhooks, this port of it."""
    if each["kind"] in {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}:
        for hook in each["webhooks"]:
            hook["clientConfig"]["service"]["port"] = port
    conversion = each.get("spec", {}).get("conversion", {}) if each["kind"] == "CustomResourceDefinition" else {}
    if conversion.get("strategy") == "Webhook":
        conversion["webhook"]["clientConfig"]["service"]["port"] = port
    return each


def _service() -> JSON:
    """A Service under the name for which Kueue makes its certificate, which leads to this machine."""
    spec = {"type": "ExternalName", "externalName": "localhost"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": _SERVICE, "namespace": NAMESPACE}, "spec": spec}


def _apply(plane: Plane, objects: list[JSON]) -> None:
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}).decode()
    result = plane.kubectl(
        "apply", "--server-side", "--force-conflicts", "--validate=false", "--filename=-", stdin=text
    )
    assert not result.returncode, result.stderr


def _kubeconfig(plane: Plane, folder: Path) -> Path:
    """A kubeconfig with a token of Kueue's own account, which has the rights of its roles and no more."""
    made = plane.kubectl("create", "token", ACCOUNT, f"--namespace={NAMESPACE}", "--duration=24h")
    assert not made.returncode, made.stderr
    write_private(rights.token_file(folder, ACCOUNT), made.stdout.strip().encode())
    return rights.kubeconfig(plane.kubeconfig, ACCOUNT, folder, folder / "kubeconfig")


def _mount(client: Client, folder: Path, wait_for: Callable[..., Any]) -> None:
    """Writes the certificate that Kueue makes into the folder where a kubelet would mount the Secret."""

    def made() -> JSON:
        return client.get(SECRETS, _CERTIFICATE, NAMESPACE).get("data") or {}

    data = wait_for(made, _TIMEOUT_S, "Kueue to make its certificate")
    (folder / "certs").mkdir(exist_ok=True)
    for name in sorted(data, reverse=True):  # the certificate last: Kueue takes it for the sign that all are there
        write_private(folder / "certs" / name, base64.b64decode(data[name]))
