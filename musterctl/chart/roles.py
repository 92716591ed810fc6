"""The rights of each process and of users: the RBAC manifests of the chart, filled in for one installation.

The folder `charts/muster/files/roles` has a file for each process and a file for users: ordinary manifests, in which
each rule also states its reason. Both helm and `muster up` fill in the same four names, so they install the same roles.

kube-scheduler and the extender share a pod, and therefore a ServiceAccount. The two processes still have separate
files, so that tests can check the rights of each process.

`commands.yaml` lists the rights that each user command needs; docs/rights.md shows the table, and tests verify it. A
command always uses the rights in `needs`; without the rights in `more`, the command shows less. A RoleBinding to the
`role` of a command grants its rights on namespaced kinds in one namespace. Rights on cluster-scoped kinds need a
ClusterRoleBinding of `muster-view-queues`. Commands that are not in the file need `muster-admin`, or are for local
control planes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from muster.api.names import CONTROLLER_ACCOUNT, CONTROLLER_LEASE, HISTORY_LEASE, SCHEDULER_LEASE
from musterctl.chart.files import FILES, manifests

WEBHOOK: Final = "webhook"
EXTENDER: Final = "extender"
SCHEDULER: Final = "scheduler"
CONTROLLER: Final = "controller"
HISTORY: Final = "history"
WEB: Final = "web"
USERS: Final = "users"
POOL: Final = "pool"
VIEW_QUEUES: Final = "muster-view-queues"
VIEW_CLUSTER: Final = "muster-view-cluster"
WHOLE: Final = "whole"
"""Placeholder for the rights to read all kinds that the planner reads, in the whole cluster (`muster-view-cluster`)."""
_FOR_READERS: Final = ("why", "implicit")


class RoleRule(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A rule of a role: verbs on resources, and the reason why the rights are needed."""

    why: str
    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()
    """Names of the objects to which the rule is limited; empty means all objects."""
    implicit: bool = False
    """True for a right that is checked as part of another request, by admission or by an apply that creates an object.
    Audit logs do not show such checks."""


class CommandRights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command, the role with its rights, and the rights in the form `verb resource`."""

    command: str
    role: str
    needs: tuple[str, ...]
    more: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount, and the processes that use the ServiceAccount."""

    name: str
    processes: tuple[str, ...]


ACCOUNTS: Final = {
    WEBHOOK: Account("muster-webhook", (WEBHOOK,)),
    SCHEDULER: Account("muster-scheduler", (SCHEDULER, EXTENDER)),
    CONTROLLER: Account(CONTROLLER_ACCOUNT, (CONTROLLER,)),
    HISTORY: Account("muster-web", (HISTORY,)),
}
"""Maps each of the chart's pods to its account."""
WEB_ACCOUNT: Final = Account("muster-web", (WEB,))
"""The account of the web page in a cluster; the recorder of the history runs in the same pod."""
OWN_EXTENDER: Final = Account("muster-extender", (EXTENDER,))
"""The account of an extender that serves the cluster's own kube-scheduler."""


@cache
def tables(of: str) -> dict[tuple[str, str], tuple[RoleRule, ...]]:
    """Return a mapping from roles (kind and name) to their rules, for a process or for USERS."""
    found = [each for each in _manifests(of) if "rules" in each]
    return {
        (each["kind"], each["metadata"]["name"]): msgspec.convert(each["rules"], tuple[RoleRule, ...]) for each in found
    }


def named_tables() -> dict[str, tuple[RoleRule, ...]]:
    """Return a mapping from each role in the chart to its rules; the keys have kind and name, as in docs/rights.md."""
    files = (path.stem for path in sorted((FILES / "roles").glob("*.yaml")))
    return {
        f"{kind}-{name}".lower().replace("<pool>", "pool"): found
        for of in files
        for (kind, name), found in tables(of).items()
    }


def rules(of: str) -> tuple[RoleRule, ...]:
    """Return all rules for a process, or for USERS."""
    return tuple(rule for table in tables(of).values() for rule in table)


def objects(namespace: str, accounts: Sequence[Account], lease: tuple[str, str] | None = None) -> list[dict[str, Any]]:
    """Return the ServiceAccounts with their roles, and the roles for users.

    `lease` is the Lease that the extender reads, if it serves a kube-scheduler other than Muster's.
    """
    processes = [process for account in accounts for process in account.processes]
    if len(set(processes)) < len(processes):
        raise ValueError(f"{', '.join(processes)}: a process may have only one account")
    leases = {SCHEDULER: (namespace, SCHEDULER_LEASE), CONTROLLER: (namespace, CONTROLLER_LEASE)}
    leases[HISTORY] = (namespace, HISTORY_LEASE)
    leases[EXTENDER] = lease or leases[SCHEDULER]
    found: list[dict[str, Any]] = []
    for account in accounts:
        metadata = {"name": account.name, "namespace": namespace}
        found.append({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        for process in account.processes:
            where, name = leases.get(process, ("", ""))
            names = {"<namespace>": namespace, "<account>": account.name, "<lease-namespace>": where, "<lease>": name}
            found += map(_applicable, _manifests(process, names))
    return found + [_applicable(each) for each in _manifests(USERS)]


def of_pool(pool: str, namespace: str) -> list[dict[str, Any]]:
    """Return the additional roles that the extender and the kube-scheduler of a named node pool need."""
    names = {"<pool>": pool, "<namespace>": namespace, "<lease-namespace>": namespace}
    names["<account>"] = ACCOUNTS[SCHEDULER].name
    return [_applicable(each) for each in _manifests(POOL, names)]


def _manifests(of: str, names: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    return manifests(FILES / "roles" / f"{of}.yaml", names)


def _applicable(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest as the API server accepts it: without the reasons for its rules."""
    for rule in manifest.get("rules", ()):
        for field in _FOR_READERS:
            rule.pop(field, None)
    return manifest


def rights_of_commands() -> list[CommandRights]:
    """Return each user command with the rights that it needs."""
    return msgspec.yaml.decode(Path(__file__).with_name("commands.yaml").read_bytes(), type=list[CommandRights])
