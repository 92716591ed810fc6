"""Validation of workloads whose controllers create the pods.

Errors that would later cause the refusal of pods are reported at once. For each template, the owner of the first pod is
checked, in the form in which the workload's controller will create this owner. An update is refused only because of
errors that the update itself adds.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.limits import PODS, whole_number
from muster.api.unchecked import mapping, value_at
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.workloads.adapter import Adapter
from muster.workloads.kind import TEMPLATE, Place, PodContext, WorkloadKind, dotted, pod_templates
from muster.workloads.sample import SamplePod
from muster.workloads.table import KINDS, adapter_for, row_of, source_of, why_no_ranks
from webhook.lookup import Lookups, NamespaceQueues
from webhook.objects.names import unknown_framework, unknown_keys, unusable_queue
from webhook.objects.pools import beyond_every_node, wrong_scheduler
from webhook.review import Handler, MalformedError, ReviewVerdict, generic
from webhook.senders import may_be_controller
from webhook.validate.edits import edits
from webhook.validate.oversights import Labelled, no_service, oversights
from webhook.validate.pod import check_annotations, check_framework, check_pod
from webhook.validate.trials import MAX_TRIED, missing_class

JSON = dict[str, Any]

_OPT_IN = {names.QUEUE, names.FRAMEWORK}
VALIDATED = tuple(kind for kind in KINDS if kind.labelled or kind.no_ranks)
"""Kinds of workloads that the API server sends to this handler."""
_BY_NAME = {(kind.resource.group, kind.resource.kind): kind for kind in VALIDATED}


def reviewer(lookups: Lookups, framework: Framework) -> Handler:
    """Return the handler for workloads, on CREATE and UPDATE."""

    def review(request: AdmissionRequest) -> ReviewVerdict:
        kind = _BY_NAME.get((request.kind.group, request.kind.kind))
        workload = generic(request.object)
        metadata = mapping(workload.get("metadata"))
        if kind is None or metadata.get("deletionTimestamp") or _was_checked(request, metadata):
            return ReviewVerdict()
        usable = lookups.queues_for(request.namespace)
        findings = check_workload(kind, workload, usable, framework)
        if request.operation == "UPDATE":
            old = generic(request.old_object)
            findings = findings.since(check_workload(kind, old, usable, framework))
            findings.add(edits(kind, old, workload, usable))
        elif lookups.services and kind.admission.service_name:
            findings.warnings += no_service(kind, workload, request.namespace, lookups.services)
        if lookups.dry_runs:
            old = generic(request.old_object) if request.operation == "UPDATE" else {}
            new = _priorities(kind, workload) - _priorities(kind, old)
            for path, name in islice(sorted(new), MAX_TRIED):
                findings.errors += missing_class(path, name, request.namespace, lookups.dry_runs)
        return ReviewVerdict.found(findings)

    return review


def _priorities(kind: WorkloadKind, workload: JSON) -> set[tuple[str, str]]:
    """Return the PriorityClasses of the pods that Muster manages, each with its field path."""
    found = set()
    for place, template in pod_templates(workload, kind.templates):
        spec, labels, _ = template_of(template)
        if spec.priority_class_name and not names.opted_out(labels) and labels.keys() & _OPT_IN:
            found.add((f"{dotted(place)}.spec.priorityClassName", spec.priority_class_name))
    return found


def _was_checked(request: AdmissionRequest, metadata: JSON) -> bool:
    """Return True for a part of a workload that a controller has sent, such as a Job of a JobSet.

    A part needs no check, because its workload was already checked. Users can also create objects that name an owner;
    objects from users are checked.
    """
    return row_of(msgspec.convert(metadata, ObjectMeta).controller) is not None and may_be_controller(request)


def check_workload(kind: WorkloadKind, workload: JSON, queues: NamespaceQueues, framework: Framework) -> Findings:
    """Return all distinct errors and warnings about a workload that concern Muster."""
    identity = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind}
    workload = {**workload, **identity, "metadata": mapping(workload.get("metadata"))}
    findings = Findings(warnings=unknown_keys(workload["metadata"]))
    try:
        samples = list(kind.samples(workload)) if kind.samples else []
        templates = [
            _Template(kind, workload, place, template, samples[index] if index < len(samples) else None)
            for index, (place, template) in enumerate(pod_templates(workload, kind.templates))
        ]
        for each in templates:
            findings.add(_check_template(each, queues, framework))
        findings.errors += check_annotations(
            mapping(workload["metadata"].get("annotations")),
            [(each.annotations, f"{each.path}.metadata.annotations", each.count) for each in templates],
        )
        together = {each.place: each.together for each in templates if each.together}
        findings.errors += kind.admission.mistakes(workload, together)
    except msgspec.ValidationError as error:
        raise MalformedError(f"spec: {error}") from error
    return findings.distinct()


def _replica_count(workload: JSON, place: Place) -> int:
    """Return the number of pods at this path; the message of a ValidationError contains the full field path."""
    try:
        count = msgspec.convert(value_at(workload, place), int | None)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"{error} - at `$.{dotted(place)}`") from None
    return 1 if count is None else count


class _Template:
    """One pod template of a workload, with the first pod that is created from it."""

    def __init__(
        self, kind: WorkloadKind, workload: JSON, place: Place, template: Mapping[str, Any], sample: SamplePod | None
    ) -> None:
        self.kind = kind
        self.workload = workload
        self.template = template
        self.place = place
        self.path = dotted(place)
        self.parent = dotted(place[: -len(TEMPLATE)]) if tuple(place[-len(TEMPLATE) :]) == TEMPLATE else ""
        self.sample = sample
        self.spec, self.labels, self.annotations = template_of(template)
        metadata = workload["metadata"]
        self.given_labels = mapping(metadata.get("labels"))
        self.given_annotations = msgspec.convert(metadata.get("annotations") or {}, dict[str, str])
        self.count = _replica_count(workload, kind.admission.count) if kind.admission.count else None

    def where(self, key: str) -> str:
        """Return the path of a label: in the workload if the label was copied from there, otherwise in the template."""
        path = f"metadata.labels[{key}]"
        return path if key in self.given_labels else f"{self.path}.{path}"

    @property
    def managed(self) -> bool:
        """False if Muster ignores the pods of this template."""
        return not names.opted_out(self.labels)

    @property
    def empty(self) -> bool:
        """True if no pod is created from the template.

        An example is the worker template of a LeaderWorkerSet whose groups consist only of a leader.
        """
        return self.kind.samples is not None and self.sample is None

    @property
    def together(self) -> str:
        """The label or annotation that makes the pods start together; empty if the pods start one by one."""
        if not self.managed:
            return ""
        if names.FRAMEWORK in self.labels:
            return names.FRAMEWORK
        given = {**self.given_annotations, **self.annotations}
        return next((key for key in names.MIN_MEMBER_KEYS if (whole_number(given.get(key)) or 1) > 1), "")

    def adapter(self) -> Adapter | None:
        """Return the adapter for the pods; None if the pods have no ranks."""
        if self.sample is None:
            return None
        pod = msgspec.convert(self.sample.pod, Object)
        owner = self.sample.owner or self.workload
        reference = pod.metadata.controller
        if reference is None or why_no_ranks(reference.kind):
            return None
        source = source_of(pod.metadata)
        return adapter_for(msgspec.convert(owner, source.type), PodContext(pod.metadata)) if source else None


def _check_template(given: _Template, queues: NamespaceQueues, framework: Framework) -> Findings:
    findings = Findings(
        warnings=unknown_keys(given.template.get("metadata"), f"{given.path}.metadata", given.given_labels)
    )
    findings.errors += check_pod(given.annotations, given.spec, f"{given.path}.")
    if given.managed:
        findings.add(oversights(Labelled(given.workload, given.place, given.path, given.template), queues))
    if names.QUEUE in given.labels and given.managed:
        queue = given.labels[names.QUEUE]
        findings.errors += unusable_queue(given.where(names.QUEUE), queue, queues)
        findings.errors += wrong_scheduler(f"{given.path}.spec.schedulerName", given.spec.scheduler_name, queue, queues)
        findings.warnings += beyond_every_node(f"{given.path}.spec", given.spec, queue, queues)
    adapter = None
    if names.FRAMEWORK in given.labels and given.managed:
        path, name = given.where(names.FRAMEWORK), given.labels[names.FRAMEWORK]
        findings.errors += unknown_framework(path, name, framework)
        adapter = given.adapter()
        if adapter is None:
            findings.errors += [] if given.empty else [FieldError(path, _no_ranks(given), name)]
            return findings
        findings.errors += _below(given.parent, adapter.errors())
        if adapter.size() <= PODS.value:  # a larger one is refused already: its hosts need not be listed
            findings.add(check_framework(given.template, given.path, adapter, given.given_annotations, framework))
    findings.errors += _check_minimum(given, adapter)
    return findings


def _check_minimum(given: _Template, adapter: Adapter | None) -> list[FieldError]:
    """Check that the gang's minimum does not exceed its number of pods, if known.

    The minimum is set in the template, or else in the workload.
    """
    text = {**given.given_annotations, **given.annotations}.get(names.MIN_MEMBER)
    most, source = adapter.size() if adapter else None, "all pods"
    if given.count is not None:
        most, source = given.count, dotted(given.kind.admission.count)
    if text is None or whole_number(text, min(most or PODS.value, PODS.value)):
        return []
    annotation = f"metadata.annotations[{names.MIN_MEMBER}]"
    where = f"{given.path}.{annotation}" if names.MIN_MEMBER in given.annotations else annotation
    return [FieldError(where, f"must be a number {f'from 1 to {most} ({source})' if most else 'of at least 1'}", text)]


def _no_ranks(given: _Template) -> str:
    owner = given.sample.owner if given.sample else None
    kind = str(owner["kind"]) if owner else given.kind.resource.kind
    return why_no_ranks(kind) or f"requires pods with ranks, and the pods of a {kind} have none"


def _below(parent: str, errors: Sequence[FieldError]) -> Iterator[FieldError]:
    """Yield errors in an object that the workload creates, with paths of the workload's own fields."""
    for error in errors:
        path = f"{parent}.{error.path}" if parent else error.path
        yield FieldError(path, error.message, error.value, error.reason)
