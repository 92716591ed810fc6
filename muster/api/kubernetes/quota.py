"""Limits that others set: ResourceQuotas of a namespace, and PodDisruptionBudgets."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes import core, meta


class ResourceQuotaSpec(Wire):
    """Limits by name, and the pods that they cover if not all."""

    hard: core.Quantities = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(Wire):
    """The limits that hold, and the amounts that count against them now."""

    hard: core.Quantities = field(default_factory=dict)
    used: core.Quantities = field(default_factory=dict)


class ResourceQuota(meta.Object):
    """One quota; a namespace may have several, which all hold."""

    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)

    @property
    def scoped(self) -> bool:
        """True if it covers some pods only."""
        return bool(self.spec.scopes or self.spec.scope_selector)


RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", ResourceQuota)


class PodDisruptionBudgetSpec(Wire):
    """The pods of a budget."""

    selector: meta.LabelSelector | None = None
    """Null means no pod, and empty every pod of the namespace."""
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Wire):
    """Counts of the disruption controller."""

    disruptions_allowed: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(meta.Object):
    """A limit on evictions of the pods that it selects."""

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)

    @property
    def keeps_pods(self) -> bool:
        """True unless its spec allows at any time that all its pods are evicted."""
        return self.spec.min_available not in {0, "0%"} and self.spec.max_unavailable != "100%"

    @property
    def allowed(self) -> int:
        """Pods that may be evicted now; 0 until the disruption controller has seen the current spec."""
        counted = self.status.observed_generation >= self.metadata.generation
        return max(0, self.status.disruptions_allowed) if counted else 0


BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
