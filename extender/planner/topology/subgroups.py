"""Sub-groups of a gang by the labels of its pods, and how slots are given to one part after the other.

Both cost what is found, not the product of policies and pods, which one user chooses alike.
"""

from collections.abc import Iterator, Mapping, Sequence

from extender.planner import reasons
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import requirements
from muster.api.limits import SUB_GROUP_LOOKS, LimitError
from muster.api.volcano.scheduling import SubGroupPolicy
from muster.resources.labels import Requirements
from muster.resources.topology import Nearness, of_network

SubGroup = tuple[str, Nearness, Mapping[str, frozenset[int]]]
"""Name, nearness, pod set → ranks."""


def by_labels(pods: list[PodRecord], policies: list[SubGroupPolicy]) -> Iterator[SubGroup]:
    """Yield the sub-groups of these policies, each compared with those pods only that have a label that it demands.

    Raises LimitError where that is too much work: many policies demand no label, or one that all pods have.
    """
    table, left = _PodsByLabel(pods), SUB_GROUP_LOOKS.value
    for policy in policies:
        wanted = requirements(policy.label_selector) if policy.label_selector else ()
        candidates = table.candidates(wanted)
        left -= len(candidates) * (len(wanted) + len(policy.match_label_keys) + 1)
        if left < 0:
            raise LimitError(reasons.aside.too_many_looks(limit=SUB_GROUP_LOOKS))
        found: dict[tuple[str, ...], dict[str, set[int]]] = {}
        for pod in candidates:
            if pod.slot is not None and all(requirement.holds(pod.labels) for requirement in wanted):
                values = tuple(pod.labels.get(key, "") for key in policy.match_label_keys)
                found.setdefault(values, {}).setdefault(pod.slot.pod_set, set()).add(pod.slot.rank)
        near = of_network(policy.network_topology)
        for values, sets in sorted(found.items()):
            name = "/".join((policy.name, *values))
            yield name, near, {each: frozenset(ranks) for each, ranks in sets.items()}


class _PodsByLabel:
    """Pods found by a label."""

    def __init__(self, pods: list[PodRecord]) -> None:
        self._pods = pods
        self._by_pair: dict[tuple[str, str], list[PodRecord]] = {}
        for pod in pods:
            for pair in pod.labels.items():
                self._by_pair.setdefault(pair, []).append(pod)

    def candidates(self, wanted: Requirements) -> list[PodRecord]:
        """Return pods among which are all that fulfil the conditions: the fewest that one label tells."""
        pairs = [
            (each.key, value) for each in wanted if each.operator == "In" and len(each.values) == 1
            for value in each.values
        ]  # fmt: skip
        return min((self._by_pair.get(pair, []) for pair in pairs), key=len, default=self._pods)


class SlotsLeft:
    """Slots that are in no part yet, in their order; to take some costs what is taken, whatever is left."""

    def __init__(self, slots: Mapping[str, Sequence[int]]) -> None:
        self._left = {name: {rank: place for place, rank in enumerate(ranks)} for name, ranks in slots.items()}

    def take(self, pod_set: str, ranks: frozenset[int] | None) -> list[int]:
        """Take those of these ranks (None: all) of a pod set that are left."""
        left = self._left.get(pod_set, {})
        if ranks is None:
            taken = list(left)
            left.clear()
            return taken
        taken = sorted((rank for rank in ranks if rank in left), key=left.__getitem__)
        for rank in taken:
            del left[rank]
        return taken
