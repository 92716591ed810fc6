"""Karpenter with its kwok provider, real, beside a plane: it makes nodes of chosen sizes, and takes them away again.

The program, its CRDs and its roles are those that Karpenter publishes. kwok plays the kubelets of its nodes, as it does
of a plane's own. `Bought` is the record of all nodes that it ever asked its provider for: what a cloud would charge.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tenants
import yaml
from watching import Watching

from beside import manifests, programs
from beside.neighbour import Neighbours
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, Node
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.errors import Conflict
from muster.kube.reflector import Reflector
from musterctl.plane import binaries, install
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess

NODE_POOLS: Resource[dict[str, Any]] = Resource(
    "karpenter.sh", "v1", "nodepools", "NodePool", dict[str, Any], namespaced=False
)
NODE_CLAIMS: Resource[Object] = Resource("karpenter.sh", "v1", "nodeclaims", "NodeClaim", Object, namespaced=False)
_WHOLE_CLAIMS: Resource[dict[str, Any]] = Resource(
    "karpenter.sh", "v1", "nodeclaims", "NodeClaim", dict[str, Any], namespaced=False
)
_GOING = "karpenter.sh/disrupted"
_NODE_CLASSES: Resource[Object] = Resource(
    "karpenter.kwok.sh", "v1alpha1", "kwoknodeclasses", "KWOKNodeClass", Object, namespaced=False
)
POOL = "karpenter.sh/nodepool"
ZONE = "topology.kubernetes.io/zone"
ZONES = ("zone-a", "zone-b", "zone-c")
_TYPE = "node.kubernetes.io/instance-type"
_CAPACITY = "karpenter.sh/capacity-type"
_MODULE = "sigs.k8s.io/karpenter"
_NAMESPACE = "karpenter"
_TRIES = 20
"""Others write the node, too: kwok its status, Karpenter its finalizer."""
_RIGHTS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


@dataclass(frozen=True, slots=True)
class Size:
    """An instance type, the same in every zone."""

    name: str
    price: float
    cpu: int
    gpus: int = 0


def start(plane: Plane, neighbours: Neighbours, sizes: Sequence[Size]) -> PlaneProcess:
    """Karpenter on a plane, which may buy nodes of these sizes in each of `ZONES` for the NodePools that there are."""
    published = programs.published("karpenter", _MODULE)
    client = plane.client()
    install.apply(client, manifests.read(published / "pkg" / "apis" / "crds", published / "kwok" / "apis" / "crds"))
    plane.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
    _, kubeconfig = tenants.user(plane, _NAMESPACE, plane.root, _NAMESPACE)
    install.apply(client, _rights(published / "kwok" / "charts"))
    types = plane.root / "instance-types.json"
    types.write_text(json.dumps([_instance_type(size) for size in sizes]), encoding="utf-8")
    program = programs.built("karpenter", f"{_MODULE}/kwok")
    return neighbours.start(
        plane,
        "karpenter",
        Path("/usr/bin/env"),  # it has no argument for the kubeconfig
        [
            f"KUBECONFIG={kubeconfig}",
            f"SYSTEM_NAMESPACE={_NAMESPACE}",
            str(program),
            f"--instance-types-file-path={types}",
            "--disable-leader-election=true",
            "--metrics-port=0",
            "--health-probe-port=0",
        ],
    )


def pool(
    client: Client,
    *sizes: Size,
    consolidate_after: str = "Never",
    expire_after: str = "Never",
    labels: Mapping[str, str] | None = None,
    **limits: int,
) -> None:
    """The NodePool from now on: nodes of these sizes up to its limits; idle for so long, they are taken away.

    Nodes that were bought with other labels have drifted, which to Karpenter means that they are to be replaced.
    """
    spec = {
        # Without the second one Karpenter asks for spot capacity when it consolidates, which there is none of.
        "requirements": [_among(_TYPE, *(size.name for size in sizes)), _among(_CAPACITY, "on-demand")],
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "expireAfter": expire_after,
    }
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": consolidate_after}
    template = {"metadata": {"labels": dict(labels or {})}, "spec": spec}
    node_pool = {"template": template, "disruption": {**disruption, "budgets": [{"nodes": "100%"}]}, "limits": limits}
    client.apply(_NODE_CLASSES, {"metadata": {"name": "default"}})
    client.apply(NODE_POOLS, {"metadata": {"name": "default"}, "spec": node_pool})


def nodes(client: Client) -> list[Node]:
    """The nodes that Karpenter has made and not yet taken away."""
    return [node for node in client.list(NODES) if POOL in node.metadata.labels]


def consolidatable(client: Client) -> list[str]:
    """Nodes that Karpenter would like to take away: it asks itself once more, 15 s later."""
    statuses = [claim.get("status", {}) for claim in client.list(_WHOLE_CLAIMS)]
    conditions = {status.get("nodeName", ""): status.get("conditions", ()) for status in statuses}
    return [node for node, found in conditions.items() if ("Consolidatable", "True") in map(_said, found)]


def going(client: Client) -> list[str]:
    """Nodes that Karpenter has begun to take away."""
    return [node.metadata.name for node in nodes(client) if any(taint.key == _GOING for taint in node.spec.taints)]


def kill(client: Client, node: str) -> None:
    """The machine of a node is gone, without Karpenter's doing: a node with Karpenter's finalizer would be drained."""
    for left in reversed(range(_TRIES)):
        bare = client.merge_patch(NODES, node, {"metadata": {"finalizers": None}})
        try:
            client.delete(NODES, node, resource_version=bare.metadata.resource_version)
        except Conflict:
            if not left:
                raise
        else:
            return


class Bought(Watching):
    """Names of all NodeClaims there ever were since it began: nodes that were bought, even for a moment."""

    def __init__(self, client: Client) -> None:
        self.names: set[str] = set()
        claims = Reflector(client, NODE_CLAIMS)
        claims.add_handler(self._changed)
        super().__init__(claims)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        one = new or old
        assert one is not None
        self.names.add(one.metadata.name)


def _rights(chart: Path) -> list[dict[str, Any]]:
    """The roles and bindings of its chart, for the account of the same name."""
    arguments = [str(binaries.helm()), "template", "karpenter", str(chart), f"--namespace={_NAMESPACE}"]
    found = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return [each for each in yaml.safe_load_all(found.stdout) if each and each["kind"] in _RIGHTS]


def _instance_type(size: Size) -> dict[str, Any]:
    resources = {"cpu": str(size.cpu), "memory": "256Gi", "ephemeral-storage": "1Ti"}
    return {
        "name": size.name,
        "offerings": [_offering(size, zone) for zone in ZONES],
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources | ({"nvidia.com/gpu": str(size.gpus)} if size.gpus else {}),
    }


def _offering(size: Size, zone: str) -> dict[str, Any]:
    requirements = [_among(_CAPACITY, "on-demand"), _among(ZONE, zone)]
    return {"Price": size.price, "Available": True, "Requirements": requirements}


def _said(condition: Mapping[str, str]) -> tuple[str, str]:
    return condition["type"], condition["status"]


def _among(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}
