"""`muster ps`: gangs of every kind in one list, each with its reason in ten words."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import click
import msgspec

from muster.api.kubernetes.meta import readable_time
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import Gone
from musterctl.cluster import Where, connect_in
from musterctl.gangs.read import read, unread
from musterctl.gangs.rows import Objects, Row, difference, rows
from musterctl.gangs.states import ENDED, WAITING
from musterctl.gangs.words import nodes_words, plain
from musterctl.options import all_namespaces_option, namespace_option, where_options
from musterctl.output.listing import INTERRUPTED, Table, short, show_object, since

Column = tuple[str, Callable[[Row], str]]
_READ_EVERY_S = 1.0
_ALL = 100_000
"""Characters for all nodes of a gang."""


class Shown(NamedTuple):
    """Which gangs are shown, and how."""

    namespace: str | None
    """None for all namespaces."""
    output: str
    ended: bool = False
    queue: str | None = None
    kind: str | None = None
    """Kind of the workload."""
    long: bool = False

    def has(self, row: Row) -> bool:
        """Return True for a gang that is to be shown."""
        ours = self.queue in {None, row.queue} and self.kind in {None, row.kind}
        return ours and (self.ended or row.state not in ENDED)


@click.command()
@namespace_option
@all_namespaces_option
@click.option("--queue", help="Show only gangs of this queue.")
@click.option("-a", "--all", "ended", is_flag=True, help="Show gangs that have ended, too.")
@click.option("-l", "--long", "long", is_flag=True, help="Show whole reasons, and times of day.")
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table")
@click.option("-w", "--watch", is_flag=True, help="After the list, show each change until interrupted.")
@where_options
def ps(*, namespace: str | None, all_namespaces: bool, watch: bool, where: Where, **how: Any) -> None:
    """Lists gangs of every kind with state, place and reason.

    A gang is called as its owner calls it: Job, TrainJob, JobSet, StatefulSet, Deployment or Pod.
    """
    client, space = connect_in(namespace, where)
    list_gangs(client, Shown(None if all_namespaces else space, **how), watch=watch)


def list_gangs(client: Client, shown: Shown, *, watch: bool) -> None:
    """Print a list, and with `watch` each change."""
    printer = Printer(shown)
    objects = read(client, shown.namespace)
    if missing := unread(objects):
        click.echo(f"you may not list {' and '.join(missing)} here: counts, nodes or kinds may be missing", err=True)
    found = [row for row in rows(objects) if shown.has(row)]
    printer.show(found, alone=watch)
    if not found and not watch and shown.output in {"table", "wide"}:
        click.echo(
            f"No {shown.kind or 'gang'}s found{f' in {shown.namespace} namespace' if shown.namespace else ''}.",
            err=True,
        )
    if watch:
        try:
            for changed in changes(client, shown, objects):
                printer.show(changed, alone=True)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def changes(client: Client, shown: Shown, objects: Objects) -> Iterator[list[Row]]:
    """Yield gangs that have changed since these objects were read, those that are gone with that as their state.

    PodGroups are watched, as each change of a gang shows there; everything is read anew, at most once a second.
    """
    before = rows(objects)
    while True:
        _wait(client, shown.namespace, objects.version)
        time.sleep(_READ_EVERY_S)  # what happens at the same time is shown at once
        objects = read(client, shown.namespace)
        now = rows(objects)
        yield [row for old, row in difference(before, now) if shown.has(row) or (old and shown.has(old))]
        before = now


def _wait(client: Client, namespace: str | None, version: str) -> None:
    """Wait until a PodGroup changes, or the API server ends the watch."""
    try:
        watched = client.watch(POD_GROUPS, namespace, resource_version=version)
        try:
            next((kind for kind, _ in watched if kind != "BOOKMARK"), None)
        finally:
            watched.close()
    except Gone:
        return  # it has forgotten this version, as much has happened since


class Printer:
    """Prints gangs as rows below headings, as data, or as names."""

    def __init__(self, shown: Shown) -> None:
        self._output = shown.output
        self._columns = [*([_NAMESPACE] if shown.namespace is None else []), *columns(shown)]
        self._table = Table([title for title, _ in self._columns])
        self._documents = 0

    def show(self, found: Sequence[Row], *, alone: bool) -> None:
        """Print gangs; `alone` for a watch, which shows them one by one and not in a list."""
        match self._output:
            case "name":
                for row in found:
                    click.echo(row.reference)
            case "json" | "yaml":
                data = [msgspec.to_builtins(row) for row in found]
                for one in data if alone else [{"gangs": data}]:
                    if self._documents and self._output == "yaml":
                        click.echo("---")
                    self._documents += 1
                    show_object(one, self._output)
            case _ if found:
                self._table.show([[of(row) for _, of in self._columns] for row in found])


def columns(shown: Shown) -> list[Column]:
    """Return the columns of a table: with `wide` all nodes and the PodGroup, with `long` sentences and times."""
    wide = shown.output == "wide"
    return [
        ("NAME", lambda row: row.title),
        ("QUEUE", lambda row: row.queue or "-"),
        ("STATE", lambda row: row.state),
        ("SIZE", size),
        ("PRIORITY", priority),
        ("AGE", lambda row: since(row.created)),
        ("START", start_time if shown.long else start),
        ("NODES", (lambda row: nodes_words(row.nodes, _ALL)) if wide else (lambda row: nodes_words(row.nodes))),
        *([("GANG", lambda row: row.gang or "-")] if wide else []),
        ("REASON", (lambda row: plain(row.message)) if shown.long else (lambda row: row.reason)),
    ]


_NAMESPACE: Column = ("NAMESPACE", lambda row: row.namespace)


def size(row: Row) -> str:
    """Return the pods that run, that start together, and that are wanted: `0/8/10`."""
    return f"{row.running}/{row.minimum}/{row.wanted}"


def priority(row: Row) -> str:
    """Return the class of priority, else the number that pods have; `-` where nothing is known."""
    return row.priority_class or ("-" if row.priority is None else str(row.priority))


def start(row: Row) -> str:
    """Return the time until the expected start: `in 30m`; `unknown` for a gang that waits without one."""
    at = readable_time(row.expected_start)
    if at is None:
        return "unknown" if row.state in WAITING else "-"
    return f"in {short(at - time.time())}" if at > time.time() else "now"


def start_time(row: Row) -> str:
    """Return the expected start as a time of day with the time until then: `10:34 (in 30m)`."""
    at = readable_time(row.expected_start)
    return start(row) if at is None else f"{datetime.fromtimestamp(at).astimezone():%H:%M} ({start(row)})"
