"""Where commands look: a cluster that runs, or a file of `muster snapshot`. `musterctl.options` has how they say so."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from extender.explain.clusterdump import ClusterDump
from extender.explain.snapshotfile import load
from extender.state.feed import FEED
from muster.api.base import Resource
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.options import existing
from musterctl.plane import state


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


def take(client: Client, scheduler_config: str = "") -> ClusterDump:
    """The picture of a running cluster, from one list of each kind; it is not of one single moment."""
    dump = ClusterDump(time.time(), scheduler_config)
    for fed in FEED:
        with known(client, fed.resource):
            dump.put(fed.resource, client.list(fed.resource))
    return dump


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
    default_plane = state.load(state.folder_of(state.DEFAULT_NAME)) is not None
    if name is None and default_plane and not os.environ.get("KUBECONFIG"):
        name = state.DEFAULT_NAME
    return existing(name).kubeconfig if name else None
