"""Markers: resources by which a scheduler that Muster shares with others knows the pods to ask Muster about.

Only a container's resources can carry them, so one container gets a limit of 1 for each; the API server makes a request
of it. kube-scheduler is told to ignore them when it looks for room.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import names
from webhook.patch import Part, Patch, Why

_WHY = Why("the cluster's own scheduler asks Muster about it", "--mark-pods")


def mark(spec: Mapping[str, Any], patch: Patch, *place: Part) -> None:
    """Adds the markers that no container of the pod spec at `place` has yet.

    A container that has limits gets them: one without any would no longer be a container without limits.
    """
    containers: Sequence[Mapping[str, Any]] = spec.get("containers") or []
    limits = [(container.get("resources") or {}).get("limits") or {} for container in containers]
    index = next((index for index, each in enumerate(limits) if each), 0)
    for marker in sorted(names.MARKERS):
        if containers and not any(marker in each for each in limits):
            patch.set(*place, "containers", index, "resources", "limits", marker, value="1", why=_WHY)
