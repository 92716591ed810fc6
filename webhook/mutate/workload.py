"""A workload that opts in to Muster, or whose namespace does: its labels go to its pods, where Muster sees them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.meta import ObjectMeta
from webhook.lookup import Namespaces
from webhook.mutate import optin
from webhook.patch import Part, Patch, Why
from webhook.review import Handler, Verdict, generic

JSON = Mapping[str, Any]
Path = tuple[str, ...]


class Kind(NamedTuple):
    """A kind of workloads and where its pod templates are; `*` stands for each element of a list or map."""

    group: str
    version: str
    plural: str
    kind: str
    path: Path = ("spec", "template")


JOB = Kind("batch", "v1", "jobs", "Job")
OTHERS = (
    Kind("batch", "v1", "cronjobs", "CronJob", ("spec", "jobTemplate", "spec", "template")),
    Kind("apps", "v1", "deployments", "Deployment"),
    Kind("apps", "v1", "statefulsets", "StatefulSet"),
    Kind(
        "jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet",
        ("spec", "replicatedJobs", "*", "template", "spec", "template"),
    ),
    Kind(
        "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet",
        ("spec", "leaderWorkerTemplate", "*"),
    ),
)  # fmt: skip
_KINDS = {(kind.group, kind.kind): kind for kind in (JOB, *OTHERS)}
_TEMPLATE_MEMBERS = ("leaderTemplate", "workerTemplate")


def reviewer(namespaces: Namespaces) -> Handler:
    """The handler for workloads, on CREATE.

    Only a Job takes the queue of its namespace here, so that it is refused as a whole where that queue does not exist;
    for the others their pods do.
    """

    def review(request: AdmissionRequest) -> Verdict:
        kind = _KINDS.get((request.kind.group, request.kind.kind))
        if kind is None:
            return Verdict()
        workload = generic(request.object)
        inherited: Mapping[str, str] = {}
        if kind is JOB:
            inherited = namespaces.labels(request.namespace, with_queue=not _says_something(workload))
        patch = labelled(workload, kind.path, inherited)
        return Verdict(patch=patch.operations, reasons=patch.reasons)

    return review


def labelled(workload: JSON, path: Path = JOB.path, inherited: Mapping[str, str] | None = None) -> Patch:
    """The workload's labels, brought to its templates, or else the queue of its namespace (`inherited`)."""
    patch = Patch(workload)
    labels = _labels(workload)
    said = {key: labels[key] for key in (names.QUEUE, names.MANAGED) if key in labels}
    opt_in = None if optin.is_explicit(labels) else optin.from_namespace("", inherited or {})
    for place, template in _templates(workload, path):
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
    spoken = [_labels(workload), *(_labels(template) for _, template in _templates(workload, JOB.path))]
    return any(key in labels for labels in spoken for key in (names.QUEUE, names.FRAMEWORK, names.MANAGED))


def _may_inherit(template: JSON) -> bool:
    """As for a pod of this template, as far as the template tells."""
    try:
        meta = msgspec.convert(template.get("metadata") or {}, ObjectMeta)
        spec = msgspec.convert(template.get("spec") or {}, dict[str, Any])
    except msgspec.ValidationError:
        return False
    return optin.may_inherit(spec, meta)


def _templates(
    node: Any, path: tuple[str, ...], place: tuple[Part, ...] = ()
) -> Iterator[tuple[tuple[Part, ...], JSON]]:
    """The templates below a node, and where they stand. What has another shape is the API server's to refuse."""
    if not path:
        if isinstance(node, Mapping):
            yield place, node
    elif path[0] == "*" and isinstance(node, list):
        for index, element in enumerate(node):
            yield from _templates(element, path[1:], (*place, index))
    elif path[0] == "*" and isinstance(node, Mapping):
        for name in _TEMPLATE_MEMBERS:
            if name in node:
                yield from _templates(node[name], path[1:], (*place, name))
    elif isinstance(node, Mapping) and node.get(path[0]) is not None:
        yield from _templates(node[path[0]], path[1:], (*place, path[0]))


def _labels(node: JSON) -> dict[str, str]:
    metadata = node.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels if isinstance(labels, dict) else {}
