"""Defaults of a Queue, written down so that all readers find the same values."""

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from webhook.objects.documents import mapping
from webhook.patch import Patch, Why
from webhook.review import MalformedError, Verdict, generic

_DEFAULT = Why("left out", "default")
_ROOTED = Why("every path begins at the root", "default")


def review(request: AdmissionRequest) -> Verdict:
    """Fill in defaults on CREATE; an object without a Queue's shape is left to the API server's schema."""
    try:
        queue = generic(request.object)
    except MalformedError:
        return Verdict()
    patch, spec = Patch(queue), mapping(queue.get("spec"))
    annotations = mapping(mapping(queue.get("metadata")).get("annotations"))
    if not spec.get("weight"):
        patch.set("spec", "weight", value=1, why=_DEFAULT)
    if spec.get("reclaimable") is None:
        patch.set("spec", "reclaimable", value=True, why=_DEFAULT)
    path, weights = annotations.get(names.HIERARCHY), annotations.get(names.HIERARCHY_WEIGHTS, "")
    if isinstance(path, str) and path and path.split("/")[0] != names.ROOT_QUEUE:
        patch.set("metadata", "annotations", names.HIERARCHY, value=f"{names.ROOT_QUEUE}/{path}", why=_ROOTED)
        patch.set("metadata", "annotations", names.HIERARCHY_WEIGHTS, value=f"1/{weights}", why=_ROOTED)
    return Verdict.of(patch)
