"""A workload that opts in to Muster, or whose namespace does: its labels go to its pods, where Muster sees them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.unchecked import find, mapping
from muster.volcano.access import locked_to
from muster.workloads.kind import TEMPLATE, Path, Place, WorkloadKind, pod_templates
from muster.workloads.table import KINDS
from webhook.lookup import Namespaces
from webhook.mutate import optin
from webhook.patch import Patch, Why, pointer
from webhook.review import Handler, Verdict, generic

JSON = Mapping[str, Any]

LABELLED = tuple(kind for kind in KINDS if kind.labelled)
"""The kinds that the API server sends here."""
_BY_NAME = {(kind.resource.group, kind.resource.kind): kind for kind in LABELLED}


def reviewer(namespaces: Namespaces) -> Handler:
    """Return the handler for workloads, on CREATE."""

    def review(request: AdmissionRequest) -> Verdict:
        kind = _BY_NAME.get((request.kind.group, request.kind.kind))
        if kind is None:
            return Verdict()
        workload = generic(request.object)
        own_queue = kind.admission.own_queue
        with_queue = own_queue and not _has_own_label(workload, kind)
        of_namespace = namespaces.metadata(request.namespace, with_queue=with_queue).labels
        inherited = of_namespace if own_queue else {}
        locked = locked_to(of_namespace)
        patch = labelled(workload, kind.templates, inherited, locked)
        warnings = [optin.set_back(path, queue, locked) for path, queue in _said(workload, kind, locked)]
        opting_in = list(_opting_in(workload, kind, patch))
        if opting_in:
            for place, value, reason, source in kind.admission.additions(workload):
                patch.set(*place, value=value, why=Why(reason, source))
            warnings += kind.admission.warnings(workload, opting_in)
        return Verdict.of(patch, warnings)

    return review


def labelled(
    workload: JSON,
    paths: Iterable[Path] = (TEMPLATE,),
    inherited: Mapping[str, str] | None = None,
    locked: str = "",
) -> Patch:
    """Copy the workload's labels to its templates, or else the queue in the namespace's labels (`inherited`).

    Other queues than the one that the namespace is locked to, if it is, are set back to that.
    """
    patch, paths = Patch(workload), list(paths)
    for place, _ in _others(workload, paths, locked):
        why = Why("the namespace is locked to its queue", f"label {names.QUEUE_LOCKED}")
        patch.set(*place, "metadata", "labels", names.QUEUE, value=locked, why=why)
    labels = _labels(workload)
    own = {key: labels[key] for key in (names.QUEUE, names.MANAGED) if key in labels}
    if locked and names.QUEUE in own:
        own[names.QUEUE] = locked
    opt_in = None if optin.is_explicit(labels) else optin.from_namespace("", inherited or {})
    for place, template in pod_templates(workload, paths):
        there = _labels(template)
        wanted = {} if optin.is_explicit(there) else dict(own)
        if opt_in and not optin.is_explicit(there) and _may_inherit(template):
            wanted[names.QUEUE] = opt_in.queue
        if names.FRAMEWORK in labels:
            wanted[names.FRAMEWORK] = labels[names.FRAMEWORK]
        for key, value in wanted.items():
            if key not in there:
                source = f"metadata.labels[{key}]" if key in labels else "namespace"
                patch.set(*place, "metadata", "labels", key, value=value, why=Why("so that its pods have it", source))
    return patch


def _others(workload: JSON, paths: Iterable[Path], locked: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield places of the workload and its templates that name another queue than the locked one, with that queue."""
    for place, node in ((), workload), *pod_templates(workload, paths):
        labels = _labels(node)
        if locked and labels.get(names.QUEUE, locked) != locked and not optin.opted_out(labels):
            yield tuple(place), labels[names.QUEUE]


def _said(workload: JSON, kind: WorkloadKind, locked: str) -> Iterator[tuple[str, str]]:
    """Yield the same with the path of the label."""
    for place, queue in _others(workload, kind.templates, locked):
        steps = ".".join(map(str, (*place, "metadata", "labels")))
        yield f"{steps}[{names.QUEUE}]", queue


def _has_own_label(workload: JSON, kind: WorkloadKind) -> bool:
    """Return True if the workload is sent for a label of its own, and not only for its namespace."""
    nodes = [workload, *(template for _, template in pod_templates(workload, kind.templates))]
    return any(key in _labels(node) for node in nodes for key in (names.QUEUE, names.FRAMEWORK, names.MANAGED))


def _opting_in(workload: JSON, kind: WorkloadKind, patch: Patch) -> Iterator[Place]:
    """Yield the places of templates whose pods will be Muster's."""
    set_now = {operation["path"] for operation in patch.operations}
    for place, template in pod_templates(workload, kind.templates):
        labels = _labels(template)
        queued = names.QUEUE in labels or pointer(*place, "metadata", "labels", names.QUEUE) in set_now
        if queued and not optin.opted_out(labels):
            yield place


def _may_inherit(template: JSON) -> bool:
    """Return True if a pod of this template may get the queue of its namespace."""
    try:
        meta = msgspec.convert(template.get("metadata") or {}, ObjectMeta)
        spec = msgspec.convert(template.get("spec") or {}, dict[str, Any])
    except msgspec.ValidationError:
        return False
    return optin.may_inherit(spec, meta)


def _labels(node: JSON) -> dict[str, str]:
    return mapping(find(node, ("metadata", "labels")))
