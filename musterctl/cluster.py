"""The cluster that a command uses, and access to its objects: naming, reading, creating and deleting objects.

`musterctl.options` has the options that choose a cluster. Names of objects and messages have the same form as in
kubectl.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from muster.api.base import Resource
from muster.api.volcano import batch, scheduling
from muster.kube.client import Client
from muster.kube.config import ClientConfig, load_config
from muster.kube.errors import APIError, Forbidden, NotFound, Unauthorized, Unreachable
from musterctl import unanswered
from musterctl.kind import cluster as kind
from musterctl.kind.cluster import KindCluster
from musterctl.plane import state
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane

T = TypeVar("T")
JSON = dict[str, Any]

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_MORE = re.compile(r"and \d+ more errors$")
"""Pattern of the last line of a webhook's message that does not list all errors."""
_THIRD_PARTY = ".x-k8s.io"
"""Suffix of the API groups of some kinds that other projects install, such as JobSets."""
_OWN = Path.home() / ".kube" / "config"
_OURS = {
    (kind.api_version, kind.kind): kind
    for kind in (batch.JOBS, scheduling.QUEUES, scheduling.POD_GROUPS, batch.COMMANDS)
}


class Where(NamedTuple):
    """The choice of a cluster by --kubeconfig or --name.

    The default is KUBECONFIG, the local control plane `default`, or the user's kubeconfig. If the user has no
    kubeconfig and there is exactly one local control plane, it is chosen, even if it has another name.
    """

    given: Path | None = None
    plane: str | None = None

    @property
    def kubeconfig(self) -> Path | None:
        """The kubeconfig of the cluster; None for the default kubeconfig."""
        if self.given is not None:
            return self.given
        name = self.plane
        if name is None and not os.environ.get("KUBECONFIG"):
            name = _meant()
        return existing(name).kubeconfig if name else None

    def config(self) -> ClientConfig:
        """Return the connection to the cluster, with the credentials of its user."""
        return load_config(self.kubeconfig)

    def client(self) -> Client:
        """Return a client of the cluster, which prints each distinct warning of the API server once."""
        shown: set[str] = set()

        def show(text: str) -> None:
            if text not in shown:
                shown.add(text)
                click.echo(f"Warning: {text}", err=True)

        kubeconfig = self.kubeconfig
        client = Client.load(kubeconfig, on_warning=show)
        unanswered.note_cluster(kubeconfig, client.server)
        return client


def plane_names() -> list[str]:
    """Return the names of all local control planes and kind clusters."""
    return sorted({*state.names(), *kind.names()})


def only_name() -> str:
    """Return the name of the only local control plane or kind cluster; `default` if none or several exist."""
    there = plane_names()
    return there[0] if len(there) == 1 else state.DEFAULT_NAME


def _meant() -> str | None:
    """Return the name of the local control plane to use; None to use the user's kubeconfig.

    The local control plane `default` takes precedence. Without a kubeconfig, the only local control plane is used.
    """
    name = only_name()
    if name not in plane_names() or (name != state.DEFAULT_NAME and _OWN.exists()):
        return None
    return name


def known_plane(where: Where) -> Path | None:
    """Return the folder of the local control plane that is chosen by name or kubeconfig; None for another cluster."""
    named = where.given or (
        Path(os.environ["KUBECONFIG"]) if not where.plane and os.environ.get("KUBECONFIG") else None
    )
    if named is not None:
        folder = named.absolute().parent
        return folder if (folder / "plane.json").exists() else None
    name = where.plane or _meant()
    found = existing(name) if name else None
    return found.root if isinstance(found, Plane) else None


def existing(name: str) -> Plane | KindCluster:
    """Return the local control plane or kind cluster with this name.

    If neither exists, raise LocalError, which lists the existing ones.
    """
    folder = state.folder_of(name)
    if (made := KindCluster(name)).made() is not None:
        return made
    if state.load(folder) is None:
        others = ", ".join(plane_names())
        more = f"there is {others}" if others else "`muster up` creates one"
        raise LocalError(f"there is no local control plane {name!r}; {more}")
    return Plane(folder)


@contextmanager
def known(client: Client, resource: Resource[Any]) -> Iterator[None]:
    """Turn the error of a kind that the cluster does not serve into a message for users.

    A NotFound error for a single object or a namespace is raised unchanged.
    """
    try:
        yield
    except NotFound as error:
        if (error.details or {}).get("name"):
            raise
        foreign = resource.group.endswith(_THIRD_PARTY)
        why = f"the controller of {resource.kind}s is not installed" if foreign else "is Muster installed there?"
        raise click.ClickException(
            f"the cluster at {client.server} does not know {resource.full_name}: {why}"
        ) from error


class Failed(click.ClickException):
    """Error for a command that has failed for one object; the command may succeed for other objects."""


def connect_in(namespace: str | None, where: Where) -> tuple[Client, str]:
    """Return a client, and the given namespace or else the namespace of the kubeconfig's context."""
    _check_namespace(namespace)
    client = where.client()
    return client, namespace or client.namespace


