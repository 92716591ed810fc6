"""Defaults of a Queue, so that every reader finds the same values written down."""

from typing import Any

from muster.api import names
from muster.api.admission import AdmissionRequest
from webhook.patch import Operation, Patch
from webhook.review import MalformedError, Verdict, generic

HIERARCHY = "volcano.sh/hierarchy"
WEIGHTS = "volcano.sh/hierarchy-weights"


def review(request: AdmissionRequest) -> Verdict:
    """Defaults on CREATE; what has not the shape of a queue is the API server's to refuse."""
    try:
        return Verdict(patch=defaults(generic(request.object)))
    except MalformedError:
        return Verdict()


def defaults(queue: dict[str, Any]) -> list[Operation]:
    """Operations that write down what is missing; none when nothing is."""
    patch = Patch(queue)
    spec = mapping(queue.get("spec"))
    annotations = mapping(mapping(queue.get("metadata")).get("annotations"))
    if not spec.get("weight"):
        patch.set("spec", "weight", value=1)
    if spec.get("reclaimable") is None:
        patch.set("spec", "reclaimable", value=True)
    path = annotations.get(HIERARCHY)
    if isinstance(path, str) and path and path.split("/")[0] != names.ROOT_QUEUE:
        patch.set("metadata", "annotations", HIERARCHY, value=f"{names.ROOT_QUEUE}/{path}")
        patch.set("metadata", "annotations", WEIGHTS, value=f"1/{annotations.get(WEIGHTS, '')}")
    return patch.operations


def mapping(value: Any) -> dict[str, Any]:
    """A JSON object as it is; anything else, which the API server will refuse, as an empty one."""
    return value if isinstance(value, dict) else {}
