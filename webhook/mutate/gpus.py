"""A pod that shares GPUs: its container learns which ones it got, from the annotations of its binding.

Kubelet reads annotations when it starts a container, and Muster writes them with the binding, so that variables that
refer to them are known in time. Volcano's resource of GPU memory needs none: Volcano's device plugin sets them.
"""

from typing import Any

from muster.api.fields import FieldError
from muster.api.names import (
    GPU_CONTAINER,
    GPU_DEVICES_CHOSEN,
    GPU_FRACTION,
    GPU_MEMORY_ASKED,
    GPU_PORTION,
    SCHEDULERS,
)
from webhook.mutate.podreview import PodReview
from webhook.patch import Why

VARIABLES = {"NVIDIA_VISIBLE_DEVICES": GPU_DEVICES_CHOSEN, "GPU_PORTION": GPU_PORTION}
"""Variable of the container → the annotation that it has its value from."""


def share_gpus(review: PodReview) -> None:
    """Adds the variables to the container that uses the GPUs: the one that is named, else the first."""
    annotations = review.meta.annotations
    asked = next((key for key in (GPU_FRACTION, GPU_MEMORY_ASKED) if key in annotations), "")
    if not asked or review.scheduler not in SCHEDULERS:
        return
    wanted = annotations.get(GPU_CONTAINER)
    for place in ("containers", "initContainers"):
        for index, container in enumerate(review.spec.get(place) or []):
            if wanted in {None, container.get("name")}:
                _tell(review, place, index, container, asked)
                return


def _tell(review: PodReview, place: str, index: int, container: dict[str, Any], asked: str) -> None:
    given = {variable.get("name"): (number, variable) for number, variable in enumerate(container.get("env") or [])}
    for name, annotation in VARIABLES.items():
        source = {"fieldPath": f"metadata.annotations['{annotation}']"}
        number, known = given.get(name, (0, None))
        if known is None:
            why = Why("the container learns which GPUs it shares", f"annotation {asked}")
            value = {"name": name, "valueFrom": {"fieldRef": source}}
            review.patch.append("spec", place, index, "env", value=value, why=why)
        elif ((known.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") != source["fieldPath"]:
            message = f"must be left out: Muster sets it, as the annotation {asked} asks for a part of a GPU"
            review.errors.append(FieldError(f"spec.{place}[{index}].env[{number}].name", message, name))
