"""The cluster or snapshot that a command looks at. `musterctl.options` has the options that choose it."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from extender.explain.clusterdump import ClusterDump, load
from extender.planner.state.feed import FEED
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.extensions import DEFINITIONS
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl.kind import cluster as kind
from musterctl.kind.cluster import KindCluster
from musterctl.plane import state
from musterctl.plane.errors import LocalError
from musterctl.plane.plane import Plane

T = TypeVar("T")


class Where(NamedTuple):
    """The cluster of --kubeconfig or --name, by default that of KUBECONFIG, the default plane, or the user's own."""

    given: Path | None = None
    plane: str | None = None

    @property
    def kubeconfig(self) -> Path | None:
        """The kubeconfig of the cluster; None for the one that clients use by default."""
        if self.given is not None:
            return self.given
        name = self.plane
        default_plane = state.DEFAULT_NAME in {*state.names(), *kind.names()}
        if name is None and default_plane and not os.environ.get("KUBECONFIG"):
            name = state.DEFAULT_NAME
        return existing(name).kubeconfig if name else None

    def client(self) -> Client:
        """Return a client of the cluster, which shows warnings of the API server, each once."""
        shown: set[str] = set()

        def show(text: str) -> None:
            if text not in shown:
                shown.add(text)
                click.echo(f"Warning: {text}", err=True)

        return Client.load(self.kubeconfig, on_warning=show)


def existing(name: str) -> Plane | KindCluster:
    """Return the plane or kind cluster of that name; LocalError names those that exist if there is none."""
    folder = state.folder_of(name)
    if (made := KindCluster(name)).made() is not None:
        return made
    if state.load(folder) is None:
        others = ", ".join(sorted([*state.names(), *kind.names()]))
        raise LocalError(
            f"there is no plane {name!r}" + (f"; there is {others}" if others else "; `muster up` makes one")
        )
    return Plane(folder)


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


@contextmanager
def known(client: Client, resource: Resource[Any]) -> Iterator[None]:
    """Turn the NotFound of a whole kind into a message; that of an object or namespace passes."""
    try:
        yield
    except NotFound as error:
        if (error.details or {}).get("name"):
            raise
        plural = f"{resource.plural}.{resource.group}"
        raise click.ClickException(
            f"the cluster at {client.server} does not know {plural}: is Muster installed there?"
        ) from error
