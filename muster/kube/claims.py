"""Requests in the device claims of pods, which are read from the API server on demand."""

from muster.api.kubernetes.core import PodResourceClaim
from muster.api.kubernetes.devices import CLAIM_TEMPLATES, RESOURCE_CLAIMS, DeviceClaim
from muster.kube.client import Client
from muster.kube.errors import NotFound


def read_claim(
    client: Client, namespace: str, entry: PodResourceClaim, *, timeout_s: float | None = None
) -> DeviceClaim | None:
    """Return the requests of an entry of `resourceClaims`; None if the claim, its template or the API is missing."""
    try:
        if entry.resource_claim_template_name:
            name = entry.resource_claim_template_name
            return client.get(CLAIM_TEMPLATES, name, namespace, timeout_s=timeout_s).spec.spec.devices
        if entry.resource_claim_name:
            return client.get(RESOURCE_CLAIMS, entry.resource_claim_name, namespace, timeout_s=timeout_s).spec.devices
    except NotFound:
        return None
    return None
