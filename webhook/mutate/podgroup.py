"""A PodGroup in the default queue goes to the queue that its namespace names, if that names one."""

from muster.api import names
from muster.api.admission import AdmissionRequest
from webhook.lookup import Namespaces
from webhook.mutate.queue import mapping
from webhook.patch import Patch, Why
from webhook.review import Handler, MalformedError, Verdict, generic


def reviewer(namespaces: Namespaces) -> Handler:
    """The handler for PodGroups, on CREATE. A workload's own group is left alone: its workload names the queue."""

    def review(request: AdmissionRequest) -> Verdict:
        try:
            group = generic(request.object)
        except MalformedError:
            return Verdict()  # the API server says what is wrong with it
        spec, metadata = mapping(group.get("spec")), mapping(group.get("metadata"))
        if metadata.get("ownerReferences") or (spec.get("queue") or names.DEFAULT_QUEUE) != names.DEFAULT_QUEUE:
            return Verdict()
        queue = namespaces.annotations(request.namespace).get(names.VOLCANO_QUEUE)
        if not queue:
            return Verdict()
        patch = Patch(group)
        why = Why("the queue of its namespace", f"annotation {names.VOLCANO_QUEUE}")
        patch.set("spec", "queue", value=queue, why=why)
        return Verdict(patch=patch.operations, reasons=patch.reasons)

    return review
