"""Translation between Muster's gangs and native PodGroups (scheduling.k8s.io), for `muster shape --native`."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from muster.api.fields import FieldError, InvalidFieldError
from muster.api.kubernetes import core, scheduling
from muster.api.muster.native import binds_parts
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import PodGroup
from muster.runtime.workload import containers_of, template_of
from muster.volcano.native import group_of, is_gang, native_of
from muster.volcano.podgroup import pod_group
from muster.workloads.kind import dotted, pod_templates
from muster.workloads.podgroup import pod_group as group_of_pod
from muster.workloads.table import group_name, kind_in
from webhook.lookup import Owners, known_controller
from webhook.offline.lookups import JSON


def translated(document: JSON) -> Iterator[tuple[JSON, str]]:
    """Yield Muster's PodGroup for a native PodGroup, or for each template of a Workload, and a description."""
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind == (scheduling.NATIVE_POD_GROUPS.api_version, scheduling.NATIVE_POD_GROUPS.kind):
        native = msgspec.convert(document, scheduling.NativePodGroup)
        yield _plain(group_of(native)), f"Kubernetes' PodGroup {native.metadata.name}"
    elif kind == (scheduling.WORKLOADS.api_version, scheduling.WORKLOADS.kind):
        workload = msgspec.convert(document, scheduling.Workload)
        for template, note in _templates(workload.spec):
            spec = scheduling.NativePodGroupSpec(
                scheduling_policy=template.scheduling_policy,
                scheduling_constraints=template.scheduling_constraints,
                priority_class_name=template.priority_class_name,
            )
            name = f"{workload.metadata.name}-{template.name}"
            meta = msgspec.structs.replace(workload.metadata, name=name)
            about = f"template {template.name} of Workload {workload.metadata.name}{note}"
            yield _plain(group_of(scheduling.NativePodGroup(metadata=meta, spec=spec))), about


def as_published(document: JSON, pods: Iterable[JSON], owners: Owners, namespace: str) -> Iterator[tuple[JSON, str]]:
    """Yield the native PodGroups that would be published for the gangs of an admitted workload.

    `pods` are the first pods of the workload.
    """
    groups: dict[str, PodGroup] = {}
    if (document.get("apiVersion"), document.get("kind")) == (JOBS.api_version, JOBS.kind):
        group = pod_group(msgspec.convert(document, Job), {})
        groups[group.metadata.name] = group
    for manifest in pods:
        named = (manifest.get("spec") or {}).get("schedulingGroup")
        pod = msgspec.convert(manifest, core.Pod)
        if named and named.get("podGroupName") == group_name(pod.metadata):
            groups[named["podGroupName"]] = group_of_pod(pod, known_controller(pod.metadata, namespace, owners))
    for group in groups.values():
        if is_gang(group):
            native = native_of(group)
            native.metadata.owner_references = []  # of an object that does not exist yet
            yield _plain(native), "as which Muster publishes the gang if the API server serves this kind"


def wrong_quantities(document: JSON) -> Iterator[FieldError]:
    """Yield an error for each unreadable quantity in the containers of a workload's pod templates."""
    kind = kind_in(document)
    for place, template in pod_templates(document, kind.templates if kind else ()):
        for container in containers_of(template_of(template)[0], f"{dotted(place)}.spec"):
            try:
                _ = container.requests
            except InvalidFieldError as error:
                yield error.error


def _templates(
    of: scheduling.WorkloadSpec | scheduling.CompositePodGroupTemplate, note: str = ""
) -> Iterator[tuple[scheduling.PodGroupTemplate, str]]:
    """Yield the PodGroup templates in a Workload, or in a template of composite groups, each with a note."""
    for template in of.pod_group_templates or ():
        yield template, note
    for document in of.composite_pod_group_templates:
        composite = msgspec.convert(document, scheduling.CompositePodGroupTemplate)
        why = f"; Muster does not plan it, as it is a part of composite group {composite.name}"
        yield from _templates(composite, note or (why if binds_parts(composite) else ""))


def _plain(obj: Any) -> JSON:
    """Return the object as a manifest, without fields that users do not write."""
    document: JSON = msgspec.to_builtins(obj)
    document.pop("status", None)
    return document
