"""Protection of a gang's pods from evictions for other gangs, by annotations and disruption budgets.

A gang is not allowed to borrow capacity that cannot be reclaimed from the gang. Therefore a gang that cannot be evicted
as a whole is limited to what its queue deserves (`fairshare.refusals`). The rules of this module also apply to victim
searches (`victims.units`).
"""

from collections import defaultdict
from collections.abc import Iterable

from extender.planner.state.gangs import GangView
from extender.planner.state.queries import requirements
from muster.api.kubernetes.quota import PodDisruptionBudget
from muster.api.limits import whole_number
from muster.api.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE
from muster.resources.labels import Requirements


class Guards:
    """The PodDisruptionBudgets of a snapshot, keyed by namespace."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._of: defaultdict[str, list[tuple[Requirements, PodDisruptionBudget]]] = defaultdict(list)
        for budget in budgets:
            if budget.spec.selector is not None:
                self._of[budget.metadata.namespace].append((requirements(budget.spec.selector), budget))
        self._versions = {
            namespace: tuple((each.metadata.uid, each.metadata.generation) for _, each in found)
            for namespace, found in self._of.items()
        }

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, namespace: str, labels: dict[str, str]) -> list[PodDisruptionBudget]:
        """Return the budgets that apply to a pod with these labels."""
        return [
            budget
            for wanted, budget in self._of.get(namespace, ())
            if all(requirement.holds(labels) for requirement in wanted)
        ]

    def can_be_taken_back(self, gang: GangView) -> bool:
        """Return True if all pods of a gang may be evicted for other gangs, so that the gang may borrow capacity.

        The result is False for gangs with `preemptable: "false"` or a budget of their own (jdb-*), and for gangs with a
        pod that a PodDisruptionBudget counts. The number of evictions that a PodDisruptionBudget allows now does not
        matter: once evicted pods wait, the budget allows no more evictions.
        """
        if not gang.preemptable or not _lets_all_go(gang):
            return False
        namespace = gang.group.metadata.namespace
        budgets = self._of.get(namespace)
        if not budgets:
            return True
        version = self._versions[namespace]
        if gang.guarded is None or (gang.guarded[0] is not version and gang.guarded[0] != version):
            labels = [*(pod.labels for pod in gang.pods), *(each.labels for each in gang.pod_sets if each.labels)]
            guarded = any(budget.keeps_pods for each in labels for budget in self.of(namespace, each))
            gang.guarded = version, guarded
        return not gang.guarded[1]


def own_allowance(gang: GangView, alive: int) -> int | None:
    """Return how many of `alive` pods the gang's own budget (annotations jdb-*) allows to evict; None: no budget."""
    said = gang.group.metadata.annotations
    if JDB_MIN_AVAILABLE in said:
        return alive - _number(said[JDB_MIN_AVAILABLE], gang, up=True)
    if JDB_MAX_UNAVAILABLE in said:
        return _number(said[JDB_MAX_UNAVAILABLE], gang, up=False) - max(0, _size(gang) - gang.taken)
    return None


def _lets_all_go(gang: GangView) -> bool:
    """Return True if the gang has no budget of its own, or a budget that allows the eviction of all its pods."""
    said = gang.group.metadata.annotations
    if JDB_MIN_AVAILABLE in said:
        return _number(said[JDB_MIN_AVAILABLE], gang, up=True) <= 0
    return JDB_MAX_UNAVAILABLE not in said or _number(said[JDB_MAX_UNAVAILABLE], gang, up=False) >= _size(gang)


def _number(text: str, gang: GangView, *, up: bool) -> int:
    """Return a number of pods, given as a number or as a percentage of the gang; an invalid text protects all pods."""
    size, number = _size(gang), whole_number(text.removesuffix("%"))
    if number is None:
        return size if up else 0
    if text.endswith("%"):
        return -(-size * number // 100) if up else size * number // 100
    return number


def _size(gang: GangView) -> int:
    return max(1, sum(pod_set.replicas for pod_set in gang.pod_sets))
