"""Scheduling of a pod: its scheduler, its gang, its gates, and the markers by which a shared scheduler recognises it.

A pod with a queue gets Muster's scheduler, and a gate if it belongs to a gang. A pod may also request a gate through
Volcano's annotation. Muster removes the gates when it pins the pod.

*Markers* are extended resources: a shared scheduler calls Muster only for pods that request such a resource. Markers
must be on a container, so one container gets a limit of 1 for each marker, which the API server also sets as a request.
kube-scheduler is configured to ignore markers when it counts free resources.

The containers of a pod that shares GPUs get the GPU numbers in variables that refer to annotations. Muster writes these
annotations together with the binding, before the kubelet starts a container. For Volcano's GPU memory resource, the
device plugin sets the variables.
"""

from collections.abc import Mapping
from typing import Any

from muster.api import names
from muster.api.fields import FieldError
from muster.api.muster.gang import named_gang
from muster.api.muster.pools import is_musters
from muster.api.volcano.podsettings import PodSettings, additions
from muster.workloads.table import group_name, native_gang_of, plain_group
from webhook.mutate.optin import OptIn
from webhook.mutate.podreview import PodReview
from webhook.objects.names import MAX_LABEL
from webhook.patch import Patch, Why

_MARKED = Why("the cluster's own scheduler calls Muster for this pod", "markPods")
GPU_VARIABLES = {"NVIDIA_VISIBLE_DEVICES": names.GPU_DEVICES_CHOSEN, "GPU_PORTION": names.GPU_PORTION}
"""Maps an environment variable of the container to the annotation from which the variable gets its value."""


def set_scheduler(review: PodReview, opt_in: OptIn) -> None:
    """Add scheduler, queue, gang and gate to a pod.

    If the pod names a scheduler that is not Muster's, only add a warning. A pod without a controller joins a gang only
    if the pod names the gang itself.
    """
    scheduler, meta, patch = review.scheduler, review.meta, review.patch
    source = opt_in.path if opt_in.inherited else f"label {names.QUEUE}"
    if not is_musters(scheduler):
        advice = f"leave schedulerName out, or use {names.SCHEDULER!r}"
        _warn_no_effect(review, f"spec.schedulerName: label {names.QUEUE}", advice)
        return
    if scheduler != (review.assigned_scheduler or review.spec.get("schedulerName")):
        patch.set("spec", "schedulerName", value=scheduler, why=Why("Muster finds its node", source))
    if opt_in.inherited:
        patch.set("metadata", "labels", names.QUEUE, value=opt_in.queue, why=Why("the queue of its namespace", source))
    gang = named_gang(meta) or native_gang_of(meta, review.typed_spec.scheduling_group)
    if gang is None and (meta.controller or plain_group(meta)):
        gang = group_name(meta)
        place = ("labels", names.GANG) if len(gang) <= MAX_LABEL else ("annotations", names.GROUP_NAME)
        patch.set("metadata", *place, value=gang, why=Why("the pod starts together with the other members", source))
    if gang:
        _add_gate(review, names.GATE, Why("the pod waits until its gang has nodes", source))


def hold_member(review: PodReview) -> None:
    """Add the gate to a pod of a native PodGroup that names Muster's scheduler but no queue."""
    gang = native_gang_of(review.meta, review.typed_spec.scheduling_group)
    if is_musters(review.scheduler) and gang and named_gang(review.meta) is None:
        _add_gate(review, names.GATE, Why("the pod waits until its gang has nodes", "spec.schedulingGroup"))


def add_requested_gate(review: PodReview) -> None:
    """Add the gate that the pod requests by an annotation; add a warning if the pod's scheduler is not Muster's."""
    gate = names.QUEUE_ALLOCATION_GATE
    if review.meta.annotations.get(gate) != "true":
        return
    if is_musters(review.scheduler):
        _add_gate(review, gate, Why("the pod waits until Muster has a node for it", f"annotation {gate}"))
        return
    advice = f"set schedulerName to {names.SCHEDULER} or {names.VOLCANO_SCHEDULER}"
    if review.scheduler == names.CLUSTER_SCHEDULER:  # labels do not change any other scheduler
        advice += f", or label the pod or its namespace {names.QUEUE}"
    _warn_no_effect(review, f"metadata.annotations[{gate}]: it", advice)


def mark(spec: Mapping[str, Any], patch: Patch) -> None:
    """Add the missing markers to the first container with limits, or else to the first container."""
    for path, value in additions(spec, PodSettings(marked=True)):
        patch.set("spec", *path, value=value, why=_MARKED)


def _add_gate(review: PodReview, gate: str, why: Why) -> None:
    """Add a gate, unless the pod has the gate, a node or a pin already."""
    gates = [each.get("name") for each in review.spec.get("schedulingGates") or []]
    if not review.spec.get("nodeName") and names.NODE not in review.meta.annotations and gate not in gates:
        review.patch.append_item("spec", "schedulingGates", value={"name": gate}, why=why)


def _warn_no_effect(review: PodReview, what: str, advice: str) -> None:
    """Add a warning about a field without effect, with advice unless the resource group has set the scheduler."""
    why = f"{review.scheduler!r} is not a scheduler of Muster's; {advice}"
    if review.group and review.assigned_scheduler:
        why = f"the resource group {review.group.name!r} assigns the pod to scheduler {review.scheduler!r}"
    review.warnings.append(f"{what} has no effect, because {why}")


def share_gpus(review: PodReview) -> None:
    """Add the variables to the container that uses the GPUs.

    An annotation names this container; the default is the first container.
    """
    annotations = review.meta.annotations
    asked = next((key for key in (names.GPU_FRACTION, names.GPU_SHARE_MEMORY) if key in annotations), "")
    if not asked or not is_musters(review.scheduler):
        return
    wanted = annotations.get(names.GPU_CONTAINER)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(review.spec.get(kind) or []):
            if wanted in {None, container.get("name")}:
                _add_variables(review, kind, index, container, asked)
                return


def _add_variables(review: PodReview, kind: str, index: int, container: dict[str, Any], asked: str) -> None:
    given = {variable.get("name"): (number, variable) for number, variable in enumerate(container.get("env") or [])}
    for name, annotation in GPU_VARIABLES.items():
        source = {"fieldPath": f"metadata.annotations['{annotation}']"}
        number, known = given.get(name, (0, None))
        if known is None:
            why = Why("the container gets the numbers of its shared GPUs", f"annotation {asked}")
            value = {"name": name, "valueFrom": {"fieldRef": source}}
            review.patch.append_item("spec", kind, index, "env", value=value, why=why)
        elif ((known.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") != source["fieldPath"]:
            message = (
                f"must be left out: Muster sets this variable, because the annotation {asked} requests a part of a GPU"
            )
            review.errors.append(FieldError(f"spec.{kind}[{index}].env[{number}].name", message, name))
