"""A PodGroup in the default queue goes to the queue that its namespace names, if that names one."""

from collections.abc import Mapping
from typing import Any

from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.volcano.batch import JOBS
from muster.kube.errors import APIError
from webhook.lookup import Namespaces
from webhook.mutate.optin import ANNOTATED, annotated_queue, in_default_queue
from webhook.objects.documents import mapping
from webhook.patch import Patch
from webhook.review import Handler, MalformedError, Verdict, generic


def reviewer(namespaces: Namespaces) -> Handler:
    """The handler for PodGroups, on CREATE. That of a Volcano Job stays in the queue where the Job was admitted.

    A namespace that cannot be read changes nothing, as in Volcano: most groups are made by controllers, and a gang in
    the default queue runs, whereas one that is refused keeps the pods of its workload waiting.
    """

    def review(request: AdmissionRequest) -> Verdict:
        try:
            group = generic(request.object)
            spec, metadata = mapping(group.get("spec")), mapping(group.get("metadata"))
            if _of_a_job(metadata) or not in_default_queue(spec.get("queue")):
                return Verdict()
            queue = annotated_queue(request.namespace, namespaces)
        except (MalformedError, APIError):
            return Verdict()  # the API server says what is wrong with a malformed one
        if not queue:
            return Verdict()
        patch = Patch(group)
        patch.set("spec", "queue", value=queue, why=ANNOTATED)
        return Verdict(patch=patch.operations, reasons=patch.reasons)

    return review


def _of_a_job(metadata: Mapping[str, Any]) -> bool:
    """Whether a Volcano Job is its controller."""
    owners = metadata.get("ownerReferences")
    return any(
        owner.get("controller") is True
        and owner.get("kind") == JOBS.kind
        and str(owner.get("apiVersion")).startswith(f"{JOBS.group}/")
        for owner in map(mapping, owners if isinstance(owners, list) else [])
    )
