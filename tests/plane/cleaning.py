"""State of a plane before a test that has it alone, and the way back to that state afterwards.

Such tests fill nodes, relabel or lose them, make queues and kill processes. What they leave would decide what the next
test sees, so it goes: processes run again, workloads and cluster-wide objects are deleted, nodes are as they were. A
test that wants other nodes or another configuration of the planner says so: `alone(nodes=12, planning_config=…)`.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any, Final

import msgspec
from planes import admin, drop_queue

from muster.api.base import Resource
from muster.kube.client import Client
from muster.kube.errors import NotFound
from musterctl.commands.up import change_planning, wait_planning
from musterctl.plane.install import node_objects
from musterctl.plane.machine import write_private
from musterctl.plane.plane import Plane
from musterctl.plane.state import KWOK, PlaneOptions

JSON = dict[str, Any]


def _kind(group: str, version: str, plural: str, name: str, *, namespaced: bool = True) -> Resource[JSON]:
    return Resource(group, version, plural, name, dict[str, Any], namespaced=namespaced)


NODES: Final = _kind("", "v1", "nodes", "Node", namespaced=False)
PODS: Final = _kind("", "v1", "pods", "Pod")
POD_GROUPS: Final = _kind("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
WORKLOADS: Final = (
    _kind("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob"),
    _kind("flow.volcano.sh", "v1alpha1", "jobflows", "JobFlow"),
    _kind("batch.volcano.sh", "v1alpha1", "cronjobs", "CronJob"),
    _kind("batch.volcano.sh", "v1alpha1", "jobs", "Job"),
    _kind("batch", "v1", "cronjobs", "CronJob"),
    _kind("batch", "v1", "jobs", "Job"),
    _kind("apps", "v1", "deployments", "Deployment"),
    _kind("apps", "v1", "statefulsets", "StatefulSet"),
    _kind("apps", "v1", "replicasets", "ReplicaSet"),
)
"""Kinds that own pods, the owners of others first."""
GANGS: Final = (PODS, POD_GROUPS)
"""Kinds that are deleted even if another object owns them: a PodGroup still waits in its queue, a pod uses its node."""
CLUSTER_WIDE: Final = (
    _kind("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False),
    _kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
    _kind("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", namespaced=False),
    _kind("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False),
    _kind("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False),
)
"""Kinds of the whole cluster that decide what is placed where."""
_GONE_S: Final = 60.0


class Baseline:
    """The cluster-wide objects of a plane that nobody has used yet, by kind; they are noted in the plane's folder."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        file = plane.root / "baseline.json"
        if not file.exists():
            with closing(plane.client()) as client:
                found = {kind.plural: sorted(_names(client, kind)) for kind in CLUSTER_WIDE}
            write_private(file, json.dumps(found).encode())
        self._names = {kind: set(names) for kind, names in json.loads(file.read_bytes()).items()}

    def left_by(self, namespace: str) -> list[str]:
        """Return the cluster-wide objects that a test has left: they are named after its namespace."""
        return [each for each in self.left() if namespace in each]

    def left(self) -> list[str]:
        """Return the cluster-wide objects that are not part of this state."""
        client = admin(self._plane.kubeconfig)
        return [
            f"{kind.plural} {name}"
            for kind in CLUSTER_WIDE
            for name in sorted(_names(client, kind) - self._names[kind.plural])
        ]

    def lay_out(self, wanted: Mapping[str, Any]) -> None:
        """Give the plane these options for nodes and planner, which its running extender takes up."""
        plane, before = self._plane, self._plane.state.options
        options = msgspec.structs.replace(PlaneOptions(kubernetes=before.kubernetes), **wanted)
        if options == before:
            return
        plane.state = msgspec.structs.replace(plane.state, options=options)
        with closing(plane.client()) as client:
            _restore_nodes(client, plane)
        if change_planning(plane, before.planning_config):
            wait_planning(plane)

    def restore(self, wait_for: Callable[..., Any]) -> None:
        """Bring the plane back to this state."""
        if any(part.started and not part.alive for part in self._plane.parts.values()):
            self._plane.mend()
        with closing(self._plane.client()) as client:
            for kind in (*WORKLOADS, *GANGS):
                for each in _listed(client, kind):
                    _delete(client, kind, each["metadata"])
            what = "the pods and PodGroups of a test to be gone"
            wait_for(lambda: not any(_listed(client, kind) for kind in GANGS), _GONE_S, what)
            _restore_nodes(client, self._plane)
            for kind in CLUSTER_WIDE:
                for name in _names(client, kind) - self._names[kind.plural]:
                    _delete(client, kind, {"name": name})


def _restore_nodes(client: Client, plane: Plane) -> None:
    """Make lost nodes again, and give the others their labels, taints and amounts back."""
    options: PlaneOptions = plane.state.options
    there = {each["metadata"]["name"]: each for each in _listed(client, NODES)}
    for wanted in node_objects(options, plane.state.ports[KWOK]):
        found = there.pop(wanted["metadata"]["name"], None)
        if found is None:
            client.create(NODES, wanted)
        else:
            _restore_node(client, wanted, found)
    for each in there.values():
        _delete(client, NODES, each["metadata"])


def _restore_node(client: Client, wanted: JSON, found: JSON) -> None:
    name, labels = wanted["metadata"]["name"], wanted["metadata"]["labels"]
    spare = {key: None for key in found["metadata"]["labels"] if key not in labels}
    changes: JSON = {}
    if spare or any(found["metadata"]["labels"].get(key) != value for key, value in labels.items()):
        changes["metadata"] = {"labels": {**labels, **spare}}
    if found["spec"].get("unschedulable") or found["spec"].get("taints"):
        changes["spec"] = {"unschedulable": None, "taints": None}
    if changes:
        client.merge_patch(NODES, name, changes)
    amounts = {key: found["status"][key] for key in ("capacity", "allocatable")}
    if any(amounts[key] != wanted["status"][key] for key in amounts):
        gone = {key: dict.fromkeys(amounts[key].keys() - wanted["status"][key].keys()) for key in amounts}
        client.merge_patch(
            NODES,
            name,
            {"status": {key: {**wanted["status"][key], **gone[key]} for key in amounts}},
            subresource="status",
        )


def _listed(client: Client, kind: Resource[JSON]) -> list[JSON]:
    """Return the objects of a kind; none where the API server does not serve it."""
    try:
        return list(client.list(kind))
    except NotFound:
        return []


def _names(client: Client, kind: Resource[JSON]) -> set[str]:
    return {each["metadata"]["name"] for each in _listed(client, kind)}


def _delete(client: Client, kind: Resource[JSON], metadata: JSON) -> None:
    """Delete an object, unless its deletion follows from its owner's; a pod without a time to end."""
    if kind not in GANGS and any(each.get("controller") for each in metadata.get("ownerReferences", ())):
        return
    if metadata.get("deletionTimestamp") and kind is not PODS:
        return
    with suppress(NotFound):
        if kind is PODS:
            client.delete(kind, metadata["name"], metadata["namespace"], grace_period_s=0)
        elif kind.plural == "queues":
            drop_queue(client, metadata["name"])
        else:
            client.delete(kind, metadata["name"], metadata.get("namespace", ""))
