"""Objects of a cluster as commands name, read, create and act on them, with kubectl's habits."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from muster.api.base import Resource
from muster.api.volcano.batch import JOBS
from muster.api.volcano.bus import COMMANDS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.config import context_namespace
from muster.kube.errors import APIError, NotFound, Unauthorized, Unreachable
from musterctl.cluster import client_of, known, kubeconfig_of

JSON = dict[str, Any]
T = TypeVar("T")

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_OURS = {(kind.api_version, kind.kind): kind for kind in (JOBS, QUEUES, POD_GROUPS, COMMANDS)}


class Failed(click.ClickException):
    """A command did not succeed with one object; with others it may."""


def connect(kubeconfig: Path | None, plane: str | None) -> Client:
    """The client that the options name."""
    return client_of(kubeconfig, plane)


def connect_in(namespace: str | None, kubeconfig: Path | None, plane: str | None) -> tuple[Client, str]:
    """The client, and the namespace: the given one, else that of the kubeconfig's context."""
    if namespace and not _NAME.fullmatch(namespace):
        raise click.BadParameter(f"{namespace!r} cannot be the name of a namespace", None, None, "--namespace")
    return connect(kubeconfig, plane), namespace or context_namespace(kubeconfig_of(kubeconfig, plane))


def whole(resource: Resource[Any]) -> Resource[JSON]:
    """The same kind, its objects as they come."""
    return Resource(
        resource.group, resource.version, resource.plural, resource.kind, dict[str, Any], namespaced=resource.namespaced
    )


def reference(resource: Resource[Any], name: str) -> str:
    """A kind and name as kubectl writes them: job.batch.volcano.sh/train."""
    return f"{resource.kind.lower()}.{resource.group}/{name}" if resource.group else f"{resource.kind.lower()}/{name}"


def name_of(resource: Resource[Any], text: str) -> str:
    """The name that a user means: as it is, or as `-o name` prints it. An empty name would mean all objects."""
    name = text.removeprefix(reference(resource, ""))
    if not _NAME.fullmatch(name):
        raise click.UsageError(
            f"{text!r} cannot be the name of a {resource.kind}: that is lower-case letters, digits, - and ."
        )
    return name


def get(client: Client, resource: Resource[Any], name: str, namespace: str | None = None) -> JSON:
    """One object as it comes; a Failed that says what is missing where."""
    with failing_as("read", client, resource, name, namespace):
        return client.get(whole(resource), name, namespace)


def create(client: Client, resource: Resource[Any], content: JSON, namespace: str | None = None) -> JSON:
    """Creates an object, which may have no unknown fields, and says so."""
    metadata = content.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName") or "(no name)"
    with failing_as("create", client, resource, name, namespace):
        made = client.create(whole(resource), content, namespace, strict=True)
    click.echo(f"{reference(resource, made['metadata']['name'])} created")
    return made


def for_each(things: Iterable[T], action: Callable[[T], object]) -> None:
    """Does it for each; those that fail are said, and the command ends with 1 when all had their turn."""
    failed = False
    for thing in things:
        try:
            action(thing)
        except Failed as error:
            error.show()
            failed = True
    if failed:
        sys.exit(1)


@contextmanager
def failing_as(
    verb: str, client: Client, resource: Resource[Any], name: str = "", namespace: str | None = None
) -> Iterator[None]:
    """Says of an error which object or kind it is about: "cannot create job.batch.volcano.sh/train: ..."."""
    try:
        with known(client, resource):
            yield
    except (Unreachable, Unauthorized):
        raise  # nothing of this one object
    except APIError as error:
        target = reference(resource, name) if name else f"{resource.plural}.{resource.group}"
        if isinstance(error, NotFound) and (error.details or {}).get("name") == name:
            raise Failed(f"there is no {target}{f' in namespace {namespace}' if namespace else ''}") from error
        raise Failed(f"cannot {verb} {target}: {error.message}") from error


class _Known(msgspec.Struct):
    """What the API server says of a kind."""

    name: str
    kind: str
    namespaced: bool


class _AllKnown(msgspec.Struct):
    resources: list[_Known] = []


def kind_of(client: Client, content: JSON) -> Resource[Any]:
    """Where the API server has the kind of an object. Failed if it does not know it."""
    api_version, kind = str(content.get("apiVersion")), str(content.get("kind"))
    if (api_version, kind) in _OURS:
        return _OURS[api_version, kind]
    group, slash, version = api_version.rpartition("/")
    try:
        answer = client.request("GET", f"/apis/{api_version}" if slash else f"/api/{api_version}")
        there = msgspec.json.decode(answer, type=_AllKnown).resources
    except NotFound:
        there = []
    for each in there:
        if each.kind == kind and "/" not in each.name:
            return Resource(group, version, each.name, kind, dict[str, Any], namespaced=each.namespaced)
    raise Failed(
        f"the cluster at {client.server} does not know the kind {kind} of {api_version}: "
        "is what serves it installed there?"
    )


def send(
    action: str,
    resource: Resource[Any],
    names: Iterable[str],
    namespace: str | None,
    kubeconfig: Path | None,
    plane: str | None,
) -> None:
    """Asks for an action on objects, which must exist. A Command goes away with an object of its namespace."""
    wanted = [name_of(resource, name) for name in names]
    client, space = connect_in(namespace, kubeconfig, plane)

    def ask(name: str) -> None:
        uid = get(client, resource, name, space if resource.namespaced else None)["metadata"]["uid"]
        target = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid}
        metadata: dict[str, Any] = {"generateName": f"{name}-{action.lower()}-"}
        if resource.namespaced:
            metadata["ownerReferences"] = [target]
        command = {"metadata": metadata, "action": action, "target": target}
        with failing_as(f"ask for {action} of", client, resource, name), known(client, COMMANDS):
            client.create(COMMANDS, command, space, strict=True)
        click.echo(f"{reference(resource, name)}: {action} asked for")

    for_each(wanted, ask)
