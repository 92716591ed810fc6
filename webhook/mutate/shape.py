"""Shaping of pods: a pod gets the environment variables, volumes and ports that its workload's framework needs.

`muster.runtime` computes the additions as a plan, from the owner and the pod's resources. Validation and the size of
the gang depend on the same formulas. Fields that the pod already has are kept; a field that contradicts the plan is an
error and is not overwritten.
"""

from typing import Any

import msgspec

from muster.api import names
from muster.api.base import Wire
from muster.api.fields import FieldError, InvalidFieldError
from muster.api.muster.gang import DEFAULT_POD_SET
from muster.resources.accelerators import Claims, no_claims
from muster.runtime.framework import Framework
from muster.runtime.plan import ContainerPlan, Plan, PodSetPlan
from muster.runtime.template import init_container
from muster.runtime.workload import describe_pod
from muster.workloads.adapter import OWNER_PATH, Adapter, OwnerError, own_rank
from muster.workloads.kind import PodContext
from muster.workloads.table import adapter_for, slot_of
from webhook.lookup import Owners, controller_of
from webhook.mutate.podreview import JSON, PodReview
from webhook.objects.names import unknown_framework
from webhook.patch import Why

FRAMEWORK_PATH = f"metadata.labels[{names.FRAMEWORK}]"


class _DNSConfig(Wire):
    """The field dnsConfig of a pod, reduced to the search domains, to which shaping adds a domain."""

    searches: list[str] | None = None


def shape(review: PodReview, owners: Owners, framework: Framework, claims: Claims = no_claims) -> None:
    """Add the requirements of the pod's framework to the patch, or errors that explain why the pod cannot be shaped."""
    errors = unknown_framework(FRAMEWORK_PATH, review.meta.labels[names.FRAMEWORK], framework)
    try:
        adapter = _adapter(review, owners)
        errors += _owner_errors(adapter)
        if not errors:
            write(framework.plan(describe_pod(adapter, review.typed_spec, review.meta, claims)), review)
            _write_rank(adapter, review)
    except (OwnerError, InvalidFieldError) as error:
        errors.append(error.error)
    review.errors += errors


def _write_rank(adapter: Adapter, review: PodReview) -> None:
    """Record the pod's rank for the planner, unless the pod has an index that is unique in the gang."""
    rank, slot = own_rank(adapter.rank(review.meta), review.meta), slot_of(review.meta)
    if rank is None or review.meta.controller is None or not review.opt_in:
        return
    if slot is None or (slot.pod_set == DEFAULT_POD_SET and slot.rank != rank):
        why = Why(f"the pod's rank in {adapter.owner}", review.meta.labels[names.FRAMEWORK])
        review.patch.set("metadata", "annotations", names.MEMBER_INDEX, value=str(rank), why=why)


def _adapter(review: PodReview, owners: Owners) -> Adapter:
    """Return the adapter of the pod's owner; raise OwnerError if the owner is gone or has no adapter."""
    reference, owner = review.meta.controller, controller_of(review.meta, review.namespace, owners)
    if reference and owner is None:
        message = f"the {reference.kind} that owns this pod is gone, so the size of its group is unknown"
        raise OwnerError(message, reference.name)
    return adapter_for(owner, PodContext(review.meta, review.typed_spec, review.document))


def _owner_errors(adapter: Adapter) -> list[FieldError]:
    """Return errors that explain why the owner's pods cannot form a group.

    If the pod has an owner, the errors name the owner; otherwise, they name fields of the pod.
    """
    errors = adapter.errors()
    if adapter.owner.kind == "Pod":
        return errors
    return [FieldError(OWNER_PATH, f"{adapter.owner} cannot be shaped: {each}", adapter.owner.name) for each in errors]


def write(plan: Plan, review: PodReview) -> None:
    """Add the plan's metadata, volumes, subdomain and containers.

    Existing fields are kept; an error is added if they contradict the plan.
    """
    pod_set = plan.pod_set(DEFAULT_POD_SET)
    if pod_set is None:
        return
    _write_metadata(pod_set, plan.framework, review)
    _write_pod(pod_set, plan.framework, review)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(review.spec.get(kind) or []):
            wanted = pod_set.container(container.get("name", ""))
            if wanted and wanted.init == (kind == "initContainers"):
                _write_env(wanted, container, (kind, index), plan.framework, review)
                _write_rest(wanted, container, (kind, index), plan.framework, review)
    _write_inits(pod_set, review)


