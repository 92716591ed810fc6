"""The queue of a namespace for its PodGroups that are in the default queue."""

import msgspec

from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.batch import is_job
from muster.kube.errors import APIError
from webhook.lookup import Namespaces
from webhook.mutate.optin import ANNOTATED, annotated_queue, in_default_queue
from webhook.objects.documents import mapping
from webhook.patch import Patch
from webhook.review import Handler, MalformedError, Verdict, generic


def reviewer(namespaces: Namespaces) -> Handler:
    """Return the handler for PodGroups, on CREATE. That of a Volcano Job stays in the queue where the Job was admitted.

    A namespace that cannot be read changes nothing, as in Volcano: controllers make most PodGroups, and a gang in the
    default queue runs, whereas a refused one keeps the pods of its workload waiting.
    """

    def review(request: AdmissionRequest) -> Verdict:
        try:
            group = generic(request.object)
            metadata = msgspec.convert(mapping(group.get("metadata")), ObjectMeta)
            if is_job(metadata.controller) or not in_default_queue(mapping(group.get("spec")).get("queue")):
                return Verdict()
            queue = annotated_queue(request.namespace, namespaces)
        except (MalformedError, msgspec.ValidationError, APIError):
            return Verdict()  # the API server's schema refuses a malformed one
        patch = Patch(group)
        if queue:
            patch.set("spec", "queue", value=queue, why=ANNOTATED)
        return Verdict.of(patch)

    return review
