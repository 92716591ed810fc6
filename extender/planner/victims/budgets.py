"""PodDisruptionBudgets within a victim search: nobody is chosen whom the Eviction API would refuse.

The API server counts an eviction against the one budget that selects the pod, and refuses pods of several budgets
altogether; so does this. What is being evicted for others already is counted in the budget's status.
"""

from collections.abc import Iterable

from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import Requirements, requirements
from muster.api.kubernetes.quota import PodDisruptionBudget


class Budgets:
    """What the budgets of one session still allow. Costs nothing for pods of namespaces without one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_namespace: dict[str, list[tuple[Requirements, PodDisruptionBudget]]] = {}
        self._left: dict[str, int] = {}
        for budget in snapshot.budgets:
            if budget.spec.selector is not None:
                wanted = requirements(budget.spec.selector)
                self._by_namespace.setdefault(budget.metadata.namespace, []).append((wanted, budget))
                self._left[budget.metadata.key] = budget.allowed

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def counted(self, pod: PodRecord) -> bool:
        """Whether a budget counts this pod."""
        return bool(self._of(pod))

    def take(self, pods: Iterable[PodRecord]) -> bool:
        """Counts these evictions; False, and nothing is counted, if one of them is not allowed."""
        wanted: dict[str, int] = {}
        for pod in pods:
            keys = self._of(pod)
            if len(keys) > 1:
                return False
            for key in keys:
                wanted[key] = wanted.get(key, 0) + 1
        if any(count > self._left[key] for key, count in wanted.items()):
            return False
        for key, count in wanted.items():
            self._left[key] -= count
        return True

    def count(self, pods: Iterable[PodRecord]) -> None:
        """Counts evictions that have been decided, allowed or not."""
        for pod in pods:
            for key in self._of(pod):
                self._left[key] -= 1

    def _of(self, pod: PodRecord) -> list[str]:
        of_namespace = self._by_namespace.get(pod.namespace, ())
        return [
            budget.metadata.key
            for wanted, budget in of_namespace
            if all(requirement.holds(pod.labels) for requirement in wanted)
        ]
