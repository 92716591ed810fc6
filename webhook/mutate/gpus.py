"""Variables that tell a container which GPUs it shares, from annotations that Muster writes with the binding.

Kubelet reads annotations when it starts a container, later than that. Volcano's resource of GPU memory needs no
variables of Muster: Volcano's device plugin sets them.
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
"""Variable of the container → the annotation that holds its value."""


def share_gpus(review: PodReview) -> None:
    """Add the variables to the container that uses the GPUs: the one that an annotation names, else the first."""
    annotations = review.meta.annotations
    asked = next((key for key in (GPU_FRACTION, GPU_MEMORY_ASKED) if key in annotations), "")
    if not asked or review.scheduler not in SCHEDULERS:
        return
    wanted = annotations.get(GPU_CONTAINER)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(review.spec.get(kind) or []):
            if wanted in {None, container.get("name")}:
                _add_variables(review, kind, index, container, asked)
                return


def _add_variables(review: PodReview, kind: str, index: int, container: dict[str, Any], asked: str) -> None:
    given = {variable.get("name"): (number, variable) for number, variable in enumerate(container.get("env") or [])}
    for name, annotation in VARIABLES.items():
        source = {"fieldPath": f"metadata.annotations['{annotation}']"}
        number, known = given.get(name, (0, None))
        if known is None:
            why = Why("the container learns which GPUs it shares", f"annotation {asked}")
            value = {"name": name, "valueFrom": {"fieldRef": source}}
            review.patch.append("spec", kind, index, "env", value=value, why=why)
        elif ((known.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") != source["fieldPath"]:
            message = f"must be left out: Muster sets it, as the annotation {asked} asks for a part of a GPU"
            review.errors.append(FieldError(f"spec.{kind}[{index}].env[{number}].name", message, name))
