"""Objects of one kind as kubectl shows them: a table, `-o wide|json|yaml|name`, and `-w` for what changes.

A command on objects says which columns its kind has; the rest is here. JSON and YAML show the objects as the API
server sends them, less `managedFields`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from muster.api.base import Resource
from muster.api.kubernetes.meta import parse_time
from muster.kube.client import Client
from muster.kube.errors import Gone
from musterctl.manifests.documents import as_yaml
from musterctl.objects import JSON, failing_as, reference, whole

F = TypeVar("F", bound=Callable[..., Any])

_GAP = 3
_INTERRUPTED = 130
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Column(NamedTuple):
    """One column; those that are `wide` need `-o wide`."""

    title: str
    of: Callable[[JSON], Any]
    wide: bool = False


def where_options(command: F) -> F:
    """Adds --kubeconfig and --name: where a command on objects looks."""
    for option in (
        click.option("--name", "plane", envvar="MUSTER_NAME", show_envvar=True, help="A plane of `muster up`."),
        click.option("--kubeconfig", type=_FILE, help="Another cluster.  [default: KUBECONFIG, else the plane]"),
    ):
        command = option(command)
    return command


def listing_options(command: F) -> F:
    """Adds -l, -o and -w, as `kubectl get` has them."""
    for option in (
        click.option("-w", "--watch", is_flag=True, help="After the list, show each change until interrupted."),
        click.option("-o", "--output", type=click.Choice(["table", "wide", "json", "yaml", "name"]), default="table"),
        click.option("-l", "--selector", default="", help="Labels, as kubectl takes them."),
    ):
        command = option(command)
    return command


namespace_option = click.option("-n", "--namespace", help="[default: that of the kubeconfig's context]")
all_namespaces_option = click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")


class Listing:
    """Prints objects of one kind: the list that is there, and with `watch` each change after it."""

    def __init__(
        self, resource: Resource[Any], columns: Sequence[Column], output: str, *, spaces: bool = False
    ) -> None:
        own = [column for column in columns if output == "wide" or not column.wide]
        space = [Column("NAMESPACE", lambda obj: obj["metadata"].get("namespace", ""))] if spaces else []
        self._columns = [*space, Column("NAME", lambda obj: obj["metadata"]["name"]), *own]
        self._resource = whole(resource)
        self._output = output
        self._widths: list[int] = []
        self._documents = 0

    def show(self, client: Client, namespace: str | None, selector: str, *, watch: bool) -> None:
        """The list, and with `watch` what comes after it."""
        version, items = "", list[JSON]()
        with failing_as("list", client, self._resource):
            for page in client.pages(self._resource, namespace, label_selector=selector):
                items += page
                version = page.metadata.resource_version
        items.sort(key=lambda obj: (obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
        if not items and not watch and self._output in {"table", "wide"}:
            click.echo(f"No resources found{f' in {namespace} namespace' if namespace else ''}.", err=True)
            return
        if items or not watch:
            self._print(items, alone=watch)
        while watch:
            try:
                version = self._follow(client, namespace, selector, version)
            except Gone:
                return  # the API server has forgotten where we are; kubectl ends here too
            except KeyboardInterrupt:
                sys.exit(_INTERRUPTED)  # that is how a watch ends

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
        """`alone`: of a watch, which shows objects one by one."""
        if self._output in {"json", "yaml"}:
            tidy = [without_managers(item) for item in items]
            whole_list = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": tidy}
            for one in tidy if alone else [whole_list]:
                if self._documents and self._output == "yaml":
                    click.echo("---")
                self._documents += 1
                show_object(one, self._output)
        elif self._output == "name":
            for item in items:
                click.echo(reference(self._resource, item["metadata"]["name"]))
        else:
            rows = [[str(column.of(item)) for column in self._columns] for item in items]
            self._table(rows)

    def _table(self, rows: list[list[str]]) -> None:
        """The rows, under a heading the first time."""
        if not self._widths:
            heading = [column.title for column in self._columns]
            rows = [heading, *rows]
            self._widths = [max(map(len, each)) for each in zip(*rows, strict=True)]
        for row in rows:
            cells = (cell.ljust(width + _GAP) for cell, width in zip(row, self._widths, strict=True))
            click.echo("".join(cells).rstrip())


def show_object(content: JSON, output: str) -> None:
    """One object as JSON or YAML."""
    if output == "json":
        click.echo(json.dumps(content, indent=4))
    else:
        click.echo(as_yaml(content))


def without_managers(content: JSON) -> JSON:
    """An object without the record of who wrote which field: kubectl does not show it either."""
    metadata = {name: value for name, value in content["metadata"].items() if name != "managedFields"}
    return {**content, "metadata": metadata}


def age(obj: JSON) -> str:
    """How old an object is, as kubectl says it."""
    return since(obj["metadata"].get("creationTimestamp"))


def since(timestamp: str | None) -> str:
    """How long ago a timestamp was, in one unit as kubectl says it."""
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
