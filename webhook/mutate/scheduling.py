"""Steering: a pod with a queue goes to Muster's scheduler, and waits behind a gate when it belongs to a gang.

A pod may also ask for a gate itself, by Volcano's annotation. Muster takes its gates away when it pins the pod.
"""

from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.gang import gang_of, group_name_for_owner
from muster.api.meta import ObjectMeta
from webhook.config import ResourceGroup
from webhook.mutate.optin import Asked
from webhook.patch import Patch, Why


def scheduler_of(spec: Mapping[str, Any], asked: Asked | None, group: ResourceGroup | None) -> str:
    """The scheduler that a pod ends up with: that of its resource group, else its own, else Muster's if it asks."""
    own = spec.get("schedulerName") or names.CLUSTER_SCHEDULER
    if group and group.scheduler_name:
        return group.scheduler_name
    return names.SCHEDULER if asked and own == names.CLUSTER_SCHEDULER else own


def steer(
    pod: dict[str, Any], meta: ObjectMeta, asked: Asked, patch: Patch, *, group: ResourceGroup | None = None
) -> list[str]:
    """Adds queue, scheduler, gang and gate to `patch` where they are missing; returns warnings.

    A pod that has a scheduler of somebody else's is left alone. Pods without a controller have no gang: they are
    placed one by one.
    """
    spec = pod.get("spec") or {}
    source = asked.path if asked.inherited else f"label {names.QUEUE}"
    scheduler = scheduler_of(spec, asked, group)
    if scheduler not in names.SCHEDULERS:
        advice = f"leave schedulerName out, or use {names.SCHEDULER!r}"
        return [_no_effect(f"spec.schedulerName: label {names.QUEUE}", scheduler, group, advice)]
    if scheduler != spec.get("schedulerName") and not (group and group.scheduler_name):
        patch.set("spec", "schedulerName", value=scheduler, why=Why("Muster finds its node", source))
    if asked.inherited:
        patch.set("metadata", "labels", names.QUEUE, value=asked.queue, why=Why("the queue of its namespace", source))
    gang = gang_of(meta)
    if gang is None and meta.controller:
        gang = group_name_for_owner(meta.controller.uid)
        patch.set("metadata", "labels", names.GANG, value=gang, why=Why("it starts together with its siblings", source))
    if gang:
        _gate(spec, meta, names.GATE, patch, Why("it waits until its gang has places", source))
    return []


def gate(
    pod: dict[str, Any], meta: ObjectMeta, scheduler: str, patch: Patch, *, group: ResourceGroup | None = None
) -> list[str]:
    """Adds the gate that the pod asks for by its annotation, if `scheduler` is one of Muster's; returns warnings."""
    gate = names.QUEUE_ALLOCATION_GATE
    if meta.annotations.get(gate) != "true":
        return []
    if scheduler not in names.SCHEDULERS:
        advice = f"set schedulerName to {names.SCHEDULER} or {names.VOLCANO_SCHEDULER}"
        if scheduler == names.CLUSTER_SCHEDULER:  # a pod with another one stays with that, whatever its labels say
            advice += f", or label the pod or its namespace {names.QUEUE}"
        return [_no_effect(f"metadata.annotations[{gate}]: it", scheduler, group, advice)]
    _gate(
        pod.get("spec") or {}, meta, gate, patch, Why("it waits until Muster has a node for it", f"annotation {gate}")
    )
    return []


def _no_effect(what: str, scheduler: str, group: ResourceGroup | None, advice: str) -> str:
    if group and group.scheduler_name:
        return f"{what} has no effect, because the resource group {group.name!r} gives the pod to {scheduler!r}"
    return f"{what} has no effect, because {scheduler!r} is not a scheduler of Muster's; {advice}"


def _gate(spec: dict[str, Any], meta: ObjectMeta, gate: str, patch: Patch, why: Why) -> None:
    """Not when the pod has a node or a pin already, nor when it has the gate."""
    gates = [each.get("name") for each in spec.get("schedulingGates") or []]
    if not spec.get("nodeName") and names.NODE not in meta.annotations and gate not in gates:
        patch.append("spec", "schedulingGates", value={"name": gate}, why=why)
