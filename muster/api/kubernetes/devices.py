"""Devices that drivers publish and pods claim (resource.k8s.io/v1), with the fields that affect the choice of nodes."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.constraints import NodeSelector, Toleration
from muster.api.kubernetes.meta import Object, ObjectMeta

DEVICE_CLASS_RESOURCE = "deviceclass.resource.kubernetes.io/"
"""Prefix of an extended resource that represents the devices of a class (KEP-5004)."""
ALL = "All"
"""The allocation mode with which a request gets all matching devices."""
MOST_PODS = 256
"""Maximum number of pods that may use one claim at the same time, as in the API."""
NO_SCHEDULE = frozenset({"NoSchedule", "NoExecute"})
"""Effects of device taints that make a device unavailable to requests without a matching toleration."""


class DeviceAttribute(Wire):
    """The value of one attribute of a device. Exactly one field is set, according to the value's type."""

    text: str | None = field(default=None, name="string")
    number: int | None = field(default=None, name="int")
    flag: bool | None = field(default=None, name="bool")
    version: str | None = None


class DeviceCapacity(Wire):
    """A capacity of a device."""

    value: str | int | float = "0"


class DeviceTaint(Wire):
    """A taint of a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Wire):
    """One device of a pool. A name of an attribute or capacity without a domain belongs to the driver's domain."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    taints: list[DeviceTaint] = field(default_factory=list)
    consumes_counters: list[Any] = field(default_factory=list)
    """Counters that the device consumes. A partition of a larger device always has some."""
    allow_multiple_allocations: bool = False
    node_name: str = ""
    node_selector: NodeSelector | None = None


class ResourcePool(Wire):
    """The pool to which a slice belongs, and the number of slices in the pool."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Wire):
    """spec of a ResourceSlice: devices of a pool, and the nodes that can use these devices."""

    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str = ""
    node_selector: NodeSelector | None = None
    per_device_node_selection: bool = False
    devices: list[Device] = field(default_factory=list)


class ResourceSlice(Object):
    """Devices that a driver publishes."""

    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


class DeviceTaintSelector(Wire):
    """Selects the devices that a rule taints: devices that match all set fields, or every device if no field is set."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire):
    """A taint, and a selector for the devices that get the taint.

    If the rule has no selector, no device gets the taint.
    """

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class DeviceTaintRule(Object):
    """A taint that an administrator sets on devices, in addition to the driver's taints (v1 since Kubernetes 1.37)."""

    spec: DeviceTaintRuleSpec = field(default_factory=DeviceTaintRuleSpec)


class CelSelector(Wire):
    """A CEL expression about a device, which must be true for a matching device."""

    expression: str = ""


class DeviceSelector(Wire):
    """A condition on a device; the API has only this kind so far."""

    cel: CelSelector | None = None


class DeviceClassSpec(Wire):
    """The conditions that devices of the class must meet."""

    selectors: list[DeviceSelector] = field(default_factory=list)
    extended_resource_name: str | None = None


class DeviceClass(Object):
    """A class of devices, which an administrator defines."""

    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


class ExactDeviceRequest(Wire):
    """A request for devices of one class; as an alternative of `firstAvailable`, the request also has a name."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = field(default_factory=list)
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: list[Toleration] = field(default_factory=list)
    capacity: dict[str, Any] | None = None
    """Set if the request is for a part of a device's capacity instead of a whole device."""


class DeviceRequest(Wire):
    """One request in a claim: either a kind of device, or alternatives, the first available of which is used."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[ExactDeviceRequest] = field(default_factory=list)


class DeviceConstraint(Wire):
    """An attribute whose value must be equal for the devices of all named requests; without names, of all requests."""

    requests: list[str] = field(default_factory=list)
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceClaim(Wire):
    """The requests of a claim, and constraints across these requests."""

    requests: list[DeviceRequest] = field(default_factory=list)
    constraints: list[DeviceConstraint] = field(default_factory=list)


class PodResourceClaimStatus(Wire):
    """The claim that was created for an entry of a pod's `resourceClaims`; empty if the entry needs no claim."""

    name: str = ""
    resource_claim_name: str | None = None


class PodExtendedResourceClaimStatus(Wire):
    """The claim that kube-scheduler created for a pod's extended resources."""

    resource_claim_name: str = ""


class UsedClaim(Wire):
    """A container's reference to an entry of the pod's `resourceClaims`, or to one request of that entry."""

    name: str = ""
    request: str = ""


class ResourceClaimSpec(Wire):
    """spec of a claim or claim template."""

    devices: DeviceClaim = field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(Wire):
    """One device that was allocated to a claim."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str | None = field(default=None, name="shareID")


class DeviceAllocationResult(Wire):
    """The devices that were allocated to a claim."""

    results: list[DeviceRequestAllocationResult] = field(default_factory=list)


class AllocationResult(Wire):
    """The devices that were allocated to a claim, and the nodes from which these devices can be used."""

    devices: DeviceAllocationResult = field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None


class ResourceClaimConsumerReference(Wire):
    """An object, usually a pod, that is currently allowed to use the claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(Wire):
    """The allocation of a claim, and its users."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] = field(default_factory=list)


class ResourceClaim(Object):
    """A ResourceClaim, which requests devices."""

    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ResourceClaimTemplateSpec(Wire):
    """The claim that is created from a template for each pod."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = field(default_factory=ResourceClaimSpec)


class ResourceClaimTemplate(Object):
    """A ResourceClaimTemplate, from which claims are created."""

    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)


_GROUP = "resource.k8s.io"
RESOURCE_SLICES = Resource(_GROUP, "v1", "resourceslices", "ResourceSlice", ResourceSlice, namespaced=False)
DEVICE_TAINT_RULES = Resource(_GROUP, "v1", "devicetaintrules", "DeviceTaintRule", DeviceTaintRule, namespaced=False)
DEVICE_CLASSES = Resource(_GROUP, "v1", "deviceclasses", "DeviceClass", DeviceClass, namespaced=False)
RESOURCE_CLAIMS = Resource(_GROUP, "v1", "resourceclaims", "ResourceClaim", ResourceClaim)
CLAIM_TEMPLATES = Resource(_GROUP, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", ResourceClaimTemplate)
