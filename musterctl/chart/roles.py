"""What each process may do, as the chart's files say it, and the RBAC objects that grant it.

A process has the rights of one ServiceAccount. kube-scheduler and the extender share a pod, hence an account: what
either may do stands in a file of its own all the same, so that each can be held to its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec

from muster.api.names import CONTROLLER_ACCOUNT, CONTROLLER_LEASE, SCHEDULER_LEASE
from musterctl.chart.files import ROLES

WEBHOOK: Final = "webhook"
EXTENDER: Final = "extender"
SCHEDULER: Final = "scheduler"
CONTROLLER: Final = "controller"
LEVELS: Final = ("view", "edit", "admin")
"""Of the roles for users; each has what the one before has."""
KUBERNETES_ROLES: Final = ("system:kube-scheduler", "system:volume-scheduler")
"""What every kube-scheduler needs; Kubernetes keeps them in step with its own version."""
_RBAC: Final = "rbac.authorization.k8s.io"
_LEASES: Final = {EXTENDER: SCHEDULER_LEASE, SCHEDULER: SCHEDULER_LEASE, CONTROLLER: CONTROLLER_LEASE}


class Rule(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Verbs on resources, and the reason for them."""

    why: str
    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    implicit: bool = False
    """It is asked for within other requests, by admission or by an apply that creates: no audit log shows it."""
    unnamed: bool = False
    """In the section `lease`: for any name, since RBAC cannot name what does not exist yet."""

    names: tuple[str, ...] = ()
    """The only objects that are meant; empty means all."""

    def object(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """The rule of a Role."""
        rule: dict[str, Any] = {
            "apiGroups": list(self.api_groups),
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        named = self.names or (() if self.unnamed else names)
        return rule | ({"resourceNames": list(named)} if named else {})


class Rights(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a process may do."""

    cluster: tuple[Rule, ...] = ()
    """In all namespaces, and on what has none."""
    secrets: tuple[Rule, ...] = ()
    """In all namespaces, or in some that the cluster's owner names."""
    lease: tuple[Rule, ...] = ()
    """On the Lease of the process, in the namespace of that."""

    @property
    def all(self) -> tuple[Rule, ...]:
        """Every rule."""
        return (*self.cluster, *self.secrets, *self.lease)


@cache
def rights(process: str) -> Rights:
    """What the process may do."""
    return msgspec.yaml.decode((ROLES / f"{process}.yaml").read_bytes(), type=Rights)


@cache
def user_rules(level: str) -> tuple[Rule, ...]:
    """What a level of users has beyond the one before."""
    levels = msgspec.yaml.decode((ROLES / "users.yaml").read_bytes(), type=dict[str, tuple[Rule, ...]])
    return levels[level]


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount, and the processes whose rights it has."""

    name: str
    processes: tuple[str, ...]


ACCOUNTS: Final = {
    WEBHOOK: Account("muster-webhook", (WEBHOOK,)),
    SCHEDULER: Account("muster-scheduler", (SCHEDULER, EXTENDER)),
    CONTROLLER: Account(CONTROLLER_ACCOUNT, (CONTROLLER,)),
}
"""Of the chart's three pods."""
OWN_EXTENDER: Final = Account("muster-extender", (EXTENDER,))
"""Of an extender beside the cluster's own kube-scheduler."""


def objects(namespace: str, accounts: Sequence[Account], lease: tuple[str, str] | None = None) -> list[dict[str, Any]]:
    """ServiceAccounts in the namespace, with the roles that their processes need, and the roles for users.

    `lease` is the (namespace, name) that the extender follows where it is not Muster's own.
    """
    processes = [process for account in accounts for process in account.processes]
    if len(set(processes)) < len(processes):
        raise ValueError(f"{', '.join(processes)}: a process has one account, and its binding one name")
    found: list[dict[str, Any]] = []
    for account in accounts:
        found.append(_object("v1", "ServiceAccount", account.name, namespace))
        for process in account.processes:
            found += _of_process(process, account, namespace, lease if process == EXTENDER else None)
    found += (
        _cluster_role(f"muster-{process}", rights(process).cluster) for process in processes if rights(process).cluster
    )
    return [*found, *_of_users()]


def _of_process(
    process: str, account: Account, namespace: str, lease: tuple[str, str] | None
) -> Iterator[dict[str, Any]]:
    """The bindings of a process, and its Role for the Lease."""
    name, subject = f"muster-{process}", (namespace, account.name)
    if rights(process).cluster:
        yield _binding("ClusterRoleBinding", name, ("ClusterRole", name), subject)
    if rights(process).secrets:
        yield _cluster_role(f"{name}-secrets", rights(process).secrets)
        yield _binding("ClusterRoleBinding", f"{name}-secrets", ("ClusterRole", f"{name}-secrets"), subject)
    if rights(process).lease:
        where, called = lease or (namespace, _LEASES[process])
        rules = [rule.object([called]) for rule in rights(process).lease]
        yield {**_object(f"{_RBAC}/v1", "Role", name, where), "rules": rules}
        yield _binding("RoleBinding", name, ("Role", name), subject, where)
    if process == SCHEDULER:
        for role in KUBERNETES_ROLES:
            yield _binding(
                "ClusterRoleBinding", role.replace("system:", "muster-scheduler-"), ("ClusterRole", role), subject
            )
        reader = ("Role", "extension-apiserver-authentication-reader")
        yield _binding("RoleBinding", "muster-scheduler-authentication-reader", reader, subject, "kube-system")


def _of_users() -> Iterator[dict[str, Any]]:
    """Aggregated ClusterRoles: the controller manager puts them together by their labels."""
    for position, level in enumerate(LEVELS):
        labels = {f"{_RBAC}/aggregate-to-{each}": "true" for each in LEVELS[position:]}
        labels |= {f"{_RBAC}/aggregate-to-muster-{each}": "true" for each in LEVELS[position:]}
        own = _cluster_role(f"muster-{level}-rules", user_rules(level))
        yield {**own, "metadata": {**own["metadata"], "labels": labels}}
        selector = {"matchLabels": {f"{_RBAC}/aggregate-to-muster-{level}": "true"}}
        whole = _object(f"{_RBAC}/v1", "ClusterRole", f"muster-{level}")
        yield {
            **whole,
            "aggregationRule": {"clusterRoleSelectors": [selector]},
        }  # its rules are that controller's to write


def _cluster_role(name: str, rules: Sequence[Rule]) -> dict[str, Any]:
    return {**_object(f"{_RBAC}/v1", "ClusterRole", name), "rules": [rule.object() for rule in rules]}


def _binding(
    kind: str, name: str, role: tuple[str, str], subject: tuple[str, str], namespace: str = ""
) -> dict[str, Any]:
    return {
        **_object(f"{_RBAC}/v1", kind, name, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": role[0], "name": role[1]},
        "subjects": [{"kind": "ServiceAccount", "namespace": subject[0], "name": subject[1]}],
    }


def _object(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
