"""cert-manager beside a plane: its CRDs, its webhook, and its controllers and CA injector in one process.

Its programs are published as images only, so `modules/certmanager` has a program that starts the parts of its library.
`go mod tidy` there renews its go.sum; `.ci/neighbour-recipe` is not for it.
"""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml

from beside import manifests, programs
from beside.neighbour import Neighbours
from muster.api.base import Resource
from muster.api.kubernetes.extensions import WEBHOOK_CONFIGURATIONS
from muster.kube.client import Client
from musterctl.chart.files import helm
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
CERTIFICATES: Final[Resource[JSON]] = Resource("cert-manager.io", "v1", "certificates", "Certificate", dict[str, Any])
_NAME: Final = "certmanager"
_MODULE: Final = "github.com/cert-manager/cert-manager"
_NAMESPACE: Final = "cert-manager"
_WEBHOOK: Final = "cert-manager-webhook"
"""The name of its webhook configurations, as in its chart."""


def program() -> Path:
    """The program, after building it if need be."""
    return programs.built(_NAME, f"{_MODULE}/cmd/certmanager", minutes=4)


def start(neighbours: Neighbours, plane: Plane, wait_for: Callable[..., Any]) -> None:
    """Installs and starts it; returns when the API server asks its webhook, which must be there before any Issuer."""
    port, health = free_ports(2)
    _apply(plane, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}}])
    definitions = manifests.read(programs.published(_NAME, _MODULE) / "deploy" / "crds")
    _apply(plane, definitions)
    names = [f"crd/{each['metadata']['name']}" for each in definitions]
    plane.kubectl("wait", "--for=condition=Established", *names).check_returncode()
    arguments = [f"--kubeconfig={plane.kubeconfig}", f"--port={port}", f"--health-port={health}"]
    part = neighbours.start(plane, _NAME, program(), arguments)
    _apply(plane, _webhooks(port))
    client = plane.client()
    wait_for(lambda: _asked(client) or not part.alive, 120, "cert-manager's injector to vouch for its own webhook")
    assert part.alive, part.log_tail()


def certificate(client: Client, name: str, namespace: str) -> JSON:
    """A Certificate."""
    return client.get(CERTIFICATES, name, namespace)


def condition(certificate: JSON, kind: str) -> str:
    """The status of a condition of a Certificate; empty if it does not have it."""
    conditions = certificate.get("status", {}).get("conditions", ())
    return next((each["status"] for each in conditions if each["type"] == kind), "")


def renew(plane: Plane, name: str, namespace: str) -> None:
    """Asks for a new certificate before its time, as `cmctl renew` does: by the condition Issuing."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = plane.kubectl("get", "certificates", name, f"--namespace={namespace}", "--output=json")
    found.check_returncode()
    one = json.loads(found.stdout)
    asked = {"type": "Issuing", "status": "True", "reason": "Asked", "message": "by hand", "lastTransitionTime": now}
    one["status"]["conditions"] = [each for each in one["status"]["conditions"] if each["type"] != "Issuing"] + [asked]
    written = plane.kubectl("replace", "--subresource=status", "--filename=-", stdin=json.dumps(one))
    assert written.returncode == 0, written.stderr


def _webhooks(port: int) -> list[JSON]:
    """The configurations of its webhook, as its own chart renders them for one outside the cluster."""
    chart = programs.published(_NAME, _MODULE) / "deploy" / "charts" / "cert-manager"
    shown = [f"--show-only=templates/webhook-{kind}-webhook.yaml" for kind in ("mutating", "validating")]
    where = f"--set=webhook.url.host=localhost:{port}"
    result = helm("template", "cert-manager", str(chart), f"--namespace={_NAMESPACE}", where, *shown)
    assert result.returncode == 0, result.stderr
    return [each for each in yaml.safe_load_all(result.stdout) if each]


def _asked(client: Client) -> bool:
    """Whether every configuration of its webhook trusts somebody."""
    hooks = [hook for kind in WEBHOOK_CONFIGURATIONS for hook in client.get(kind, _WEBHOOK).webhooks or ()]
    return all(hook.client_config.ca_bundle for hook in hooks)


def _apply(plane: Plane, objects: list[JSON]) -> None:
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    applied = plane.kubectl("apply", "--server-side", "--filename=-", stdin=content)
    assert applied.returncode == 0, applied.stderr
