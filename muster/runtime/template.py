"""Merging of a TrainJob into its runtime's template, and of a pod set's additions into the pod template.

Muster merges fields by the rules of Kubernetes' strategic merge patch.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from muster.api.kubeflow.trainer import Trainer
from muster.runtime.plan import ContainerPlan, InitPlan, PodSetPlan
from muster.volcano.manifests import safe_as

JSON = dict[str, Any]
_PARTS = frozenset({"replicatedJobs", "containers", "initContainers"})
"""Lists in which a patch changes existing elements; the patch contains the names of these elements."""
_KEYS = {
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
}
"""Lists in which a patch replaces elements with the same key. Other lists, such as tolerations, are replaced as a
whole."""


def by_key(base: Sequence[Mapping[str, Any]], extra: Iterable[Mapping[str, Any]], key: str) -> list[JSON]:
    """Return `base` with elements replaced by the patch's elements with the same key, and new elements appended."""
    result = [dict(each) for each in base]
    places = {each.get(key): index for index, each in enumerate(result)}
    for each in extra:
        if each.get(key) in places:
            result[places[each.get(key)]] = dict(each)
        else:
            places[each.get(key)] = len(result)
            result.append(dict(each))
    return result


def patched(base: Mapping[str, Any], patch: Mapping[str, Any]) -> JSON:
    """Return `base` with a strategic merge patch applied; elements that the patch changes by name must exist."""
    result = dict(base)
    for key, value in patch.items():
        there = result.get(key)
        if isinstance(value, Mapping):
            result[key] = patched(there or {}, value)
        elif key in _PARTS:
            result[key] = list(there or [])
            for part in value:
                result[key] = [
                    patched(each, part) if each.get("name") == part["name"] else each for each in result[key]
                ]
        elif key in _KEYS:
            result[key] = by_key(there or [], value, _KEYS[key])
        else:
            result[key] = value
    return result


def with_trainer(
    container: Mapping[str, Any], trainer: Trainer, *, command: bool = True, resources: bool = True
) -> JSON:
    """Return the container `node` with the fields that the TrainJob sets; other fields stay unchanged."""
    result = dict(container)
    if trainer.image:
        result["image"] = trainer.image
    if trainer.command and command:
        result["command"] = list(trainer.command)
    if trainer.args and command:
        result["args"] = list(trainer.args)
    if trainer.env:
        result["env"] = by_key(result.get("env") or [], trainer.env, "name")
    if trainer.resources_per_node and resources:
        result["resources"] = with_resources(result.get("resources") or {}, trainer.resources_per_node)
    return result


def with_resources(base: Mapping[str, Any], extra: Mapping[str, Any]) -> JSON:
    """Return requests and limits merged by resource, and claims merged by name."""
    result = {key: {**(base.get(key) or {}), **(extra.get(key) or {})} for key in ("requests", "limits")}
    claims = by_key(base.get("claims") or [], extra.get("claims") or [], "name")
    merged = {**result, "claims": claims}
    return {key: value for key, value in merged.items() if value}


_ACCOUNT = "default"
"""Service account that Muster writes into pods that name no service account."""


def planned(template: Mapping[str, Any], pod_set: PodSetPlan) -> JSON:
    """Return a copy of the template with the plan's metadata, volumes and containers.

    The plan's environment variables come first, so that all other variables can refer to them as $(NAME).
    """
    result: JSON = deepcopy(dict(template))
    metadata = result.get("metadata") or {}
    for key, values in (("labels", pod_set.labels), ("annotations", pod_set.annotations)):
        if values:
            metadata[key] = {**(metadata.get(key) or {}), **values}
    if metadata:
        result["metadata"] = metadata
    spec = result.get("spec") or {}
    if pod_set.volumes:
        spec["volumes"] = by_key(spec.get("volumes") or [], [volume.as_json() for volume in pod_set.volumes], "name")
        if not spec.get("serviceAccountName") and any(map(_has_token, spec["volumes"])):
            spec["serviceAccountName"] = _ACCOUNT
    if pod_set.searches:
        dns = spec.get("dnsConfig") or {}
        given = dns.get("searches") or []
        new = [domain for domain in pod_set.searches if domain not in given]
        spec["dnsConfig"] = {**dns, "searches": [*given, *new]}
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            spec[kind] = [_container(each, pod_set, init=kind != "containers") for each in spec[kind]]
    inits = [
        init_container(each, next(one for one in spec["containers"] if one.get("name") == each.like))
        for each in pod_set.inits
    ]
    if inits:
        spec["initContainers"] = by_key(spec.get("initContainers") or [], inits, "name")
    result["spec"] = spec
    return result


def init_container(plan: InitPlan, like: Mapping[str, Any]) -> JSON:
    """Return an init container of the plan as JSON, derived from this container of the same pod.

    The init container has the CPU and memory of `like`, so the pod needs no additional resources and keeps its quality
    of service.
    """
    result: JSON = {key: like[key] for key in ("image", "imagePullPolicy") if key in like}
    mounts = [deepcopy(each) for each in like.get("volumeMounts") or [] if each.get("mountPath") in plan.paths]
    return {
        "name": plan.name,
        **result,
        **safe_as(like),
        "command": list(plan.command),
        "env": [{"name": name, "value": value} for name, value in plan.env.items()],
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",  # so that describe shows the host
    }


def _has_token(volume: Mapping[str, Any]) -> bool:
    """Return True if a volume projects a token; the API server then requires a service account in the template."""
    sources = (volume.get("projected") or {}).get("sources") or []
    return any(source.get("serviceAccountToken") for source in sources)


def _container(container: Mapping[str, Any], pod_set: PodSetPlan, *, init: bool) -> JSON:
    plan = pod_set.container(container.get("name", ""))
    result = dict(container)
    if plan is None or plan.init != init:
        return result
    if plan.command is not None:
        result["command"] = list(plan.command)
    if plan.env:
        ours = {variable.name for variable in plan.env}
        rest = [each for each in result.get("env") or [] if each.get("name") not in ours]
        result["env"] = [*(variable.as_json() for variable in plan.env), *rest]
    if plan.ports:
        result["ports"] = _ports(result.get("ports") or [], plan)
    if plan.mounts:
        result["volumeMounts"] = by_key(
            result.get("volumeMounts") or [], [mount.as_json() for mount in plan.mounts], "mountPath"
        )
    if plan.readiness and not result.get("readinessProbe"):
        result["readinessProbe"] = dict(plan.readiness)
    return result


def _ports(given: Sequence[JSON], plan: ContainerPlan) -> list[JSON]:
    there = {port.get("containerPort") for port in given if port.get("protocol", "TCP") == "TCP"}
    new = [{"containerPort": port, "protocol": "TCP"} for port in plan.ports if port not in there]
    return [*given, *new]