def namespace_in(namespace: str | None, where: Where) -> str:
    """Return the namespace like `connect_in`, for objects that are not read from a cluster."""
    _check_namespace(namespace)
    return namespace or load_config(where.kubeconfig).namespace


def _check_namespace(namespace: str | None) -> None:
    if namespace and not _NAME.fullmatch(namespace):
        raise click.BadParameter(f"{namespace!r} cannot be the name of a namespace", None, None, "--namespace")


def whole(resource: Resource[Any]) -> Resource[JSON]:
    """Return the kind as a resource whose objects are read as JSON."""
    return replace(resource, type=dict[str, Any])


def name_of(resource: Resource[Any], text: str) -> str:
    """Return the name from an argument that is a plain name, or `kind/name` as `-o name` prints it.

    Raise UsageError for invalid names; an empty name would select all objects.
    """
    name = text.removeprefix(resource.reference(""))
    if not _NAME.fullmatch(name):
        raise click.UsageError(
            f"{text!r} cannot be the name of a {resource.kind}: use lower-case letters, digits, - and ."
        )
    return name


def get(client: Client, resource: Resource[Any], name: str, namespace: str | None = None) -> JSON:
    """Return one object as JSON; raise Failed if the object does not exist."""
    with failing_as("read", client, resource, name, namespace):
        return client.get(whole(resource), name, namespace)


def may_list(client: Client, resource: Resource[T], namespace: str | None = None, **selectors: Any) -> list[T] | None:
    """Return the objects of a kind; None if the user cannot list the kind, or the cluster does not serve the kind."""
    try:
        return client.list(resource, namespace, **selectors)
    except (Forbidden, NotFound):
        return None


def create(client: Client, resource: Resource[Any], content: JSON, namespace: str | None = None) -> JSON:
    """Create an object, and print its name; unknown fields are errors."""
    metadata = content.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName") or "(no name)"
    with failing_as("create", client, resource, name, namespace):
        made = client.create(whole(resource), content, namespace, strict=True)
    click.echo(f"{resource.reference(made['metadata']['name'])} created")
    return made


def delete(client: Client, resource: Resource[Any], name: str, namespace: str | None = None) -> None:
    """Delete an object, and print its name."""
    with failing_as("delete", client, resource, name, namespace):
        client.delete(resource, name, namespace)
    click.echo(f'{resource.reference("")[:-1]} "{name}" deleted')


def for_each(things: Iterable[T], action: Callable[[T], object]) -> None:
    """Call `act` with each item and print failures; after the last item, exit with code 1 if any item has failed."""
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
    """Turn an API error in the block into Failed, such as "cannot create job.batch.volcano.sh/train: ..."."""
    try:
        with known(client, resource):
            yield
    except (Unreachable, Unauthorized):
        raise  # the cluster is the problem, not this object
    except APIError as error:
        target = resource.reference(name) if name else resource.full_name
        if isinstance(error, NotFound) and (error.details or {}).get("name") == name:
            from musterctl.acting import others_named  # noqa: PLC0415 - it needs this module

            others = others_named(client, name, namespace, resource) if namespace else ""
            raise Failed(f"there is no {target}{f' in namespace {namespace}' if namespace else ''}{others}") from error
        raise Failed(f"cannot {verb} {target}: {_error_text(error)}") from error


def _error_text(error: APIError) -> str:
    """Return the message of an error; if the message consists of several errors, each error gets its own line."""
    causes = (error.details or {}).get("causes") or []
    if len(causes) < 2:  # noqa: PLR2004 - several
        return error.message
    lines = [f"  {cause.get('field') or 'the object'}: {cause.get('message')}" for cause in causes]
    more = _MORE.search(error.message)
    return "\n".join(["the request has these mistakes:", *lines, *([f"  {more[0]}"] if more else [])])


class _Kind(msgspec.Struct):
    """A kind, as the API server's discovery describes it."""

    name: str
    kind: str
    namespaced: bool


class _Kinds(msgspec.Struct):
    resources: list[_Kind] = []


def kind_of(client: Client, content: JSON) -> Resource[Any]:
    """Return the kind of an object; kinds that Muster does not know are looked up through discovery.

    Raise Failed if the API server does not serve it.
    """
    api_version, kind = str(content.get("apiVersion")), str(content.get("kind"))
    if (api_version, kind) in _OURS:
        return _OURS[api_version, kind]
    group, slash, version = api_version.rpartition("/")
    try:
        answer = client.request("GET", f"/apis/{api_version}" if slash else f"/api/{api_version}")
        there = msgspec.json.decode(answer, type=_Kinds).resources
    except NotFound:
        there = []
    for each in there:
        if each.kind == kind and "/" not in each.name:
            return Resource(group, version, each.name, kind, dict[str, Any], namespaced=each.namespaced)
    raise Failed(
        f"the cluster at {client.server} does not know the kind {kind} of {api_version}: "
        "is the project that serves this kind installed?"
    )