def _write_metadata(pod_set: PodSetPlan, framework: str, review: PodReview) -> None:
    """Add the labels and annotations by which tools of the framework find the pod."""
    for place, values in (("labels", pod_set.labels), ("annotations", pod_set.annotations)):
        given = (review.document.get("metadata") or {}).get(place) or {}
        for key, value in values.items():
            if key not in given:
                why = Why("the framework needs it", framework)
                review.patch.set("metadata", place, key, value=value, why=why)
            elif given[key] != value:
                message = f"is set by Muster for framework {framework}; remove it"
                review.errors.append(FieldError(f"metadata.{place}[{key}]", message, given[key]))


def _write_pod(pod_set: PodSetPlan, framework: str, review: PodReview) -> None:
    """Add volumes, DNS search domains and the subdomain."""
    spec, patch = review.spec, review.patch
    there = {volume.get("name") for volume in spec.get("volumes") or []}
    for volume in pod_set.volumes:
        if volume.name not in there:
            patch.append_item("spec", "volumes", value=volume.as_json(), why=Why(volume.reason, volume.plugin))
    searches = msgspec.convert(spec.get("dnsConfig") or {}, _DNSConfig).searches or []
    for domain in pod_set.searches:
        if domain not in searches:
            why = Why("the launcher's host name", framework)
            patch.append_item("spec", "dnsConfig", "searches", value=domain, why=why)
    if pod_set.subdomain and not spec.get("subdomain"):
        why = Why("the pods find each other by this name", framework)
        patch.set("spec", "subdomain", value=pod_set.subdomain, why=why)


def _write_inits(pod_set: PodSetPlan, review: PodReview) -> None:
    """Add the plan's init containers after the pod's own init containers, on which the new ones may depend."""
    there = {each.get("name") for each in review.spec.get("initContainers") or []}
    containers = {each.get("name"): each for each in review.spec.get("containers") or []}
    for init in pod_set.inits:
        container, wanted = containers.get(init.like), pod_set.container(init.like)
        if container and wanted and init.name not in there:
            given = container.get("volumeMounts") or []
            mounted = {mount.get("mountPath") for mount in given}
            mounts = [*given, *(each.as_json() for each in wanted.mounts if each.path not in mounted)]
            value = init_container(init, {**container, "volumeMounts": mounts})
            review.patch.append_item("spec", "initContainers", value=value, why=Why(init.reason, init.plugin))


def _write_env(
    wanted: ContainerPlan, container: JSON, place: tuple[str, int], framework: str, review: PodReview
) -> None:
    """Add environment variables. A variable that the user has set must have the planned value in every container."""
    places: dict[str, list[int]] = {}
    given: list[dict[str, Any]] = container.get("env") or []
    for index, other in enumerate(given):
        places.setdefault(other.get("name", ""), []).append(index)
    for variable in wanted.env:
        there = places.get(variable.name, [])
        for index in there:
            if not variable.same(given[index]):
                path = f"spec.{place[0]}[{place[1]}].env[{index}].name"
                message = f"is set by Muster for framework {framework} ({variable.source}); remove it"
                review.errors.append(FieldError(path, message, variable.name))
        if not there:
            why = Why(variable.source, variable.plugin)
            review.patch.append_item("spec", *place, "env", value=variable.as_json(), why=why)


def _write_rest(
    wanted: ContainerPlan, container: JSON, place: tuple[str, int], framework: str, review: PodReview
) -> None:
    """Add missing ports and mounts, and the plan's readiness probe and command if the container has none of its own."""
    patch = review.patch
    given = {port.get("containerPort") for port in container.get("ports") or [] if port.get("protocol", "TCP") == "TCP"}
    for port in wanted.ports:
        if port not in given:
            value = {"containerPort": port, "protocol": "TCP"}
            patch.append_item("spec", *place, "ports", value=value, why=Why("the pods connect to this port", framework))
    mounted = {mount.get("mountPath") for mount in container.get("volumeMounts") or []}
    for mount in wanted.mounts:
        if mount.path not in mounted:
            why = Why(f"the container reads volume {mount.volume}", framework)
            patch.append_item("spec", *place, "volumeMounts", value=mount.as_json(), why=why)
    if wanted.command and not container.get("command"):
        why = Why("the container has no command of its own", framework)
        patch.set("spec", *place, "command", value=list(wanted.command), why=why)
    if wanted.readiness and not container.get("readinessProbe"):
        why = Why("other pods wait until this pod is ready", framework)
        patch.set("spec", *place, "readinessProbe", value=dict(wanted.readiness), why=why)
