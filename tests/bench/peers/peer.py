"""What a peer is: programs, a plane, and a way to submit gangs and to remove them again."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.plane.machine import LocalError
from musterctl.plane.plane import Plane, Report
from musterctl.plane.process import PlaneProcess

JSON = dict[str, Any]
Arguments = Mapping[str, Sequence[str]]
"""Additional arguments of the parts of a plane."""
NAMESPACE = "default"
AT_ONCE = 8
"""Requests of the client at the same time."""
_POLL_S = 0.05


class BarePlane(Plane):
    """A plane without anything of Muster's in its API server.

    Of an argument that is given twice the later one holds.
    """

    def _install(self, client: Client, report: Report) -> None:
        """Install nothing."""

    def _command_of(self, name: str) -> Callable[[], list[str]]:
        command = super()._command_of(name)

        def last_wins() -> list[str]:
            program, *arguments = command()
            return [program, *{each.partition("=")[0]: each for each in arguments}.values()]

        return last_wins


class Peer(ABC):
    """A gang scheduler with its flags."""

    name: str
    """Name in figures; in `--peers` the part before the first dot, so that one name may mean several sets of flags."""
    title: str
    """Name in tables."""
    rounds = 1_000
    """Number of rounds in which it takes part at most."""
    plane_type: type[Plane] = BarePlane
    parts: Collection[str] = ("etcd", "kube-apiserver", "kube-scheduler")
    own: Collection[str] = ("kube-scheduler",)
    """Names of the processes that are the scheduler and its controllers."""
    arguments: ClassVar[Arguments] = {}
    made: Sequence[Resource[Any]] = ()
    """Kinds whose objects are removed after each submission, in this order, before the pods."""

    @property
    def family(self) -> str:
        """Return the name in `--peers`; peers of one family use the same planes, one after the other."""
        return self.name.partition(".")[0]

    @abstractmethod
    def about(self) -> str:
        """Return versions and flags, as a sentence for the page."""

    def build(self) -> None:  # noqa: B027 - most peers have no more programs than a plane
        """Build the programs into the user's cache; raise LocalError if that is impossible."""

    def plane(self, folder: Path) -> Plane:
        """Return a plane, not started yet."""
        return self.plane_type(folder, self.parts, bound=True, arguments=self.arguments)

    def prepare(self, plane: Plane, client: Client) -> None:  # noqa: B027 - and need no more than that
        """Install what the peer needs on a plane that has been started for the first time."""

    def start(self, plane: Plane) -> Mapping[str, PlaneProcess]:
        """Start the processes that are no parts of the plane; return them when they are ready."""
        del plane
        return {}

    @abstractmethod
    def submit(self, client: Client, prefix: str, gangs: int, members: int) -> None:
        """Submit so many gangs, whose names begin with the prefix."""

    def clean(self, client: Client) -> None:
        """Remove all that was submitted; no garbage collector runs here."""
        for resource in self.made:
            remove_all(client, resource)
        until(lambda: not _remove_pods(client), 120.0, "all pods to be gone")


def each(act: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Call the function with each item, several at the same time; raise the first error."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(act, items):
            pass


def remove_all(client: Client, resource: Resource[Any]) -> None:
    """Delete all objects of a kind in the namespace of the measurement."""

    def remove(name: str) -> None:
        with suppress(NotFound):
            client.delete(resource, name, NAMESPACE, propagation="Background")

    each(remove, [_name(one) for one in client.list(resource, NAMESPACE)])


def _remove_pods(client: Client) -> int:
    """Delete all pods; return how many there were."""

    def remove(name: str) -> None:
        with suppress(NotFound):
            client.delete(PODS, name, NAMESPACE, grace_period_s=0)

    names = [pod.metadata.name for pod in client.list(PODS, NAMESPACE)]
    each(remove, names)
    return len(names)


def _name(one: Any) -> str:
    return str(one["metadata"]["name"] if isinstance(one, dict) else one.metadata.name)


def until(ready: Callable[[], object], timeout_s: float, what: str) -> Any:
    """Return the result as soon as it is true; raise LocalError if that takes too long."""
    deadline = time.monotonic() + timeout_s
    while not (result := ready()):
        if time.monotonic() > deadline:
            raise LocalError(f"waited {timeout_s:.0f} s in vain for {what}")
        time.sleep(_POLL_S)
    return result


def container() -> JSON:
    """Return the container of every pod."""
    return {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
