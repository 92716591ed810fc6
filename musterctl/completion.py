"""Shell completion of the names of local control planes, and of objects in the cluster that the command line chooses.

Click calls these functions; docs/quickstart.md describes the setup of a shell. If the cluster does not answer in time,
no names are completed.
"""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from typing import Any

import click

from muster.api.base import Resource
from muster.api.kubernetes import core, meta
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import APIError, ConfigurationError
from musterctl.cluster import Where, plane_names
from musterctl.plane.machine import LocalError

TIMEOUT_S = 2.0
Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def planes(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of local control planes that begin with the typed text."""
    return _beginning(plane_names(), incomplete)


def names_of(resource: Resource[Any]) -> Complete:
    """Return a function that completes names of objects of one kind."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        return _beginning(_listed(ctx, resource, lambda each: [each.metadata.name]), incomplete)

    return complete


def workloads(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of workloads that own gangs."""
    owners = _listed(ctx, POD_GROUPS, lambda each: [owner.name for owner in each.metadata.owner_references])
    return _beginning(owners, incomplete)


def explained(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that `muster explain` accepts: names of pods, gangs, or workloads that own gangs."""
    kind = next(iter(ctx.params.get("what") or ()), "job")
    if kind == "job":
        return workloads(ctx, _, incomplete)
    return names_of(core.PODS if kind == "pod" else POD_GROUPS)(ctx, _, incomplete)


def _listed(ctx: click.Context, resource: Resource[Any], names: Callable[[meta.Object], Iterable[str]]) -> list[str]:
    """Return the names of objects in the namespace that the command line chooses; no names if the list fails."""
    where = Where(ctx.params.get("kubeconfig"), ctx.params.get("plane"))
    try:
        with closing(Client.load(where.kubeconfig, timeout_s=TIMEOUT_S)) as client:
            namespace = (ctx.params.get("namespace") or client.namespace) if resource.namespaced else None
            found = client.list(replace(resource, type=meta.Object), namespace)
    except (APIError, ConfigurationError, LocalError):
        return []  # no error during completion: the command itself will report it
    return [name for each in found for name in names(each)]


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})
