"""Rights in a cluster: ServiceAccounts for Muster's processes, and the rights that a user needs to attach Muster.

No process of Muster has the rights of an administrator. As in other clusters, each process has a ServiceAccount with
the chart's roles, and a kubeconfig with a token of this account. The user's rights are checked before any component of
the control plane is started.
"""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from muster.api.kubernetes import reviews
from muster.api.names import SYSTEM_NAMESPACE
from muster.kube.client import Client
from musterctl.chart import roles as chart
from musterctl.chart.roles import Account
from musterctl.plane import state
from musterctl.plane.machine import LocalError, write_private
from musterctl.plane.pki import write_kubeconfig

CLUSTER_LEASE: Final = ("kube-system", "kube-scheduler")
"""The Lease of a cluster's own kube-scheduler."""
LIFETIME_S: Final = 365 * 24 * 3600
"""Requested lifetime of tokens, in seconds; each start requests new tokens, and an API server may shorten their
lifetime."""
_AT_ONCE: Final = 8
_ADMISSION: Final = "admissionregistration.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_INSTALLS: Final = {
    "configmaps": "create patch",
    "namespaces": "create patch",
    "serviceaccounts": "create patch",
    "serviceaccounts/token": "create",
    f"clusterroles.{_RBAC}": "bind create patch",
    f"clusterrolebindings.{_RBAC}": "create patch",
    f"roles.{_RBAC}": "bind create patch",
    f"rolebindings.{_RBAC}": "create patch",
    "customresourcedefinitions.apiextensions.k8s.io": "create get patch",
    f"mutatingwebhookconfigurations.{_ADMISSION}": "create delete patch",
    f"validatingwebhookconfigurations.{_ADMISSION}": "create delete patch",
    f"validatingadmissionpolicies.{_ADMISSION}": "create patch",
    f"validatingadmissionpolicybindings.{_ADMISSION}": "create patch",
    "clustertrainingruntimes.trainer.kubeflow.org": "create patch",
    "queues.scheduling.volcano.sh": "get",
}
"""Rights on the objects that `muster up` itself creates or reads. The user also needs all rights that `muster up`
grants to accounts, because users can grant only rights that they have."""
_GRANTS: Final = (chart.WEBHOOK, chart.EXTENDER, chart.SCHEDULER, chart.CONTROLLER, chart.HISTORY, chart.USERS)


def accounts(*, shared: bool) -> dict[str, Account]:
    """Return a mapping from components to their ServiceAccounts; some components have no ServiceAccount.

    With `shared`, the cluster's own kube-scheduler calls the extender, so Muster's kube-scheduler needs no account.
    """
    own = {part: chart.ACCOUNTS[part] for part in (state.WEBHOOK, state.CONTROLLER, state.HISTORY)}
    if shared:
        return own | {state.EXTENDER: chart.OWN_EXTENDER}
    return own | dict.fromkeys((state.EXTENDER, state.MUSTER_SCHEDULER), chart.ACCOUNTS[chart.SCHEDULER])


def roles(*, shared: bool) -> list[dict[str, Any]]:
    """Return the ServiceAccounts of the control plane's components, with their roles and bindings."""
    used = {account.name: account for account in accounts(shared=shared).values()}
    return chart.objects(SYSTEM_NAMESPACE, list(used.values()), CLUSTER_LEASE if shared else None)


def renew_tokens(client: Client, folder: Path, *, shared: bool, pools: Iterable[str] = ()) -> None:
    """Write a new token for each account into the folder; running processes reload their tokens.

    The extenders and kube-schedulers of all pools share an account. The extender and kube-scheduler of each pool share
    a token, so that the audit log distinguishes the pools.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = {account.name: account.name for account in accounts(shared=shared).values()}
    of_pairs = chart.ACCOUNTS[chart.SCHEDULER].name
    files |= {state.in_pool(of_pairs, pool): of_pairs for pool in pools}
    for name, account in files.items():
        write_private(token_file(folder, name), new_token(client, account).encode())


def new_token(client: Client, account: str) -> str:
    """Return a token of the account, issued by the API server."""
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": LIFETIME_S},
    }
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/serviceaccounts/{account}/token"
    answer = msgspec.json.decode(client.request("POST", path, body=msgspec.json.encode(asked)))
    return str(answer["status"]["token"])


def token_file(folder: Path, account: str) -> Path:
    """Return the path of the file with the token of an account, or of a node pool's processes with this account."""
    return folder / f"{account}.token"


def kubeconfig(cluster: Path, account: str, tokens: Path, target: Path) -> Path:
    """Write a kubeconfig for the current cluster of another kubeconfig, with the token of an account."""
    content = yaml.safe_load(cluster.read_text(encoding="utf-8"))
    current = next(each for each in content["contexts"] if each["name"] == content["current-context"])["context"]
    found = next(each for each in content["clusters"] if each["name"] == current["cluster"])["cluster"]
    if certificate := found.get("certificate-authority"):
        found["certificate-authority"] = str(cluster.parent / certificate)
    write_kubeconfig(target, found, account, {"tokenFile": str(token_file(tokens, account))})
    return target


class Right(NamedTuple):
    """A verb on a resource (`pods`, `pods/binding`, `queues.scheduling.volcano.sh`) in all namespaces."""

    resource: str
    verb: str


def needed() -> list[Right]:
    """Return every right that a user needs to install Muster, sorted."""
    found = {Right(resource, verb) for resource, verbs in _INSTALLS.items() for verb in verbs.split()}
    for rule in (rule for each in _GRANTS for rule in chart.rules(each)):
        for group, resource, verb in product(rule.api_groups, rule.resources, rule.verbs):
            whole, slash, subresource = resource.partition("/")
            found.add(Right(f"{whole}.{group}".rstrip(".") + slash + subresource, verb))
    return sorted(found)


def check_rights(client: Client) -> None:
    """Raise LocalError with all missing rights of the user; raise APIError if the API server does not answer."""
    wanted = needed()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda right: _allowed(client, right), wanted)
        missing = [right for right, allowed in zip(wanted, answers, strict=True) if not allowed]
    if missing:
        by_resource = groupby(missing, key=lambda right: right.resource)
        lines = [f"  {', '.join(right.verb for right in group)} {resource}" for resource, group in by_resource]
        raise LocalError(
            f"the user of this kubeconfig lacks rights that Muster needs at {client.server}:\n"
            + "\n".join(lines)
            + "\nUse a kubeconfig with the rights of a cluster administrator, or have an administrator grant these "
            "rights: kubectl create clusterrolebinding muster-up --clusterrole=cluster-admin --user=NAME"
        )


def _allowed(client: Client, right: Right) -> bool:
    """Return True if the user of the client has this right."""
    whole, _, subresource = right.resource.partition("/")
    resource, _, group = whole.partition(".")
    asked = reviews.ResourceAttributes(right.verb, group, resource, subresource)
    review = reviews.SubjectAccessReview(spec=reviews.SubjectAccessReviewSpec(resource_attributes=asked))
    return client.create(reviews.SELF_SUBJECT_ACCESS_REVIEWS, review).status.allowed
