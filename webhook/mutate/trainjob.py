"""Stamps of a TrainJob's runtime patches, the queue of its namespace, and the version of its runtime."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta, format_time
from muster.kube.errors import APIError
from webhook.lookup import Namespaces, Runtimes
from webhook.mutate import optin
from webhook.patch import Patch, Why
from webhook.review import Handler, MalformedError, Verdict, generic

JSON = dict[str, Any]
_PATCHES = "runtimePatches"


def reviewer(namespaces: Namespaces, runtimes: Runtimes, wall_s: Callable[[], float]) -> Handler:
    """The handler for TrainJobs, on CREATE and UPDATE; `wall_s` gives seconds since the epoch.

    An object that does not have a TrainJob's shape is let through unchanged: the API server's schema names every wrong
    field next.
    """

    def review(request: AdmissionRequest) -> Verdict:
        try:
            job = generic(request.object)
            old = generic(request.old_object) if request.operation == "UPDATE" else {}
            patch = Patch(job)
            stamp(job, old, format_time(wall_s()), patch)
            if not old:
                _inherit(job, request.namespace, namespaces, patch)
            _note_version(job, old, request.namespace, runtimes, patch)
        except (MalformedError, msgspec.ValidationError):
            return Verdict()
        return Verdict(patch=patch.operations, reasons=patch.reasons)

    return review


def stamp(job: JSON, old: JSON, now: str, patch: Patch) -> None:
    """Sets `time` where a patch is new and has none, where it has changed, and back where it has not."""
    before = {_manager(entry): entry for entry in _patches(old)}
    for index, entry in enumerate(_patches(job)):
        known = before.get(_manager(entry))
        if known is None:
            wanted = entry.get("time") or now
        else:
            wanted = known.get("time") or now if _content(known) == _content(entry) else now
        if entry.get("time") != wanted:
            patch.set(
                "spec", _PATCHES, index, "time", value=wanted, why=Why("when the patch was last changed", "Muster")
            )


def _inherit(job: JSON, namespace: str, namespaces: Namespaces, patch: Patch) -> None:
    """Gives a TrainJob that is not explicit the queue of its namespace."""
    meta = msgspec.convert(job.get("metadata") or {}, ObjectMeta)
    if optin.is_explicit(meta.labels):
        return
    opt_in = optin.from_namespace(namespace, namespaces.labels(namespace, with_queue=False))
    if opt_in:
        why = Why("the queue of its namespace", opt_in.path)
        patch.set("metadata", "labels", names.QUEUE, value=opt_in.queue, why=why)


def _note_version(job: JSON, old: JSON, namespace: str, runtimes: Runtimes, patch: Patch) -> None:
    """Notes which version of the runtime a new TrainJob meets, as that is the one it will run with; later it stays.

    A runtime that cannot be read is left to validation to complain of.
    """
    meta = msgspec.convert(job.get("metadata") or {}, ObjectMeta)
    noted = meta.annotations.get(names.RUNTIME_VERSION)
    if old:
        before = msgspec.convert(old.get("metadata") or {}, ObjectMeta).annotations.get(names.RUNTIME_VERSION)
        if before and noted != before and not meta.deletion_timestamp:
            why = Why("what it was created with", "Muster")
            patch.set("metadata", "annotations", names.RUNTIME_VERSION, value=before, why=why)
        return
    reference = msgspec.convert(msgspec.convert(job.get("spec") or {}, JSON).get("runtimeRef") or {}, RuntimeRef)
    try:
        runtime = runtimes.find(reference, namespace)
    except APIError:
        return
    if runtime and runtime.metadata.uid:
        value = f"{runtime.metadata.uid}/{runtime.metadata.resource_version}"
        why = Why("the version of the runtime that was checked", "spec.runtimeRef")
        patch.set("metadata", "annotations", names.RUNTIME_VERSION, value=value, why=why)


def _patches(job: JSON) -> list[JSON]:
    spec = msgspec.convert(job.get("spec") or {}, JSON)
    return msgspec.convert(spec.get(_PATCHES) or [], list[JSON])


def _manager(entry: JSON) -> str:
    return msgspec.convert(entry.get("manager"), str)


def _content(entry: Mapping[str, Any]) -> JSON:
    return {key: value for key, value in entry.items() if key != "time"}
