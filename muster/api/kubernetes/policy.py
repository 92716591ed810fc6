"""policy/v1: PodDisruptionBudgets, which limit the pods of an application that are evicted at once."""

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import LabelSelector, Object


class PodDisruptionBudgetSpec(Wire):
    """The pods of a budget."""

    selector: LabelSelector | None = None
    """Null means no pod, and empty every pod of the namespace."""


class PodDisruptionBudgetStatus(Wire):
    """Counts of the disruption controller."""

    disruptions_allowed: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(Object):
    """A limit on evictions of the pods that it selects."""

    spec: PodDisruptionBudgetSpec = field(default_factory=PodDisruptionBudgetSpec)
    status: PodDisruptionBudgetStatus = field(default_factory=PodDisruptionBudgetStatus)

    @property
    def allowed(self) -> int:
        """Pods that may be evicted now; 0 until the disruption controller has seen the current spec."""
        counted = self.status.observed_generation >= self.metadata.generation
        return max(0, self.status.disruptions_allowed) if counted else 0


BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", PodDisruptionBudget)
