"""A batch/v1 Job that asks for Muster: its labels go to its pods, where Muster sees them."""

from typing import Any

from muster.api import names
from muster.api.admission import AdmissionRequest
from webhook.patch import Operation, Patch
from webhook.review import Verdict, generic

COPIED = (names.QUEUE, names.FRAMEWORK)


def review(request: AdmissionRequest) -> Verdict:
    """Copies labels on CREATE."""
    return Verdict(patch=copy_labels(generic(request.object)))


def copy_labels(job: dict[str, Any]) -> list[Operation]:
    """Operations that copy our labels from the Job's metadata to its pod template; what stands there already stays."""
    patch = Patch(job)
    labels = (job.get("metadata") or {}).get("labels") or {}
    template = (job.get("spec") or {}).get("template") or {}
    there = (template.get("metadata") or {}).get("labels") or {}
    for key in COPIED:
        if key in labels and key not in there:
            patch.set("spec", "template", "metadata", "labels", key, value=labels[key])
    return patch.operations
