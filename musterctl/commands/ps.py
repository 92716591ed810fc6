"""`muster ps`: gangs of all kinds of workloads in one list, each with a short reason."""

import sys
import time
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import Any

import click

from gangs.forecast import unknown_text, with_starts
from gangs.row import GangRow
from gangs.rows import RowSources, difference, rows
from muster.api.base import Resource
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client, LoopIterator
from muster.kube.errors import APIError, Forbidden, Gone, NotFound
from musterctl import completion
from musterctl.chart.roles import VIEW_CLUSTER
from musterctl.cluster import Where, connect_in, namespace_in
from musterctl.gangobjects import read_all, read_cluster, unread
from musterctl.options import (
    all_namespaces_option,
    namespace_option,
    records_options,
    since_option,
    table_output_option,
    watch_option,
    where_options,
)
from musterctl.output.gangtable import Shown, printer
from musterctl.output.listing import INTERRUPTED
from musterctl.users import chosen_user, user_options
from musterctl.webclient import WebServer

Versions = Mapping[Resource[Any], str]
"""Maps each kind that is watched to the resource version of its list, from which the watch continues."""
_READ_EVERY_S = 1.0
_NO_FORECAST = (
    "you cannot list the nodes and pods of the whole cluster, so only reservations show when a gang starts; ask an "
    f"administrator for the ClusterRole {VIEW_CLUSTER} in a ClusterRoleBinding"
)


@click.command()
@namespace_option
@all_namespaces_option
@click.option("--queue", shell_complete=completion.names_of(QUEUES), help="Show only gangs of this queue.")
@click.option("-a", "--all", "ended", is_flag=True, help="Show gangs that have ended, too.")
@click.option("--ended", "only_ended", is_flag=True, help="Show ended gangs from the history, including deleted ones.")
@user_options
@since_option
@click.option(
    "-l",
    "--long",
    "long",
    is_flag=True,
    help="Show each reason as a full sentence, and expected starts with the time of day.",
)
@click.option("--start", is_flag=True, help="Show gangs that wait, and when they are expected to start.")
@table_output_option
@watch_option
@records_options
@where_options
def ps(
    *,
    namespace: str | None,
    all_namespaces: bool,
    watch: bool,
    where: Where,
    only_ended: bool,
    since_s: float,
    store: str | None,
    server: WebServer | None,
    user: str | None,
    mine: bool,
    **how: Any,
) -> None:
    """Lists gangs of every kind with state, position and reason.

    A gang is shown by its workload: Job, TrainJob, JobSet, StatefulSet, Deployment or Pod.
    """
    how["user"] = chosen_user(user, where.client, mine=mine)
    if watch and how["start"]:
        raise click.UsageError("--start and -w cannot be combined: a forecast is not repeated with each change")
    if only_ended:
        if watch or how["start"] or how["output"] == "name":
            raise click.UsageError("--ended cannot be combined with -w, --start or -o name: ended gangs do not change")
        from musterctl.commands.history import list_history  # noqa: PLC0415 - its libraries are for this option only
        from musterctl.records import source_of  # noqa: PLC0415

        space = None if all_namespaces else namespace_in(namespace, where)
        list_history(
            source_of(where, store, server),
            space,
            how["queue"],
            how["user"],
            since_s,
            how["output"].replace("wide", "table"),
            ended=True,
        )
        return
    client, space = connect_in(namespace, where)
    list_gangs(client, Shown(None if all_namespaces else space, **how), watch=watch)


def list_gangs(client: Client, shown: Shown, *, watch: bool) -> None:
    """Print a list of gangs, and with `watch` each later change."""
    printing = printer(shown)
    objects = read_all(client, shown.namespace)
    if missing := unread(objects):
        click.echo(f"you cannot list {' and '.join(missing)} here: counts, nodes or kinds may be missing", err=True)
    found, note = rows(objects), ""
    if shown.start:
        cluster = read_cluster(client, objects, everything=shown.namespace is None)
        if cluster is None:
            click.echo(_NO_FORECAST, err=True)
        found = with_starts(found, cluster, time.time())
        note = unknown_text([row for row in found if shown.has(row)], cluster) if cluster else ""
    found = [row for row in found if shown.has(row)]
    printing.show(found, alone=watch)
    if note and shown.output in {"table", "wide"}:
        click.echo(note, err=True)
    if not found and not watch and shown.output in {"table", "wide"}:
        click.echo(
            f"No {shown.kind or 'gang'}s found{f' in {shown.namespace} namespace' if shown.namespace else ''}.",
            err=True,
        )
    if watch:
        try:
            for changed in changes(client, shown, objects):
                printing.show(changed, alone=True)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def changes(client: Client, shown: Shown, objects: RowSources) -> Iterator[list[GangRow]]:
    """Yield the gangs that have changed since these objects were read; deleted gangs get the state `Gone`.

    Volcano's PodGroups and native PodGroups are watched. After a change, all objects are read again, at most once a
    second.
    """
    before = rows(objects)
    while True:
        wait_for_news(client, shown.namespace, objects.versions)
        time.sleep(_READ_EVERY_S)  # what happens at the same time is shown at once
        objects = read_all(client, shown.namespace)
        now = rows(objects)
        yield [row for old, row in difference(before, now) if shown.has(row) or (old and shown.has(old))]
        before = now


def wait_for_news(client: Client, namespace: str | None, versions: Versions) -> None:
    """Wait until an object of one of these kinds changes, or the API server ends a watch.

    Native PodGroups are not watched if the user is allowed to list but not to watch native PodGroups. Raise APIError if
    a watch raises it.
    """
    news: SimpleQueue[APIError | None] = SimpleQueue()
    watches: list[LoopIterator[Any]] = []
    try:
        for kind, version in versions.items():
            try:
                watches.append(client.watch(kind, namespace, resource_version=version))
            except (Forbidden, NotFound):
                if kind is POD_GROUPS:
                    raise
        for watch in watches:
            Thread(target=_forward, args=(watch, news), name="watch", daemon=True).start()
        error = news.get()
    except Gone as gone:
        error = gone
    finally:
        for watch in watches:
            watch.close()
    if error is not None and not isinstance(error, Gone):  # Gone: the server has forgotten, as much has happened since
        raise error


def _forward(watch: LoopIterator[Any], news: SimpleQueue[APIError | None]) -> None:
    """Put None into the queue when the watch reports a change or ends; if the watch fails, put the error there."""
    try:
        next((kind for kind, _ in watch if kind != "BOOKMARK"), None)
    except APIError as error:
        news.put(error)
    else:
        news.put(None)
