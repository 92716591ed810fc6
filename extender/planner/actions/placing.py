"""What a search of slots begins with (orders of pod sets, members' nodes), and its result as slots of a placement."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import structs

from extender.planner.ask import Ask
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from muster.api.muster.noderuns import by_rank, runs_of
from muster.api.muster.placement import PodSetPlacement, text_of_devices


def there(session: Session, statement: Statement, ask: Ask) -> dict[str, dict[int, int]] | None:
    """Map pod set and rank to the column of a bound or placed member's node; None without a topology request."""
    if ask.request is None:
        return None
    gang, found = ask.gang, session.snapshot.members_of(ask.gang)
    left = {pod.uid for eviction in statement.evictions if eviction.gang is gang for pod in eviction.pods}
    for pod in gang.pods if left else ():
        if pod.uid in left and pod.slot is not None:
            found.get(pod.slot.pod_set, {}).pop(pod.slot.rank, None)
    for operation in statement.operations:
        if operation.gang is gang:
            found.setdefault(operation.pod_set, {}).update(dict.fromkeys(operation.ranks, operation.column))
    return found


def orders_of(session: Session, gang: GangView) -> list[list[PodSetView]]:
    """Return two orders of pod sets, by descending share and as given; those with affinity to others are last."""
    if len(gang.pod_sets) <= 1:
        return [gang.pod_sets]
    share = shares_of(session)
    written = sorted(gang.pod_sets, key=follows)
    greedy = sorted(written, key=lambda pod_set: (follows(pod_set), -share(pod_set.cls)))
    return [greedy] if greedy == written else [greedy, written]


def shares_of(session: Session) -> Callable[[PodClass | None], float]:
    """Return a function for the largest fraction of the cluster that one pod of a class requests; 0 if unknown."""
    totals = np.maximum(session.snapshot.allocatable.sum(axis=1), 1)
    return lambda cls: 0.0 if cls is None else float((session.snapshot.row_of(cls) / totals).max(initial=0.0))


def gated_until_others(gang: GangView, pod_sets: Sequence[PodSetPlacement]) -> list[PodSetPlacement]:
    """Return the pod sets of a placement; set the field `held` of those whose pods stay gated at first.

    Pods with affinity to other pods stay gated until the other pods are bound, unless all pod sets have affinity to
    other pods.
    """
    followers = {pod_set.name for pod_set in gang.pod_sets if follows(pod_set)}
    some = len(followers) < len(gang.pod_sets)
    return [structs.replace(pod_set, held=some and pod_set.name in followers) for pod_set in pod_sets]


def follows(pod_set: PodSetView) -> bool:
    """Return True if the pods have affinity to pods other than themselves, possibly of the same gang."""
    together = pod_set.cls.neighbours.together if pod_set.cls else None
    return together is not None and pod_set.cls is not None and together.mark not in pod_set.cls.matched


def runs_of_operations(
    session: Session, gang: GangView, operations: Sequence[Operation], *, gated: bool = False
) -> list[PodSetPlacement]:
    """Return the slots of a placement in rank order: the slots of bound members and new slots.

    Pods with affinity to other pods stay gated until the other pods are bound. With `gated`, all pods stay gated,
    because the placement's capacity is not free yet.
    """
    slots: dict[str, dict[int, str]] = {pod_set.name: dict(pod_set.taken) for pod_set in gang.pod_sets}
    gpus: dict[str, dict[int, str]] = {name: {} for name in slots}
    for pod in gang.pods:
        if pod.devices and pod.taken and pod.slot is not None and pod.slot.pod_set in gpus:
            gpus[pod.slot.pod_set][pod.slot.rank] = text_of_devices(pod.devices)
    for operation in operations:
        node = session.snapshot.name(operation.column)
        slots[operation.pod_set] |= dict.fromkeys(operation.ranks, node)
        for rank, devices in zip(operation.ranks, operation.devices, strict=True) if operation.devices else ():
            gpus[operation.pod_set][rank] = text_of_devices(devices)
    sets = [
        PodSetPlacement(name=name, runs=runs_of(taken), held=gated, gpus=by_rank(gpus[name]))
        for name, taken in slots.items()
        if taken
    ]
    return sets if gated else gated_until_others(gang, sets)
