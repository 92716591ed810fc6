"""Where commands look: a cluster that runs, or a file of `muster snapshot`. `musterctl.options` has how they say so."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from extender.explain.clusterdump import ClusterDump
from extender.explain.snapshotfile import load
from extender.planner.state.feed import FEED
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.extensions import DEFINITIONS
from muster.kube.client import Client
from muster.kube.errors import Forbidden, NotFound
from musterctl.kind import cluster as kind
from musterctl.options import cluster_options, existing, output_option, snapshot_option
from musterctl.plane import state

T = TypeVar("T")


def read_dump(
    *, kubeconfig: Path | None, name: str | None, scheduler_config: Path | None, snapshot: Path | None = None
) -> ClusterDump:
    """The picture of the cluster or file that the options name, as the planner would see it."""
    config = scheduler_config.read_text(encoding="utf-8") if scheduler_config else ""
    if snapshot is None:
        return take(client_of(kubeconfig, name), config)
    try:
        dump = load(snapshot.read_bytes())
    except ValueError as error:
        raise click.ClickException(f"{snapshot}: {error}") from error
    dump.scheduler_config = config or dump.scheduler_config
    return dump


def reads_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of where to look and what to print; the command gets `read`, which takes the picture."""

    @wraps(command)
    def run(
        *args: Any,
        snapshot: Path | None,
        kubeconfig: Path | None,
        name: str | None,
        scheduler_config: Path | None,
        **more: Any,
    ) -> None:
        look = partial(
            read_dump, kubeconfig=kubeconfig, name=name, scheduler_config=scheduler_config, snapshot=snapshot
        )
        command(*args, read=look, **more)

    return snapshot_option(output_option(cluster_options(run)))


def take(client: Client, scheduler_config: str = "") -> ClusterDump:
    """The picture of a running cluster, from one list of each kind; it is not of one single moment."""
    dump = ClusterDump(time.time(), scheduler_config)
    for fed in FEED:
        resource = served(client, fed.resource) if fed.optional else fed.resource
        if resource is not None:
            with suppress(NotFound) if fed.newer else known(client, resource):
                dump.put(fed.resource, client.list(resource))
    with suppress(NotFound, Forbidden):  # few clusters have the kind, and few people may read it
        dump.put(PROVISIONING_REQUESTS, client.list(PROVISIONING_REQUESTS, label_selector=f"{names.MANAGED_BY}=muster"))
    return dump


def served(client: Client, resource: Resource[T]) -> Resource[T] | None:
    """Somebody else's kind in a version that the cluster serves; None if it does not have it, or does not say."""
    try:
        version = client.get(DEFINITIONS, f"{resource.plural}.{resource.group}").served(resource.version)
    except (NotFound, Forbidden):
        return None
    return replace(resource, version=version) if version else None


@contextmanager
def known(client: Client, resource: Resource[Any]) -> Iterator[None]:
    """Says that a cluster does not know a kind; the NotFound of an object, or of a namespace, passes."""
    try:
        yield
    except NotFound as error:
        if (error.details or {}).get("name"):
            raise
        what = f"{resource.plural}.{resource.group}"
        raise click.ClickException(
            f"the cluster at {client.server} does not know {what}: is Muster installed there?"
        ) from error


def client_of(kubeconfig: Path | None, name: str | None) -> Client:
    """The client for what the options name. What the API server warns of is shown, as by kubectl."""
    return Client.load(kubeconfig_of(kubeconfig, name), on_warning=_Warnings())


class _Warnings:
    """Shows what the API server warns of, each sentence once however many calls it comes with."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def __call__(self, text: str) -> None:
        if text not in self._shown:
            self._shown.add(text)
            click.echo(f"Warning: {text}", err=True)


def kubeconfig_of(kubeconfig: Path | None, name: str | None) -> Path | None:
    """--kubeconfig, --name, KUBECONFIG, the default plane if there is one, the user's kubeconfig: the first that is."""
    if kubeconfig is not None:
        return kubeconfig
    default_plane = state.DEFAULT_NAME in {*state.names(), *kind.names()}
    if name is None and default_plane and not os.environ.get("KUBECONFIG"):
        name = state.DEFAULT_NAME
    return existing(name).kubeconfig if name else None
