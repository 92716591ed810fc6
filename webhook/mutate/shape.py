"""Shaping: the plan of a pod's workload, written into the pod."""

from typing import Any

import msgspec

from muster.api import names
from muster.api.base import Wire
from muster.api.core import PodSpec
from muster.api.fields import FieldError, InvalidFieldError
from muster.api.gang import DEFAULT_POD_SET
from muster.api.meta import ObjectMeta
from muster.runtime.framework import Framework
from muster.runtime.plan import ContainerPlan, Plan, PodSetPlan
from muster.runtime.settings import from_annotations
from muster.runtime.workload import describe
from muster.workloads.adapter import OWNER_PATH, Adapter, OwnerError
from muster.workloads.choose import adapter_for, source_of
from muster.workloads.kind import AskedPod
from webhook.lookup import Owners
from webhook.patch import Patch, Why

FRAMEWORK_PATH = f"metadata.labels[{names.FRAMEWORK}]"


class _DNSConfig(Wire):
    """dnsConfig of a pod, as far as it is added to."""

    searches: list[str] | None = None


def unknown_framework(path: str, name: str, framework: Framework) -> list[FieldError]:
    """An error unless the framework is one of ours."""
    if name in framework.frameworks:
        return []
    return [FieldError(path, f"must be one of: {', '.join(framework.frameworks)}", name, "NotSupported")]


def shape(
    pod: dict[str, Any],
    meta: ObjectMeta,
    spec: PodSpec,
    *,
    namespace: str,
    owners: Owners,
    framework: Framework,
    patch: Patch,
) -> list[FieldError]:
    """Adds to `patch` what the pod's framework needs; returns why that is impossible, if it is.

    `meta` and `spec` are those of `pod`, which is the document itself.
    """
    errors = unknown_framework(FRAMEWORK_PATH, meta.labels[names.FRAMEWORK], framework)
    try:
        adapter = _adapter(pod, meta, spec, namespace, owners)
    except OwnerError as error:
        return [*errors, error.error]
    errors += _reachable(adapter)
    if errors:
        return errors
    try:
        plan = plan_for(adapter, spec, meta, framework)
    except InvalidFieldError as error:
        return [error.error]
    return write(plan, pod, patch)


def _adapter(pod: dict[str, Any], meta: ObjectMeta, spec: PodSpec, namespace: str, owners: Owners) -> Adapter:
    source, reference = source_of(meta), meta.controller
    owner = owners.find(source, namespace, reference) if source and reference else None
    if reference and owner is None:
        message = f"the {reference.kind} that owns this pod is gone, so the size of its group is unknown"
        raise OwnerError(message, reference.name)
    return adapter_for(owner, AskedPod(meta, spec, pod))


def _reachable(adapter: Adapter) -> list[FieldError]:
    """Why the owner's pods cannot form a group. Only for a bare pod are those paths the pod's own."""
    if adapter.owner.kind == "Pod":
        return adapter.errors()
    return [
        FieldError(OWNER_PATH, f"{adapter.owner} cannot be shaped: {error}", adapter.owner.name)
        for error in adapter.errors()
    ]


def plan_for(adapter: Adapter, spec: PodSpec, meta: ObjectMeta, framework: Framework) -> Plan:
    """The plan of a workload, from one of its pods as it is now; raises InvalidFieldError."""
    path = "metadata.annotations"
    settings = from_annotations((path, meta.annotations), (path, adapter.annotations))
    info = describe(meta.labels[names.FRAMEWORK], adapter, spec, path="spec", settings=settings, pod=meta)
    return framework.plan(info)


def write(plan: Plan, pod: dict[str, Any], patch: Patch) -> list[FieldError]:
    """Adds the plan's metadata, volumes, subdomain and containers; what stands there is kept, and must say the same."""
    pod_set = plan.pod_set(DEFAULT_POD_SET)
    if pod_set is None:
        return []
    spec = pod["spec"]
    errors = _write_pod(pod_set, pod, plan.framework, patch)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or []):
            wanted = pod_set.container(container.get("name", ""))
            if wanted and wanted.init == (kind == "initContainers"):
                errors += _write_env(wanted, container, (kind, index), plan.framework, patch)
                _write_rest(wanted, container, (kind, index), plan.framework, patch)
    return errors


def _write_pod(pod_set: PodSetPlan, pod: dict[str, Any], framework: str, patch: Patch) -> list[FieldError]:
    """Labels, annotations, volumes and subdomain."""
    spec, errors = pod["spec"], []
    for place, values in (("labels", pod_set.labels), ("annotations", pod_set.annotations)):
        given = (pod.get("metadata") or {}).get(place) or {}
        for key, value in values.items():
            if key not in given:
                patch.set("metadata", place, key, value=value, why=Why("the framework needs it", framework))
            elif given[key] != value:
                message = f"is set by Muster for framework {framework}; remove it"
                errors.append(FieldError(f"metadata.{place}[{key}]", message, given[key]))
    there = {volume.get("name") for volume in spec.get("volumes") or []}
    for volume in pod_set.volumes:
        if volume.name not in there:
            patch.append("spec", "volumes", value=volume.as_json(), why=Why(volume.reason, volume.plugin))
    searches = msgspec.convert(spec.get("dnsConfig") or {}, _DNSConfig).searches or []
    for domain in pod_set.searches:
        if domain not in searches:
            why = Why("the launcher's host name", framework)
            patch.append("spec", "dnsConfig", "searches", value=domain, why=why)
    if pod_set.subdomain and not spec.get("subdomain"):
        patch.set("spec", "subdomain", value=pod_set.subdomain, why=Why("the pods find each other under it", framework))
    return errors


def _write_env(
    wanted: ContainerPlan, container: dict[str, Any], place: tuple[str, int], framework: str, patch: Patch
) -> list[FieldError]:
    given = container.get("env") or []
    places: dict[str, list[int]] = {}
    for index, other in enumerate(given):
        places.setdefault(other.get("name", ""), []).append(index)
    errors = []
    for variable in wanted.env:
        there = places.get(variable.name, [])
        for index in there:
            if not variable.same(given[index]):
                path = f"spec.{place[0]}[{place[1]}].env[{index}].name"
                message = f"is set by Muster for framework {framework} ({variable.source}); remove it"
                errors.append(FieldError(path, message, variable.name))
        if not there:
            patch.append("spec", *place, "env", value=variable.as_json(), why=Why(variable.source, variable.plugin))
    return errors


def _write_rest(
    wanted: ContainerPlan, container: dict[str, Any], place: tuple[str, int], framework: str, patch: Patch
) -> None:
    """Ports that are not there, mounts where nothing is mounted, a readiness probe or command where there is none."""
    given = {port.get("containerPort") for port in container.get("ports") or [] if port.get("protocol", "TCP") == "TCP"}
    for port in wanted.ports:
        if port not in given:
            value = {"containerPort": port, "protocol": "TCP"}
            patch.append("spec", *place, "ports", value=value, why=Why("the pods meet there", framework))
    mounted = {mount.get("mountPath") for mount in container.get("volumeMounts") or []}
    for mount in wanted.mounts:
        if mount.path not in mounted:
            why = Why(f"the container reads volume {mount.volume}", framework)
            patch.append("spec", *place, "volumeMounts", value=mount.as_json(), why=why)
    if wanted.command and not container.get("command"):
        why = Why("the container has no command of its own", framework)
        patch.set("spec", *place, "command", value=list(wanted.command), why=why)
    if wanted.readiness and not container.get("readinessProbe"):
        why = Why("others wait until it is ready", framework)
        patch.set("spec", *place, "readinessProbe", value=dict(wanted.readiness), why=why)
