"""A cluster in memory whose nodes have devices that are claimed."""

from collections.abc import Mapping
from typing import Any, Self

import msgspec
from extender_world import CPU, World

from extender.planner.plugins.dynamicresources import DynamicResources
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.gang import pinned_affinity

DRIVER = "gpu.example.com"


def exactly(device_class: str = "gpu", count: int = 1, *cel: str, **more: Any) -> dict[str, Any]:
    """A request for so many devices of a class that match these expressions."""
    selectors = [{"cel": {"expression": expression}} for expression in cel]
    return {"deviceClassName": device_class, "count": count, "selectors": selectors, **more}


def asks(*requests: Mapping[str, Any], constraints: Any = ()) -> dict[str, Any]:
    """The spec of a claim: exact requests r0, r1, …; one that is a list names alternatives."""
    said = [request if "firstAvailable" in request else {"exactly": dict(request)} for request in requests]
    named = [{"name": f"r{number}", **request} for number, request in enumerate(said)]
    return {"devices": {"requests": named, "constraints": list(constraints)}}


def device(name: str, model: str = "", memory: str = "", **more: Any) -> dict[str, Any]:
    """A device."""
    attributes = {"model": {"string": model}} if model else {}
    capacity = {"memory": {"value": memory}} if memory else {}
    return {"name": name, "attributes": attributes, "capacity": capacity, **more}


def template_use(template: str) -> dict[str, Any]:
    """Of a pod's spec, that it gets a claim from this template."""
    return {"resourceClaims": [{"name": "devices", "resourceClaimTemplateName": template}]}


def claim_use(claim: str) -> dict[str, Any]:
    """Of a pod's spec, that it uses this claim."""
    return {"resourceClaims": [{"name": "devices", "resourceClaimName": claim}]}


class Devices(World):
    """Nodes with devices of one driver, in a pool each."""

    def __init__(self, *, checked: bool = True) -> None:
        super().__init__(checked=checked)
        self.plugins.append(DynamicResources({}))

    def device_class(self, name: str = "gpu", *cel: str, extended: str | None = None, **meta: Any) -> Self:
        """A class of devices of the driver that match these expressions too; returns the world, as the next two do."""
        selectors = [{"cel": {"expression": expression}} for expression in (f'device.driver == "{DRIVER}"', *cel)]
        spec = {"selectors": selectors, "extendedResourceName": extended}
        self.tell(DeviceClass, self.state.claimants.on_class, name, spec, namespace="", **meta)
        return self

    def equip(self, node: str, *devices: dict[str, Any], **more: Any) -> None:
        """The devices of a node: a slice that says all of it."""
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": list(devices), **more}
        self.tell(ResourceSlice, self.state.claimants.on_slice, f"{node}-slice", spec, namespace="")

    def taint_rule(self, name: str, effect: str = "NoSchedule", **selector: str) -> None:
        """A rule that gives the devices which the selector names the taint `sick`."""
        spec = {"deviceSelector": selector, "taint": {"key": "sick", "effect": effect}}
        self.tell(DeviceTaintRule, self.state.claimants.on_rule, name, spec, namespace="")

    def gpus(self, nodes: int, each: int, **more: Any) -> Self:
        """node-0 … with so many devices each."""
        for number in range(nodes):
            self.node(f"node-{number}")
            self.equip(f"node-{number}", *(device(f"d{index}", **more) for index in range(each)))
        return self

    def template(self, name: str, spec: dict[str, Any]) -> Self:
        """A claim template."""
        self.tell(ResourceClaimTemplate, self.state.claimants.on_template, name, {"spec": spec})
        return self

    def claim(
        self, name: str, spec: dict[str, Any], *, got: tuple[tuple[str, str], ...] = (), pod: Pod | None = None,
        admin: bool = False, users: tuple[str, ...] = (), **meta: Any,
    ) -> str:  # fmt: skip
        """A claim, a pod's own if one is given; `got` are the devices that it has, as (node, device)."""
        results = [{"request": "r0", "driver": DRIVER, "pool": node, "device": one, "adminAccess": admin}
                   for node, one in got]  # fmt: skip
        fields = [{"key": "metadata.name", "operator": "In", "values": [got[0][0]]}] if got else []
        selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
        status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in users]}
        if got:
            status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
        meta.setdefault("owner_references", [_owner(pod)] if pod is not None else [])
        self.tell(ResourceClaim, self.state.claimants.on_claim, name, spec, status=status, **meta)
        return f"ns/{name}"

    def tell(self, kind: Any, on: Any, name: str, spec: dict[str, Any], **more: Any) -> None:
        """An object, or a newer version of it."""
        body = {"spec": spec, **({"status": more.pop("status")} if "status" in more else {})}
        made = msgspec.convert(body, kind)
        made.metadata = self.meta(name, **more)
        on(self.state.device_objects.get((kind, name)), made)
        self.state.device_objects[kind, name] = made

    def gone(self, kind: Any, on: Any, name: str) -> None:
        """It is deleted."""
        on(self.state.device_objects.pop((kind, name)), None)

    def member(
        self, gang: str, index: int, use: dict[str, Any], *, claim: str | None = None, node: str = "",
        phase: str = "Pending", extended_claim: str = "", requests: Mapping[str, Any] = CPU, pin: str = "",
        refused: bool = False,
    ) -> Pod:  # fmt: skip
        """A pod of a gang's task `worker` with claims; `claim` is the one that was made for it."""
        owner = gang.partition("/")[2]
        status: dict[str, Any] = {"phase": phase}
        if claim is not None:
            status["resourceClaimStatuses"] = [{"name": "devices", "resourceClaimName": claim}]
        if extended_claim:
            status["extendedResourceClaimStatus"] = {"resourceClaimName": extended_claim}
        annotations = {"scheduling.k8s.io/group-name": owner, "volcano.sh/task-spec": "worker"}
        annotations["volcano.sh/task-index"] = str(index)
        if pin:
            annotations |= {"muster.dev/node": pin, "muster.dev/epoch": "1"}
            use = {**use, "affinity": pinned_affinity(None, pin)}
        if refused:
            status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        spec = self.pod_spec(requests, schedulerName="muster", **use)
        if node:
            spec["nodeName"] = node
        pod = msgspec.convert({"spec": spec, "status": status}, Pod)
        name = f"{owner}-worker-{index}"
        pod.metadata = self.meta(name, uid=f"uid-{name}", annotations=annotations)
        self.state.on_pod(None, pod)
        return pod

    def free(self, node: str, resource: str = "deviceclass.resource.kubernetes.io/gpu") -> int:
        """Devices of a kind that nobody uses or holds."""
        table = self.state.nodes
        row, column = table.axis[resource], table.index[node]
        return int(table.allocatable[row, column] - table.used[row, column])


def ones(nodes: int, each: int) -> Devices:
    """Nodes with so many devices each, and the template `one` of claims to one of them."""
    return Devices().gpus(nodes, each).device_class().template("one", asks(exactly()))


def _owner(pod: Pod) -> OwnerReference:
    meta = pod.metadata
    return OwnerReference(api_version="v1", kind="Pod", name=meta.name, uid=meta.uid, controller=True)
