"""The creator of a workload, which admission writes into the workload: the user who sent the creating request.

The API server reports the name of the creator in the review. A forged review has no effect, because the patch is
returned to the forger and changes no object. The creator is therefore written even if the API server presents no
certificate.

* A new object gets the name of its sender, which replaces an existing creator without an error. A manifest that was
  exported from a cluster contains the creator of the original object.
* An object that a controller creates for a user is not changed. An object of a controller names its owner, and its
  sender is a service account of another namespace. The creator of a controller's object is the creator of its owner,
  which Muster's controller looks up. The policy muster-creators allows only controllers to set the creator.
* The annotations of a move and of a hold are removed from a new object: in a copied manifest, they refer to the
  original object.
* If an update omits the creator, the creator is restored, provided that updates are sent to the webhook. The policy
  refuses an update with a different creator.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.creator import written
from muster.api.unchecked import value_at
from muster.api.volcano.batch import is_job
from muster.workloads.table import KINDS
from webhook.patch import Operation, Patch, Why, pointer
from webhook.review import Handler, MalformedError, ReviewVerdict, generic
from webhook.senders import is_controller

_PLACE: Final = ("metadata", "annotations")
_COPIED: Final = {
    (kind.resource.group, kind.resource.kind): kind.admission.copied for kind in KINDS if kind.admission.copied
}
"""Maps a kind, such as CronJob, to the path of the metadata that Kubernetes copies to each of its Jobs. The creator is
also written into this metadata, because Muster does not manage CronJobs themselves."""
_WHY: Final = Why("who created it", "the user of the request")
_CHANGED: Final = Why("who changed it", "the user of the request")
_OF_ANOTHER: Final = (names.MOVED_TO, names.HELD_REPLICAS)
_COPY: Final = Why("this annotation is about the object that was copied", "a new object")


def signed(handler: Handler) -> Handler:
    """Return a handler that wraps `handler` and adds the creator to its patches.

    No creator is added to an object that is refused or malformed.
    """

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
            reasons=[*verdict.reasons, *(_COPY if each["op"] == "remove" else _WHY for each in added)],
        )

    return with_creator


def note_user(request: AdmissionRequest) -> ReviewVerdict:
    """Write the user who moves a PodGroup or changes its PriorityClass into the PodGroup, for the history."""
    try:
        document = generic(request.object)
        owner = msgspec.convert(document.get("metadata") or {}, ObjectMeta).controller
    except (MalformedError, msgspec.ValidationError):
        return ReviewVerdict()
    patch, user = Patch(document), request.user_info.username
    if not is_controller(request, owned=owner is not None):
        set_changed_by(patch, user)
    elif not is_job(owner):
        set_changed_by(patch, "")
    return ReviewVerdict.admitted_with(patch)


def set_changed_by(patch: Patch, user: str) -> None:
    """Write the name of the user who changes an object into the object; "" for an unknown user."""
    patch.set(*_PLACE, names.CHANGED_BY, value=written(user), why=_CHANGED)


def _added(request: AdmissionRequest, document: Mapping[str, Any], patch: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations that record the creator, which are appended to a handler's patch.

    The handler's patch may already have created the map of annotations.
    """
    creator = _creator(request, document)
    if creator is None:
        return
    made = {operation["path"] for operation in patch}
    for place in dict.fromkeys(((), _COPIED.get((request.kind.group, request.kind.kind), ()))):
        path = (*place, *_PLACE)
        copied = (key for key in _OF_ANOTHER if value_at(document, (*path, key)) is not None)
        for key in copied if request.operation == "CREATE" else ():
            yield {"op": "remove", "path": pointer(*path, key)}
        if value_at(document, (*path, names.CREATED_BY)) == creator:
            continue
        if pointer(*path) in made:
            yield {"op": "add", "path": pointer(*path, names.CREATED_BY), "value": creator}
        else:
            own = Patch(document)
            own.set(*path, names.CREATED_BY, value=creator)
            yield from own.operations


def _creator(request: AdmissionRequest, document: Mapping[str, Any]) -> str | None:
    """Return the creator that the object should name; None to leave the object unchanged."""
    user = request.user_info.username
    if request.operation == "UPDATE":
        before = value_at(generic(request.old_object), (*_PLACE, names.CREATED_BY))
        return before if isinstance(before, str) else None
    owned = msgspec.convert(document.get("metadata") or {}, ObjectMeta).controller is not None
    if request.operation != "CREATE" or not user or is_controller(request, owned=owned):
        return None
    return written(user)
