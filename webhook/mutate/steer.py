"""Steering: a pod with a queue goes to Muster's scheduler, and waits behind a gate when it belongs to a gang."""

from typing import Any

from muster.api import names
from muster.api.gang import gang_of, group_name_for_owner
from muster.api.meta import ObjectMeta
from webhook.mutate.asks import Asked
from webhook.mutate.mark import mark
from webhook.patch import Patch, Why


def steer(pod: dict[str, Any], meta: ObjectMeta, asked: Asked, patch: Patch, *, marks: bool = False) -> list[str]:
    """Adds queue, scheduler, gang and gate to `patch` where they are missing, with `marks` markers; returns warnings.

    A pod that names a scheduler of somebody else's is left alone. Pods without a controller have no gang: they are
    placed one by one.
    """
    spec = pod.get("spec") or {}
    source = asked.path if asked.inherited else f"label {names.QUEUE}"
    scheduler = spec.get("schedulerName") or names.CLUSTER_SCHEDULER
    if scheduler == names.CLUSTER_SCHEDULER:
        patch.set("spec", "schedulerName", value=names.SCHEDULER, why=Why("Muster finds its node", source))
    elif scheduler not in names.SCHEDULERS:
        warning = (
            f"spec.schedulerName: label {names.QUEUE} has no effect, because {scheduler!r} is not a scheduler of "
            f"Muster's; leave schedulerName out, or use {names.SCHEDULER!r}"
        )
        return [warning]
    if asked.inherited:
        patch.set("metadata", "labels", names.QUEUE, value=asked.queue, why=Why("the queue of its namespace", source))
    gang = gang_of(meta)
    if gang is None and meta.controller:
        gang = group_name_for_owner(meta.controller.uid)
        patch.set("metadata", "labels", names.GANG, value=gang, why=Why("it starts together with its siblings", source))
    if gang and _must_wait(spec, meta):
        patch.append(
            "spec", "schedulingGates", value={"name": names.GATE}, why=Why("it waits until its gang has places", source)
        )
    if marks:
        mark(spec, patch, "spec")
    return []


def _must_wait(spec: dict[str, Any], meta: ObjectMeta) -> bool:
    """Not when it has a node or a pin already, nor when it waits."""
    gates = [gate.get("name") for gate in spec.get("schedulingGates") or []]
    return not spec.get("nodeName") and names.NODE not in meta.annotations and names.GATE not in gates
