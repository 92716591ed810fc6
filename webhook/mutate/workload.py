"""A workload that opts in to Muster, or whose namespace does: its labels go to its pods, where Muster sees them."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.workloads.batch_job import BATCH_JOB
from muster.workloads.table import KINDS
from muster.workloads.templates import Path, pod_templates
from webhook.lookup import Namespaces
from webhook.mutate import optin
from webhook.patch import Patch, Why
from webhook.review import Handler, Verdict, generic

JSON = Mapping[str, Any]

LABELLED = tuple(kind for kind in KINDS if kind.labelled)
"""The kinds that are sent here."""
_BY_NAME = {(kind.resource.group, kind.resource.kind): kind for kind in LABELLED}


def reviewer(namespaces: Namespaces) -> Handler:
    """The handler for workloads, on CREATE.

    Only a Job takes the queue of its namespace here, so that it is refused as a whole where that queue does not exist;
    for the others their pods do.
    """

    def review(request: AdmissionRequest) -> Verdict:
        kind = _BY_NAME.get((request.kind.group, request.kind.kind))
        if kind is None:
            return Verdict()
        workload = generic(request.object)
        inherited: Mapping[str, str] = {}
        if kind is BATCH_JOB:
            inherited = namespaces.labels(request.namespace, with_queue=not _says_something(workload))
        patch = labelled(workload, kind.templates, inherited)
        return Verdict(patch=patch.operations, reasons=patch.reasons)

    return review


def labelled(
    workload: JSON, paths: Iterable[Path] = BATCH_JOB.templates, inherited: Mapping[str, str] | None = None
) -> Patch:
    """The workload's labels, brought to its templates, or else the queue of its namespace (`inherited`)."""
    patch = Patch(workload)
    labels = _labels(workload)
    said = {key: labels[key] for key in (names.QUEUE, names.MANAGED) if key in labels}
    opt_in = None if optin.is_explicit(labels) else optin.from_namespace("", inherited or {})
    for place, template in pod_templates(workload, paths):
        there = _labels(template)
        wanted = {} if optin.is_explicit(there) else dict(said)
        if opt_in and not optin.is_explicit(there) and _may_inherit(template):
            wanted[names.QUEUE] = opt_in.queue
        if names.FRAMEWORK in labels:
            wanted[names.FRAMEWORK] = labels[names.FRAMEWORK]
        for key, value in wanted.items():
            if key not in there:
                source = f"metadata.labels[{key}]" if key in labels else "namespace"
                patch.set(*place, "metadata", "labels", key, value=value, why=Why("so that its pods have it", source))
    return patch


def _says_something(workload: JSON) -> bool:
    """Whether there is another reason than its namespace to send us this workload."""
    spoken = [_labels(workload), *(_labels(template) for _, template in pod_templates(workload, BATCH_JOB.templates))]
    return any(key in labels for labels in spoken for key in (names.QUEUE, names.FRAMEWORK, names.MANAGED))


def _may_inherit(template: JSON) -> bool:
    """As for a pod of this template, as far as the template tells."""
    try:
        meta = msgspec.convert(template.get("metadata") or {}, ObjectMeta)
        spec = msgspec.convert(template.get("spec") or {}, dict[str, Any])
    except msgspec.ValidationError:
        return False
    return optin.may_inherit(spec, meta)


def _labels(node: JSON) -> dict[str, str]:
    metadata = node.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels if isinstance(labels, dict) else {}
