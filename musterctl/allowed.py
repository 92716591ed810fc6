"""Inputs of reports for users who are not allowed to list the whole cluster: objects of one namespace, and Queues."""

import time
from contextlib import closing, suppress
from typing import Any, Final

import click

from extender.explain.clusterdump import ClusterDump
from extender.explain.pools import in_pool, pools_of
from extender.explain.queues import QueueReport, queue_reports, queue_reports_of
from extender.explain.report import UnknownNameError
from extender.explain.whatif import WhatIf
from extender.planner.api import FEED
from muster.api.base import Resource
from muster.api.kubernetes import core, scheduling
from muster.api.muster.placement import PLACEMENTS
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, PodGroup
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl.chart.roles import VIEW_CLUSTER, VIEW_QUEUES
from musterctl.cluster import known
from musterctl.reader import ClusterReader

_OWN: Final[tuple[Resource[Any], ...]] = (
    *(POD_GROUPS, core.NODES, QUEUES, JOBS, PLACEMENTS, core.PODS),
    *(scheduling.NATIVE_POD_GROUPS, scheduling.COMPOSITE_POD_GROUPS, scheduling.WORKLOADS),
)
"""Kinds of objects that are read for the gangs of one namespace."""


def dump_for(read: ClusterReader, namespace: str) -> ClusterDump:
    """Return the inputs of the planner.

    If the user is not allowed to list all objects, return the inputs of one namespace, and print a note on standard
    error.
    """
    try:
        return read()
    except Forbidden as error:
        with closing(read.where.client()) as client:
            dump = own(client, namespace)
        click.echo(f"Only objects of namespace {namespace} were read: {refusal(error)}.", err=True)
        return dump


def reports_for(read: ClusterReader) -> list[QueueReport]:
    """Return the reports of all queues.

    If the user is not allowed to list the whole cluster, compute the reports from the status of the Queues. Raise
    Forbidden if the user is not allowed to list Queues.
    """
    try:
        dump = read()
        return [
            report
            for pool in pools_of(dump)
            for report in queue_reports(WhatIf(in_pool(dump, pool)))
            if report.queue != ROOT_QUEUE or not pool  # all pools share the Queue `root`, so report it once
        ]
    except UnknownNameError as error:
        raise click.ClickException(str(error)) from error
    except Forbidden as error:
        with closing(read.where.client()) as client, known(client, QUEUES):
            reports = queue_reports_of(client.list(QUEUES))
        click.echo(f"Only the status of Queues was read: {refusal(error)}.", err=True)
        return reports


def gangs_for(read: ClusterReader, error: Forbidden) -> list[PodGroup]:
    """Return the gangs of the context's namespace, for a user who is not allowed to list queues.

    A note on standard error names the missing right.
    """
    with closing(read.where.client()) as client:
        namespace = client.namespace
        gangs = own(client, namespace).objects_of(POD_GROUPS)
    click.echo(f"Only gangs of namespace {namespace} were read: {no_queues(error)}", err=True)
    return gangs


def no_queues(error: Forbidden) -> str:
    """Return a message about the right that is needed to see queues."""
    kind = (error.details or {}).get("kind") or "queues"
    return (
        f"you cannot list {kind}. To see shares and usage of queues, ask an administrator for the ClusterRole "
        f"{VIEW_QUEUES} in a ClusterRoleBinding."
    )


def refusal(error: Forbidden) -> str:
    """Return a message about the missing rights, and about the role that grants the missing rights."""
    kind = (error.details or {}).get("kind") or "all objects"
    return (
        f"you cannot list {kind} in the whole cluster. To see nodes, other gangs and what would help, ask an "
        f"administrator for the ClusterRole {VIEW_CLUSTER} in a ClusterRoleBinding"
    )


def own(client: Client, namespace: str) -> ClusterDump:
    """Return the objects that the user can list in one namespace, and objects of cluster-scoped kinds.

    Raise ClickException if the user is not allowed to list gangs.
    """
    dump = ClusterDump(time.time())
    unread = {fed.resource.full_name for fed in FEED}
    for resource in _OWN:
        try:
            with (
                suppress(NotFound) if resource.group == scheduling.NATIVE_POD_GROUPS.group else known(client, resource)
            ):
                dump.add_objects(resource, client.list(resource, namespace if resource.namespaced else None))
        except Forbidden as error:
            if resource is POD_GROUPS:
                raise click.ClickException(
                    f"you cannot list the gangs of namespace {namespace}: ask its administrator for the ClusterRole "
                    "muster-view or muster-edit in a RoleBinding there"
                ) from error
        else:
            unread -= set() if resource.namespaced else {resource.full_name}
    with suppress(Forbidden, NotFound):  # its labels may name a queue for its pods
        dump.add_objects(core.NAMESPACES, [client.get(core.NAMESPACES, namespace)])
    dump.unread = frozenset(unread)
    return dump
