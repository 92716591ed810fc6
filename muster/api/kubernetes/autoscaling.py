"""autoscaling.x-k8s.io/v1: ProvisioningRequest, by which a gang requests all its nodes from cluster-autoscaler.

ProvisioningRequest belongs to cluster-autoscaler, whose installation includes the CustomResourceDefinition. Muster uses
the kind only in clusters where this CustomResourceDefinition is installed.
"""

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import LocalReference, Object, ReportedCondition


class ProvisioningPodSet(Wire):
    """A number of identical pods, described by a PodTemplate in the namespace of the ProvisioningRequest."""

    pod_template_ref: LocalReference
    count: int


class ProvisioningRequestSpec(Wire):
    """spec of a ProvisioningRequest, which is immutable."""

    pod_sets: list[ProvisioningPodSet] = field(default_factory=list)
    provisioning_class_name: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


class ProvisioningRequestStatus(Wire):
    """status of a ProvisioningRequest.

    The autoscaler sets the conditions Accepted, Provisioned, Failed, BookingExpired or CapacityRevoked.
    """

    conditions: list[ReportedCondition] = field(default_factory=list)


class ProvisioningRequest(Object):
    """A request to an autoscaler for nodes on which all pods of the pod sets fit."""

    spec: ProvisioningRequestSpec = field(default_factory=ProvisioningRequestSpec)
    status: ProvisioningRequestStatus = field(default_factory=ProvisioningRequestStatus)


PROVISIONING_REQUESTS = Resource(
    "autoscaling.x-k8s.io", "v1", "provisioningrequests", "ProvisioningRequest", ProvisioningRequest
)
