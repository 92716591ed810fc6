"""Dumps of the cluster or snapshot that a command looks at, as the planner would see it.

Not in `musterctl.cluster`: what reads a dump imports the planner, which takes a second of CPU that most commands spare.
"""

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from extender.explain.clusterdump import ClusterDump, load
from extender.planner.state.feed import FEED
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.extensions import DEFINITIONS
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl.cluster import Where, known

T = TypeVar("T")


def read_dump(where: Where, scheduler_config: Path | None = None, snapshot: Path | None = None) -> ClusterDump:
    """Return a dump of the cluster, or that in a snapshot, as the planner would see it."""
    config = scheduler_config.read_text(encoding="utf-8") if scheduler_config else ""
    if snapshot is None:
        return take(where.client(), config)
    try:
        dump = load(snapshot.read_bytes())
    except ValueError as error:
        raise click.ClickException(f"{snapshot}: {error}") from error
    dump.scheduler_config = config or dump.scheduler_config
    return dump


def take(client: Client, scheduler_config: str = "") -> ClusterDump:
    """Return a dump of a running cluster, from one list of each kind; it is not of one single moment."""
    dump = ClusterDump(time.time(), scheduler_config)
    for fed in FEED:
        resource = served(client, fed.resource) if fed.optional else fed.resource
        if resource is not None:
            with suppress(NotFound) if fed.newer else known(client, resource):
                dump.put(fed.resource, client.list(resource))
    with suppress(NotFound, Forbidden):  # few clusters have the kind, and few users may read it
        dump.put(PROVISIONING_REQUESTS, client.list(PROVISIONING_REQUESTS, label_selector=f"{names.MANAGED_BY}=muster"))
    return dump


def served(client: Client, resource: Resource[T]) -> Resource[T] | None:
    """Return a foreign kind in a version that the cluster serves; None if it has none, or may not be asked."""
    try:
        version = client.get(DEFINITIONS, f"{resource.plural}.{resource.group}").served(resource.version)
    except (NotFound, Forbidden):
        return None
    return replace(resource, version=version) if version else None
