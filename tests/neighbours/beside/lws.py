"""LeaderWorkerSet's own controller and webhooks, and LeaderWorkerSets for it."""

from typing import Any

from beside import kubebuilder
from beside.neighbour import Neighbours
from muster.api import names
from muster.api.base import Resource
from musterctl.plane.plane import Plane
from musterctl.plane.process import PlaneProcess

JSON = dict[str, Any]
SETS: Resource[JSON] = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", JSON)
_DOMAIN = "leaderworkerset.sigs.k8s.io"
GROUP_LABEL = f"{_DOMAIN}/group-index"
SUBGROUP_LABEL = f"{_DOMAIN}/subgroup-index"
EXCLUSIVE = f"{_DOMAIN}/exclusive-topology"
SUBGROUP_EXCLUSIVE = f"{_DOMAIN}/subgroup-exclusive-topology"
TORCH = {names.FRAMEWORK: "torch", names.QUEUE: "default"}
_PROJECT = kubebuilder.Project("lws", "sigs.k8s.io/lws", "sigs.k8s.io/lws/cmd", "config.lws.x-k8s.io/v1alpha1")


def start(neighbours: Neighbours, plane: Plane, **configuration: Any) -> PlaneProcess:
    """Installs LeaderWorkerSet and runs its controller, with further fields of its Configuration."""
    return kubebuilder.start(neighbours, plane, _PROJECT, **configuration)


def worker_set(
    name: str,
    *,
    groups: int,
    size: int,
    gpus: int = 8,
    labels: dict[str, str] | None = TORCH,
    annotations: dict[str, str] | None = None,
    template: JSON | None = None,
    pods: JSON | None = None,
    **spec: Any,
) -> JSON:
    """Groups of one leader and `size` - 1 workers; the labels ask for torch and a queue unless others are given.

    `template` are further fields of the leaderWorkerTemplate, `pods` of the pods' spec.
    """
    resources = {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": gpus} if gpus else {}}
    worker = {"spec": {"containers": [{"name": "main", "image": "none", "resources": resources}], **(pods or {})}}
    return {
        "apiVersion": SETS.api_version,
        "kind": SETS.kind,
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {
            "replicas": groups,
            "leaderWorkerTemplate": {"size": size, "workerTemplate": worker, **(template or {})},
            **spec,
        },
    }
