"""The ServiceAccounts of Muster's processes: their roles in the cluster, their tokens, and kubeconfigs with those.

No process of Muster's is an administrator: each has what the chart's roles grant, as it has in a cluster of its own.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.client import Client
from musterctl.chart import policies, roles
from musterctl.chart.roles import Account
from musterctl.plane import components
from musterctl.plane.pki import write_private

CLUSTER_LEASE: Final = ("kube-system", "kube-scheduler")
"""Where a cluster's own kube-scheduler says that it leads."""
LIFETIME_S: Final = 365 * 24 * 3600
"""Of the tokens that are asked for; each start asks anew, and an API server may give less."""
_RBAC: Final = ("rbac.authorization.k8s.io", "v1")
_ADMISSION: Final = ("admissionregistration.k8s.io", "v1")
_AT_ONCE: Final = 8


def _resource(group: str, version: str, plural: str, kind: str, *, namespaced: bool = False) -> Resource[Object]:
    return Resource(group, version, plural, kind, Object, namespaced=namespaced)


_KINDS: Final = {
    each.kind: each
    for each in (
        _resource("", "v1", "serviceaccounts", "ServiceAccount", namespaced=True),
        _resource(*_RBAC, "roles", "Role", namespaced=True),
        _resource(*_RBAC, "rolebindings", "RoleBinding", namespaced=True),
        _resource(*_RBAC, "clusterroles", "ClusterRole"),
        _resource(*_RBAC, "clusterrolebindings", "ClusterRoleBinding"),
        _resource(*_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        _resource(*_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    )
}


def accounts(*, shared: bool) -> dict[str, Account]:
    """The account of each part that has one; `shared`: the cluster's own kube-scheduler asks the extender."""
    own = {
        components.WEBHOOK: roles.ACCOUNTS[roles.WEBHOOK],
        components.CONTROLLER: roles.ACCOUNTS[roles.CONTROLLER],
    }
    if shared:
        return own | {components.EXTENDER: roles.OWN_EXTENDER}
    return own | dict.fromkeys((components.EXTENDER, components.MUSTER_SCHEDULER), roles.ACCOUNTS[roles.SCHEDULER])


def install(client: Client, *, shared: bool) -> None:
    """Applies accounts, roles and admission policies."""
    used = list({account.name: account for account in accounts(shared=shared).values()}.values())
    lease = CLUSTER_LEASE if shared else None
    wanted = [*roles.objects(SYSTEM_NAMESPACE, used, lease), *policies.objects()]

    def apply(one: dict[str, Any]) -> None:
        client.apply(_KINDS[one["kind"]], one)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(apply, wanted))


def renew_tokens(client: Client, folder: Path, *, shared: bool) -> None:
    """Writes a new token for each account into the folder; the processes read their file again by themselves."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in {account.name for account in accounts(shared=shared).values()}:
        write_private(token_file(folder, name), _token(client, name).encode())


def token_file(folder: Path, account: str) -> Path:
    """Where the token of an account is."""
    return folder / f"{account}.token"


def kubeconfig(cluster: Path, account: str, tokens: Path, target: Path) -> Path:
    """Writes a kubeconfig for the current cluster of another one, with the token of an account."""
    content = yaml.safe_load(cluster.read_text(encoding="utf-8"))
    current = next(each for each in content["contexts"] if each["name"] == content["current-context"])["context"]
    one = next(each for each in content["clusters"] if each["name"] == current["cluster"])
    certificate = one["cluster"].get("certificate-authority")
    if certificate:
        one["cluster"]["certificate-authority"] = str(cluster.parent / certificate)
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [one],
        "users": [{"name": account, "user": {"tokenFile": str(token_file(tokens, account))}}],
        "contexts": [{"name": account, "context": {"cluster": one["name"], "user": account}}],
        "current-context": account,
    }
    write_private(target, yaml.safe_dump(made).encode())
    return target


def _token(client: Client, account: str) -> str:
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFETIME_S},
    }
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts/{account}/token"
    answer = msgspec.json.decode(client.request("POST", path, body=msgspec.json.encode(asked)))
    return str(answer["status"]["token"])
