"""cluster-autoscaler with its kwok provider, real, beside a plane: it makes nodes of node groups, and takes them away.

The program, the definition of ProvisioningRequest and the roles are autoscaler's own; what the provider needs beyond
those roles (nodes and its ConfigMaps) and what ProvisioningRequests need is added. kwok plays the nodes' kubelets.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tenants
from watching import Watching

from beside import manifests, programs
from beside.neighbour import Neighbours
from muster.api.kubernetes.core import NODES, Node
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane import install
from musterctl.plane.machine import LOOPBACK, free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess

GROUP: Final = "node.kubernetes.io/instance-type"
"""The label whose value is the name of a node's group."""
_MODULE: Final = "k8s.io/autoscaler/cluster-autoscaler"
_NAME, _NAMESPACE = "cluster-autoscaler", "kube-system"
_ROLES: Final = Path("cloudprovider", "aws", "examples", "cluster-autoscaler-autodiscover.yaml")
"""The newest of the roles that its module has; they are the same for every cloud."""
_RIGHTS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_GPU_LABEL, _GPU_TYPE = "nvidia.com/gpu.product", "none"
_LIMIT: Final = "cluster-autoscaler.kwok.nodegroup/max-count"
_CONFIG, _TEMPLATES = "kwok-provider-config", "kwok-provider-templates"
_FORBIDDEN: Final = re.compile(r"Node (\S+) cannot be removed: pod annotated as not safe to evict present")
_PLACELESS: Final = re.compile(r"Node (\S+) is not suitable for removal: can reschedule only")
_GOING: Final = "ToBeDeletedByClusterAutoscaler"
_READ: Final = ["get", "list", "watch"]


@dataclass(frozen=True, slots=True)
class Group:
    """A node group: so many nodes of this size at most."""

    name: str
    limit: int
    gpus: int = 8
    cpu: int = 33


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """One that runs, and the plane beside which it runs."""

    plane: Plane
    part: PlaneProcess

    def forbidden(self) -> set[str]:
        """Nodes that it wanted to take away, and did not, because a pod there says that it is not safe to evict."""
        return self._told(_FORBIDDEN)

    def placeless(self) -> set[str]:
        """Nodes that it wanted to take away, and did not, because it found no other node for the pods there."""
        return self._told(_PLACELESS)

    def _told(self, words: re.Pattern[str]) -> set[str]:
        return set(words.findall(self.part.log_file.read_text(encoding="utf-8", errors="replace")))


def start(plane: Plane, neighbours: Neighbours, groups: Sequence[Group]) -> Autoscaler:
    """cluster-autoscaler on a plane, impatient, with these node groups, which are empty at first.

    It handles ProvisioningRequests, too, and would move pods of Jobs that are not of Kubernetes' own kind off nodes.
    """
    client = plane.client()
    _, kubeconfig = tenants.user(plane, _NAMESPACE, plane.root, _NAME)
    roles = manifests.read(programs.published(_NAME, _MODULE) / _ROLES)
    definition = manifests.read(programs.published(_NAME, f"{_MODULE}/apis") / "config" / "crd")
    own = [each for each in roles if each["kind"] in _RIGHTS]
    install.apply(client, [*own, *_more_rights(), *definition, *_settings(groups)])
    plane.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
    program = programs.built(_NAME, _MODULE, minutes=10, tags="kwok")
    (port,) = free_ports(1)
    part = neighbours.start(
        plane,
        _NAME,
        Path("/usr/bin/env"),  # its provider has no arguments
        [
            f"KUBECONFIG={kubeconfig}",
            f"POD_NAMESPACE={_NAMESPACE}",
            "KWOK_PROVIDER_MODE=local",
            str(program),
            f"--kubeconfig={kubeconfig}",
            "--cloud-provider=kwok",
            f"--namespace={_NAMESPACE}",
            f"--address={LOOPBACK}:{port}",
            "--leader-elect=false",
            "--enable-provisioning-requests",
            "--kube-api-content-type=application/json",  # it cannot write ProvisioningRequests in its default, protobuf
            "--skip-nodes-with-custom-controller-pods=false",
            "--scan-interval=2s",
            "--scale-down-delay-after-add=2s",
            "--scale-down-unneeded-time=4s",
            "--unremovable-node-recheck-timeout=4s",
            "--initial-node-group-backoff-duration=10s",
            "--provisioning-request-initial-backoff-time=5s",
            "--v=2",
        ],
    )
    return Autoscaler(plane, part)


def nodes(client: Client) -> list[Node]:
    """The nodes of all groups."""
    return [node for node in client.list(NODES) if GROUP in node.metadata.labels]


def going(client: Client) -> list[str]:
    """Nodes that it has begun to take away."""
    return [node.metadata.name for node in nodes(client) if any(taint.key == _GOING for taint in node.spec.taints)]


class Made(Watching):
    """Names of all nodes that there ever were since it began, even for a moment."""

    def __init__(self, client: Client) -> None:
        self.names: set[str] = set()
        reflector = Reflector(client, NODES)
        reflector.add_handler(self._changed)
        super().__init__(reflector)

    def _changed(self, old: Node | None, new: Node | None) -> None:
        one = new or old
        assert one is not None
        self.names.add(one.metadata.name)


def _more_rights() -> list[dict[str, Any]]:
    """What its provider does in the place of a cloud, and what ProvisioningRequests need."""
    rules = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "delete"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [_CONFIG, _TEMPLATES], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["podtemplates"], "verbs": _READ},
        {"apiGroups": ["autoscaling.x-k8s.io"], "resources": ["provisioningrequests"], "verbs": [*_READ, "delete"]},
        {"apiGroups": ["autoscaling.x-k8s.io"], "resources": ["provisioningrequests/status"], "verbs": ["update"]},
    ]
    group = "rbac.authorization.k8s.io"
    name, version = f"{_NAME}-beside", {"apiVersion": f"{group}/v1"}
    subject = {"kind": "ServiceAccount", "name": _NAME, "namespace": _NAMESPACE}
    role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    return [
        {**version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {**version, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": role, "subjects": [subject]},
    ]


def _settings(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The ConfigMaps of its provider: a template of a node for each group."""
    config = {
        "apiVersion": "v1alpha1",
        "readNodesFrom": "configmap",
        "nodegroups": {"fromNodeLabelKey": GROUP},
        "nodes": {"skipTaint": True, "gpuConfig": {"gpuLabelKey": _GPU_LABEL, "availableGPUTypes": {_GPU_TYPE: {}}}},
        "configmap": {"name": _TEMPLATES},
    }
    templates = {"apiVersion": "v1", "kind": "List", "items": [_template(group) for group in groups]}
    return [_config_map(_CONFIG, "config", config), _config_map(_TEMPLATES, "templates", templates)]


def _config_map(name: str, key: str, value: object) -> dict[str, Any]:
    metadata = {"name": name, "namespace": _NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: json.dumps(value)}}


def _template(group: Group) -> dict[str, Any]:
    gpus = {"nvidia.com/gpu": str(group.gpus)} if group.gpus else {}
    resources = {"cpu": str(group.cpu), "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110", **gpus}
    labels = {GROUP: group.name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
    labels |= {_GPU_LABEL: _GPU_TYPE} if group.gpus else {}
    metadata = {"name": group.name, "labels": labels, "annotations": {_LIMIT: str(group.limit)}}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
