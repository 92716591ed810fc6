"""Refusals of gangs by queues: closed queues, limits, others' guarantees, or quotas for non-preemptable gangs.

Every queue from the gang's own queue up to the root is checked, but only for the resources that the gang requests.
Limits per GPU model do not reject the gang but exclude nodes: once the limit for a model is reached, nodes with this
model are not candidates (docs/queues.md). The label `nvidia.com/gpu.product` of a node names its GPU model. Limits per
GPU model count thousandths of nvidia.com/gpu; devices that pods claim in other ways are not counted.

In a queue that is Closing or Closed, finished pods are replaced, but no workload may grow.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.tree import Shares, Sharing, above
from extender.planner.framework.answers import Causes, Codes, QueueRefusal
from extender.planner.framework.snapshot import Snapshot
from extender.planner.limits import Excess
from extender.planner.reasons.queues import GUARANTEED, NOT_OPEN, OVER_DESERVED, OVER_USER_LIMIT, OVER_WINDOW
from extender.planner.state.amounts import Amounts, sum_along
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from muster.api.muster.gang import workload_above
from muster.api.names import GPU_PRODUCT
from muster.resources.vector import GPU, PODS
from muster.volcano.queuelimits import is_model

_Workload = tuple[str, str]
"""Queue and UID of a workload."""


def refusal(excess: Excess, user: str) -> QueueRefusal:
    """Return the refusal of a gang of this user because of a limit that the gang would exceed."""
    reason, queue, resource, asked, used, limit, until, budget = excess
    amounts = {"limit": limit, "used": used, "asked": asked}
    if budget is not None:
        over = reasons.queues.over_budget(queue, budget, until=until) if until < math.inf else None
        message = over or reasons.queues.budget_left_out(queue=queue, resource=resource)
    elif reason == OVER_WINDOW:
        message = reasons.queues.over_window(queue, resource, until=until, **amounts)
    elif reason == OVER_USER_LIMIT:
        message = reasons.queues.over_user_limit(queue, resource, user=user, **amounts)
    else:
        message = reasons.queues.refusal(reason, queue, resource, **amounts)
    return QueueRefusal(reason, queue, resource, asked, used, limit, message)


def over_guarantee(
    allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts, new: Sequence[Sharing] = ()
) -> Excess | None:
    """Return others' guarantee that the queue in `row` would violate; `new` are claims that its pods do not use yet."""
    tree = allocations.tree
    if not tree.guaranteed:
        return None
    asked = np.flatnonzero(amounts > 0)
    for each, delta in allocations.growth(row, amounts, new):
        limit = tree.limit[each] if each else np.minimum(tree.limit[0], allocations.total)
        committed = allocations.committed[each]
        binds = committed > allocations.used[each]  # free capacity decides about other resources
        over = asked[(binds & (delta > 0) & (committed + delta > limit))[asked]]
        if len(over):
            return _excess(GUARANTEED, tree.names[each], axis, int(over[0]), amounts, committed, limit)
    return None


def over_quota(
    allocations: Allocations, axis: Mapping[str, int], row: int, amounts: Amounts, new: Sequence[Sharing] = ()
) -> Excess | None:
    """Return the quota that non-preemptable gangs would exceed, in the queue or in one of its ancestors."""
    tree, quota = allocations.tree, allocations.tree.quota
    counted = [(sharing.devices, above(tree, sharing.fixed)) for sharing in new]
    for each in tree.chains[row][:-1]:
        for devices in (devices for devices, rows in counted if each in rows):
            amounts = amounts - devices
        counted = [(devices, rows) for devices, rows in counted if each not in rows]
        asked = np.flatnonzero(amounts > 0)
        over = asked[allocations.fixed[each, asked] + amounts[asked] > quota[each, asked]]
        if len(over):
            name, used = allocations.tree.names[each], allocations.fixed[each]
            return _excess(OVER_DESERVED, name, axis, int(over[0]), amounts, used, quota[each])
    return None


def beyond_quota(allocations: Allocations, snapshot: Snapshot, held: Iterable[GangView]) -> frozenset[str]:
    """Return the keys of the gangs in `held` that, with earlier gangs in `held`, exceed a queue's quota.

    Gangs that cannot be evicted start only within the quota of their queue. A returned gang therefore became
    non-preemptable after its start, or the quota of its queue has been lowered.
    """
    fixed, tree = allocations.fixed, allocations.tree
    left = {row: tree.quota[row].copy() for row in range(1, len(fixed)) if bool((fixed[row] > tree.quota[row]).any())}
    beyond, counted, claims = set[str](), set[tuple[int, str]](), snapshot.limited.claims
    if not left or not tree.quoted.any():
        return frozenset()
    for gang in sorted(held, key=lambda gang: (gang.started_s or math.inf, gang.arrival)):
        amounts = snapshot.used_by(gang)
        shared = [key for key in claims.several if claims.uses[key].get(gang.queue, ("", ""))[1] == gang.key]
        for row in left.keys() & set(tree.chains[tree.row(gang.queue)]):
            left[row] -= amounts
            for key in shared:  # devices that several child queues use count once in the parent
                if (row, key) in counted:
                    left[row] += sum_along(snapshot.axis, len(amounts), claims.devices(key))
                counted.add((row, key))
            if bool((left[row] < 0)[amounts > 0].any()):
                beyond.add(gang.key)
    return frozenset(beyond)


