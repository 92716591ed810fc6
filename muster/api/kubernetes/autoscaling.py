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
    """Number of pods."""


class ProvisioningRequestSpec(Wire):
    """spec; it cannot be changed."""

    pod_sets: list[ProvisioningPodSet] = field(default_factory=list)
    """All pods that need room together."""
    provisioning_class_name: str = ""
    """Class that answers the request."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Parameters of that class."""


class ProvisioningCondition(Wire):
    """One condition that the autoscaler reports of a request."""

    type: str
    """Accepted, Provisioned, Failed, BookingExpired or CapacityRevoked."""
    status: str
    """True, False or Unknown."""
    last_transition_time: str | None = None
    """Time since which the status holds."""
    reason: str = ""
    """Reason, in one word."""
    message: str = ""
    """Reason, in a sentence."""


class ProvisioningRequestStatus(Wire):
    """status; the autoscaler writes it."""

    conditions: list[ProvisioningCondition] = field(default_factory=list)
    """Conditions so far."""


class ProvisioningRequest(Object):
    """Room for all of these pods, asked of an autoscaler."""

    spec: ProvisioningRequestSpec = field(default_factory=ProvisioningRequestSpec)
    """Desired state."""
    status: ProvisioningRequestStatus = field(default_factory=ProvisioningRequestStatus)
    """Observed state."""


PROVISIONING_REQUESTS = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", ProvisioningRequest
)
