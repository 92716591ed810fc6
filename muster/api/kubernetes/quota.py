"""ResourceQuotas of core/v1: limits of a namespace, which the API server enforces pod by pod."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.core import Quantities
from muster.api.kubernetes.meta import Object


class ResourceQuotaSpec(Wire):
    """Limits by name, and the pods that they cover if not all."""

    hard: Quantities = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(Wire):
    """The limits that hold, and the amounts that count against them now."""

    hard: Quantities = field(default_factory=dict)
    used: Quantities = field(default_factory=dict)


class ResourceQuota(Object):
    """One quota; a namespace may have several, which all hold."""

    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)

    @property
    def scoped(self) -> bool:
        """True if it covers some pods only."""
        return bool(self.spec.scopes or self.spec.scope_selector)


RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", ResourceQuota)
