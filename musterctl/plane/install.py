"""What a cluster must hold for Muster: namespace, CRDs, webhook configurations, runtimes, and on our own planes nodes.

Everything is applied server-side under Muster's field manager, so doing it again changes nothing.
"""

import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.core import NAMESPACES, NODES
from muster.api.meta import Object
from muster.api.names import DEFAULT_QUEUE, SYSTEM_NAMESPACE
from muster.api.scheduling import QUEUES
from muster.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Conflict, NotFound, TooManyRequests
from musterctl.plane.errors import LocalError

_CHART: Final = Path(__file__).parents[2] / "charts" / "muster"
CRDS: Final = _CHART / "crds"
RUNTIMES: Final = _CHART / "runtimes"
_ESTABLISHED_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05
_CREATORS: Final = 16


class _Condition(Wire):
    """A condition of a CRD: `Established` means that the kind is served."""

    type: str
    status: str
    message: str = ""


class _DefinitionStatus(Wire):
    """`status` of a CRD, which is empty for a moment after its creation."""

    conditions: list[_Condition] | None = None


class _Definition(Object):
    """A CustomResourceDefinition, as far as it tells whether it is served."""

    status: _DefinitionStatus = field(default_factory=_DefinitionStatus)

    @property
    def established(self) -> bool:
        """Whether the API server serves the kind."""
        return any(one.type == "Established" and one.status == "True" for one in self.status.conditions or ())


_DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", _Definition, namespaced=False
)
_ADMISSION: Final = ("admissionregistration.k8s.io", "v1")
_WEBHOOKS: Final = {
    kind: Resource(*_ADMISSION, f"{kind.lower()}s", kind, Object, namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}


def namespace(client: Client) -> None:
    """Applies the namespace where Muster's Leases live; the leader elections need it first of all."""
    client.apply(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})


def crds(client: Client) -> None:
    """Applies Muster's CRDs; returns when the API server serves all of them."""
    documents = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    if not documents:
        raise LocalError(f"there are no CRDs in {CRDS}; `make generate` writes them")
    waiting = {document["metadata"]["name"]: client.apply(_DEFINITIONS, document) for document in documents}
    deadline = time.monotonic() + _ESTABLISHED_TIMEOUT_S
    while waiting := {name: crd for name, crd in waiting.items() if not crd.established}:
        if time.monotonic() > deadline:
            why = [
                f"{name} ({one.type}: {one.message})"
                for name, crd in waiting.items()
                for one in crd.status.conditions or ()
            ]
            raise LocalError(f"the API server does not serve {', '.join(why or waiting)}")
        time.sleep(_POLL_S)
        waiting = {name: client.get(_DEFINITIONS, name) for name in waiting}


def has_open_queue(client: Client) -> bool:
    """Whether the default queue takes gangs; the controller creates and opens it."""
    try:
        return client.get(QUEUES, DEFAULT_QUEUE).status.state == "Open"
    except NotFound:
        return False


def nodes_are_known(client: Client) -> bool:
    """Whether every node says if it is Ready."""
    return all(any(one.type == "Ready" for one in node.status.conditions) for node in client.list(NODES))


def nodes(client: Client, objects: Sequence[dict[str, Any]]) -> None:
    """Creates those of the nodes that do not exist."""
    existing = {node.metadata.name for node in client.list(NODES)}
    missing = [node for node in objects if node["metadata"]["name"] not in existing]

    def create(node: dict[str, Any]) -> None:
        with contextlib.suppress(AlreadyExists):
            client.create(NODES, node)

    with ThreadPoolExecutor(_CREATORS) as pool:
        list(pool.map(create, missing))


def webhooks(client: Client, configurations: Sequence[dict[str, Any]]) -> None:
    """Applies the webhook configurations; from then on the API server asks the webhook, which must answer already."""
    for configuration in configurations:
        client.apply(_WEBHOOKS[configuration["kind"]], configuration)


def runtimes(client: Client) -> None:
    """Applies the runtimes that Muster ships for TrainJobs; one that somebody else has made or changed stays as it is.

    They pass the webhook, which must be there.
    """
    deadline = time.monotonic() + _ESTABLISHED_TIMEOUT_S
    for path in sorted(RUNTIMES.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        while not _applied(client, document):
            if time.monotonic() > deadline:
                raise LocalError(f"the API server does not take {path}: its storage is not ready")
            time.sleep(_POLL_S)


def _applied(client: Client, runtime: dict[str, Any]) -> bool:
    """Applies a runtime; False while the API server still prepares for a kind that is new to it."""
    try:
        client.apply(CLUSTER_TRAINING_RUNTIMES, runtime, force=False)
    except TooManyRequests:
        return False
    except Conflict:
        return True  # somebody else's
    return True


def remove_webhooks(client: Client, configurations: Sequence[dict[str, Any]]) -> None:
    """Removes the webhook configurations again: nobody answers them any more."""
    for configuration in configurations:
        with contextlib.suppress(NotFound):
            client.delete(_WEBHOOKS[configuration["kind"]], configuration["metadata"]["name"])
