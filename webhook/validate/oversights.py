"""Oversights in workloads: settings that the API server accepts, but that do not have the effect that users expect.

Two conflicting framework labels are an error, because one of them would be silently ignored. All other oversights are
warnings, because the settings may be intended.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.muster.pools import is_musters
from muster.api.unchecked import mapping, value_at
from muster.kube.errors import APIError
from muster.workloads.kind import TEMPLATE, Place, WorkloadKind, dotted
from webhook.apiserver import Services
from webhook.lookup import NamespaceQueues

_SET_BY_APPLY = ("fieldsV1", "f:spec", "f:template", "f:spec", "f:schedulerName")
"""Field in `managedFields` by which server-side apply records that the user has set the scheduler of
`spec.template`."""

_HEADLESS = "the pods find each other by its name: create a Service with clusterIP None, and the pods' labels"


class Labelled(NamedTuple):
    """A pod template with a Muster label that does not opt out."""

    workload: Mapping[str, Any]
    place: Place
    """Path of the template in the workload."""
    path: str
    """The path of the template, as shown in messages."""
    template: Mapping[str, Any]

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the pod template."""
        return mapping(value_at(self.template, ("metadata", "labels")))

    @property
    def scheduler(self) -> str:
        """The scheduler of the template's pods; the API server sets it if the template names none."""
        return mapping(self.template.get("spec")).get("schedulerName") or names.CLUSTER_SCHEDULER


def oversights(given: Labelled, queues: NamespaceQueues) -> Findings:
    """Return the problems with a template that arise from combinations of fields, even if each field alone is valid."""
    warnings = [*_other_scheduler(given), *_no_queue(given, queues)]
    return Findings(list(_two_frameworks(given)), warnings)


def _two_frameworks(given: Labelled) -> Iterator[FieldError]:
    """Reject a template whose framework label differs from the label of its workload."""
    whole = mapping(value_at(given.workload, ("metadata", "labels"))).get(names.FRAMEWORK)
    own = given.labels.get(names.FRAMEWORK)
    if whole and own and whole != own:
        path = f"{given.path}.metadata.labels[{names.FRAMEWORK}]"
        message = f"must be {whole!r}, as in metadata.labels[{names.FRAMEWORK}]; or remove one of the two labels"
        yield FieldError(path, message, own)


def _no_queue(given: Labelled, queues: NamespaceQueues) -> Iterator[str]:
    """Yield a warning for pods that have a framework but no queue: they are not started together."""
    framework = given.labels.get(names.FRAMEWORK)
    if framework is None or names.QUEUE in given.labels or is_musters(given.scheduler):
        return
    with suppress(APIError):  # a warning is not worth a refusal while namespaces cannot be read
        of_namespace = queues.namespace_labels
        if of_namespace.get(names.QUEUE) and not names.opted_out(of_namespace):
            return
    yield (
        f"{given.path}.metadata.labels: the pods are set up for {framework}, but without the label {names.QUEUE} "
        f"{given.scheduler!r} places them one by one; add {names.QUEUE} to have Muster start them together"
    )


def _other_scheduler(given: Labelled) -> Iterator[str]:
    """Yield a warning for a scheduler in addition to a queue.

    Muster replaces the cluster's own scheduler, and keeps any other scheduler.
    """
    if names.QUEUE not in given.labels or is_musters(given.scheduler):
        return
    path = f"{given.path}.spec.schedulerName"
    if given.scheduler != names.CLUSTER_SCHEDULER:
        yield (
            f"{path}: label {names.QUEUE} has no effect, because {given.scheduler!r} is not a scheduler of Muster's; "
            f"leave schedulerName out, or use {names.SCHEDULER!r}"
        )
    elif _was_written(given):
        yield (
            f"{path}: the pods get {names.SCHEDULER!r} in place of {given.scheduler!r}, because of the label "
            f"{names.QUEUE}; leave schedulerName out, or remove the label if Muster must not place them"
        )


def no_service(kind: WorkloadKind, workload: Mapping[str, Any], namespace: str, services: Services) -> list[str]:
    """Return warnings if a StatefulSet with ranks has no headless Service, which the host names of its pods require."""
    place = kind.admission.service_name
    name = value_at(workload, place)
    labels = mapping(value_at(workload, (*TEMPLATE, "metadata", "labels")))
    if not name or names.FRAMEWORK not in labels or names.opted_out(labels):
        return []
    with suppress(APIError):  # a warning is not worth a refusal
        address = services.cluster_ip(str(name), namespace)
        if address is None:
            return [f"{dotted(place)}: there is no Service {name} in namespace {namespace} yet; {_HEADLESS}"]
        if address != "None":
            return [f"{dotted(place)}: Service {name} is not headless; {_HEADLESS}"]
    return []


def _was_written(given: Labelled) -> bool:
    """Return True if the user has set the scheduler, according to `kubectl apply`."""
    applied = mapping(value_at(given.workload, ("metadata", "annotations"))).get(names.LAST_APPLIED)
    place = (*given.place, "spec", "schedulerName")
    with suppress(msgspec.DecodeError, RecursionError):  # any user can write this annotation
        if isinstance(applied, str) and value_at(msgspec.json.decode(applied), place):
            return True
    managers = value_at(given.workload, ("metadata", "managedFields"))
    entries = [mapping(each) for each in managers] if isinstance(managers, list) else []
    return any(each.get("operation") == "Apply" and value_at(each, _SET_BY_APPLY) is not None for each in entries)
