"""The minResources of PodGroups, which are charged against the limits of queues.

A PodGroup may request more resources than its members. For example, Spark's PodGroup requests the resources of all
executors, but has only one member, the driver. While a gang with minResources has any pod, its queue is charged at
least the minResources. Quota therefore remains for further pods of the gang, as with the inqueue resources of Volcano's
plugin capacity. Succeeded members count as if they still used their resources. Spare slots count towards minResources,
because they become pods of the gang; devices of claims are charged in addition. For PodGroups that Muster creates, and
for independent pods, only the resources of existing pods are charged.
"""

from collections.abc import Iterator, Mapping

from extender.planner.state.amounts import clipped
from extender.planner.state.gangs import GangView
from muster.resources.vector import Vector, add, maximum, scale, subtract, vector
from muster.workloads.table import holds_min_resources


def min_resources(gang: GangView) -> Vector:
    """Return the PodGroup's minResources; empty if they cannot be parsed, which excludes the gang elsewhere."""
    try:
        return vector(gang.group.spec.min_resources or {})
    except ValueError:
        return {}


def floor_of(gang: GangView) -> Vector:
    """Return the minimum that a gang with pods is charged; empty if the gang is charged only for its pods."""
    if gang.independent or not holds_min_resources(gang.group.metadata):
        return {}
    floor = min_resources(gang)
    for pod_set in gang.pod_sets if floor else ():
        ended = len(pod_set.taken) - pod_set.alive
        if ended > 0 and pod_set.cls is not None:
            floor = subtract(floor, scale(pod_set.cls.requests, ended))
    return {resource: least for resource, amount in floor.items() if (least := clipped(amount))}


class MinResources:
    """Minimum charges of gangs with minResources, and the usage of their pods without claims, keyed by gang."""

    def __init__(self) -> None:
        self._floors: dict[str, Vector] = {}
        self._used: dict[str, Vector] = {}

    def copy(self) -> "MinResources":
        """Return a copy; the copy shares the amounts, because amounts are replaced and never changed."""
        other = MinResources()
        other._floors, other._used = dict(self._floors), dict(self._used)
        return other

    def __contains__(self, gang: str) -> bool:
        """Return True for a gang with minResources."""
        return gang in self._floors

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys of the gangs with minResources."""
        return iter(self._floors)

    def put(self, gang: str, floor: Vector, used: Vector) -> None:
        """Set the minimum charge and the usage of a gang; with an empty minimum charge, remove the gang."""
        if floor:
            self._floors[gang], self._used[gang] = floor, used
        elif gang in self._floors:
            del self._floors[gang], self._used[gang]

    def used(self, gang: str) -> Vector:
        """Return the usage of the pods of a gang with minResources."""
        return self._used[gang]

    def rest(self, gang: str) -> Vector:
        """Return the part of the gang's charge that exceeds the usage of its pods."""
        return subtract(self._charge(gang, self._used[gang]), self._used[gang]) if gang in self else {}

    def growth(self, gang: str, amounts: Mapping[str, int], sign: int = 1) -> Vector:
        """Return by how much the gang's charge grows if its pods use, or with sign -1 release, these resources."""
        if gang not in self:
            return scale(amounts, sign)
        used = self._used[gang]
        return subtract(self._charge(gang, add(used, scale(amounts, sign))), self._charge(gang, used))

    def count(self, gang: str, amounts: Mapping[str, int], sign: int = 1) -> Vector:
        """Add resources to the usage of a gang's pods (sign -1: subtract); return the growth of the gang's charge."""
        growth = self.growth(gang, amounts, sign)
        if gang in self:
            self._used[gang] = add(self._used[gang], scale(amounts, sign))
        return growth

    def _charge(self, gang: str, used: Vector) -> Vector:
        return maximum(used, self._floors[gang]) if any(used.values()) else used
