"""Checks of changes to existing workloads that have no effect or do harm.

The messages name the `muster` command to use instead. A workload's labels and annotations are copied to its pods when
the pods are created, so later changes do not reach existing pods.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.apps import STATEFUL_SETS
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.unchecked import mapping, value_at
from muster.kube.errors import APIError
from muster.workloads.kind import WorkloadKind, dotted
from muster.workloads.table import row
from muster.workloads.verbs import is_held, size_edits
from webhook.lookup import Lookups, NamespaceQueues
from webhook.objects.names import unusable_queue
from webhook.review import Handler, ReviewVerdict, generic

JSON = Mapping[str, Any]
_MOVED = ("metadata", "annotations", names.MOVED_TO)


def edits(kind: WorkloadKind, old: JSON, new: JSON, queues: NamespaceQueues) -> Findings:
    """Return the errors and warnings about a change of a workload, in addition to the checks of new workloads."""
    found = Findings([*fixed_sizes(kind, old, new)])
    moved = value_at(new, _MOVED)
    if isinstance(moved, str) and moved != value_at(old, _MOVED):
        found.errors += unusable_queue(f"metadata.annotations[{names.MOVED_TO}]", moved, queues)
    found.warnings += unmoved(kind, old, new)
    if kind.verbs and not is_held(kind, old) and not kind.verbs.ended(dict(old)):
        found.warnings += _without_effect(kind, old, new)
    return found


def fixed_sizes(kind: WorkloadKind, old: JSON, new: JSON) -> Iterator[FieldError]:
    """Refuse a change of the number of a framework's pods while pods exist.

    The framework in the existing pods was started with the old number, and is not informed about the new number.
    """
    for place, before, after in size_edits(kind, old, new):
        size = after if isinstance(after, int) and after > 0 else "NUMBER"
        task = value_at(new, (*place[:-1], "name"))  # None for a kind with a single number of pods
        how = f"muster resize {_title(kind, new)} --size {size}{f' --task {task}' if task else ''}"
        message = (
            f"must stay {before} while pods may exist, because the framework's pods were started with this number; "
            f"`{how}` stops them and starts the new number"
        )
        yield FieldError(dotted(place), message, after, "Forbidden")


def scale_reviewer(lookups: Lookups) -> Handler:
    """Return the handler for the `scale` subresource of StatefulSets, which `kubectl scale` and autoscalers update."""

    def review(request: AdmissionRequest) -> ReviewVerdict:
        before, after = generic(request.old_object), generic(request.object)
        meta = msgspec.convert(mapping(after.get("metadata")), ObjectMeta)
        reference = OwnerReference(
            api_version=STATEFUL_SETS.api_version, kind=STATEFUL_SETS.kind, name=meta.name, uid=meta.uid
        )
        found = None
        with suppress(APIError):  # most workloads are not Muster's
            found = lookups.owners.find(STATEFUL_SETS, request.namespace, reference)
        if found is None:
            return ReviewVerdict()
        workload = msgspec.to_builtins(found)
        old, new = ({**workload, "spec": {**workload["spec"], **mapping(each.get("spec"))}} for each in (before, after))
        return ReviewVerdict(errors=[*fixed_sizes(row(STATEFUL_SETS), old, new)])

    return review


def unmoved(kind: WorkloadKind, old: JSON, new: JSON) -> Iterator[str]:
    """Warn about a change of the queue label, because the existing gang stays in its queue."""
    before, after = (value_at(each, ("metadata", "labels", names.QUEUE)) for each in (old, new))
    if before == after or not kind.verbs or kind.verbs.ended(dict(old)) or is_held(kind, old):
        return
    move = f"use muster move {_title(kind, new)} --queue {after or 'NAME'}"
    yield f"metadata.labels[{names.QUEUE}]: does not move the existing gang; {kind.verbs.instead.get('move', move)}"


def _without_effect(kind: WorkloadKind, old: JSON, new: JSON) -> Iterator[str]:
    """Warn about changes of the minimum that have no effect on the existing gang."""
    title = _title(kind, new)
    for key in names.MIN_MEMBER_KEYS:
        path = ("metadata", "annotations", key)
        if value_at(new, path) != value_at(old, path):
            how = f"muster hold {title} and muster release {title} apply it at once"
            yield f"metadata.annotations[{key}]: takes effect when the next pod is created or deleted; {how}"


def _title(kind: WorkloadKind, workload: JSON) -> str:
    return kind.resource.reference(str(value_at(workload, ("metadata", "name"))))
