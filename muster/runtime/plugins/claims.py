"""Claims that the pods of a runtime share (`volumeClaimPolicies`), for TrainJobs that run as a Job of Muster's.

They are those that a JobSet's controller would make: claim `<name>-<TrainJob>`, and a volume in each pod of which a
container mounts `<name>`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.runtime.component import Component
from muster.runtime.plan import Plan

JSON = dict[str, Any]


def claims(plan: Plan, plugin: str) -> Iterator[Component]:
    """The claims, each made once; they are deleted with the TrainJob unless their policy retains them."""
    for policy in plan.base.get("volumeClaimPolicies") or []:
        retained = (policy.get("retentionPolicy") or {}).get("whenDeleted") == "Retain"
        for template in policy.get("templates") or []:
            metadata = {
                **template["metadata"],
                "name": f"{template['metadata']['name']}-{plan.owner.name}",
                "namespace": plan.owner.namespace,
                **({} if retained else {"ownerReferences": [plan.owner.reference()]}),
            }
            manifest = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {key: value for key, value in metadata.items() if value},
                "spec": template.get("spec") or {},
            }
            yield Component(manifest, plugin, once=True)


def with_claims(plan: Plan, pods: JSON) -> JSON:
    """A pod template with a volume for each claim that its containers mount."""
    spec = pods["spec"]
    mounted = _mounted(spec)
    there = {volume.get("name") for volume in spec.get("volumes") or []}
    wanted = [name for name in claim_names(plan.base) if name in mounted and name not in there]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{plan.owner.name}"}} for name in wanted]
    return {**pods, "spec": {**spec, "volumes": [*(spec.get("volumes") or []), *volumes]}} if volumes else pods


def claim_names(base: Mapping[str, Any]) -> list[str]:
    """The names of all claims of a JobSet spec, as its containers mount them."""
    return [
        str((template.get("metadata") or {}).get("name") or "")
        for policy in base.get("volumeClaimPolicies") or []
        for template in policy.get("templates") or []
    ]


def mounted_names(base: Mapping[str, Any]) -> set[str]:
    """The names of all volumes that any container of a JobSet spec mounts."""
    jobs = [_map(job["template"].get("spec")) for job in base.get("replicatedJobs") or []]
    return {name for job in jobs for name in _mounted(_map(_map(job.get("template")).get("spec")))}


def _mounted(spec: Mapping[str, Any]) -> set[str]:
    containers = [*_maps(spec.get("containers")), *_maps(spec.get("initContainers"))]
    return {str(mount.get("name")) for each in containers for mount in _maps(each.get("volumeMounts"))}


def _map(node: Any) -> JSON:
    """A map, empty if there is none; msgspec.ValidationError for any other value."""
    return msgspec.convert(node or {}, JSON)


def _maps(node: Any) -> list[JSON]:
    return msgspec.convert(node or [], list[JSON])
