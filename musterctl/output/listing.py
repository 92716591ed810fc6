"""Output of objects of one kind, as in kubectl: a table, `-o wide|json|yaml|name`, and `-w` for changes.

Each command defines the columns of its kind. JSON and YAML show objects as the API server sends them, without
`managedFields`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import click
import msgspec

from gangs.words import short
from muster.api.base import Resource
from muster.api.kubernetes.meta import parse_time
from muster.kube.client import Client
from muster.kube.errors import Gone
from musterctl.cluster import JSON, failing_as, whole
from musterctl.output.table import PrintedTable
from webhook.offline.manifests import as_yaml

T = TypeVar("T")
INTERRUPTED = 130
"""Exit code of a command that the user interrupts, such as a watch."""
_NO_VERSION = {"metadata": {"resourceVersion": ""}}
"""Metadata of a List, with an empty resource version, as kubectl prints it."""


class Column(NamedTuple):
    """A column of a table; columns with `wide` are shown only with `-o wide`."""

    title: str
    of: Callable[[JSON], Any]
    wide: bool = False


def from_status(title: str, name: str, default: Any = 0, *, wide: bool = False) -> Column:
    """Return a column that shows a field of the status."""
    return Column(title, lambda obj: obj.get("status", {}).get(name, default), wide)


def from_spec(title: str, name: str, default: Any = "", *, wide: bool = False) -> Column:
    """Return a column that shows a field of the spec."""
    return Column(title, lambda obj: obj.get("spec", {}).get(name, default), wide)


class Printer(Generic[T]):
    """Prints items as a table, as JSON or YAML, or by name."""

    def __init__(
        self,
        columns: Sequence[tuple[str, Callable[[T], str]]],
        output: str,
        *,
        names: Callable[[Sequence[T]], Iterable[str]],
        together: Callable[[list[JSON]], JSON],
        data: Callable[[T], JSON] = msgspec.to_builtins,
    ) -> None:
        self._cells = [cell for _, cell in columns]
        self._table = PrintedTable([title for title, _ in columns])
        self._output = output
        self._names = names
        self._together = together
        """Function that combines all items into one document, such as a List."""
        self._data = data
        self._documents = 0

    def show(self, found: Sequence[T], *, alone: bool = False) -> None:
        """Print items together; with `alone`, print each item as a separate JSON or YAML document, as for a watch."""
        if self._output in {"json", "yaml"}:
            data = [self._data(each) for each in found]
            for one in data if alone else [self._together(data)]:
                if self._documents and self._output == "yaml":
                    click.echo("---")
                self._documents += 1
                show_object(one, self._output)
        elif self._output == "name":
            for name in self._names(found):
                click.echo(name)
        elif found:
            self._table.show([[cell(each) for cell in self._cells] for each in found])


class Listing:
    """Prints objects of one kind: the current list, and with `watch` each later change."""

    def __init__(
        self, resource: Resource[Any], columns: Sequence[Column], output: str, *, namespaces: bool = False
    ) -> None:
        own = [column for column in columns if output == "wide" or not column.wide]
        namespace = [Column("NAMESPACE", lambda obj: obj["metadata"].get("namespace", ""))] if namespaces else []
        shown = [*namespace, Column("NAME", lambda obj: obj["metadata"]["name"]), *own]
        self._resource = whole(resource)
        self._output = output
        self._printer = Printer(
            [(column.title, _text_of(column)) for column in shown],
            output,
            names=lambda items: [resource.reference(obj["metadata"]["name"]) for obj in items],
            together=lambda items: {"apiVersion": "v1", "kind": "List", **_NO_VERSION, "items": items},
            data=without_managers,
        )

    def show(self, client: Client, namespace: str | None, selector: str, *, watch: bool) -> None:
        """Print the list of objects, and with `watch` each later change."""
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
            self._printer.show(items, alone=watch)
        while watch:
            try:
                version = self._follow(client, namespace, selector, version)
            except Gone:
                return  # the API server no longer has the changes; kubectl ends, too
            except KeyboardInterrupt:
                sys.exit(INTERRUPTED)

    def _follow(self, client: Client, namespace: str | None, selector: str, version: str) -> str:
        watched = client.watch(self._resource, namespace, resource_version=version, label_selector=selector)
        try:
            for kind, obj in watched:
                version = obj["metadata"]["resourceVersion"]
                if kind != "BOOKMARK":
                    self._printer.show([obj], alone=True)
        finally:
            watched.close()
        return version


def _text_of(column: Column) -> Callable[[JSON], str]:
    return lambda obj: str(column.of(obj))


def show_object(content: JSON, output: str) -> None:
    """Print one object as JSON or YAML."""
    click.echo(json.dumps(content, indent=4) if output == "json" else as_yaml(content))


def without_managers(content: JSON) -> JSON:
    """Return an object without managedFields, which kubectl also hides."""
    metadata = {name: value for name, value in content["metadata"].items() if name != "managedFields"}
    return {**content, "metadata": metadata}


def age(obj: JSON) -> str:
    """Return the age of an object, in kubectl's format."""
    return since(obj["metadata"].get("creationTimestamp"))


def since(timestamp: str | None) -> str:
    """Return the time since a timestamp in kubectl's format, with one unit."""
    moment = parse_time(timestamp)
    return "<unknown>" if moment is None else short(time.time() - moment)


def amounts(texts: Iterable[str], option: str) -> dict[str, str]:
    """Parse the quantities in the values of one or several options, such as `cpu=4,memory=8Gi`."""
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
