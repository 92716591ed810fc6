"""Shaping: the plan of a pod's workload, written into the pod."""

from typing import Any

import msgspec

from muster.api import names
from muster.api.core import IndexedJob, PodSpec
from muster.api.gang import DEFAULT_POD_SET
from muster.api.meta import ObjectMeta
from muster.runtime.adapters import IndexedJobAdapter
from muster.runtime.fields import FieldError, InvalidFieldError
from muster.runtime.framework import Framework
from muster.runtime.plan import ContainerPlan, Plan
from muster.runtime.workload import describe, target_container, template_of
from webhook.lookup import Owners
from webhook.patch import Patch

FRAMEWORK_PATH = f"metadata.labels[{names.FRAMEWORK}]"
OWNER_PATH = "metadata.ownerReferences"


def unknown_framework(path: str, name: str, framework: Framework) -> list[FieldError]:
    """An error unless the framework is one of ours."""
    if name in framework.frameworks:
        return []
    return [FieldError(path, f"must be one of: {', '.join(framework.frameworks)}", name, "NotSupported")]


def shape(
    pod: dict[str, Any], meta: ObjectMeta, namespace: str, owners: Owners, framework: Framework, patch: Patch
) -> list[FieldError]:
    """Adds to `patch` what the pod's framework needs; returns why that is impossible, if it is."""
    name = meta.labels[names.FRAMEWORK]
    errors = unknown_framework(FRAMEWORK_PATH, name, framework)
    owner = meta.controller
    if owner is None or (owner.api_version, owner.kind) != ("batch/v1", "Job"):
        has = f"this pod belongs to {owner.kind} {owner.name}" if owner else "this pod has no owner"
        message = f"framework {name} needs pods of a batch/v1 Job with completionMode Indexed; {has}"
        errors.append(FieldError(OWNER_PATH, message, owner.kind if owner else None))
    if errors or owner is None:
        return errors
    job = owners.job(namespace, owner)
    if job is None:
        message = "the Job that owns this pod is gone, so the size of its group is unknown"
        return [FieldError(OWNER_PATH, message, owner.name, "NotFound")]
    try:
        plan = plan_for(job, msgspec.convert(pod.get("spec") or {}, PodSpec), meta, framework)
    except InvalidFieldError as error:
        return [error.error]
    return write(plan, pod, patch)


def plan_for(job: IndexedJob, spec: PodSpec, meta: ObjectMeta, framework: Framework) -> Plan:
    """The plan of a Job's pods, from the pod as it is now; raises InvalidFieldError."""
    adapter = IndexedJobAdapter(job)
    for error in adapter.errors():
        raise InvalidFieldError(
            FieldError(OWNER_PATH, f"{adapter.workload} cannot be shaped: {error}", job.metadata.name)
        )
    template, _, annotations = template_of(job.spec.template)
    info = describe(
        meta.labels[names.FRAMEWORK],
        adapter,
        spec,
        target=target_container(template, annotations),
        path="spec",
        parameters={**job.metadata.annotations, **meta.annotations},
    )
    return framework.plan(info)


def write(plan: Plan, pod: dict[str, Any], patch: Patch) -> list[FieldError]:
    """Adds the plan's env, ports and subdomain; what stands there already is kept, and must say the same."""
    pod_set = plan.pod_set(DEFAULT_POD_SET)
    if pod_set is None:
        return []
    spec = pod["spec"]
    if not spec.get("subdomain"):
        patch.set("spec", "subdomain", value=pod_set.subdomain)
    errors: list[FieldError] = []
    for index, container in enumerate(spec["containers"]):
        wanted = pod_set.container(container["name"])
        if wanted:
            errors += _write_env(wanted, container, index, plan.framework, patch)
            _write_ports(wanted, container, index, patch)
    return errors


def _write_env(
    wanted: ContainerPlan, container: dict[str, Any], index: int, framework: str, patch: Patch
) -> list[FieldError]:
    given = container.get("env") or []
    errors = []
    for variable in wanted.env:
        places = [place for place, other in enumerate(given) if other.get("name") == variable.name]
        for place in places:
            if not variable.same(given[place]):
                path = f"spec.containers[{index}].env[{place}].name"
                message = f"is set by Muster for framework {framework} ({variable.source}); remove it"
                errors.append(FieldError(path, message, variable.name))
        if not places:
            patch.append("spec", "containers", index, "env", value=variable.as_json())
    return errors


def _write_ports(wanted: ContainerPlan, container: dict[str, Any], index: int, patch: Patch) -> None:
    given = {port.get("containerPort") for port in container.get("ports") or [] if port.get("protocol", "TCP") == "TCP"}
    for port in wanted.ports:
        if port not in given:
            patch.append("spec", "containers", index, "ports", value={"containerPort": port, "protocol": "TCP"})
