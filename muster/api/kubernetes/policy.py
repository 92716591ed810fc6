"""policy/v1: how many pods of an application may be away at once, as far as victim searches look at it."""

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import LabelSelector, Object


class PodDisruptionBudgetSpec(Wire):
    """Which pods a budget is about."""

    selector: LabelSelector | None = None
    """Null means no pod, and empty every pod of the namespace."""


class PodDisruptionBudgetStatus(Wire):
    """What the disruption controller has counted."""

    disruptions_allowed: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(Object):
    """A limit on evictions of the pods that it selects."""

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)

    @property
    def allowed(self) -> int:
        """How many of its pods may be evicted now; none while what it was told last has not been counted."""
        counted = self.status.observed_generation >= self.metadata.generation
        return max(0, self.status.disruptions_allowed) if counted else 0


BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
