"""The minResources of PodGroups against the limits of queues.

A PodGroup may ask for more than its members do: Spark's has the resources of all executors, and one member, the driver.
While such a gang has any pod, it is charged its minResources at least. So its further pods find the quota that it was
admitted with (Volcano's plugin capacity: inqueue resources). Members that have succeeded count as if they used it
still. Gangs with a template of their pods, and independent pods, are charged their pods alone.
"""

from collections.abc import Iterator

import numpy as np

from extender.planner.ask import min_resources
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts, row_along
from extender.planner.state.gangs import GangView


class MinResources:
    """The charges of gangs in one cycle, trials included."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._floors: dict[str, Amounts | None] = {}
        """Key of a gang → the least that it is charged; None: what it uses."""
        self._used: dict[str, Amounts] = {}

    def unused(self) -> Iterator[tuple[GangView, Amounts]]:
        """Yield the gangs that have pods and are charged more than the amounts of these, with the rest."""
        for gang in self._snapshot.gangs:
            floor = self._floor(gang) if gang.key in self._snapshot.gang_use else None
            if floor is not None:
                yield gang, self._charge(gang, floor) - self._used[gang.key]

    def growth(self, gang: GangView, amounts: Amounts) -> Amounts:
        """Return the growth of its charge if the gang gets these amounts more."""
        floor = self._floor(gang)
        return amounts if floor is None else self._charge(gang, floor, amounts) - self._charge(gang, floor)

    def follow(self, gang: GangView, amounts: Amounts, sign: int) -> Amounts:
        """Count what a trial gives the gang (with sign -1: takes from it); return the change of its charge."""
        change = self.growth(gang, sign * amounts)
        if gang.key in self._used:
            self._used[gang.key] = self._used[gang.key] + sign * amounts
        return change

    def _charge(self, gang: GangView, floor: Amounts, more: Amounts | int = 0) -> Amounts:
        used = self._used[gang.key] + more
        return np.maximum(used, floor) if used.any() else used

    def _floor(self, gang: GangView) -> Amounts | None:
        if gang.key not in self._floors:
            floor = self._floors[gang.key] = self._least(gang)
            if floor is not None:
                self._used[gang.key] = self._snapshot.charged_to(gang)
        return self._floors[gang.key]

    def _least(self, gang: GangView) -> Amounts | None:
        if not gang.group.spec.min_resources or gang.independent or any(each.template for each in gang.pod_sets):
            return None
        floor = row_along(self._snapshot.axis, self._snapshot.free.shape[0], min_resources(gang))
        for pod_set in gang.pod_sets:
            ended = len(pod_set.taken) - pod_set.alive
            if ended > 0 and pod_set.cls is not None:
                floor = floor - ended * self._snapshot.row_of(pod_set.cls)
        return np.maximum(floor, 0)
