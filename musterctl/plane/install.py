"""The objects that Muster needs in a cluster: namespace, roles, CRDs, webhook configurations, runtimes, and nodes.

All objects except nodes are applied server-side with Muster's field manager, so a second installation changes nothing.
"""

import contextlib
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from muster.api.base import Resource
from muster.api.grammar import many
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from muster.api.kubernetes import core, extensions, meta
from muster.api.muster.pools import DEFAULT_POOL, labels_of
from muster.api.names import DEFAULT_QUEUE, DOMAIN, HOSTNAME, SYSTEM_NAMESPACE, WEBHOOKS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, Conflict, NotFound, TooManyRequests
from muster.resources.vector import GPU
from musterctl.chart import roles as chart
from musterctl.chart.files import CRDS, FILES, RUNTIMES, document, manifests, policies
from musterctl.plane import rights
from musterctl.plane.machine import LOOPBACK, LocalError
from musterctl.plane.state import PlaneOptions

TRAINER_NAMESPACE: Final = "kubeflow-system"
RACK: Final = f"{DOMAIN}/rack"
BLOCK: Final = f"{DOMAIN}/block"
_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05
_AT_ONCE: Final = 16


def roles(client: Client, *, shared: bool, pools: Iterable[str] = ()) -> None:
    """Apply the namespace of Muster's Leases, then accounts, roles and policies."""
    client.apply(core.NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
    of_pools = [each for pool in pools for each in chart.of_pool(pool, SYSTEM_NAMESPACE)]
    apply(client, [*rights.roles(shared=shared), *of_pools, *policies()])


def remove_webhooks(client: Client) -> None:
    """Remove the webhook configurations from the cluster, because the webhook no longer answers."""
    for kind in extensions.WEBHOOK_CONFIGURATIONS:
        with contextlib.suppress(NotFound):
            client.delete(kind, WEBHOOKS)


def crds(client: Client) -> None:
    """Apply Muster's CRDs, and wait until the API server serves all their kinds."""
    definitions = [document(path) for path in sorted(CRDS.glob("*.yaml"))]
    waiting = {each["metadata"]["name"]: client.apply(extensions.DEFINITIONS, each) for each in definitions}
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
        waiting = {name: client.get(extensions.DEFINITIONS, name) for name in waiting}


def runtimes(client: Client) -> None:
    """Apply the runtimes for TrainJobs through the webhook; runtimes that another manager has changed are kept."""
    deadline = time.monotonic() + _TIMEOUT_S
    for path in sorted(RUNTIMES.glob("*.yaml")):
        while not _applied(client, document(path)):
            if time.monotonic() > deadline:
                raise LocalError(f"the API server does not accept {path}: its storage is not ready")
            time.sleep(_POLL_S)


def trainer_version(client: Client) -> None:
    """Create the ConfigMap with Kubeflow Trainer's version, which its SDK reads; keep an existing ConfigMap."""
    where = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TRAINER_NAMESPACE}}
    _create(client, where)
    for each in manifests(FILES / "trainer-version.yaml", {"<namespace>": TRAINER_NAMESPACE}):
        _create(client, each)


def nodes(client: Client, options: PlaneOptions, kubelet_port: int) -> None:
    """Create the missing simulated nodes; kwok, which simulates their kubelets, listens on this loopback port."""
    existing = {node.metadata.name for node in client.list(core.NODES)}
    missing = [node for node in node_objects(options, kubelet_port) if node["metadata"]["name"] not in existing]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda node: _create(client, node), missing))


def unknown_nodes(client: Client) -> str:
    """Return a text about nodes without a Ready condition, which kwok sets; "" once every node has the condition."""
    nodes = client.list(core.NODES)
    unknown = [node.metadata.name for node in nodes if all(one.type != "Ready" for one in node.status.conditions)]
    verb = "does" if len(unknown) == 1 else "do"
    return f"of {many(len(nodes), 'node')} {len(unknown)} {verb} not report a Ready condition yet" if unknown else ""


def closed_queue(client: Client) -> str:
    """Return the reason why the default queue cannot be used yet; "" once the queue is open.

    The controller creates and opens the default queue.
    """
    try:
        state = client.get(QUEUES, DEFAULT_QUEUE).status.state
    except NotFound:
        return f"there is no queue {DEFAULT_QUEUE}"
    return "" if state == "Open" else f"the queue {DEFAULT_QUEUE} is not open"


def apply(client: Client, objects: Sequence[dict[str, Any]]) -> None:
    """Apply manifests of any kinds, several at the same time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda each: client.apply(_resource(each), each), objects))


def _create(client: Client, manifest: dict[str, Any]) -> None:
    """Create the object unless it already exists."""
    with contextlib.suppress(AlreadyExists):
        client.create(_resource(manifest), manifest)


def _applied(client: Client, runtime: dict[str, Any]) -> bool:
    """Apply a runtime; return False while the API server cannot store objects of the newly installed kind yet."""
    try:
        client.apply(CLUSTER_TRAINING_RUNTIMES, runtime, force=False)
    except TooManyRequests:
        return False
    except Conflict:
        return True  # another manager has changed it, so it is kept
    return True


def _resource(manifest: dict[str, Any]) -> Resource[meta.Object]:
    """Return the resource of a manifest; its plural is derived from its kind."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    kind = manifest["kind"]
    plural = f"{kind.lower()}s" if not kind.endswith("y") else f"{kind.lower()[:-1]}ies"
    return Resource(group, version, plural, kind, meta.Object, namespaced="namespace" in manifest["metadata"])


def node_objects(options: PlaneOptions, kubelet_port: int = 0) -> list[dict[str, Any]]:
    """Return the manifests of simulated nodes.

    Consecutive nodes share a rack and a pool, and consecutive racks share a block.
    """
    return [_node(index, options, kubelet_port) for index in range(options.nodes)]


def name_of(index: int) -> str:
    """Return the name of a node, such as `node-0007`; the names sort like the numbers."""
    return f"node-{index:04}"


def run_of(index: int, count: int, runs: int) -> int:
    """Return the group of an index, if `count` indexes are divided into `runs` consecutive groups of similar size."""
    return index * runs // count


def _node(index: int, options: PlaneOptions, kubelet_port: int) -> dict[str, Any]:
    """Return the manifest of a simulated node without taints; kwok sets the condition Ready."""
    name = name_of(index)
    amounts = {"cpu": options.cpu, "memory": options.memory, "pods": "110", "ephemeral-storage": "1Ti"}
    if options.gpus:
        amounts[GPU] = str(options.gpus)
    labels = {
        HOSTNAME: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        RACK: f"rack-{run_of(index, options.nodes, options.racks)}",
        BLOCK: f"block-{run_of(index, options.nodes, options.blocks)}",
    }
    pools = (DEFAULT_POOL, *options.pool)
    labels |= labels_of(pools[run_of(index, options.nodes, len(pools))])
    addresses = {"Hostname": name, "InternalIP": LOOPBACK}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "addresses": [{"type": kind, "address": address} for kind, address in addresses.items()],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
            "nodeInfo": {"kubeletVersion": "kwok"},
        },
    }
