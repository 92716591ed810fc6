"""Mutation of workloads that opt in to Muster by their own label or through their namespace.

The labels are copied to the workload's pod templates.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.unchecked import mapping, value_at
from muster.volcano.access import locked_to
from muster.workloads.kind import Place, WorkloadKind, pod_templates, with_templates
from muster.workloads.table import KINDS
from webhook.lookup import Namespaces
from webhook.mutate import optin
from webhook.patch import Patch, Why, pointer
from webhook.review import Handler, ReviewVerdict, generic

JSON = Mapping[str, Any]

LABELLED = tuple(kind for kind in KINDS if kind.labelled)
"""Kinds of workloads that the API server sends to this handler."""
_BY_NAME = {(kind.resource.group, kind.resource.kind): kind for kind in LABELLED}


def reviewer(namespaces: Namespaces) -> Handler:
    """Return the handler for workloads, on CREATE."""

    def review(request: AdmissionRequest) -> ReviewVerdict:
        kind = _BY_NAME.get((request.kind.group, request.kind.kind))
        if kind is None:
            return ReviewVerdict()
        workload = generic(request.object)
        own_queue, patch = kind.admission.own_queue, Patch(workload)
        with_queue = own_queue and not _has_own_label(workload, kind)
        of_namespace = namespaces.metadata(request.namespace, with_queue=with_queue).labels
        locked = locked_to(of_namespace)
        warnings = _set_back(workload, kind, locked, patch)
        _label(workload, kind, of_namespace if own_queue else {}, locked, patch)
        opting_in = list(_opting_in(workload, kind, patch))
        if opting_in:
            for place, value, reason, source in kind.admission.additions(workload):
                patch.set(*place, value=value, why=Why(reason, source))
            warnings += kind.admission.warnings(workload, opting_in)
        return ReviewVerdict.admitted_with(patch, warnings)

    return review


def _set_back(workload: JSON, kind: WorkloadKind, locked: str, patch: Patch) -> list[str]:
    """Replace queues in workload and templates by the queue to which the namespace is locked; return warnings."""
    warnings = []
    for place, node in with_templates(workload, kind.templates):
        labels, path = _labels(node), (*place, "metadata", "labels")
        if locked and labels.get(names.QUEUE, locked) != locked and not names.opted_out(labels):
            why = Why("the namespace is locked to its queue", f"label {names.QUEUE_LOCKED}")
            patch.set(*path, names.QUEUE, value=locked, why=why)
            warnings.append(optin.set_back(f"{'.'.join(map(str, path))}[{names.QUEUE}]", labels[names.QUEUE], locked))
    return warnings


def _label(workload: JSON, kind: WorkloadKind, inherited: Mapping[str, str], locked: str, patch: Patch) -> None:
    """Copy the workload's labels to its pod templates.

    If the workload itself does not opt in or out, copy the queue from the namespace's labels (`inherited`).
    """
    labels = _labels(workload)
    own = {key: labels[key] for key in (names.QUEUE, names.MANAGED) if key in labels}
    if locked and names.QUEUE in own:
        own[names.QUEUE] = locked
    opt_in = None if optin.is_explicit(labels) else optin.from_namespace("", inherited)
    for place, template in pod_templates(workload, kind.templates):
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


def _has_own_label(workload: JSON, kind: WorkloadKind) -> bool:
    """Return True if the workload is reviewed because of its own label, not only because of its namespace."""
    given = (_labels(node) for _, node in with_templates(workload, kind.templates))
    return any(not labels.keys().isdisjoint((names.QUEUE, names.FRAMEWORK, names.MANAGED)) for labels in given)


def _opting_in(workload: JSON, kind: WorkloadKind, patch: Patch) -> Iterator[Place]:
    """Yield the paths of the templates for pods that Muster will schedule."""
    set_now = {operation["path"] for operation in patch.operations}
    for place, template in pod_templates(workload, kind.templates):
        labels = _labels(template)
        queued = names.QUEUE in labels or pointer(*place, "metadata", "labels", names.QUEUE) in set_now
        if queued and not names.opted_out(labels):
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
    return mapping(value_at(node, ("metadata", "labels")))
