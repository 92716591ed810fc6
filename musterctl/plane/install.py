"""What a cluster must hold for Muster: namespace, CRDs, webhook configurations, runtimes, and on our own planes nodes.

Everything is applied server-side under Muster's field manager, so doing it again changes nothing.
"""

import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from muster.api.base import Resource
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes.core import CONFIG_MAPS, NAMESPACES, NODES
from muster.api.kubernetes.extensions import DEFINITIONS
from muster.api.kubernetes.meta import Object
from muster.api.names import DEFAULT_QUEUE, SYSTEM_NAMESPACE
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Conflict, NotFound, TooManyRequests
from musterctl.chart.files import CRDS, FILES, RUNTIMES, document
from musterctl.plane.errors import LocalError

_ESTABLISHED_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05
_CREATORS: Final = 16


TRAINER_NAMESPACE: Final = "kubeflow-system"
TRAINER_VERSION: Final = (FILES / "trainer-version").read_text(encoding="utf-8").strip()
"""The version of Kubeflow Trainer whose API Muster follows."""
_VERSION_MAP: Final = "kubeflow-trainer-public"
_RBAC: Final = ("rbac.authorization.k8s.io", "v1")
_ROLES: Final = Resource(*_RBAC, "roles", "Role", Object)
_ROLE_BINDINGS: Final = Resource(*_RBAC, "rolebindings", "RoleBinding", Object)
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
    definitions = [document(path) for path in sorted(CRDS.glob("*.yaml"))]
    if not definitions:
        raise LocalError(f"there are no CRDs in {CRDS}; `make generate` writes them")
    waiting = {each["metadata"]["name"]: client.apply(DEFINITIONS, each) for each in definitions}
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
        waiting = {name: client.get(DEFINITIONS, name) for name in waiting}


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
        runtime = document(path)
        while not _applied(client, runtime):
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


def trainer_version(client: Client) -> None:
    """Says which version of Kubeflow Trainer's API is served, where its SDK looks for it: everybody may read it.

    A version that is there already is that of a Trainer which somebody has installed, and stays.
    """
    where = {"name": _VERSION_MAP, "namespace": TRAINER_NAMESPACE}
    with contextlib.suppress(AlreadyExists):
        client.create(NAMESPACES, {"metadata": {"name": TRAINER_NAMESPACE}})
    with contextlib.suppress(AlreadyExists):
        client.create(CONFIG_MAPS, {"metadata": where, "data": {"kubeflow_trainer_version": TRAINER_VERSION}})
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [_VERSION_MAP], "verbs": ["get"]}
    with contextlib.suppress(AlreadyExists):
        client.create(_ROLES, {"metadata": where, "rules": [rule]})
    role = {"apiGroup": _RBAC[0], "kind": "Role", "name": _VERSION_MAP}
    everybody = {"apiGroup": _RBAC[0], "kind": "Group", "name": "system:authenticated"}
    with contextlib.suppress(AlreadyExists):
        client.create(_ROLE_BINDINGS, {"metadata": where, "roleRef": role, "subjects": [everybody]})


def remove_webhooks(client: Client, configurations: Sequence[dict[str, Any]]) -> None:
    """Removes the webhook configurations again: nobody answers them any more."""
    for configuration in configurations:
        with contextlib.suppress(NotFound):
            client.delete(_WEBHOOKS[configuration["kind"]], configuration["metadata"]["name"])
