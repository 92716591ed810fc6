"""LeaderWorkerSet's own controller and webhooks."""

from typing import Any

from beside import kubebuilder
from beside.neighbour import Neighbours
from musterctl.plane.plane import Plane
from musterctl.plane.process import Part

_PROJECT = kubebuilder.Project("lws", "sigs.k8s.io/lws", "sigs.k8s.io/lws/cmd", "config.lws.x-k8s.io/v1alpha1")


def start(neighbours: Neighbours, plane: Plane, **configuration: Any) -> Part:
    """Installs LeaderWorkerSet and runs its controller, with further fields of its Configuration."""
    return kubebuilder.start(neighbours, plane, _PROJECT, **configuration)
