"""The objects that a cluster must hold for Muster: namespace, roles, CRDs, webhook configurations, runtimes, and nodes.

Everything but nodes is applied server-side under Muster's field manager, so doing it again changes nothing.
"""

import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from muster.api.base import Resource
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.core import NAMESPACES, NODES
from muster.api.kubernetes.extensions import DEFINITIONS, WEBHOOK_CONFIGURATIONS
from muster.api.kubernetes.meta import Object
from muster.api.names import DEFAULT_QUEUE, SYSTEM_NAMESPACE, WEBHOOKS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Conflict, NotFound, TooManyRequests
from musterctl.chart.files import CRDS, FILES, RUNTIMES, document, manifests, policies
from musterctl.plane import accounts
from musterctl.plane.errors import LocalError

TRAINER_NAMESPACE: Final = "kubeflow-system"
_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05
_AT_ONCE: Final = 16


def namespace(client: Client) -> None:
    """Applies the namespace of Muster's Leases; the leader elections need it first of all."""
    client.apply(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})


def roles(client: Client, *, shared: bool) -> None:
    """Applies accounts, roles and admission policies."""
    apply(client, [*accounts.roles(shared=shared), *policies()])


def remove_webhooks(client: Client) -> None:
    """Removes the webhook configurations again: their webhook answers no more."""
    for kind in WEBHOOK_CONFIGURATIONS:
        with contextlib.suppress(NotFound):
            client.delete(kind, WEBHOOKS)


def crds(client: Client) -> None:
    """Applies Muster's CRDs; returns when the API server serves all of them."""
    definitions = [document(path) for path in sorted(CRDS.glob("*.yaml"))]
    waiting = {each["metadata"]["name"]: client.apply(DEFINITIONS, each) for each in definitions}
    deadline = time.monotonic() + _TIMEOUT_S
    while waiting := {name: crd for name, crd in waiting.items() if not crd.established}:
        if time.monotonic() > deadline:
            why = [
                f"{name} ({one.type}: {one.message})"
                for name, crd in waiting.items()
                for one in crd.status.conditions or ()
            ]
            raise LocalError(f"the API server does not serve {', '.join(why or waiting)}")
        time.sleep(_POLL_S)
        waiting = {name: client.get(DEFINITIONS, name) for name in waiting}


def runtimes(client: Client) -> None:
    """Applies the runtimes that Muster ships for TrainJobs; one that another manager has changed stays as it is.

    They pass the webhook, which must be there.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    for path in sorted(RUNTIMES.glob("*.yaml")):
        while not _applied(client, document(path)):
            if time.monotonic() > deadline:
                raise LocalError(f"the API server does not take {path}: its storage is not ready")
            time.sleep(_POLL_S)


def trainer_version(client: Client) -> None:
    """Creates the version of Kubeflow Trainer's API that its SDK looks for.

    A version that is there already is that of a Trainer which is installed, and stays.
    """
    where = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TRAINER_NAMESPACE}}
    _create(client, where)
    for each in manifests(FILES / "trainer-version.yaml", {"<namespace>": TRAINER_NAMESPACE}):
        _create(client, each)


def nodes(client: Client, objects: Sequence[dict[str, Any]]) -> None:
    """Creates those of the nodes that do not exist."""
    existing = {node.metadata.name for node in client.list(NODES)}
    missing = [node for node in objects if node["metadata"]["name"] not in existing]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda node: _create(client, node), missing))


def unknown_nodes(client: Client) -> str:
    """Empty when every node says if it is Ready, which kwok brings about."""
    nodes = client.list(NODES)
    unknown = [node.metadata.name for node in nodes if all(one.type != "Ready" for one in node.status.conditions)]
    return f"of {len(nodes)} nodes {len(unknown)} do not say if they are Ready" if unknown else ""


def closed_queue(client: Client) -> str:
    """Empty when the default queue takes gangs; the controller creates and opens it."""
    try:
        state = client.get(QUEUES, DEFAULT_QUEUE).status.state
    except NotFound:
        return f"there is no queue {DEFAULT_QUEUE}"
    return "" if state == "Open" else f"the queue {DEFAULT_QUEUE} is not open"


def apply(client: Client, objects: Sequence[dict[str, Any]]) -> None:
    """Applies manifests of any kind, several at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda each: client.apply(_resource(each), each), objects))


def _create(client: Client, manifest: dict[str, Any]) -> None:
    """Creates the object unless it exists."""
    with contextlib.suppress(AlreadyExists):
        client.create(_resource(manifest), manifest)


def _applied(client: Client, runtime: dict[str, Any]) -> bool:
    """Applies a runtime; False while the API server still prepares for a kind that is new to it."""
    try:
        client.apply(CLUSTER_TRAINING_RUNTIMES, runtime, force=False)
    except TooManyRequests:
        return False
    except Conflict:
        return True  # it is another manager's
    return True


def _resource(manifest: dict[str, Any]) -> Resource[Object]:
    """The resource of a manifest, by the API's rule for plurals."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"]
    plural = f"{kind.lower()}s" if not kind.endswith("y") else f"{kind.lower()[:-1]}ies"
    return Resource(group, version, plural, kind, Object, namespaced="namespace" in manifest["metadata"])
