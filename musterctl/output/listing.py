"""Objects of one kind as kubectl shows them: a table, `-o wide|json|yaml|name`, and `-w` for changes.

A command says which columns its kind has. JSON and YAML show objects as the API server sends them, less
`managedFields`.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import click

from gangs.words import short
from muster.api.base import Resource
from muster.api.kubernetes.meta import parse_time
from muster.kube.client import Client
from muster.kube.errors import Gone
from musterctl.cluster import JSON, failing_as, reference, whole
from musterctl.output.table import Table
from webhook.offline.manifests import as_yaml

INTERRUPTED = 130
"""The exit code of a command that goes on until it is interrupted."""


class Column(NamedTuple):
    """One column; those that are `wide` need `-o wide`."""

    title: str
    of: Callable[[JSON], Any]
    wide: bool = False


def from_status(title: str, name: str, default: Any = 0, *, wide: bool = False) -> Column:
    """Return a column with a field of the status."""
    return Column(title, lambda obj: obj.get("status", {}).get(name, default), wide)


def from_spec(title: str, name: str, default: Any = "", *, wide: bool = False) -> Column:
    """Return a column with a field of the spec."""
    return Column(title, lambda obj: obj.get("spec", {}).get(name, default), wide)


class Listing:
    """Prints objects of one kind: the current list, and with `watch` each later change."""

    def __init__(
        self, resource: Resource[Any], columns: Sequence[Column], output: str, *, namespaces: bool = False
    ) -> None:
        own = [column for column in columns if output == "wide" or not column.wide]
        namespace = [Column("NAMESPACE", lambda obj: obj["metadata"].get("namespace", ""))] if namespaces else []
        self._columns = [*namespace, Column("NAME", lambda obj: obj["metadata"]["name"]), *own]
        self._resource = whole(resource)
        self._output = output
        self._table = Table([column.title for column in self._columns])
        self._documents = 0

    def show(self, client: Client, namespace: str | None, selector: str, *, watch: bool) -> None:
        """Print the list, and with `watch` the changes."""
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
                return  # the API server has no history from here; kubectl ends too
            except KeyboardInterrupt:
                sys.exit(INTERRUPTED)

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
        """Print objects; `alone` for a watch, which shows them one by one and not in a List."""
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
            self._table.show([[str(column.of(item)) for column in self._columns] for item in items])


def show_object(content: JSON, output: str) -> None:
    """Print one object as JSON or YAML."""
    click.echo(json.dumps(content, indent=4) if output == "json" else as_yaml(content))


def without_managers(content: JSON) -> JSON:
    """Return an object without managedFields, which kubectl does not show either."""
    metadata = {name: value for name, value in content["metadata"].items() if name != "managedFields"}
    return {**content, "metadata": metadata}


def age(obj: JSON) -> str:
    """Return the age of an object, as kubectl writes it."""
    return since(obj["metadata"].get("creationTimestamp"))


def since(timestamp: str | None) -> str:
    """Return the time since a timestamp, in one unit as kubectl writes it."""
    moment = parse_time(timestamp)
    return "<unknown>" if moment is None else short(time.time() - moment)


def amounts(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return quantities that users type, `cpu=4,memory=8Gi`, in one or several options."""
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
