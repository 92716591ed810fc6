"""Defaults of a Queue, so that every reader finds the same values written down."""

from typing import Any

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from webhook.objects.documents import mapping
from webhook.patch import Patch, Why
from webhook.review import MalformedError, Verdict, generic

_DEFAULT = Why("left out", "default")
_ROOTED = Why("every path begins at the root", "default")


def review(request: AdmissionRequest) -> Verdict:
    """Defaults on CREATE; what has not the shape of a queue is the API server's to refuse."""
    try:
        patch = defaulted(generic(request.object))
    except MalformedError:
        return Verdict()
    return Verdict(patch=patch.operations, reasons=patch.reasons)


def defaulted(queue: dict[str, Any]) -> Patch:
    """What is missing, written down; without operations when nothing is."""
    patch = Patch(queue)
    spec = mapping(queue.get("spec"))
    annotations = mapping(mapping(queue.get("metadata")).get("annotations"))
    if not spec.get("weight"):
        patch.set("spec", "weight", value=1, why=_DEFAULT)
    if spec.get("reclaimable") is None:
        patch.set("spec", "reclaimable", value=True, why=_DEFAULT)
    path = annotations.get(names.HIERARCHY)
    if isinstance(path, str) and path and path.split("/")[0] != names.ROOT_QUEUE:
        patch.set("metadata", "annotations", names.HIERARCHY, value=f"{names.ROOT_QUEUE}/{path}", why=_ROOTED)
        patch.set(
            "metadata",
            "annotations",
            names.HIERARCHY_WEIGHTS,
            value=f"1/{annotations.get(names.HIERARCHY_WEIGHTS, '')}",
            why=_ROOTED,
        )
    return patch
