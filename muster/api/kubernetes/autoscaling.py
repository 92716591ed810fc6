"""autoscaling.x-k8s.io/v1: ProvisioningRequest, by which a gang asks cluster-autoscaler for nodes as a whole.

The kind is cluster-autoscaler's, which brings its CustomResourceDefinition; Muster only uses it where it is installed.
"""

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import LocalReference, Object


class ProvisioningPodSet(Wire):
    """Pods of one shape."""

    pod_template_ref: LocalReference
    """A PodTemplate in the same namespace."""
    count: int
    """How many pods."""


class ProvisioningRequestSpec(Wire):
    """spec; it cannot be changed."""

    pod_sets: list[ProvisioningPodSet] = field(default_factory=list)
    """All pods that need room together."""
    provisioning_class_name: str = ""
    """Who answers, and how."""
    parameters: dict[str, str] = field(default_factory=dict)
    """What that class understands."""


class ProvisioningCondition(Wire):
    """One thing that the autoscaler says of a request."""

    type: str
    """Accepted, Provisioned, Failed, BookingExpired or CapacityRevoked."""
    status: str
    """True, False or Unknown."""
    last_transition_time: str | None = None
    """Since when."""
    reason: str = ""
    """One word why."""
    message: str = ""
    """A sentence why."""


class ProvisioningRequestStatus(Wire):
    """status; the autoscaler writes it."""

    conditions: list[ProvisioningCondition] = field(default_factory=list)
    """How far it is."""


class ProvisioningRequest(Object):
    """Room for all of these pods, asked of an autoscaler."""

    spec: ProvisioningRequestSpec = field(default_factory=ProvisioningRequestSpec)
    """For what."""
    status: ProvisioningRequestStatus = field(default_factory=ProvisioningRequestStatus)
    """How far it is."""


PROVISIONING_REQUESTS = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", ProvisioningRequest
)
