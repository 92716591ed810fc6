"""Expected end times of running pods, and the resources that they free. The module does no I/O and reads no clock.

Only pods that have an expected runtime or a deadline, or are being deleted, are expected to end. A pod that exceeds its
expected runtime may end at any moment. After twice its expected runtime, a pod is no longer expected to end.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import inf
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.freecapacity import ClaimUsers
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.victims.notices import expected_to_go
from muster.api.kubernetes.meta import readable_time
from muster.api.names import DEFAULT_QUEUE

LEAST_PATIENCE_S = 60.0
"""Minimum time, in seconds, for which a running pod is still expected to end after its expected end time."""

End = tuple[float, int, Amounts, str]
"""Expected end time of a pod, the column of the pod's node, the resources that become free, and the pod's owner. The
owner is the key of the pod's gang, or the pod's own key if the pod has no gang."""


def expected_end(since: float | None, runtime_s: float | None, now: float) -> float:
    """Return a pod's expected end time in seconds since the epoch, or infinity; `since` is its start (None: now)."""
    if runtime_s is None:
        return inf
    end = (now if since is None else since) + runtime_s
    return end if now <= end + max(runtime_s, LEAST_PATIENCE_S) else inf


@dataclass(frozen=True, slots=True, eq=False)
class Releases:
    """Resources that will be freed, in order of time."""

    times: NDArray[np.float64]
    columns: NDArray[np.int64]
    rows: Amounts
    """Resources that each release frees, int64 of shape (releases, resources)."""
    owners: tuple[str, ...]

    def until(self, moment: float) -> int:
        """Return the number of releases that are expected up to this time."""
        return int(np.searchsorted(self.times, moment, side="right"))

    def freed(self, free: Amounts, count: int) -> Amounts:
        """Return a copy of the free capacity with the first `count` releases added."""
        result = free.copy()
        np.add.at(result.T, self.columns[:count], self.rows[:count])
        return result

    def gained(self, columns: NDArray[np.int64], count: int) -> Amounts:
        """Return the sum of the first `count` releases on these nodes, int64 of shape (resources, columns)."""
        result = np.zeros((self.rows.shape[1], len(columns)), dtype=np.int64)
        for index in np.flatnonzero(np.isin(self.columns[:count], columns)):
            result[:, columns == self.columns[index]] += self.rows[index][:, None]
        return result

    def when(self, columns: NDArray[np.int64], lacking: Amounts) -> float | None:
        """Return when `lacking`, int64 of shape (resources, columns), is free on these nodes; None if never."""
        left, place = lacking.copy(), {int(column): position for position, column in enumerate(columns)}
        short = int(np.count_nonzero((left > 0).any(axis=0)))
        if not short:
            return -inf
        for index in np.flatnonzero(np.isin(self.columns, columns)):
            position = place[int(self.columns[index])]
            before = bool((left[:, position] > 0).any())
            left[:, position] -= self.rows[index]
            short -= before and not (left[:, position] > 0).any()
            if not short:
                return float(self.times[index])
        return None

    def owners_in(self, columns: NDArray[np.int64], count: int) -> list[str]:
        """Return the distinct owners of the first `count` releases on these nodes, in order of time."""
        places = np.flatnonzero(np.isin(self.columns[:count], columns))
        return list(dict.fromkeys(self.owners[int(place)] for place in places))


def releases(session: Session, more: list[End]) -> Releases:
    """Return the releases of bound pods, of placed slots, and of slots that this cycle has placed (`more`)."""
    snapshot, now = session.snapshot, session.now
    pods = sorted(_pods(session), key=itemgetter(0))
    ends = [(end, (at := snapshot.index[pod.node]), snapshot.row_on(pod.cls, at), owner) for end, owner, pod in pods]
    for claim in ClaimUsers(snapshot).freed_by([[pod] for _, _, pod in pods]):
        end, owner, _ = pods[claim.users[-1]]
        ends.append((end, claim.column, claim.row, owner))
    placed = [end for gang in snapshot.gangs if gang.ends for end in _slots(snapshot, gang, now)]
    ends = sorted([*ends, *placed, *more], key=itemgetter(0))
    return Releases(
        times=np.array([end[0] for end in ends], dtype=np.float64),
        columns=np.array([end[1] for end in ends], dtype=np.int64),
        rows=np.array([end[2] for end in ends], dtype=np.int64).reshape(len(ends), snapshot.free.shape[0]),
        owners=tuple(end[3] for end in ends),
    )


