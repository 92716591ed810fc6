"""Limits that other components set: ResourceQuotas of a namespace, and PodDisruptionBudgets."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes import core, meta


class ResourceQuotaSpec(Wire):
    """Limits of a ResourceQuota by resource. With a scope, the quota covers only some pods of its namespace."""

    hard: core.Quantities = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    scope_selector: dict[str, Any] | None = None


class ResourceQuotaStatus(Wire):
    """status of a ResourceQuota: the limits in force, and the current usage."""

    hard: core.Quantities = field(default_factory=dict)
    used: core.Quantities = field(default_factory=dict)


class ResourceQuota(meta.Object):
    """A ResourceQuota; a namespace may have several of them, all of which apply."""

    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)

    @property
    def scoped(self) -> bool:
        """True if the quota covers only some pods of its namespace."""
        return bool(self.spec.scopes or self.spec.scope_selector)


RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", ResourceQuota)


class PodDisruptionBudgetSpec(Wire):
    """spec of a PodDisruptionBudget: its pods, and how many of these must stay available or may be unavailable."""

    selector: meta.LabelSelector | None = None
    """Selector for the budget's pods: null selects no pod, an empty selector every pod of the namespace."""
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Wire):
    """status of a PodDisruptionBudget: counts that the disruption controller writes."""

    disruptions_allowed: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(meta.Object):
    """A PodDisruptionBudget: a limit on evictions of the pods that its selector matches."""

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)

    @property
    def keeps_pods(self) -> bool:
        """True if the budget may forbid an eviction; False if its spec always allows the eviction of all pods."""
        return self.spec.min_available not in {0, "0%"} and self.spec.max_unavailable != "100%"

    @property
    def allowed(self) -> int:
        """Number of the budget's pods that may be evicted now; 0 until the disruption controller has read the spec."""
        counted = self.status.observed_generation >= self.metadata.generation
        return max(0, self.status.disruptions_allowed) if counted else 0


BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
