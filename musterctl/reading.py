"""What a report is made of: the whole cluster, a snapshot, or, for who may list no more, one namespace's objects."""

import time
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from extender.explain.clusterdump import ClusterDump, kind_name
from extender.planner.state.feed import FEED
from muster.api.base import Resource
from muster.api.kubernetes.core import NODES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import Forbidden
from musterctl.cluster import Where, known, read_dump

OBSERVER: Final = "muster-view-cluster"
"""ClusterRole of those who may list all that a cycle of the planner reads."""
_OWN: Final[tuple[Resource[Any], ...]] = (POD_GROUPS, NODES, QUEUES, JOBS, PLACEMENTS, PODS)
"""What says something of the gangs of one namespace."""


class Reading(NamedTuple):
    """Reads the cluster or the snapshot that a command's options name."""

    where: Where
    scheduler_config: Path | None = None
    snapshot: Path | None = None

    def __call__(self) -> ClusterDump:
        """Return all that the planner reads. Raises Forbidden for those who may not list it."""
        return read_dump(self.where, self.scheduler_config, self.snapshot)

    def allowed(self, namespace: str) -> ClusterDump:
        """Return all, or what the user may list of one namespace, with a word about that on standard error."""
        try:
            return self()
        except Forbidden as error:
            dump = own(self.where.client(), namespace)
            click.echo(f"This is what the objects of namespace {namespace} say: {refusal(error)}.", err=True)
            return dump


def refusal(error: Forbidden) -> str:
    """Return what a user may not list, and what to ask for to see more."""
    kind = (error.details or {}).get("kind") or "all objects"
    return (
        f"you may not list {kind} in the whole cluster. For nodes, other gangs and what would help, ask an "
        f"administrator for the ClusterRole {OBSERVER} in a ClusterRoleBinding"
    )


def own(client: Client, namespace: str) -> ClusterDump:
    """Return what the user may list of one namespace, and of kinds without any. ClickException if he sees no gangs."""
    dump = ClusterDump(time.time())
    unread = {kind_name(fed.resource) for fed in FEED}
    for resource in _OWN:
        try:
            with known(client, resource):
                dump.put(resource, client.list(resource, namespace if resource.namespaced else None))
        except Forbidden as error:
            if resource is POD_GROUPS:
                raise click.ClickException(
                    f"you may not list the gangs of namespace {namespace}: ask its administrator for the ClusterRole "
                    "muster-view or muster-edit in a RoleBinding there"
                ) from error
        else:
            unread -= set() if resource.namespaced else {kind_name(resource)}
    dump.unread = frozenset(unread)
    return dump
