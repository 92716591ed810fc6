"""Tenants of a plane: users with a token of their own, and with rights in one namespace only."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
_RBAC = "rbac.authorization.k8s.io"
ROLES: Resource[JSON] = Resource(_RBAC, "v1", "roles", "Role", dict[str, Any])
ROLE_BINDINGS: Resource[JSON] = Resource(_RBAC, "v1", "rolebindings", "RoleBinding", dict[str, Any])
CLUSTER_ROLES: Resource[JSON] = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", dict[str, Any], namespaced=False)
CLUSTER_ROLE_BINDINGS: Resource[JSON] = Resource(
    _RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", dict[str, Any], namespaced=False
)
ACCOUNTS: Resource[JSON] = Resource("", "v1", "serviceaccounts", "ServiceAccount", dict[str, Any])

_NAME = "tenant"
_ALL = ["create", "get", "list", "watch", "update", "patch", "delete"]
_READ = ["get", "list", "watch"]
OWN_RULES: list[JSON] = [
    {"apiGroups": [""], "resources": ["pods", "services", "configmaps", "secrets"], "verbs": _ALL},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": _ALL},
    {"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": _ALL},
    {"apiGroups": ["bus.volcano.sh"], "resources": ["commands"], "verbs": _ALL},
    {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": _ALL},
    {"apiGroups": ["muster.dev"], "resources": ["placements"], "verbs": _READ},
]
"""What a tenant may do in his namespace: more than most get, and as docs/operations.md advises for placements."""
_COMMON_RULES: list[JSON] = [
    {"apiGroups": ["scheduling.volcano.sh"], "resources": ["queues"], "verbs": _READ},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": _READ},
]


@dataclass(frozen=True, slots=True)
class Tenant:
    """One tenant, and a client with his token."""

    namespace: str
    user: str
    groups: list[str]
    client: Client


def tenant(plane: Plane, namespace: str, folder: Path) -> Tenant:
    """The tenant of a namespace, which is made with him; his kubeconfig is put into the folder."""
    admin = plane.client()
    admin.create(NAMESPACES, {"metadata": {"name": namespace}})
    admin.create(ACCOUNTS, {"metadata": {"name": _NAME}}, namespace)
    subject = {"kind": "ServiceAccount", "name": _NAME, "namespace": namespace}
    admin.create(ROLES, {"metadata": {"name": _NAME}, "rules": OWN_RULES}, namespace)
    admin.create(ROLE_BINDINGS, _binding("Role", _NAME, subject), namespace)
    admin.apply(CLUSTER_ROLES, {"metadata": {"name": "tenants"}, "rules": _COMMON_RULES})
    admin.create(CLUSTER_ROLE_BINDINGS, _binding("ClusterRole", "tenants", subject, name=namespace))
    return Tenant(
        namespace,
        f"system:serviceaccount:{namespace}:{_NAME}",
        ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"],
        Client.load(_kubeconfig(plane, admin, namespace, folder)),
    )


@pytest.fixture
def make_tenant(plane: Plane, namespace: str, tmp_path: Path) -> Iterator[Callable[[str], Tenant]]:
    """Makes tenants of namespaces named after the test's; in the end these go, with all that runs in them."""
    made = list[str]()

    def make(suffix: str) -> Tenant:
        made.append(f"{namespace}-{suffix}")
        return tenant(plane, made[-1], tmp_path)

    yield make
    for each in made:
        plane.client().delete(NAMESPACES, each)


def user(plane: Plane, namespace: str, folder: Path, name: str) -> tuple[JSON, Path]:
    """A user of a namespace, which is made with him, without any rights: as a subject, and his kubeconfig."""
    admin = plane.client()
    admin.apply(NAMESPACES, {"metadata": {"name": namespace}})
    admin.create(ACCOUNTS, {"metadata": {"name": name}}, namespace)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return subject, _kubeconfig(plane, admin, namespace, folder, name)


def bind(plane: Plane, role: str, subject: JSON, *, kind: str = "ClusterRole", everywhere: bool = False) -> None:
    """Gives a user a role, in his namespace or everywhere."""
    name, where = f"{subject['name']}-{role}-{kind.lower()}", "" if everywhere else subject["namespace"]
    binding = _binding(kind, role, subject, name=f"{name}-{subject['namespace']}")
    if everywhere:
        plane.client().create(CLUSTER_ROLE_BINDINGS, binding)
    else:
        plane.client().create(ROLE_BINDINGS, binding, where)


def pod(name: str, *, namespace: str = "", scheduler: str = "volcano", gpus: int = 0, **spec: Any) -> JSON:
    """A pod of one container; `metadata` is merged into its own."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **spec.pop("metadata", {})}
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    limits |= spec.pop("limits", {})
    container = {"name": "main", "image": "none", "resources": {"limits": limits}}
    return {"metadata": metadata, "spec": {"schedulerName": scheduler, "containers": [container], **spec}}


def owner(of: Any) -> JSON:
    """A reference that makes this Job, PodGroup or pod the controller of an object."""
    return {
        "apiVersion": of.api_version,
        "kind": of.kind,
        "name": of.metadata.name,
        "uid": of.metadata.uid,
        "controller": True,
    }


def refusal(act: Callable[[], object]) -> str:
    """What he is told; empty if he may."""
    try:
        act()
    except APIError as error:
        return error.message
    return ""


def uids_of(client: Client, namespace: str) -> dict[str, str]:
    """The UIDs of the pods of a namespace, by name."""
    return {one.metadata.name: one.metadata.uid for one in client.list(PODS, namespace)}


def _binding(kind: str, role: str, subject: JSON, *, name: str = _NAME) -> JSON:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
        "subjects": [subject],
    }


def _kubeconfig(plane: Plane, admin: Client, namespace: str, folder: Path, account: str = _NAME) -> Path:
    """The administrator's kubeconfig with the tenant's token in place of the certificate."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    answer = json.loads(admin.request("POST", path, body=json.dumps(asked).encode()))
    config = yaml.safe_load(plane.kubeconfig.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"token": answer["status"]["token"]}
    config["contexts"][0]["context"]["namespace"] = namespace
    file = folder / f"{namespace}{'' if account == _NAME else f'-{account}'}.kubeconfig"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return file
