"""`muster upgrade check`: shows the changes that an upgrade to this version would make."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from muster.api.base import Resource
from muster.api.kubernetes.apps import DAEMON_SETS, DEPLOYMENTS
from muster.api.kubernetes.core import CONFIG_MAPS
from muster.crds.files import facts_of
from muster.crds.growth import added, taken_back
from muster.kube.client import Client
from musterctl.chart.files import CRDS, document, render
from musterctl.cluster import Where, failing_as, whole
from musterctl.options import release_options, where_options
from musterctl.plane.machine import LocalError

JSON = dict[str, Any]
_DEFINITIONS: Resource[JSON] = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", JSON, namespaced=False
)
_COMPARED = tuple(map(whole, (CONFIG_MAPS, DEPLOYMENTS, DAEMON_SETS)))
_OWN = "app.kubernetes.io/part-of=muster"
_UNSET = "unset"


@click.group()
def upgrade() -> None:
    """Shows what an upgrade of Muster would change."""


@upgrade.command()
@release_options
@where_options
def check(namespace: str, values: tuple[Path, ...], kubernetes_version: str | None, where: Where) -> None:
    """Compares CRDs, settings and flags with this version (alpha).

    Run the check with the new version's command line before `helm upgrade`. Lines that begin with `error` show changes
    that need action before the upgrade: values that this version refuses, or CRDs that become stricter. With such a
    line, the exit code is 1.
    """
    client = where.client()
    arguments = [f"--kube-version={kubernetes_version}"] if kubernetes_version else []
    try:
        rendered = render(namespace=namespace, values=values, arguments=arguments)
    except LocalError as error:
        click.echo(f"error: {error}")
        sys.exit(1)
    objects = [each for each in yaml.load_all(rendered, yaml.CSafeLoader) if each]
    lines = [*_crds(client, {each["metadata"]["name"] for each in objects}), *_objects(client, objects, namespace)]
    click.echo("\n".join(lines) or "nothing changes")
    sys.exit(1 if any(line.startswith("error") for line in lines) else 0)


def _crds(client: Client, rendered: set[str]) -> Iterator[str]:
    """Yield the changes of the CRDs that the release applies."""
    with failing_as("read", client, _DEFINITIONS, ""):
        installed = {each["metadata"]["name"]: each for each in client.list(_DEFINITIONS)}
    for file in sorted(CRDS.glob("*.yaml")):
        if file.stem not in rendered:
            continue
        if file.stem not in installed:
            yield f"{file.stem}: new kind"
            continue
        before, now = facts_of(installed[file.stem]), facts_of(document(file))
        yield from (f"{file.stem}: {path} is new" for path in added(before, now))
        yield from (f"error: {file.stem}: {each}" for each in taken_back(before, now))


def _objects(client: Client, objects: list[JSON], namespace: str) -> Iterator[str]:
    """Yield the changes of settings and flags in each object."""
    for resource in _COMPARED:
        with failing_as("read", client, resource, "", namespace):
            listed = client.list(resource, namespace, label_selector=_OWN)
        before = {each["metadata"]["name"]: _facts(each) for each in listed}
        now = {each["metadata"]["name"]: _facts(each) for each in objects if each["kind"] == resource.kind}
        for name in sorted(before.keys() | now.keys()):
            where = f"{resource.kind} {name}"
            if name not in now:
                yield f"{where}: is removed"
            elif name not in before:
                yield f"{where}: is new"
            else:
                yield from (f"{where}: {change}" for change in _changes(before[name], now[name]))


def _facts(found: JSON) -> dict[str, str]:
    """Return the parts of an object that are compared: each setting in its files, or each flag of its containers."""
    if "spec" in found:
        containers = found["spec"]["template"]["spec"]["containers"]
        flags = [(each["name"], *flag.partition("=")[::2]) for each in containers for flag in each.get("args", ())]
        return {f"{container} {flag}": value for container, flag, value in flags}
    facts: dict[str, str] = {}
    for file, text in (found.get("data") or {}).items():
        content = yaml.load(text, yaml.CSafeLoader) if file == "settings.yaml" else text
        fields = content if isinstance(content, dict) else {file: content}
        facts |= {name: str(value) for name, value in fields.items()}
    return facts


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, _UNSET), now.get(name, _UNSET)
        if old != new:
            yield f"{name} changes" if "\n" in old + new else f"{name}: {old} -> {new}"
