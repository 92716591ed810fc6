"""Objects of one kind as kubectl shows them: a table, `-o wide|json|yaml|name`, and `-w` for what changes.

A command on objects says which columns its kind has; the rest is here. The objects are shown as the API server sends
them, so nothing is left out of `-o json|yaml`.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import yaml

from muster.api.base import Resource
from muster.api.meta import parse_time
from muster.cli.look import client_of, kubeconfig_of
from muster.kube.client import Client
from muster.kube.config import context_namespace
from muster.kube.errors import Gone, NotFound

JSON = dict[str, Any]
F = TypeVar("F", bound=Callable[..., Any])

_GAP = 3
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Column(NamedTuple):
    """One column; those that are `wide` need `-o wide`."""

    title: str
    of: Callable[[JSON], Any]
    wide: bool = False


def where_options(command: F) -> F:
    """Adds --kubeconfig and --name."""
    for option in (
        click.option("--name", "plane", envvar="MUSTER_NAME", show_envvar=True, help="A plane of `muster up`."),
        click.option("--kubeconfig", type=_FILE, help="Another cluster.  [default: KUBECONFIG, else the plane]"),
    ):
        command = option(command)
    return command


def listing_options(command: F) -> F:
    """Adds -l, -o and -w."""
    for option in (
        click.option("-w", "--watch", is_flag=True, help="After the list, show each change until interrupted."),
        click.option("-o", "--output", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table"),
        click.option("-l", "--selector", default="", help="Labels, as kubectl takes them."),
    ):
        command = option(command)
    return command


namespace_option = click.option("-n", "--namespace", help="[default: that of the kubeconfig's context]")
all_namespaces_option = click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")


def connect(kubeconfig: Path | None, plane: str | None) -> Client:
    """The client that the options name."""
    return client_of(kubeconfig, plane)


def connect_in(namespace: str | None, kubeconfig: Path | None, plane: str | None) -> tuple[Client, str]:
    """The client, and the namespace: the given one, else that of the kubeconfig's context."""
    return connect(kubeconfig, plane), namespace or context_namespace(kubeconfig_of(kubeconfig, plane))


def whole(resource: Resource[Any]) -> Resource[JSON]:
    """The same kind, its objects as they come."""
    return Resource(
        resource.group, resource.version, resource.plural, resource.kind, dict[str, Any], namespaced=resource.namespaced
    )


def reference(resource: Resource[Any], name: str) -> str:
    """A kind and name as kubectl writes them: job.batch.volcano.sh/train."""
    return f"{resource.kind.lower()}.{resource.group}/{name}" if resource.group else f"{resource.kind.lower()}/{name}"


def get(client: Client, resource: Resource[JSON], name: str, namespace: str | None = None) -> JSON:
    """One object; a NotFound that says what is missing where."""
    try:
        return client.get(resource, name, namespace)
    except NotFound as error:
        where = f" in namespace {namespace}" if namespace else ""
        raise click.ClickException(f"there is no {reference(resource, name)}{where}: {error.message}") from error


class Listing:
    """Prints objects of one kind."""

    def __init__(
        self, resource: Resource[Any], columns: Sequence[Column], output: str, *, spaces: bool = False
    ) -> None:
        own = [column for column in columns if output == "wide" or not column.wide]
        space = [Column("NAMESPACE", lambda obj: obj["metadata"].get("namespace", ""))] if spaces else []
        self._columns = [*space, Column("NAME", lambda obj: obj["metadata"]["name"]), *own]
        self._resource = whole(resource)
        self._output = output
        self._widths: list[int] = []

    def show(self, client: Client, namespace: str | None, selector: str, *, watch: bool) -> None:
        """The list, and with `watch` what comes after it."""
        version, items = "", list[JSON]()
        for page, meta in client.pages(self._resource, namespace, label_selector=selector):
            items += page
            version = meta.resource_version
        items.sort(key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
        if not items and not watch and self._output in {"table", "wide"}:
            click.echo(f"No resources found{f' in {namespace} namespace' if namespace else ''}.", err=True)
            return
        self._print(items, alone=False)
        while watch:
            try:
                version = self._follow(client, namespace, selector, version)
            except Gone:
                return  # the API server has forgotten where we are; kubectl ends here too

    def _follow(self, client: Client, namespace: str | None, selector: str, version: str) -> str:
        watched = client.watch(self._resource, namespace, resource_version=version, label_selector=selector)
        try:
            for kind, obj in watched:
                version = obj["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    self._print([obj], alone=True)
        finally:
            watched.close()
        return version

    def _print(self, items: Sequence[JSON], *, alone: bool) -> None:
        """`alone`: one object of a watch."""
        if self._output in {"json", "yaml"}:
            show_object(items[0] if alone else {"apiVersion": "v1", "kind": "List", "items": items}, self._output)
        elif self._output == "name":
            for item in items:
                click.echo(reference(self._resource, item["metadata"]["name"]))
        else:
            rows = [[str(column.of(item)) for column in self._columns] for item in items]
            self._table(rows, titles=not alone)

    def _table(self, rows: list[list[str]], *, titles: bool) -> None:
        heading = [column.title for column in self._columns]
        widths = [max(map(len, each)) for each in zip(heading, *rows, strict=True)]
        if titles or not self._widths:
            self._widths = widths
        for row in [heading, *rows] if titles else rows:
            cells = (cell.ljust(width + _GAP) for cell, width in zip(row, self._widths, strict=True))
            click.echo("".join(cells).rstrip())


def show_object(content: JSON, output: str) -> None:
    """One object as JSON or YAML."""
    if output == "json":
        click.echo(json.dumps(content, indent=4))
    else:
        click.echo(yaml.safe_dump(content, sort_keys=False).rstrip("\n"))


def age(obj: JSON) -> str:
    """How old an object is, as kubectl says it."""
    return since(obj["metadata"].get("creationTimestamp"))


def since(timestamp: str | None) -> str:
    """How long ago something was."""
    moment = parse_time(timestamp)
    return "<unknown>" if moment is None else short(time.time() - moment)


_UNITS = (("d", 86400, 2 * 86400), ("h", 3600, 3 * 3600), ("m", 60, 120), ("s", 1, 0))


def short(seconds: float) -> str:
    """A time span in its largest unit that says enough: 90s, 12m, 5h, 3d."""
    whole_s = max(0, int(seconds))
    return next(f"{whole_s // size}{unit}" for unit, size, least in _UNITS if whole_s >= least)


def amounts(texts: Iterable[str], option: str) -> dict[str, str]:
    """Quantities as users type them: `cpu=4,memory=8Gi`, also several times."""
    result: dict[str, str] = {}
    for text in ",".join(texts).split(","):
        name, equals, amount = text.partition("=")
        if text and not (name and equals and amount):
            raise click.BadParameter(
                f"{text!r} is not of the form resource=amount, as in cpu=4,memory=8Gi", None, None, option
            )
        if text:
            result[name.strip()] = amount.strip()
    return result
