"""The creator of a workload, written into it by admission: the user of the request that created it.

The value is the API server's own word. A forged review gains nothing: its patch goes to the forger, and no object is
changed by it. So it is written whether or not API servers show a certificate here.

* A new object gets the name of its sender in place of the name in it, without an error. Manifests that were read from
  a cluster say who created that other object.
* What a controller makes for a user is left as it is. Such a controller names the owner, and its sender is a service
  account of another namespace. The creator is that of the owner, which Muster's controller looks up. The policy
  muster-creators has only controllers say who that is.
* An update that leaves the value out gets it back, where updates are sent here; the policy refuses another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.creator import written
from muster.api.unchecked import find
from muster.workloads.table import KINDS
from webhook.patch import Operation, Patch, Why, pointer
from webhook.review import Handler, MalformedError, ReviewVerdict, generic
from webhook.senders import is_controller

_PLACE: Final = ("metadata", "annotations")
_COPIED: Final = {
    (kind.resource.group, kind.resource.kind): kind.admission.copied for kind in KINDS if kind.admission.copied
}
"""Kubernetes copies the annotations there to each Job of a CronJob; Muster reads no CronJobs."""
_WHY: Final = Why("who created it", "the user of the request")


def signed(handler: Handler) -> Handler:
    """Return the handler with the creator in its patches; an object that it refuses, or of no shape, is left to it."""

    def with_creator(request: AdmissionRequest) -> ReviewVerdict:
        verdict = handler(request)
        if verdict.errors:
            return verdict
        try:
            document = generic(request.object)
            added = list(_added(request, document, verdict.patch))
        except (MalformedError, msgspec.ValidationError):
            return verdict
        if not added:
            return verdict
        return ReviewVerdict(
            patch=[*verdict.patch, *added],
            warnings=verdict.warnings,
            reasons=[*verdict.reasons, *(_WHY for _ in added)],
        )

    return with_creator


def _added(request: AdmissionRequest, document: Mapping[str, Any], patch: Sequence[Operation]) -> Iterator[Operation]:
    """Yield what is added to a patch, which may have made the map of annotations already."""
    creator = _creator(request, document)
    if creator is None:
        return
    made = {operation["path"] for operation in patch}
    for place in dict.fromkeys(((), _COPIED.get((request.kind.group, request.kind.kind), ()))):
        path = (*place, *_PLACE)
        if find(document, (*path, names.CREATED_BY)) == creator:
            continue
        if pointer(*path) in made:
            yield {"op": "add", "path": pointer(*path, names.CREATED_BY), "value": creator}
        else:
            own = Patch(document)
            own.set(*path, names.CREATED_BY, value=creator)
            yield from own.operations


def _creator(request: AdmissionRequest, document: Mapping[str, Any]) -> str | None:
    """Return the value that the object should have; None: it is left as it is."""
    user = request.user_info.username
    if request.operation == "UPDATE":
        before = find(generic(request.old_object), (*_PLACE, names.CREATED_BY))
        return before if isinstance(before, str) else None
    owned = msgspec.convert(document.get("metadata") or {}, ObjectMeta).controller is not None
    if request.operation != "CREATE" or not user or is_controller(request, owned=owned):
        return None
    return written(user)