def _excess(
    reason: str, queue: str, axis: Mapping[str, int], column: int, amounts: Amounts, use: Amounts, bounds: Shares
) -> Excess:
    resource = next(name for name, at in axis.items() if at == column)
    return Excess(reason, queue, resource, int(amounts[column]), int(use[column]), int(bounds[column]))


class ModelLimits:
    """The queues' limits per GPU model in a session; if there are no limits, no usage is computed."""

    def __init__(self, snapshot: Snapshot, causes: Causes) -> None:
        self._limits, self._causes, self._nodes = snapshot.limited.limits, causes, len(snapshot.nodes)
        self._column = snapshot.axis.get(GPU, -1)
        self._of: dict[str, NDArray[np.bool_]] = {}
        """Maps a GPU model to the mask of the nodes that have this model."""
        self._used: Counter[tuple[str, str]] = Counter()
        """Maps a queue and a GPU model to the thousandths of GPUs that the queue and its descendants use."""
        models = {model for bounds in self._limits.bounds.values() for model in bounds.annotated.by_model}
        if not models:
            return
        products = [node.metadata.labels.get(GPU_PRODUCT, "") if node else "" for node in snapshot.nodes]
        for model in models:
            meant = {product for product in set(products) if is_model(model, product)}
            self._of[model] = np.array([product in meant for product in products], dtype=np.bool_)
        for (queue, node), gpus in snapshot.gpu_use.items():
            if node in snapshot.index:
                self.place(queue, snapshot.index[node], gpus)

    def __bool__(self) -> bool:
        """Return True if a queue has a limit per GPU model."""
        return bool(self._of)

    def place(self, queue: str, column: int, gpus: int) -> None:
        """Add this many GPUs of a node, in thousandths, to the usage of a queue and its ancestors."""
        for bounds in self._limits.above(queue):
            for model in bounds.annotated.by_model:
                if self._of[model][column]:
                    self._used[bounds.queue, model] += gpus

    def gpus(self, amounts: NDArray[np.int64]) -> int:
        """Return the number of GPUs in an array along the session's resource axis."""
        return int(amounts[self._column]) if self._column >= 0 else 0

    def codes(self, queue: str, cls: PodClass) -> Codes | None:
        """Return each node's code of a limit that excludes one more pod; None if no limit applies to the pod."""
        wanted = cls.requests.get(GPU, 0)
        limited = [bounds for bounds in self._limits.above(queue) if bounds.annotated.by_model]
        if not limited or not wanted:
            return None
        codes = np.zeros(self._nodes, dtype=np.int16)
        for bounds in limited:
            for model, most in bounds.annotated.by_model.items():
                if self._used[bounds.queue, model] + wanted > most:
                    codes[self._of[model]] = self._causes.code(reasons.cause.over_model(model, bounds.queue, most))
        return codes


class ClosingSizes:
    """The number of pods that each workload in a closed queue may still add, given the tentative changes of a cycle.

    The size of a workload is the number of its pods when the planner first observes that the queue is closed. A restart
    of the planner resets the sizes. While a workload is updated, pods of its new gang may start before the pods of its
    old gang have ended.
    """

    def __init__(self) -> None:
        self._sizes: dict[_Workload, int] = {}
        self._left: dict[_Workload, int] = {}
        self._states: dict[str, str] = {}
        """Maps a queue that is Closing or Closed to its state."""
        self._axis: dict[str, int] = {}

    def begin(self, snapshot: Snapshot) -> None:
        """Count the pods of a snapshot; forget workloads that are gone or whose queue is open again."""
        self._axis = snapshot.axis
        self._states = {name: queue.status.state for name, queue in snapshot.queues.items() if not queue.open}
        sizes, running = Counter[_Workload](), Counter[_Workload]()
        gangs: dict[_Workload, list[GangView]] = {}
        for gang in snapshot.gangs if self._states else ():
            if gang.queue in self._states:
                key, ended = _workload(gang), sum(len(each.taken) - each.alive for each in gang.pod_sets)
                running[key] += sum(each.alive for each in gang.pod_sets) + snapshot.placed.get(gang.key, 0)
                if gang.group.status.phase not in {"", "Pending"}:  # the gang was admitted
                    sizes[key] += sum(max(each.replicas, len(each.taken | each.waiting)) for each in gang.pod_sets)
                    sizes[key] -= ended
                if gang.has_pods:
                    gangs.setdefault(key, []).append(gang)
        self._sizes = {key: self._sizes.get(key, size) for key, size in sizes.items()}
        extra = {key: max(each.min_member for each in found) for key, found in gangs.items() if len(found) > 1}
        self._left = {key: size + extra.get(key, 0) - running[key] for key, size in self._sizes.items()}

    def count(self, gang: GangView, pods: int) -> None:
        """Count a gang's pods in a tentative placement; a negative number subtracts pods."""
        if gang.queue in self._states and (key := _workload(gang)) in self._left:
            self._left[key] -= pods

    def refusal(self, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
        """Return a refusal if the gang's workload would exceed its size with these additional pods."""
        if not (state := self._states.get(gang.queue, "")):
            return None
        key, pods = _workload(gang), int(amounts[self._axis[PODS]]) if PODS in self._axis else 0
        if key not in self._left or pods <= max(self._left[key], 0):
            return None
        size = self._sizes[key]
        words = reasons.queues.not_growing(queue=gang.queue, state=state, size=size)
        return QueueRefusal(NOT_OPEN, gang.queue, PODS, pods, size - self._left[key], size, words)


def _workload(gang: GangView) -> _Workload:
    meta = gang.group.metadata
    owner = workload_above(meta) or meta.controller
    return gang.queue, owner.uid if owner else meta.uid
