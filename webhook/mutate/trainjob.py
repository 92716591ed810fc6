"""Mutation of TrainJobs, which adds timestamps to runtime patches, the namespace's queue, and the runtime's version."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta, format_time
from muster.kube.errors import APIError
from webhook.lookup import Namespaces, TrainingRuntimes
from webhook.mutate import optin
from webhook.patch import Patch, Why
from webhook.review import Handler, MalformedError, ReviewVerdict, generic

JSON = dict[str, Any]
_PATCHES = "runtimePatches"


def reviewer(namespaces: Namespaces, runtimes: TrainingRuntimes, wall_s: Callable[[], float]) -> Handler:
    """Return the handler for TrainJobs, on CREATE and UPDATE. The schema check refuses malformed objects later."""

    def review(request: AdmissionRequest) -> ReviewVerdict:
        try:
            job = generic(request.object)
            old = generic(request.old_object) if request.operation == "UPDATE" else {}
            patch, meta, warnings = Patch(job), _meta(job), list[str]()
            if names.LAST_APPLIED not in meta.annotations:  # else `kubectl apply` would find a change each time
                stamp(job, old, format_time(wall_s()), patch)
            if old:
                _keep_version(meta, _meta(old), patch)
            else:
                warnings = _inherit(meta, request.namespace, namespaces, patch)
                _note_version(job, request.namespace, runtimes, patch)
        except (MalformedError, msgspec.ValidationError):
            return ReviewVerdict()
        return ReviewVerdict.admitted_with(patch, warnings)

    return review


def stamp(job: JSON, old: JSON, now: str, patch: Patch) -> None:
    """Set the time of changed patches, and of new patches without a time, to now; restore it in unchanged patches."""
    before = {_manager(entry): entry for entry in _patches(old)}
    for index, entry in enumerate(_patches(job)):
        known = before.get(_manager(entry))
        if known is None:
            wanted = entry.get("time") or now
        else:
            wanted = known.get("time") or now if _content(known) == _content(entry) else now
        if entry.get("time") != wanted:
            why = Why("when the patch was last changed", "Muster")
            patch.set("spec", _PATCHES, index, "time", value=wanted, why=why)


def _inherit(meta: ObjectMeta, namespace: str, namespaces: Namespaces, patch: Patch) -> list[str]:
    """Set the namespace's queue in a TrainJob that names no queue, or whose namespace is locked to its queue.

    Return warnings.
    """
    own = optin.from_labels(meta.labels)
    if own:
        opt_in = optin.from_lock(namespace, own, namespaces)
    elif optin.is_explicit(meta.labels):
        return []
    else:
        opt_in = optin.from_namespace(namespace, namespaces.metadata(namespace).labels)
    if opt_in:
        why = Why("the queue of its namespace", opt_in.path)
        patch.set("metadata", "labels", names.QUEUE, value=opt_in.queue, why=why)
    return [optin.set_back(own.path, own.queue, opt_in.queue)] if own and opt_in else []


def _note_version(job: JSON, namespace: str, runtimes: TrainingRuntimes, patch: Patch) -> None:
    """Record the runtime version against which a new TrainJob is checked.

    A missing runtime is no error here, because validation reports it.
    """
    reference = msgspec.convert(msgspec.convert(job.get("spec") or {}, JSON).get("runtimeRef") or {}, RuntimeRef)
    try:
        runtime = runtimes.find(reference, namespace)
    except APIError:
        return
    if runtime and runtime.metadata.uid:
        value = f"{runtime.metadata.uid}/{runtime.metadata.resource_version}"
        why = Why("the version of the runtime that was checked", "spec.runtimeRef")
        patch.set("metadata", "annotations", names.RUNTIME_VERSION, value=value, why=why)


def _keep_version(meta: ObjectMeta, old: ObjectMeta, patch: Patch) -> None:
    """Restore the recorded version in an update that omits or changes it."""
    before = old.annotations.get(names.RUNTIME_VERSION)
    if before and meta.annotations.get(names.RUNTIME_VERSION) != before and not meta.deletion_timestamp:
        why = Why("its value at creation", "Muster")
        patch.set("metadata", "annotations", names.RUNTIME_VERSION, value=before, why=why)


def _meta(job: JSON) -> ObjectMeta:
    return msgspec.convert(job.get("metadata") or {}, ObjectMeta)


def _patches(job: JSON) -> list[JSON]:
    spec = msgspec.convert(job.get("spec") or {}, JSON)
    return msgspec.convert(spec.get(_PATCHES) or [], list[JSON])


def _manager(entry: JSON) -> str:
    return msgspec.convert(entry.get("manager"), str)


def _content(entry: Mapping[str, Any]) -> JSON:
    return {key: value for key, value in entry.items() if key != "time"}