def _pods(session: Session) -> Iterator[tuple[float, str, PodRecord]]:
    """Yield the expected end time, the owner and the pod for each pod on a known node that is expected to end."""
    snapshot, now = session.snapshot, session.now
    of_gangs = ((pod, gang.declared_s, gang.key) for gang in snapshot.gangs if gang.ends for pod in gang.pods)
    single = ((pod, None, pod.key) for pod in snapshot.ending)
    for pod, declared_s, owner in chain(of_gangs, single):
        if pod.uses_node and pod.node in snapshot.index and pod.uid not in snapshot.leaving:
            end = expected_end(pod.since, pod.runtime.expected_s(declared_s), now)
            if end < inf:
                yield end, owner, pod
    for pod in snapshot.leaving.values():
        if pod.gone_by and pod.node in snapshot.index and expected_to_go(session, pod):
            yield max(now, readable_time(pod.gone_by) or now), pod.gang or pod.key, pod


def _slots(snapshot: Snapshot, gang: GangView, now: float) -> Iterator[End]:
    for column, cls, runtime_s in _placed_slots(snapshot, gang):
        if runtime_s is not None:
            yield now + runtime_s, column, snapshot.row_on(cls, column), gang.key


def _placed_slots(snapshot: Snapshot, gang: GangView) -> Iterator[tuple[int, PodClass, float | None]]:
    """Yield the column, pod class and runtime in seconds of each placed slot."""
    for slot, node, pod_set in gang.placed_slots():
        cls, column = pod_set.class_of(slot.rank) if pod_set else None, snapshot.index.get(node)
        if pod_set and cls and column is not None:
            pod = pod_set.waiting.get(slot.rank)
            yield column, cls, (pod.runtime if pod else pod_set.runtime).expected_s(gang.declared_s)


def used_by_gangs(
    snapshot: Snapshot, gangs: Iterable[GangView] | None = None, without: Collection[str] = ()
) -> Amounts:
    """Return the usage of each node by gangs, int64 of shape (resources, nodes).

    Pods without a gang are not counted, because they may never end. Pods whose UID is in `without` are not counted,
    either.
    """
    used, pods = np.zeros_like(snapshot.free), list[PodRecord]()
    for gang in snapshot.gangs if gangs is None else gangs:
        for pod in gang.pods:
            column = snapshot.index.get(pod.node) if pod.uses_node and pod.uid not in without else None
            if column is not None:
                used[:, column] += snapshot.row_on(pod.cls, column)
                pods.append(pod)
        for column, cls, _ in _placed_slots(snapshot, gang):
            used[:, column] += snapshot.row_on(cls, column)
    for claim in ClaimUsers(snapshot).freed_by([pods]):
        used[:, claim.column] += claim.row
    return used


def used_by_queue(snapshot: Snapshot, queue: str) -> Amounts:
    """Return each node's usage by a queue's gangs and other pods with an expected end, without terminating pods."""
    gangs = (gang for gang in snapshot.gangs if gang.queue == queue)
    used = used_by_gangs(snapshot, gangs, without=snapshot.leaving)
    for pod in snapshot.ending:
        column = snapshot.index.get(pod.node)
        counts = pod.ours and pod.uid not in snapshot.leaving and (pod.queue or DEFAULT_QUEUE) == queue
        if column is not None and counts:
            used[:, column] += snapshot.row_on(pod.cls, column)
    return used
