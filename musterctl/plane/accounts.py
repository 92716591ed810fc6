"""The ServiceAccounts of Muster's processes on a plane: their roles, their tokens, and kubeconfigs with those.

No process of Muster's is an administrator: each has what the chart's roles grant, as it has in any other cluster.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.client import Client
from musterctl.chart import roles as chart
from musterctl.chart.roles import Account
from musterctl.plane import components
from musterctl.plane.machine import write_private
from musterctl.plane.pki import write_kubeconfig

CLUSTER_LEASE: Final = ("kube-system", "kube-scheduler")
"""The Lease of a cluster's own kube-scheduler."""
LIFETIME_S: Final = 365 * 24 * 3600
"""Of the tokens that are asked for; each start asks anew, and an API server may give less."""


def accounts(*, shared: bool) -> dict[str, Account]:
    """The account of each part that has one; `shared`: the cluster's own kube-scheduler asks the extender."""
    own = {part: chart.ACCOUNTS[part] for part in (components.WEBHOOK, components.CONTROLLER)}
    if shared:
        return own | {components.EXTENDER: chart.OWN_EXTENDER}
    return own | dict.fromkeys((components.EXTENDER, components.MUSTER_SCHEDULER), chart.ACCOUNTS[chart.SCHEDULER])


def roles(*, shared: bool) -> list[dict[str, Any]]:
    """The accounts as objects, with their roles."""
    used = {account.name: account for account in accounts(shared=shared).values()}
    return chart.objects(SYSTEM_NAMESPACE, list(used.values()), CLUSTER_LEASE if shared else None)


def renew_tokens(client: Client, folder: Path, *, shared: bool) -> None:
    """Writes a new token for each account into the folder; the processes read their file again by themselves."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in {account.name for account in accounts(shared=shared).values()}:
        write_private(token_file(folder, name), new_token(client, name).encode())


def new_token(client: Client, account: str) -> str:
    """A token of the account, made by the API server."""
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFETIME_S},
    }
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts/{account}/token"
    answer = msgspec.json.decode(client.request("POST", path, body=msgspec.json.encode(asked)))
    return str(answer["status"]["token"])


def token_file(folder: Path, account: str) -> Path:
    """The file with the token of an account."""
    return folder / f"{account}.token"


def kubeconfig(cluster: Path, account: str, tokens: Path, target: Path) -> Path:
    """Writes a kubeconfig for the current cluster of another one, with the token of an account."""
    content = yaml.safe_load(cluster.read_text(encoding="utf-8"))
    current = next(each for each in content["contexts"] if each["name"] == content["current-context"])["context"]
    found = next(each for each in content["clusters"] if each["name"] == current["cluster"])["cluster"]
    if certificate := found.get("certificate-authority"):
        found["certificate-authority"] = str(cluster.parent / certificate)
    write_kubeconfig(target, found, account, {"tokenFile": str(token_file(tokens, account))})
    return target
